// ReverseV2: reverses the order of elements along some axes.
#include "kernels/common/copy.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

void Reverse(tw::Frame f, tw::In<tw::Any> tensor, tw::In<tw::Any> axes, tw::Out<tw::Any> output) {
  bool turned[kMaxRank] = {};
  for (uint64_t i = 0; i < axes.size(); ++i) {
    const int axis = Axis(IndexAt(axes.v, i), tensor.rank());
    if (turned[axis]) Invalid("axis " + std::to_string(axis) + " is named twice");
    turned[axis] = true;
  }
  if (tensor.size() == 0) return;
  const Ints step = DenseStrides(tensor.dims(), tensor.rank());
  int64_t at = 0;
  Box box;
  for (int32_t i = 0; i < tensor.rank(); ++i) {
    if (turned[i]) at += (tensor.dim(i) - 1) * step[i];
    box.Add(tensor.dim(i), turned[i] ? -step[i] : step[i], step[i]);
  }
  CopyBox(f.f, box, tensor.v, at, output.v(), 0);
}

}  // namespace

void register_reverse(tw::Plugin& p) { p.kernel<Reverse>("ReverseV2 @CPU"); }

}  // namespace thalweg::cpu
