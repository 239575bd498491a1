// CaseFoldUTF8 and NormalizeUTF8: texts in one of Unicode's normal forms.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {

void register_normalize(tw::Plugin& p) {
  p.op(R"(
      CaseFoldUTF8(input: string [*s]) -> (output: string [*s]); no_gradient "text has no derivative";
      doc "each text without differences of case and compatibility, by NFKC_Casefold of Unicode")");
  p.op(R"(
      NormalizeUTF8(input: string [*s]) -> (output: string [*s]); normalization_form: string; no_gradient "text has no derivative";
      doc "each text in a normalization form of Unicode")");
}

}  // namespace thalweg::ops
