// StrCat over std::string_view: the one place that bridges to Abseil's string_view, which is a class of its own where the distribution
// built Abseil for C++14.
#pragma once
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace thalweg {

inline absl::string_view AbslView(std::string_view s) { return absl::string_view(s.data(), s.size()); }
inline std::string_view StdView(absl::string_view s) { return std::string_view(s.data(), s.size()); }

template <class T>
decltype(auto) AsAbsl(const T& part) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return AbslView(part);
  } else {
    return (part);
  }
}
// Strings, integers and floating-point numbers in a row.
template <class... Parts>
std::string StrCat(const Parts&... parts) {
  return absl::StrCat(AsAbsl(parts)...);
}

// ASCII letters only.
inline std::string UpperCase(std::string_view s) {
  std::string out(s);
  for (char& c : out) c = c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c;
  return out;
}

}  // namespace thalweg
