// StrCat over std::string_view. Only this file converts to Abseil's string_view, which is a
// separate class if the distribution built Abseil for C++14. Threads: any.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/strings/string_view.h"

namespace thalweg {

inline absl::string_view AbslView(std::string_view s) { return absl::string_view(s.data(), s.size()); }
inline std::string_view StdView(absl::string_view s) { return std::string_view(s.data(), s.size()); }

// One argument of StrCat: text, which is borrowed for the call, or a number.
class TextPart {
 public:
  template <class T>
  TextPart(const T& part) {  // NOLINT(runtime/explicit): parts are written as they are
    static_assert(!std::is_same_v<T, char>, "as text or as a number?");
    if constexpr (std::is_convertible_v<const T&, std::string_view>) {
      const std::string_view text = part;
      text_ = text.data();
      size_ = text.size();
    } else if constexpr (std::is_same_v<T, absl::string_view>) {
      text_ = part.data();
      size_ = part.size();
    } else if constexpr (std::is_floating_point_v<T>) {
      real_ = part;
      size_ = kReal;
    } else if constexpr (std::is_unsigned_v<T>) {
      unsigned_ = part;
      size_ = kUnsigned;
    } else {
      static_assert(std::is_signed_v<T> || std::is_enum_v<T>);
      signed_ = int64_t(part);
      size_ = kSigned;
    }
  }
  size_t text_size() const { return size_ < kSigned ? size_ : 0; }  // 0 for a number
  void AppendTo(std::string* text) const;

 private:
  static constexpr uint64_t kReal = ~uint64_t{0}, kUnsigned = kReal - 1, kSigned = kReal - 2;
  union {
    const char* text_;
    double real_;
    uint64_t unsigned_;
    int64_t signed_;
  };
  uint64_t size_;  // size of the text, or a tag for the kind of number
};

std::string Joined(std::initializer_list<TextPart> parts);

// Concatenates strings, integers and floating-point numbers (six digits). The call is inlined to a
// list of parts; otherwise each list of argument types would instantiate a function of its own.
template <class... Parts>
[[gnu::always_inline]] inline std::string StrCat(const Parts&... parts) {
  return Joined({TextPart(parts)...});
}

// Formats in lower case, padded with zeros to at least `digits` digits.
std::string Hex(uint64_t value, size_t digits = 1);

// Converts ASCII letters only.
inline std::string UpperCase(std::string_view s) {
  std::string out(s);
  for (char& c : out) c = c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c;
  return out;
}

}  // namespace thalweg
