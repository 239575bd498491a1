// Writes JSON values as YAML, for people to read. Threads: any.
#pragma once
#include <string>

#include "json_value.h"

namespace thalweg::cli {

// Returns a document in block style, which ends with an end of line. Texts are quoted as in JSON,
// so that no text is read as a number or as true.
std::string YamlText(const JsonValue& value);

}  // namespace thalweg::cli
