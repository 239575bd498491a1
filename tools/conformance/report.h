// What is printed of the results: a line each, or JSON.
#pragma once
#include <string>
#include <vector>

#include "tools/conformance/run.h"

namespace thalweg::conformance {

std::string TextLine(const Result& r);
std::string Summary(const Options& options, const std::vector<Result>& results);
std::string JsonError(const std::string& why);
std::string JsonText(const Options& options, const std::vector<Result>& results);
std::string RuleList();
bool AnyFailed(const std::vector<Result>& results);

}  // namespace thalweg::conformance
