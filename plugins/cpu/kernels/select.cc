// Select and SelectV2: choose elements of one tensor or of another by a third one.
#include <bit>
#include <type_traits>

#include "kernels/bits.h"
#include "kernels/common/broadcast.h"
#include "kernels/common/copy.h"
#include "kernels/common/parallel.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

struct Steps {
  int64_t condition, t, e;
};

// Uses masks rather than a branch, which the processor would mispredict for random conditions.
template <class T>
T Pick(bool c, T yes, T no) {
  if constexpr (std::is_integral_v<T>) {
    const T mask = T(0 - T(c));
    return T((yes & mask) | (no & T(~mask)));
  } else {
    return c ? yes : no;
  }
}

template <class T>
void Choose(const bool* c, const T* t, const T* e, T* to, Steps s, int64_t n) {
  if (s.condition == 0) {
    const T* from = *c ? t : e;
    const int64_t step = *c ? s.t : s.e;
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * step];
  } else if (s.t && s.e) {
    for (int64_t i = 0; i < n; ++i) to[i] = Pick(c[i], t[i], e[i]);
  } else if (s.t) {
    const T no = *e;
    for (int64_t i = 0; i < n; ++i) to[i] = Pick(c[i], t[i], no);
  } else {
    const T yes = *t;
    for (int64_t i = 0; i < n; ++i) to[i] = Pick(c[i], yes, e[i * s.e]);
  }
}

// `condition` is a scalar or broadcasts; all three inputs broadcast to the output.
void Walk(const tw_frame* f, const BitsTable& bits, const tw_view* condition, const tw_view* t, const tw_view* e, const tw_view* out) {
  CheckMovable(out->dtype);
  if (out->count == 0) return;
  const Broadcast<3> walk(out, {condition, t, e});
  const int last = walk.rank - 1;
  const Steps steps{walk.step[0][last], walk.step[1][last], walk.step[2][last]};
  const bool* c = reinterpret_cast<const bool*>(Bytes(condition));
  if (ElementBytes(out->dtype) == 0) {
    return walk.ForSegments(0, int64_t(out->count), [&](const int64_t* from, int64_t to, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        const bool yes = c[from[0] + i * steps.condition];
        CopyRun(f, yes ? t : e, yes ? from[1] + i * steps.t : from[2] + i * steps.e, out, to + i, 1);
      }
    });
  }
  const bool dense = steps.condition && steps.t && steps.e && ElementBytes(out->dtype) <= 8;
  const ChooseLoop choose = dense ? bits.choose[std::countr_zero(ElementBytes(out->dtype))] : nullptr;
  BySize(ElementBytes(out->dtype), [&](auto type) {
    using T = decltype(type);
    ParallelFor(f, int64_t(out->count), 1, [&](int64_t begin, int64_t end) {
      walk.ForSegments(begin, end, [&](const int64_t* from, int64_t to, int64_t n) {
        const T *yes = reinterpret_cast<const T*>(Bytes(t)) + from[1], *no = reinterpret_cast<const T*>(Bytes(e)) + from[2];
        T* z = reinterpret_cast<T*>(Bytes(out)) + to;
        choose ? choose(c + from[0], yes, no, z, n) : Choose(c + from[0], yes, no, z, steps, n);
      });
    });
  });
}

class SelectV2 {
 public:
  explicit SelectV2(const tw::Node& n) : bits_(&TW_CPU_FOR_ISA(DetectIsa(n.host()), Bits)) {}
  void operator()(tw::Frame f, tw::In<bool> condition, tw::In<tw::Any> t, tw::In<tw::Any> e, tw::Out<tw::Any> output) const {
    Walk(f.f, *bits_, condition.v, t.v, e.v, output.v());
  }

 private:
  const BitsTable* bits_;
};

// The older op: the condition has the shape of the others, or is a scalar, or a vector with one
// entry per row.
class Select {
 public:
  explicit Select(const tw::Node& n) : bits_(&TW_CPU_FOR_ISA(DetectIsa(n.host()), Bits)) {}
  void operator()(tw::Frame f, tw::In<bool> condition, tw::In<tw::Any> t, tw::In<tw::Any> e, tw::Out<tw::Any> output) const {
    if (condition.rank() != 1 || t.rank() <= 1) return Walk(f.f, *bits_, condition.v, t.v, e.v, output.v());
    if (condition.dim(0) != t.dim(0))
      Invalid("condition has " + std::to_string(condition.dim(0)) + " entries for " + std::to_string(t.dim(0)) + " rows");
    Ints dims;
    dims.push(condition.dim(0));
    while (dims.n < t.rank()) dims.push(1);
    tw_view rows = *condition.v;
    rows.dims = dims.at;
    rows.rank = dims.n;
    Walk(f.f, *bits_, &rows, t.v, e.v, output.v());
  }

 private:
  const BitsTable* bits_;
};

}  // namespace

void register_select(tw::Plugin& p) {
  p.kernel<SelectV2>("SelectV2 @CPU; inplace output=t; inplace output=e");
  p.kernel<Select>("Select @CPU; inplace output=t; inplace output=e");
}

}  // namespace thalweg::cpu
