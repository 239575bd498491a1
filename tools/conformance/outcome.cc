#include "tools/conformance/outcome.h"

#include <algorithm>

namespace thalweg::conformance {

Outcome Tally::End() const {
  Outcome o;
  o.ran = ran_;
  o.of = ran_ + n_missed_;
  o.unit = o.of == 1 ? unit_ : unit_ + "s";
  o.missed = missed_;
  if (o.of == 0) return None("there is no ", unit_, " that it speaks of");
  if (n_missed_ == 0) return o;
  o.kind = Outcome::kSkip;
  constexpr size_t kShown = 3;
  for (size_t i = 0; i < std::min(missed_.size(), kShown); ++i) {
    o.why += StrCat(i ? "; " : "not on ", missed_[i].what, " (", missed_[i].why, ")");
  }
  if (missed_.size() > kShown) o.why += StrCat("; and ", missed_.size() - kShown, " more, which --json lists");
  return o;
}

}  // namespace thalweg::conformance
