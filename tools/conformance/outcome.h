// Outcome: the result of a check. A Status converts to it: ok is a pass, any other status a failure
// with its message, so RETURN_IF_ERROR works in checks. Tally: counts how many of a rule's subjects
// a check ran on.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/status.h"

namespace thalweg::conformance {

// A subject of the rule on which the check did not run.
struct Missed {
  std::string what, why;
};

struct Outcome {
  // kNone: the rule has no subject here. kSkip: the check did not run on all subjects.
  enum Kind { kPass, kNone, kSkip, kFail };
  Kind kind = kPass;
  std::string why;  // empty for a pass
  // For a check on several subjects: it ran on `ran` out of `of`. of == 0: the check has one subject.
  int64_t ran = 0, of = 0;
  std::string unit;  // "kernels"
  std::vector<Missed> missed;

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
template <class... Parts>
Outcome None(const Parts&... parts) {
  return {Outcome::kNone, StrCat(parts...)};
}

class Tally {
 public:
  // unit: a noun in the singular, such as "kernel".
  explicit Tally(std::string unit) : unit_(std::move(unit)) {}
  void Ran() { ++ran_; }
  // Counts `n` subjects of the rule on which the check did not run.
  void Missed(std::string what, std::string why, int64_t n = 1) {
    missed_.push_back({std::move(what), std::move(why)});
    n_missed_ += n;
  }
  // Adds the outcome of one subject's check: a skip counts as missed, kNone is not counted. The
  // caller handles failures.
  void Add(const std::string& what, const Outcome& o) {
    if (o.passed()) Ran();
    if (o.kind == Outcome::kSkip) Missed(what, o.why);
  }
  // Returns a pass if the check ran on all subjects, kNone if there are none, else a skip.
  Outcome End() const;

 private:
  std::string unit_;
  int64_t ran_ = 0, n_missed_ = 0;
  std::vector<conformance::Missed> missed_;
};

}  // namespace thalweg::conformance

// Returns from the check unless `expr` passed.
#define RETURN_UNLESS_PASSED(expr)                           \
  do {                                                       \
    ::thalweg::conformance::Outcome outcome_macro_ = (expr); \
    if (!outcome_macro_.passed()) return outcome_macro_;     \
  } while (0)
