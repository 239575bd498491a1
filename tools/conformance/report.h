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
// A suite a level, a case a result. A skip that keeps a level from being kept is a failure of type "skipped".
std::string JunitText(const Options& options, const std::vector<Result>& results);
std::string RuleList();
bool AnyFailed(const std::vector<Result>& results);
// No rule of that level is broken, and none that belongs to it was skipped, unless the options allow it.
bool Keeps(const Options& options, const std::vector<Result>& results, int level);
// Returns true if the plugin keeps all requested levels.
bool KeepsAll(const Options& options, const std::vector<Result>& results);

}  // namespace thalweg::conformance
