// Regular expressions in the syntax of RE2. Matching time is linear in the length of the text, for
// any pattern.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {

void register_regex(tw::Plugin& p) {
  p.op(R"(
      StaticRegexFullMatch(input: string [*s]) -> (output: bool [*s]); pattern: string; no_gradient "text has no derivative";
      doc "whether the pattern matches each text as a whole")");
  p.op(R"(
      StaticRegexReplace(input: string [*s]) -> (output: string [*s]); pattern: string; rewrite: string; replace_global: bool = true;
      no_gradient "text has no derivative";
      doc "each text with the first match of the pattern, or all, replaced; \\1 to \\9 in `rewrite` are groups, \\0 the match")");
  p.op(R"(
      RegexFullMatch(input: string [*s], pattern: string []) -> (output: bool [*s]); no_gradient "text has no derivative";
      doc "StaticRegexFullMatch with a pattern that is computed")");
  p.op(R"(
      RegexReplace(input: string [*s], pattern: string [], rewrite: string []) -> (output: string [*s]); replace_global: bool = true;
      no_gradient "text has no derivative"; doc "StaticRegexReplace with a pattern and a replacement that are computed")");
}

}  // namespace thalweg::ops
