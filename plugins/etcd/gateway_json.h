// JSON in the form of etcd's gateway: members that are 0, false or empty are left out, 64-bit numbers
// are texts, and bytes are in base64. Threads: values, no sharing.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "../common/json_value.h"

namespace thalweg::etcd {

using common::JsonValue;

// Throws Failed (UNAVAILABLE) if the text is no JSON.
JsonValue ParseAnswer(std::string_view text);
// Returns the value of a number or of a text of digits; 0 for other values.
uint64_t NumberIn(const JsonValue& value);
// Decodes a text in base64.
std::string BytesIn(const JsonValue& value);

std::string Base64(std::string_view bytes);

}  // namespace thalweg::etcd
