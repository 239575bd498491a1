// The record of a step as a RunMetadata message, by which TensorBoard colours a graph with times and
// memory. Threads: any.
#pragma once
#include <string>

namespace thalweg {

class StepStats;

std::string RunMetadataOf(const StepStats& stats);

}  // namespace thalweg
