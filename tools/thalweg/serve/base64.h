// Base64 (RFC 4648, section 4), in which TensorFlow Serving's protocol has bytes.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "charged_text.h"

namespace thalweg::cli::serve {

void AppendBase64(std::string_view bytes, ChargedText* out);
// Returns nothing for a text that is not base64. The padding may be left out. Takes memory for at most FromBase64Bytes.
std::optional<std::string> FromBase64(std::string_view text);
inline size_t FromBase64Bytes(std::string_view text) { return text.size() / 4 * 3 + 3; }

}  // namespace thalweg::cli::serve
