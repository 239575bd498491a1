// Switch and Merge: branches. The framework runs them itself; there are no kernels.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void KeepHandle(const tw::Shape& s, uint32_t in, uint32_t out) {
  if (s.type_in(in) != TW_RESOURCE) return;
  uint32_t type = 0;
  tw_shape shape{};
  s.handle(in, &type, &shape);
  s.set_handle(out, type, shape);
}

void SwitchRule(const tw::Shape& s) {
  WantScalar(s, 1, "pred");
  for (uint32_t o = 0; o < 2; ++o) {
    s.out(o, s.in(0));
    KeepHandle(s, 0, o);
  }
}

// Whichever comes: the sizes that all inputs have in common.
void MergeRule(const tw::Shape& s) {
  MaybeDims all = In(s, 0);
  for (uint32_t i = 1; all && i < s.c->n_in; ++i) {
    const MaybeDims other = In(s, i);
    if (!other || other->size() != all->size()) {
      all.reset();
      break;
    }
    for (size_t k = 0; k < all->size(); ++k) {
      if (!SameSize((*all)[k], (*other)[k])) (*all)[k] = -1;
    }
  }
  Set(s, 0, all);
  if (s.c->n_in == 1) KeepHandle(s, 0, 0);
}

}  // namespace

void register_switch(tw::Plugin& p) {
  p.op<nullptr, SwitchRule>(R"(
      Switch(data: T, pred: bool) -> (output_false: T, output_true: T); T: type; role switch;
      no_gradient "a branch to be differentiated is built with If"; doc "hands `data` on by the one output that `pred` says")");
  p.op<nullptr, MergeRule>(R"(
      Merge(inputs: T * N) -> (output: T, value_index: int32[]); T: type; N: int >= 1; role merge;
      no_gradient "a branch to be differentiated is built with If"; doc "the first of its inputs that comes, and which it is")");
}

}  // namespace thalweg::ops
