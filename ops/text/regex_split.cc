// RegexSplitWithOffsets splits texts at the matches of a regular expression.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void RegexSplitRule(const tw::Shape& s) {
  WantVector(s, 0, "input");
  for (uint32_t o = 0; o < 3; ++o) s.out(o, Dims{-1});
  s.out(3, Dims{s.known(0) ? s.calc('+', s.dim(0, 0), 1) : -1});
}

}  // namespace

void register_regex_split(tw::Plugin& p) {
  p.op<nullptr, RegexSplitRule>(R"(
      RegexSplitWithOffsets(input: string, delim_regex_pattern: string [], keep_delim_regex_pattern: string []) ->
      (tokens: string, begin_offsets: int64, end_offsets: int64, row_splits: int64); no_gradient "text has no derivative";
      doc "the parts of each text between the matches of a pattern, and the matches that are to be kept")");
}

}  // namespace thalweg::ops
