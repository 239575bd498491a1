// What every shim shares: the check for NULL, the door that exceptions do not pass, and texts out of records. A shim is a check, a
// call, a conversion.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "framework/base/status.h"
#include "framework/base/thread_reserve.h"

namespace thalweg {

// The calling thread has what it needs so that memory may run out in it (thread_reserve.h): looked at where a program enters the library.
bool ThreadEnters() noexcept;

// As Guard, for what a program calls.
template <class F>
tw_status* Enter(F&& body) noexcept {
  if (!ThreadEnters()) [[unlikely]]
    return NoMemoryForThread();
  return Guard(std::forward<F>(body));
}

// "tw_graph_find: name is NULL". The macro below leaves the shim with it.
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

// A record filled by the caller: at least as large as the first version of it, and no flags that we do not know.
inline Status CheckRecord(std::string_view name, uint32_t size, uint32_t flags, uint32_t first_size) {
  if (size < first_size) {
    return InvalidArgument("record ", name, " says size ", size, ", which is less than ", first_size, "; set size to sizeof(", name, ")");
  }
  if (flags != 0) return InvalidArgument("record ", name, " has flags ", flags, "; this version knows none");
  return Status();
}

// Whether a record that the caller filled reaches as far as this field, which came after its first version.
#define HAS_FIELD(record, field) ((record).size >= offsetof(std::remove_cvref_t<decltype(record)>, field) + sizeof((record).field))

inline std::string TextOrEmpty(const char* text) { return text ? text : ""; }

}  // namespace thalweg
