// Outcome: what a check found. A Status converts: ok is a pass, anything else a failure with its message, so RETURN_IF_ERROR works in
// checks.
#pragma once
#include <string>

#include "framework/base/status.h"

namespace thalweg::conformance {

struct Outcome {
  enum Kind { kPass, kSkip, kFail };
  Kind kind = kPass;
  std::string why;  // of a skip or a failure

  Outcome() = default;
  Outcome(Kind k, std::string w) : kind(k), why(std::move(w)) {}
  Outcome(const Status& s) {  // NOLINT: a status is an outcome
    if (s.ok()) return;
    kind = kFail;
    why = Message(s);
  }
  bool passed() const { return kind == kPass; }
};

template <class... Parts>
Outcome Fail(const Parts&... parts) {
  return {Outcome::kFail, StrCat(parts...)};
}
template <class... Parts>
Outcome Skip(const Parts&... parts) {
  return {Outcome::kSkip, StrCat(parts...)};
}

}  // namespace thalweg::conformance

// Leaves the check unless `expr` passed.
#define RETURN_UNLESS_PASSED(expr)                           \
  do {                                                       \
    ::thalweg::conformance::Outcome outcome_macro_ = (expr); \
    if (!outcome_macro_.passed()) return outcome_macro_;     \
  } while (0)
