// Texts of users in messages. Threads: pure functions.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace thalweg::common {

// Returns `s` for messages: in quotes, shortened, with \xNN for each byte that is not printable.
inline std::string Quoted(std::string_view s) {
  constexpr size_t kMost = 60;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "'";
  for (const char c : s.substr(0, kMost)) {
    if (c >= ' ' && c <= '~') {
      text += c;
    } else {
      const auto byte = uint8_t(c);
      text += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return text + (s.size() > kMost ? "...'" : "'");
}

}  // namespace thalweg::common
