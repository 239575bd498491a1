// Shows a session's plan for a run: `inspect --plan`.
#pragma once
#include "command.h"
#include "thalweg/cpp/thalweg.hpp"

namespace thalweg::cli {

// Options that select the run: --fetch, --target, --feed-shape and those of a session.
std::vector<Option> PlanOptions();
// Prints the plan as a table or, with --json, in the library's own form.
void PrintPlan(const Args& args, const tw::Graph& graph);

}  // namespace thalweg::cli
