// Elements of string tensors. A string is a run of arbitrary bytes, including zeros and broken
// UTF-8. Threads: pure functions.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_COMMON_TEXT_H_
#define THALWEG_PLUGINS_CPU_KERNELS_COMMON_TEXT_H_

#include <string>
#include <string_view>

#include "common/quoted.h"
#include "kernels/common/element.h"

namespace thalweg::cpu {

using common::Quoted;

inline std::string_view View(const tw_string& s) { return {s.data, size_t(s.size)}; }

// ASCII white space, independent of the process's locale.
constexpr bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

inline std::string_view Stripped(std::string_view s) {
  while (!s.empty() && IsSpace(s.front())) s.remove_prefix(1);
  while (!s.empty() && IsSpace(s.back())) s.remove_suffix(1);
  return s;
}

// Returns "'input'[1, 0] is 'text'", the beginning of a message about element i.
inline std::string ElementText(const char* name, const tw_view* v, uint64_t i) {
  return "'" + std::string(name) + "'" + (v->rank > 0 ? PositionText(v, i) : "") + " is " + Quoted(View(StringAt(v, i)));
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_COMMON_TEXT_H_
