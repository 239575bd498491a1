// StringSplitV2 splits strings at a separator, or at white space.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {

void register_string_split(tw::Plugin& p) {
  p.op(R"(
      StringSplitV2(input: string [_], sep: string []) -> (indices: int64 [n, 2], values: string [n], shape: int64 [2]);
      maxsplit: int = -1; no_gradient "text has no derivative";
      doc "the parts of each text between separators, or between white space where `sep` is empty, as a sparse matrix of a row each")");
}

}  // namespace thalweg::ops
