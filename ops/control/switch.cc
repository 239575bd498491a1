// Switch and Merge form branches. The framework runs them itself; there are no kernels. RefSwitch,
// RefMerge and RefSelect do the same with references.
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

// Outputs the sizes that all inputs from `first` on have in common.
void Common(const tw::Shape& s, uint32_t first) {
  MaybeDims all = In(s, first);
  for (uint32_t i = first + 1; all && i < s.c->n_in; ++i) {
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
}

// The output is the input that arrives first, so it has the common shape.
void MergeRule(const tw::Shape& s) {
  Common(s, 0);
  if (s.c->n_in == 1) KeepHandle(s, 0, 0);
}

void SelectRule(const tw::Shape& s) {
  WantScalar(s, 0, "index");
  Common(s, 1);
}

void SelectHandleRule(const tw::Shape& s) {
  SelectRule(s);
  if (s.c->n_in == 2) KeepHandle(s, 1, 0);
}

}  // namespace

void register_switch(tw::Plugin& p) {
  p.op<nullptr, SwitchRule>(R"(
      Switch(data: T, pred: bool) -> (output_false: T, output_true: T); T: type; role switch;
      no_gradient "what it hands on is in a branch; differentiate what leaves the branch";
      doc "hands `data` on by the one output that `pred` says")");
  p.op<nullptr, MergeRule>(R"(
      Merge(inputs: T * N) -> (output: T, value_index: int32[]); T: type; N: int >= 1; role merge;
      no_gradient "it ends no branch of a condition"; doc "the first of its inputs that comes, and which it is")");
#define REF "no_gradient \"a reference has no gradient; that of a variable is asked for by its handle\"; "
  p.op<nullptr, SwitchRule>(
      "RefSwitch(data: ref(T), pred: bool) -> (output_false: ref(T), output_true: ref(T)); T: type; runs_as Switch; " REF
      "doc \"Switch of a reference\"");
  p.op<nullptr, MergeRule>(
      "RefMerge(inputs: ref(T) * N) -> (output: ref(T), value_index: int32[]); T: type; N: int >= 1; runs_as Merge; " REF
      "doc \"Merge of references\"");
  p.op<nullptr, SelectRule>(
      "RefSelect(index: int32[], inputs: ref(T) * N) -> (output: ref(T)); T: type; N: int >= 1; runs_as _SelectHandle; " REF
      "doc \"the reference of that number\"");
#undef REF
  p.op<nullptr, SelectHandleRule>(
      "_SelectHandle(index: int32[], inputs: resource * N) -> (output: resource); N: int >= 1; "
      "no_gradient \"a handle is no number\"; doc \"the handle of that number\"");
}

}  // namespace thalweg::ops
