// Ops that move elements, as copies with different steps: Transpose, Concat, ConcatV2, Pack,
// Unpack, Split, SplitV, Slice, StridedSlice and its gradient, Pad, PadV2, MirrorPad, Tile,
// BroadcastTo, Fill, ZerosLike, ReverseV2 and OneHot. Also MirrorPadGrad.
#include "kernels/copy.h"

#include <algorithm>
#include <numeric>

#include "kernels/register.h"

namespace thalweg::opencl {

const char* MovedAs(uint32_t dtype) {
  switch (ElementBytes(dtype)) {
    case 1: return "uint8";
    case 2: return "uint16";
    case 4: return "uint32";
    case 8: return "uint64";
    case 16: return "complex128";
    default: throw tw::Error{TW_UNIMPLEMENTED, "elements of type " + tw::dtype_text(dtype) + " do not live on OpenCL devices"};
  }
}

namespace {

std::vector<int64_t> Integers(const tw_view* v) {
  std::vector<int64_t> list;
  if (!tw::integers(v, &list)) Invalid("an index of type " + tw::dtype_text(v->dtype) + " is no integer");
  return list;
}

size_t Axis(int64_t axis, int64_t rank, const char* name) {
  if (axis < -rank || axis >= rank) Invalid(std::string(name) + " is " + tw::text(axis) + ", outside of rank " + tw::text(rank));
  return size_t(axis < 0 ? axis + rank : axis);
}

class Transpose {
 public:
  explicit Transpose(const tw::Node& n) : copy_(n, n.type_in(0)) {}
  void operator()(tw::Frame frame) const {
    const tw_view *x = frame.f->in[0], *y = frame.f->out[0];
    const Dims dims = DimsOf(y), from = DenseSteps(DimsOf(x));
    const std::vector<int64_t> perm = Integers(frame.f->in[1]);
    Dims steps(dims.size());
    for (size_t k = 0; k < dims.size(); ++k) steps[k] = from[Axis(perm[k], x->rank, "perm")];
    copy_.Run(frame.f, dims, At(x), steps, At(y), DenseSteps(dims));
  }

 private:
  Copy copy_;
};

// Copies tensors one after the other along an axis of y, with y's steps. pack: each fills one place
// of that axis.
void Join(const Copy& copy, const tw_frame* f, uint32_t first, uint32_t count, const tw_view* y, size_t axis, bool pack) {
  const Dims steps = DenseSteps(DimsOf(y));
  const Together together(f);
  int64_t at = 0;
  for (uint32_t k = first; k < first + count; ++k) {
    Dims dims = DimsOf(f->in[k]);
    if (pack) dims.insert(dims.begin() + int64_t(axis), 1);
    copy.Run(f, dims, At(f->in[k]), DenseSteps(dims), At(y).After(at * steps[axis]), steps);
    at += dims[axis];
  }
}

class Concat {
 public:
  explicit Concat(const tw::Node& n) : axis_first_(std::string_view(n.node->op, n.node->op_len) == "Concat"), copy_(n, n.type_out(0)) {}
  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const tw_view* axis = f->in[axis_first_ ? 0 : f->n_in - 1];
    Join(copy_, f, axis_first_, f->n_in - 1, f->out[0], Axis(Integers(axis).at(0), f->out[0]->rank, "axis"), false);
  }

 private:
  bool axis_first_;
  Copy copy_;
};

class Pack {
 public:
  explicit Pack(const tw::Node& n) : axis_(n.i("axis")), copy_(n, n.type_out(0)) {}
  void operator()(tw::Frame frame) const {
    Join(copy_, frame.f, 0, frame.f->n_in, frame.f->out[0], Axis(axis_, frame.f->out[0]->rank, "axis"), true);
  }

 private:
  int64_t axis_;
  Copy copy_;
};

// Copies parts of x along an axis to the outputs. unpack: each part is one place of that axis.
void Cut(const Copy& copy, const tw_frame* f, const tw_view* x, size_t axis, bool unpack) {
  const Dims steps = DenseSteps(DimsOf(x));
  const Together together(f);
  int64_t at = 0;
  for (uint32_t k = 0; k < f->n_out; ++k) {
    Dims dims = DimsOf(f->out[k]);
    if (unpack) dims.insert(dims.begin() + int64_t(axis), 1);
    copy.Run(f, dims, At(x).After(at * steps[axis]), steps, At(f->out[k]), DenseSteps(dims));
    at += dims[axis];
  }
}

class Split {
 public:
  explicit Split(const tw::Node& n)
      : lengths_(std::string_view(n.node->op, n.node->op_len) == "SplitV"), copy_(n, n.type_in(lengths_ ? 0 : 1)) {}
  void operator()(tw::Frame frame) const {
    const tw_view *x = frame.f->in[lengths_ ? 0 : 1], *axis = frame.f->in[lengths_ ? 2 : 0];
    Cut(copy_, frame.f, x, Axis(Integers(axis).at(0), x->rank, "split_dim"), false);
  }

 private:
  bool lengths_;
  Copy copy_;
};

class Unpack {
 public:
  explicit Unpack(const tw::Node& n) : axis_(n.i("axis")), copy_(n, n.type_in(0)) {}
  void operator()(tw::Frame frame) const { Cut(copy_, frame.f, frame.f->in[0], Axis(axis_, frame.f->in[0]->rank, "axis"), true); }

 private:
  int64_t axis_;
  Copy copy_;
};

class Slice {
 public:
  explicit Slice(const tw::Node& n) : copy_(n, n.type_in(0)) {}
  void operator()(tw::Frame frame) const {
    const tw_view *x = frame.f->in[0], *y = frame.f->out[0];
    const std::vector<int64_t> begin = Integers(frame.f->in[1]);
    const Dims steps = DenseSteps(DimsOf(x)), dims = DimsOf(y);
    int64_t first = 0;
    for (size_t k = 0; k < dims.size(); ++k) {
      if (begin[k] < 0 || begin[k] + dims[k] > x->dims[k])
        Invalid("begin " + tw::text(begin.data(), x->rank) + " and size " + tw::text(y->dims, y->rank) + " leave the input " +
                tw::text(x->dims, x->rank));
      first += begin[k] * steps[k];
    }
    copy_.Run(frame.f, dims, At(x).After(first), steps, At(y), DenseSteps(dims));
  }

 private:
  Copy copy_;
};

// The elements that StridedSlice reads: those of `dims`, `steps` apart, from `first` on.
struct Strides {
  int64_t first = 0;
  Dims dims, steps;
};

class Slicing {
 public:
  explicit Slicing(const tw::Node& n)
      : begin_(n.i("begin_mask")),
        end_(n.i("end_mask")),
        ellipsis_(n.i("ellipsis_mask")),
        new_(n.i("new_axis_mask")),
        shrink_(n.i("shrink_axis_mask")) {}

  // The entries are those of a Python subscript, in order; `...` stands for all axes that the
  // others leave.
  Strides Of(const Dims& dims, const std::vector<int64_t>& begin, const std::vector<int64_t>& end, const std::vector<int64_t>& by) const {
    const Dims dense = DenseSteps(dims);
    Strides s;
    size_t axis = 0, taken = 0;
    bool open = false;
    for (size_t k = 0; k < begin.size(); ++k)
      if (!Bit(ellipsis_, k) && !Bit(new_, k)) ++taken;
    const auto whole = [&](size_t to) {
      for (; axis < to; ++axis) s.dims.push_back(dims[axis]), s.steps.push_back(dense[axis]);
    };
    for (size_t k = 0; k < begin.size(); ++k) {
      if (Bit(ellipsis_, k) && !open) {
        open = true;
        whole(axis + (dims.size() > taken ? dims.size() - taken : 0));
      } else if (!Bit(new_, k)) {
        if (axis >= dims.size()) Invalid("more entries than the input has axes");
        Take(dims[axis], dense[axis], k, begin[k], end[k], by[k], &s);
        ++axis;
      }
    }
    whole(dims.size());
    return s;
  }

 private:
  static bool Bit(int64_t mask, size_t k) { return mask >> k & 1; }
  void Take(int64_t size, int64_t step, size_t k, int64_t begin, int64_t end, int64_t by, Strides* s) const {
    if (by == 0) Invalid("strides[" + std::to_string(k) + "] is 0");
    if (Bit(shrink_, k)) {
      const int64_t at = begin < 0 ? begin + size : begin;
      if (at < 0 || at >= size) Invalid("slice index " + tw::text(begin) + " of dimension " + std::to_string(k) + " out of bounds");
      s->first += at * step;
      return;
    }
    const int64_t low = by > 0 ? 0 : -1, high = by > 0 ? size : size - 1;
    const auto inside = [&](int64_t v) { return std::clamp(v < 0 ? v + size : v, low, high); };
    const int64_t from = Bit(begin_, k) ? (by > 0 ? low : high) : inside(begin), to = Bit(end_, k) ? (by > 0 ? high : low) : inside(end);
    const int64_t room = by > 0 ? to - from : from - to, stride = by > 0 ? by : -by;
    s->dims.push_back(room > 0 ? (room - 1) / stride + 1 : 0);
    s->steps.push_back(step * by);
    s->first += from * step;
  }

  int64_t begin_, end_, ellipsis_, new_, shrink_;
};

class StridedSlice {
 public:
  explicit StridedSlice(const tw::Node& n) : slicing_(n), copy_(n, n.type_in(0)) {}
  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const Strides s = slicing_.Of(DimsOf(f->in[0]), Integers(f->in[1]), Integers(f->in[2]), Integers(f->in[3]));
    if (f->out[0]->count) copy_.Run(f, s.dims, At(f->in[0]).After(s.first), s.steps, At(f->out[0]), DenseSteps(s.dims));
  }

 private:
  Slicing slicing_;
  Copy copy_;
};

class StridedSliceGrad {
 public:
  explicit StridedSliceGrad(const tw::Node& n) : slicing_(n), copy_(n, n.type_out(0)) {}
  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const Strides s = slicing_.Of(DimsOf(f->out[0]), Integers(f->in[1]), Integers(f->in[2]), Integers(f->in[3]));
    if (Count(s.dims) != int64_t(f->in[4]->count))
      Invalid("dy " + tw::text(f->in[4]->dims, f->in[4]->rank) +
              " is not what the slice reads: " + tw::text(s.dims.data(), int32_t(s.dims.size())));
    copy_.Zero(f, Size(f->out[0]->count), At(f->out[0]));
    copy_.Run(f, s.dims, At(f->in[4]), DenseSteps(s.dims), At(f->out[0]).After(s.first), s.steps);
  }

 private:
  Slicing slicing_;
  Copy copy_;
};

class Pad {
 public:
  explicit Pad(const tw::Node& n) : copy_(n, n.type_in(0)) {}
  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const tw_view *x = f->in[0], *y = f->out[0];
    const std::vector<int64_t> paddings = Integers(f->in[1]);
    const Dims dims = DimsOf(x), steps = DenseSteps(DimsOf(y));
    int64_t first = 0;
    for (size_t k = 0; k < dims.size(); ++k) first += paddings[2 * k] * steps[k];
    if (f->n_in == 3)
      copy_.Fill(f, Size(y->count), At(f->in[2]), At(y));
    else
      copy_.Zero(f, Size(y->count), At(y));
    copy_.Run(f, dims, At(x), DenseSteps(dims), At(y).After(first), steps);
  }

 private:
  Copy copy_;
};

// Mirrored padding between the inner tensor and the padded one, innermost axis first.
struct Mirroring {
  Axes inside, outside;
  Steps before;
};

Mirroring MirroringOf(const tw_view* inside, const tw_view* outside, const tw_view* list, bool border) {
  if (inside->rank > MOST_AXES) throw tw::Error{TW_UNIMPLEMENTED, "more than 8 axes; reshape, or place the op on a CPU"};
  const std::vector<int64_t> paddings = Integers(list);
  Mirroring m{{inside->rank, {}}, {inside->rank, {}}, {}};
  for (int32_t k = 0; k < inside->rank; ++k) {
    const int32_t axis = inside->rank - 1 - k;
    const int64_t most = std::max<int64_t>(0, inside->dims[axis] - (border ? 0 : 1));
    for (int side = 0; side < 2; ++side)
      if (paddings[size_t(2 * axis + side)] < 0 || paddings[size_t(2 * axis + side)] > most)
        Invalid("paddings of axis " + tw::text(axis) + " must lie in [0, " + tw::text(most) + "], but one is " +
                tw::text(paddings[size_t(2 * axis + side)]));
    m.inside.size[k] = inside->dims[axis], m.outside.size[k] = outside->dims[axis], m.before.by[k] = paddings[size_t(2 * axis)];
  }
  return m;
}

// Declines tensors of more axes than a kernel takes, where the rank is known.
void DeclineManyAxes(const tw::Node& n) {
  if (n.shape_in(0).rank <= MOST_AXES) return;
  throw tw::Error{TW_UNIMPLEMENTED,
                  "the input has " + tw::text(n.shape_in(0).rank) + " axes; the most are " + tw::text(int64_t{MOST_AXES})};
}

Steps SizesOf(const Axes& axes) {
  Steps sizes{};
  std::copy_n(axes.size, MOST_AXES, sizes.by);
  return sizes;
}

class MirrorPad {
 public:
  explicit MirrorPad(const tw::Node& n)
      : border_(n.s("mode") == "SYMMETRIC"), kernel_(n, ProgramText({{"T", MovedAs(n.type_in(0))}}, {"copy.h"}), "mirror") {}
  static void fits(const tw::Node& n) { DeclineManyAxes(n); }
  void operator()(tw::Frame frame) const {
    const tw_view *x = frame.f->in[0], *y = frame.f->out[0];
    const Mirroring m = MirroringOf(x, y, frame.f->in[1], border_);
    kernel_.RunTasks(frame.f, Size(y->count), Size(x->rank), At(x), At(y), Size(y->count), m.outside, SizesOf(m.inside), m.before,
                     Size(border_));
  }

 private:
  bool border_;
  Kernel kernel_;
};

class MirrorPadGrad {
 public:
  explicit MirrorPadGrad(const tw::Node& n)
      : border_(n.s("mode") == "SYMMETRIC"),
        kernel_(n, ProgramText({{"T", tw::dtype_text(n.type_in(0))}}, {"mirror_grad.h"}), "mirror_grad") {}
  static void fits(const tw::Node& n) { DeclineManyAxes(n); }
  void operator()(tw::Frame frame) const {
    const tw_view *x = frame.f->in[0], *y = frame.f->out[0];
    const Mirroring m = MirroringOf(y, x, frame.f->in[1], border_);
    kernel_.RunTasks(frame.f, Size(y->count), Size(9 * y->rank), At(x), At(y), Size(y->count), m.inside, SizesOf(m.outside), m.before,
                     Size(!border_));
  }

 private:
  bool border_;
  Kernel kernel_;
};

class Tile {
 public:
  explicit Tile(const tw::Node& n) : copy_(n, n.type_in(0)) {}
  void operator()(tw::Frame frame) const {
    const tw_view *x = frame.f->in[0], *y = frame.f->out[0];
    const Dims steps = DenseSteps(DimsOf(x));
    Dims dims, from;
    for (int32_t k = 0; k < x->rank; ++k) {
      const int64_t size = x->dims[k];
      dims.insert(dims.end(), {size ? y->dims[k] / size : 0, size});
      from.insert(from.end(), {0, steps[size_t(k)]});
    }
    if (y->count) copy_.Run(frame.f, dims, At(x), from, At(y), DenseSteps(dims));
  }

 private:
  Copy copy_;
};

class BroadcastTo {
 public:
  explicit BroadcastTo(const tw::Node& n) : input_(n.node->op_len == 4), copy_(n, n.type_out(0)) {}
  void operator()(tw::Frame frame) const {
    const tw_view *x = frame.f->in[input_], *y = frame.f->out[0];
    const Dims dims = DimsOf(y);
    copy_.Run(frame.f, dims, At(x), BroadcastSteps(DimsOf(x), dims), At(y), DenseSteps(dims));
  }

 private:
  uint32_t input_;  // the input with the value; Fill has its shape first
  Copy copy_;
};

class ZerosLike {
 public:
  explicit ZerosLike(const tw::Node& n) : copy_(n, n.type_out(0)) {}
  void operator()(tw::Frame frame) const { copy_.Zero(frame.f, Size(frame.f->out[0]->count), At(frame.f->out[0])); }

 private:
  Copy copy_;
};

class Reverse {
 public:
  explicit Reverse(const tw::Node& n) : copy_(n, n.type_in(0)) {}
  void operator()(tw::Frame frame) const {
    const tw_view *x = frame.f->in[0], *y = frame.f->out[0];
    const Dims dims = DimsOf(x);
    Dims steps = DenseSteps(dims);
    int64_t first = 0;
    for (int64_t a : Integers(frame.f->in[1])) {
      const size_t axis = Axis(a, x->rank, "axis");
      if (steps[axis] < 0) Invalid("axis " + tw::text(a) + " is named twice");
      first += (dims[axis] - 1) * steps[axis];
      steps[axis] = -steps[axis];
    }
    if (y->count) copy_.Run(frame.f, dims, At(x).After(first), steps, At(y), DenseSteps(dims));
  }

 private:
  Copy copy_;
};

class OneHot {
 public:
  explicit OneHot(const tw::Node& n)
      : axis_(n.i("axis")), kernel_(n, ProgramText({{"T", MovedAs(n.type_out(0))}}, {"copy.h"}), "one_hot") {}
  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const tw_view *x = f->in[0], *y = f->out[0];
    if (y->count == 0) return;
    const size_t axis = axis_ < 0 ? size_t(x->rank) : size_t(axis_);
    const Dims dims = DimsOf(y);
    const Size depth = dims[axis], inner = std::accumulate(dims.begin() + int64_t(axis) + 1, dims.end(), Size(1), std::multiplies<>());
    const Temporary indices(kernel_.device(), Integers(x));
    kernel_.RunTasks(f, Size(y->count), Size(4), indices.place(), At(f->in[2]), At(f->in[3]), At(y), Size(y->count) / (depth * inner),
                     depth, inner);
  }

 private:
  int64_t axis_;
  Kernel kernel_;
};

constexpr const char* kMovable[] = {"float", "double", "half",   "bfloat16", "int8", "int16",     "int32",     "int64",
                                    "uint8", "uint16", "uint32", "uint64",   "bool", "complex64", "complex128"};

void AddFor(tw::Plugin& p, const std::string& t) {
  for (const std::string i : {"int32", "int64"}) {
    p.kernel<Transpose>("Transpose(" + t + ", " + i + " -> " + t + ") @OPENCL; host perm");
    p.kernel<Concat>("ConcatV2(" + t + ", " + i + " -> " + t + ") @OPENCL; host axis");
    p.kernel<Slice>("Slice(" + t + ", " + i + ", " + i + " -> " + t + ") @OPENCL; host begin size");
    p.kernel<StridedSlice>("StridedSlice(" + t + ", " + i + ", " + i + ", " + i + " -> " + t + ") @OPENCL; host begin end strides");
    p.kernel<StridedSliceGrad>("StridedSliceGrad(" + i + ", " + i + ", " + i + ", " + i + ", " + t + " -> " + t +
                               ") @OPENCL; host shape begin end strides");
    p.kernel<Pad>("Pad(" + t + ", " + i + " -> " + t + ") @OPENCL; host paddings");
    p.kernel<Pad>("PadV2(" + t + ", " + i + ", " + t + " -> " + t + ") @OPENCL; host paddings");
    p.kernel<MirrorPad>("MirrorPad(" + t + ", " + i + " -> " + t + ") @OPENCL; host paddings");
    p.kernel<Tile>("Tile(" + t + ", " + i + " -> " + t + ") @OPENCL; host multiples");
    p.kernel<BroadcastTo>("BroadcastTo(" + t + ", " + i + " -> " + t + ") @OPENCL; host shape");
    p.kernel<BroadcastTo>("Fill(" + i + ", " + t + " -> " + t + ") @OPENCL; host dims");
    p.kernel<Reverse>("ReverseV2(" + t + ", " + i + " -> " + t + ") @OPENCL; host axis");
    p.kernel<Split>("SplitV(" + t + ", " + i + ", int32 -> " + t + ") @OPENCL; host size_splits split_dim");
    p.kernel<OneHot>("OneHot(" + i + ", int32, " + t + ", " + t + " -> " + t + ") @OPENCL; host indices depth");
  }
  p.kernel<Concat>("Concat(int32, " + t + " -> " + t + ") @OPENCL; host concat_dim");
  p.kernel<Split>("Split(int32, " + t + " -> " + t + ") @OPENCL; host split_dim");
  p.kernel<Pack>("Pack(" + t + " -> " + t + ") @OPENCL");
  p.kernel<Unpack>("Unpack(" + t + " -> " + t + ") @OPENCL");
  p.kernel<ZerosLike>("ZerosLike(" + t + " -> " + t + ") @OPENCL");
}

}  // namespace

void register_copy(tw::Plugin& p) {
  for (const char* t : kMovable) AddFor(p, t);
  for (const std::string t : {"float", "double", "half", "bfloat16", "int32", "int64"})
    for (const std::string i : {"int32", "int64"})
      p.kernel<MirrorPadGrad>("MirrorPadGrad(" + t + ", " + i + " -> " + t + ") @OPENCL; host paddings");
}

}  // namespace thalweg::opencl
