// MirrorPadGrad: adds each element of the border to the element that it mirrors. Half and bfloat16
// are added in float.
#include <vector>

#include "kernels/common/arithmetic.h"
#include "kernels/common/parallel.h"
#include "kernels/common/temp.h"
#include "kernels/common/types.h"
#include "kernels/pad.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// Adds row `from` of an axis to row `to`. A row is the `inner` elements after the axis.
template <class T>
void AddRow(T* data, int64_t inner, int64_t from, int64_t to) {
  for (int64_t j = 0; j < inner; ++j) data[to * inner + j] = Plus(data[to * inner + j], data[from * inner + j]);
}

template <class T>
class MirrorPadGrad {
 public:
  explicit MirrorPadGrad(const tw::Node& n) : mirror_(n) {}
  void operator()(tw::Frame f, tw::In<T> input, tw::In<tw::Any> paddings, tw::Out<T> output) const {
    const Border border(paddings.v, output.v(), input.v);
    mirror_.Check(border, output.v());
    if (output.size() == 0) return;
    tw::TempVector<Wide<T>> sums(input.data(), input.data() + input.size(), f);
    for (int axis = 0; axis < input.rank(); ++axis) Fold(f.f, sums.data(), input.v, axis, border.before[axis], border.after[axis]);
    Middle(f.f, sums.data(), input.v, border, output);
  }

 private:
  void Fold(const tw_frame* f, Wide<T>* sums, const tw_view* v, int axis, int64_t before, int64_t after) const {
    const int64_t n = v->dims[axis], outer = Product(v->dims, 0, axis), inner = Product(v->dims, axis + 1, v->rank);
    ParallelFor(f, outer, Cost(before + after, inner), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        Wide<T>* rows = sums + o * n * inner;
        for (int64_t i = 0; i < before; ++i) AddRow(rows, inner, before - 1 - i, before + mirror_.skip + i);
        for (int64_t i = 0; i < after; ++i) AddRow(rows, inner, n - after + i, n - after - 1 - mirror_.skip - i);
      }
    });
  }

  static void Middle(const tw_frame* f, const Wide<T>* sums, const tw_view* v, const Border& border, const tw::Out<T>& output) {
    const int last = v->rank - 1;
    if (last < 0) {
      output[0] = T(sums[0]);
      return;
    }
    const int64_t row = output.dim(last);
    const Ints step = DenseStrides(v->dims, v->rank);
    ParallelFor(f, int64_t(output.size()) / row, row, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        int64_t from = border.before[last], rest = r;
        for (int i = last; i-- > 0; rest /= output.dim(i)) from += (rest % output.dim(i) + border.before[i]) * step[i];
        for (int64_t j = 0; j < row; ++j) output[uint64_t(r * row + j)] = T(sums[from + j]);
      }
    });
  }

  Mirror mirror_;
};

}  // namespace

void register_mirror_pad_grad(tw::Plugin& p) {
  p.kernel<MirrorPadGrad<float>, MirrorPadGrad<double>, MirrorPadGrad<half>, MirrorPadGrad<bfloat16>, MirrorPadGrad<complex64>,
           MirrorPadGrad<complex128>, MirrorPadGrad<int8_t>, MirrorPadGrad<int16_t>, MirrorPadGrad<int32_t>, MirrorPadGrad<int64_t>,
           MirrorPadGrad<uint8_t>, MirrorPadGrad<uint16_t>, MirrorPadGrad<uint32_t>, MirrorPadGrad<uint64_t>>("MirrorPadGrad @CPU");
}

}  // namespace thalweg::cpu
