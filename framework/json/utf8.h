// Bytes of unknown origin (names, paths, values) as text for people. Stands alone, so that tools may use it too.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace thalweg {

// The bytes of the character that `text` begins with; 0 if that is no UTF-8.
size_t Utf8Length(std::string_view text);

// One line of UTF-8: control characters and bytes that are no UTF-8 are spelled out, as \n, \t or \xNN.
std::string OneLine(std::string_view text);

}  // namespace thalweg
