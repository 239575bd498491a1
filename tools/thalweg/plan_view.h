// What a session plans for a run: `inspect --plan`.
#pragma once
#include "command.h"
#include "thalweg/cpp/thalweg.hpp"

namespace thalweg::cli {

// The options that say which run: --fetch, --target, --feed-shape and those of a session.
std::vector<Option> PlanOptions();
// As a table or, with --json, as the library has it.
void PrintPlan(const Args& args, const tw::Graph& graph);

}  // namespace thalweg::cli
