// JSON of unknown origin, by nlohmann-json, with bounds on its depth and on the memory that its values take.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "request_memory.h"

namespace thalweg::cli::serve {

// Parses a whole text. Throws HttpError: 400 for what is no JSON, for NaN and Infinity, which JSON does not have, for nesting beyond
// 100 and for a key that an object has twice; 413 if the values need more than `memory` bytes; those of Charge::Add. charge: pays
// for the values, so it must live as long as they do.
nlohmann::json ParseJson(std::string_view text, uint64_t memory, Charge* charge);

// Describes a value for a message: "7", "\"text\"", "a list of 3". Long texts are cut.
std::string Shown(const nlohmann::json& value);

// Returns the member, or NULL if the object does not have it.
const nlohmann::json* Member(const nlohmann::json& object, const char* key);

}  // namespace thalweg::cli::serve
