// Split, SplitV and Unpack: the parts of a tensor along an axis; Unpack drops the axis.
#include "kernels/common/copy.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// Cuts the axis of flat input `input` into as many equal parts as there are outputs.
void Cut(const tw_frame* f, uint32_t input, int axis, const tw::ManyOut<tw::Any>& parts) {
  const tw_view* value = f->in[input];
  if (value->count == 0 || parts.size() == 0) return;
  if (value->dims[axis] % parts.size() != 0)
    throw tw::Error{TW_INTERNAL, "axis " + std::to_string(axis) + " of " + DimsText(value) + " does not divide into " +
                                     std::to_string(parts.size()) + " parts"};
  const int64_t outer = Product(value->dims, 0, axis), row = int64_t(value->count) / outer, run = row / parts.size();
  for (uint32_t i = 0; i < parts.size(); ++i) {
    Box box;
    box.Add(outer, row, run);
    box.Add(run, 1, 1);
    CutBox(f, box, input, i * run, parts[i]);
  }
}

void Split(tw::Frame f, tw::In<int32_t> split_dim, tw::In<tw::Any> value, tw::ManyOut<tw::Any> output) {
  Cut(f.f, f.f->in_at[1], Axis(split_dim[0], value.rank(), "split_dim"), output);
}

// The parts have the sizes that the shape rule derived from size_splits.
void SplitSized(tw::Frame f, tw::In<tw::Any> value, tw::In<tw::Any>, tw::In<int32_t> split_dim, tw::ManyOut<tw::Any> output) {
  const int axis = Axis(split_dim[0], value.rank(), "split_dim");
  int64_t at = 0, size = value.dim(axis);
  for (uint32_t i = 0; i < output.size(); ++i) size -= output[i].dim(axis);
  if (size != 0) throw tw::Error{TW_INTERNAL, "the parts do not add up to " + DimsText(value.v)};
  const int64_t outer = Product(value.dims(), 0, axis), inner = Product(value.dims(), axis + 1, value.rank());
  for (uint32_t i = 0; i < output.size(); ++i) {
    const int64_t run = output[i].dim(axis) * inner;
    Box box;
    box.Add(outer, value.dim(axis) * inner, run);
    box.Add(run, 1, 1);
    CutBox(f.f, box, f.f->in_at[0], at, output[i]);
    at += run;
  }
}

class Unpack {
 public:
  explicit Unpack(const tw::Node& n) : axis_(n.i("axis")) {}
  void operator()(tw::Frame f, tw::In<tw::Any> value, tw::ManyOut<tw::Any> output) const {
    const int axis = Axis(axis_, value.rank());
    if (value.dim(axis) != int64_t(output.size())) {
      throw tw::Error{TW_INTERNAL, "axis " + std::to_string(axis) + " of " + DimsText(value.v) + " does not unpack into " +
                                       std::to_string(output.size()) + " tensors"};
    }
    Cut(f.f, f.f->in_at[0], axis, output);
  }

 private:
  int64_t axis_;
};

}  // namespace

void register_split(tw::Plugin& p) {
  p.kernel<Split>("Split @CPU");
  p.kernel<SplitSized>("SplitV @CPU");
  p.kernel<Unpack>("Unpack @CPU");
}

}  // namespace thalweg::cpu
