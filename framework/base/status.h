// Statuses inside the runtime: absl::Status, made with Error(code, parts...). The C handle tw_status wraps one.
// Threads: values, no sharing.
#pragma once
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "framework/base/strings.h"
#include "thalweg/types.h"

// One failure. `text` caches the NUL-terminated message for C, `node` is the name of the node that
// failed, `place` is where the program created that node ("" if unknown), and `cookie` is CookieOf.
struct tw_status {
  absl::Status status;
  std::string text, node, place;
  uint64_t cookie = 0;
};

namespace thalweg {

using Status = absl::Status;
template <class T>
using StatusOr = absl::StatusOr<T>;

// Cold: code that leads to a failure is compiled for size, apart from the code that steps run.
[[gnu::cold]] Status MakeError(absl::StatusCode code, std::initializer_list<TextPart> parts);
template <class... Parts>
[[gnu::always_inline]] inline Status Error(absl::StatusCode code, const Parts&... parts) {
  return MakeError(code, {TextPart(parts)...});
}
template <class... Parts>
[[gnu::always_inline]] inline Status InvalidArgument(const Parts&... parts) {
  return Error(absl::StatusCode::kInvalidArgument, parts...);
}
template <class... Parts>
[[gnu::always_inline]] inline Status NotFound(const Parts&... parts) {
  return Error(absl::StatusCode::kNotFound, parts...);
}
template <class... Parts>
[[gnu::always_inline]] inline Status FailedPrecondition(const Parts&... parts) {
  return Error(absl::StatusCode::kFailedPrecondition, parts...);
}
template <class... Parts>
[[gnu::always_inline]] inline Status Internal(const Parts&... parts) {
  return Error(absl::StatusCode::kInternal, parts...);
}
template <class... Parts>
[[gnu::always_inline]] inline Status Unimplemented(const Parts&... parts) {
  return Error(absl::StatusCode::kUnimplemented, parts...);
}
template <class... Parts>
[[gnu::always_inline]] inline Status AlreadyExists(const Parts&... parts) {
  return Error(absl::StatusCode::kAlreadyExists, parts...);
}
template <class... Parts>
[[gnu::always_inline]] inline Status ResourceExhausted(const Parts&... parts) {
  return Error(absl::StatusCode::kResourceExhausted, parts...);
}
template <class... Parts>
[[gnu::always_inline]] inline Status DataLoss(const Parts&... parts) {
  return Error(absl::StatusCode::kDataLoss, parts...);
}

std::string_view Message(const Status& s);

// Returns the same code and payloads with another message.
Status WithMessage(const Status& s, std::string_view message);

// The same code, with `where` and a space in front of the message.
Status Prefix(const Status& s, std::string_view where);

// Attaches the name of the graph node that failed, unless the status already names one. The message
// does not change.
Status OfNode(std::string_view node, Status s);
// Also attaches the place in the program where the node was created ("" if unknown).
Status OfNode(std::string_view node, std::string_view place, Status s);

// OutOfCall counts one more function call that the failure propagated out of; CallsLeft returns
// that count.
Status OutOfCall(Status s);
uint32_t CallsLeft(const Status& s);

// WithCookie attaches a number of the program's to the status, unless it is 0; CookieOf returns the
// number, or 0.
Status WithCookie(Status s, uint64_t cookie);
uint64_t CookieOf(const Status& s);

// Convert to and from the C handle. ToC returns NULL for ok. FromC takes ownership of the handle
// and accepts NULL as ok.
tw_status* ToC(Status s) noexcept;
Status FromC(tw_status* s);

// Converts the exception being handled to a status. REQUIRES: called in a catch clause.
Status Thrown() noexcept;

// Runs `body`, which returns a Status, and converts any exception to a status. It is the boundary
// between C++ and the C ABI.
template <class F>
tw_status* Guard(F&& body) noexcept {
  try {
    Status s = body();
    if (s.ok()) return nullptr;
    return ToC(std::move(s));
  } catch (...) {
    return ToC(Thrown());
  }
}

}  // namespace thalweg

#define THALWEG_CAT2(a, b) a##b
#define THALWEG_CAT(a, b) THALWEG_CAT2(a, b)
// Returns the status from the calling function unless it is ok.
#define RETURN_IF_ERROR(expr)                      \
  do {                                             \
    ::thalweg::Status status_macro_ = (expr);      \
    if (!status_macro_.ok()) return status_macro_; \
  } while (0)
// ASSIGN_OR_RETURN(auto x, F()): assigns the value of the StatusOr to x, or returns its status.
#define ASSIGN_OR_RETURN(lhs, expr) ASSIGN_OR_RETURN_IMPL(THALWEG_CAT(status_or_, __LINE__), lhs, expr)
#define ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                          \
  if (!tmp.ok()) return tmp.status();         \
  lhs = *std::move(tmp)
