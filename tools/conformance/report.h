// Prints the results: one line each, JSON, or JUnit's XML.
#pragma once
#include <string>
#include <vector>

#include "tools/conformance/run.h"

namespace thalweg::conformance {

std::string TextLine(const Result& r);
std::string Summary(const Options& options, const std::vector<Result>& results);
std::string JsonError(const std::string& why);
std::string JsonText(const Options& options, const std::vector<Result>& results);
// Writes a test suite for each level and a test case for each result. A skip that prevents a level from
// being kept is a failure of type "skipped".
std::string JunitText(const Options& options, const std::vector<Result>& results);
std::string RuleList();
bool AnyFailed(const std::vector<Result>& results);
// Returns true if no rule of the level is broken, and none of its rules was skipped unless the options
// allow skips.
bool Keeps(const Options& options, const std::vector<Result>& results, int level);
// Returns true if the plugin keeps all requested levels.
bool KeepsAll(const Options& options, const std::vector<Result>& results);

}  // namespace thalweg::conformance
