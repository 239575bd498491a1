// Ops about shapes. They read sizes, never elements.
#include <algorithm>
#include <limits>

#include "kernels/common/element.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

template <class T>
T Fit(int64_t size, const char* what) {
  if (size > int64_t(std::numeric_limits<T>::max()))
    Invalid(std::string(what) + " " + std::to_string(size) + " does not fit int32; ask for out_type int64");
  return static_cast<T>(size);
}

template <class T>
void WriteShape(const tw::In<tw::Any>& x, const tw::Out<T>& y) {
  for (int32_t i = 0; i < x.rank(); ++i) y[uint64_t(i)] = Fit<T>(x.dim(i), "size");
}
template <class T>
void Shape(tw::In<tw::Any> input, tw::Out<T> output) {
  WriteShape(input, output);
}
template <class T>
void ShapeN(tw::Many<tw::Any> input, tw::ManyOut<T> output) {
  for (uint32_t i = 0; i < input.size(); ++i) WriteShape(input[i], output[i]);
}
template <class T>
void Size(tw::In<tw::Any> input, tw::Out<T> output) {
  output[0] = Fit<T>(int64_t(input.size()), "the number of elements");
}
void Rank(tw::In<tw::Any> input, tw::Out<int32_t> output) { output[0] = input.rank(); }

// Returns entry i of a shape, or 1 if it has no such axis.
template <class T>
int64_t SizeOf(const tw::In<T>& shape, int64_t i) {
  return i < 0 ? 1 : int64_t(shape[uint64_t(i)]);
}

// Computes the axes over which each of two gradients is summed if their inputs were broadcast to
// one shape.
template <class T>
void BroadcastGradientArgs(tw::In<T> s0, tw::In<T> s1, tw::Out<T> r0, tw::Out<T> r1) {
  const int64_t n0 = int64_t(s0.size()), n1 = int64_t(s1.size()), rank = std::max(n0, n1);
  Ints reduce0, reduce1;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t d0 = SizeOf(s0, i - (rank - n0)), d1 = SizeOf(s1, i - (rank - n1));
    if (d0 != d1 && d0 != 1 && d1 != 1) {
      Invalid("shapes do not broadcast: axis " + std::to_string(i) + " of " + std::to_string(rank) + " has size " + std::to_string(d0) +
              " in s0 and " + std::to_string(d1) + " in s1");
    }
    // If both sizes are 1, both lists name the axis, as in TensorFlow; a sum over it changes
    // nothing.
    if (d0 == 1) reduce0.push(i);
    if (d1 == 1) reduce1.push(i);
  }
  auto write = [](const Ints& axes, const tw::Out<T>& r) {
    const int64_t dims[] = {axes.n};
    Allocate(r, dims, 1);
    for (int i = 0; i < axes.n; ++i) r[uint64_t(i)] = T(axes[i]);
  };
  write(reduce0, r0);
  write(reduce1, r1);
}

template <class T>
std::string ListText(const tw::In<T>& shape) {
  std::string s;
  for (uint64_t i = 0; i < shape.size(); ++i) s += (i ? ", " : "") + std::to_string(shape[i]);
  return "[" + s + "]";
}

// Computes the shape to which tensors of two shapes broadcast.
template <class T>
void BroadcastArgs(tw::In<T> s0, tw::In<T> s1, tw::Out<T> r0) {
  const int64_t n0 = int64_t(s0.size()), n1 = int64_t(s1.size()), rank = std::max(n0, n1);
  const int64_t dims[] = {rank};
  Allocate(r0, dims, 1);
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t d0 = SizeOf(s0, i - (rank - n0)), d1 = SizeOf(s1, i - (rank - n1));
    if (d0 != d1 && d0 != 1 && d1 != 1) Invalid("s0 is " + ListText(s0) + " and s1 is " + ListText(s1) + ", shapes that do not broadcast");
    r0[uint64_t(i)] = T(d0 == 1 ? d1 : d0);
  }
}

}  // namespace

void register_shape(tw::Plugin& p) {
  p.kernel<Shape<int32_t>, Shape<int64_t>>("Shape @CPU; cheap");
  p.kernel<ShapeN<int32_t>, ShapeN<int64_t>>("ShapeN @CPU; cheap");
  p.kernel<Size<int32_t>, Size<int64_t>>("Size @CPU; cheap");
  p.kernel<Rank>("Rank @CPU; cheap");
  p.kernel<BroadcastArgs<int32_t>, BroadcastArgs<int64_t>>("BroadcastArgs @CPU; cheap");
  p.kernel<BroadcastGradientArgs<int32_t>, BroadcastGradientArgs<int64_t>>("BroadcastGradientArgs @CPU; cheap");
}

}  // namespace thalweg::cpu
