// Pad and PadV2: zeros (or empty strings), or a given value, around a tensor.
#include "kernels/pad.h"

#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// Copies the input into the middle of the output.
void Inside(const tw_frame* f, const tw_view* input, const Border& border, const tw_view* output) {
  const Ints from = DenseStrides(input->dims, input->rank), to = DenseStrides(output->dims, output->rank);
  int64_t at = 0;
  Box box;
  for (int i = 0; i < input->rank; ++i) {
    at += border.before[i] * to[i];
    box.Add(input->dims[i], from[i], to[i]);
  }
  CopyBox(f, box, input, 0, output, at);
}

void Pad(tw::Frame f, tw::In<tw::Any> input, tw::In<tw::Any> paddings, tw::Out<tw::Any> output) {
  const Border border(paddings.v, input.v, output.v());
  if (input.size() != output.size()) FillZero(f.f, output.v());
  Inside(f.f, input.v, border, output.v());
}

void PadValue(tw::Frame f, tw::In<tw::Any> input, tw::In<tw::Any> paddings, tw::In<tw::Any> value, tw::Out<tw::Any> output) {
  const Border border(paddings.v, input.v, output.v());
  if (input.size() != output.size()) FillRun(f.f, value.v, output.v(), 0, int64_t(output.size()));
  Inside(f.f, input.v, border, output.v());
}

// Fills one axis after the other, from the last: later axes have their border already, earlier ones
// not yet.
class MirrorPad {
 public:
  explicit MirrorPad(const tw::Node& n) : mirror_(n) {}
  void operator()(tw::Frame f, tw::In<tw::Any> input, tw::In<tw::Any> paddings, tw::Out<tw::Any> output) const {
    const Border border(paddings.v, input.v, output.v());
    mirror_.Check(border, input.v);
    const tw_view* to = output.v();
    const Ints step = DenseStrides(to->dims, to->rank);
    Inside(f.f, input.v, border, to);
    Ints begin, size;  // of the part that is filled
    for (int i = 0; i < to->rank; ++i) begin.push(border.before[i]), size.push(input.dim(i));
    for (int axis = to->rank; axis-- > 0;) {
      const int64_t first = border.before[axis], last = first + size[axis] - 1;
      begin[axis] = 0;
      Reflect(f.f, to, step, begin, size, axis, first - 1, first + mirror_.skip, first);
      Reflect(f.f, to, step, begin, size, axis, last + 1, last - mirror_.skip, border.after[axis]);
      size[axis] = to->dims[axis];
    }
  }

 private:
  // Copies n elements of the axis from `from_at` on to `to_at` on, in mirrored order.
  static void Reflect(const tw_frame* f, const tw_view* to, const Ints& step, const Ints& begin, const Ints& size, int axis, int64_t to_at,
                      int64_t from_at, int64_t n) {
    if (n == 0) return;
    const int64_t up = from_at > to_at ? 1 : -1;
    int64_t base = 0;
    Box box;
    for (int i = 0; i < to->rank; ++i) {
      base += begin[i] * step[i];
      box.Add(i == axis ? n : size[i], i == axis ? up * step[i] : step[i], i == axis ? -up * step[i] : step[i]);
    }
    CopyBox(f, box, to, base + from_at * step[axis], to, base + to_at * step[axis]);
  }

  Mirror mirror_;
};

}  // namespace

void register_pad(tw::Plugin& p) {
  p.kernel<Pad>("Pad @CPU");
  p.kernel<PadValue>("PadV2 @CPU");
  p.kernel<MirrorPad>("MirrorPad @CPU");
}

}  // namespace thalweg::cpu
