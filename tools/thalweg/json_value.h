// Parsed JSON, the library's reports and traces among it, and its text. JsonValue is the plugins'.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "../../plugins/common/json_value.h"

namespace thalweg::cli {

using common::JsonValue;

// Returns the value as JSON on one line. Members in `instead` replace the members of the same names.
std::string JsonText(const JsonValue& value, const std::vector<std::pair<std::string, std::string>>& instead = {});

}  // namespace thalweg::cli
