// StringLength and Substr return the length and a part of each string.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void SubstrRule(const tw::Shape& s) {
  const MaybeDims range = Merge(s, In(s, 1), In(s, 2), "the shapes of 'pos' and 'len'");
  const MaybeDims input = In(s, 0);
  if (!Broadcastable(input, range))
    Fail("'input' is " + Text(input) + ", 'pos' and 'len' are " + Text(range) + "; they must broadcast to one shape");
  Set(s, 0, Broadcast(input, range));
}

}  // namespace

void register_substr(tw::Plugin& p) {
  p.op(R"(
      StringLength(input: string [*s]) -> (output: int32 [*s]); unit: {"BYTE", "UTF8_CHAR"} = "BYTE";
      no_gradient "text has no derivative"; doc "the length of each text, in bytes or in characters of UTF-8")");
  p.op<nullptr, SubstrRule>(R"(
      Substr(input: string, pos: T, len: T) -> (output: string); T: {int32, int64}; unit: {"BYTE", "UTF8_CHAR"} = "BYTE";
      no_gradient "text has no derivative";
      doc "of each text `len` bytes or characters from `pos` on, counted from the end if negative; a negative `len` is the rest")");
}

}  // namespace thalweg::ops
