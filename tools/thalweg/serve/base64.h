// Base64 (RFC 4648, section 4), in which TensorFlow Serving's protocol has bytes.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace thalweg::cli::serve {

std::string ToBase64(std::string_view bytes);
// Returns nothing for a text that is not base64. The padding may be left out.
std::optional<std::string> FromBase64(std::string_view text);

}  // namespace thalweg::cli::serve
