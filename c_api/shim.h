// Shared parts of the shims: the NULL check, the exception barrier, and texts of records. A shim is
// a check, a call, a conversion.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "framework/base/status.h"
#include "framework/base/thread_reserve.h"

namespace thalweg {

// Called where a program enters the library: reserves for the calling thread what it needs when
// memory runs out (thread_reserve.h). Returns false if that fails.
bool ThreadEnters() noexcept;

// As Guard, for functions that a program calls.
template <class F>
tw_status* Enter(F&& body) noexcept {
  if (!ThreadEnters()) [[unlikely]]
    return NoMemoryForThread();
  return Guard(std::forward<F>(body));
}

// Makes "tw_graph_find: name is NULL". The macro below returns it from the shim.
[[gnu::cold]] inline tw_status* NullArgument(std::string_view function, std::string_view argument) {
  return Enter([&] { return InvalidArgument(function, ": ", argument, " is NULL"); });
}
#define NEED(argument)                                                    \
  do {                                                                    \
    if (!(argument)) return ::thalweg::NullArgument(__func__, #argument); \
  } while (0)

// For an array that may be NULL only when it is empty.
#define NEED_ARRAY(array, n)  \
  do {                        \
    if ((n) > 0) NEED(array); \
  } while (0)

// Checks a record of the caller: it must be at least as large as the first version, and have no
// unknown flags.
inline Status CheckRecord(std::string_view name, uint32_t size, uint32_t flags, uint32_t first_size) {
  if (size < first_size) {
    return InvalidArgument("record ", name, " says size ", size, ", which is less than ", first_size, "; set size to sizeof(", name, ")");
  }
  if (flags != 0) return InvalidArgument("record ", name, " has flags ", flags, "; this version knows none");
  return Status();
}

// True if a record of the caller reaches as far as this field, which a later version added.
#define HAS_FIELD(record, field) ((record).size >= offsetof(std::remove_cvref_t<decltype(record)>, field) + sizeof((record).field))

inline std::string TextOrEmpty(const char* text) { return text ? text : ""; }

}  // namespace thalweg
