// Add, AddV2, Sub, Mul of float tensors that broadcast. Axes that both inputs walk in one stride are merged first, so nearly every pair of
// shapes comes down to one or two axes. See elementwise.cl.
#include <algorithm>
#include <array>

#include "kernels/map.h"
#include "kernels/register.h"

namespace thalweg::opencl {
namespace {

constexpr size_t kOuterAxes = 8;  // the vectors of the broadcast functions hold so many

struct Axis {
  cl_ulong size, a_step, b_step;
};

struct Axes {
  std::array<Axis, 1 + kOuterAxes> axis;  // innermost first
  size_t count = 0;
};

// How far the neighbour along axis `i` of y is in x, whose rank may be smaller; 0 where x repeats. *inner: elements of x below the axis.
cl_ulong Step(const tw_view& x, int32_t y_rank, int32_t i, cl_ulong* inner) {
  const int32_t at = i - (y_rank - x.rank);
  if (at < 0 || x.dims[at] == 1) return 0;
  const cl_ulong step = *inner;
  *inner *= cl_ulong(x.dims[at]);
  return step;
}

// The axes of y without those of size 1, neighbours merged where both inputs allow it.
Axes MergedAxes(const tw_view& a, const tw_view& b, const tw_view& y) {
  Axes axes;
  cl_ulong a_inner = 1, b_inner = 1;
  for (int32_t i = y.rank - 1; i >= 0; --i) {
    const Axis axis{cl_ulong(y.dims[i]), Step(a, y.rank, i, &a_inner), Step(b, y.rank, i, &b_inner)};
    if (axis.size == 1) continue;
    Axis* below = axes.count ? &axes.axis[axes.count - 1] : nullptr;
    if (below && axis.a_step == below->a_step * below->size && axis.b_step == below->b_step * below->size) {
      below->size *= axis.size;
      continue;
    }
    if (axes.count == axes.axis.size())
      throw tw::Error{TW_UNIMPLEMENTED, "inputs " + tw::text(a.dims, a.rank) + " and " + tw::text(b.dims, b.rank) + " change more than " +
                                            std::to_string(kOuterAxes) +
                                            " times between axes that repeat and axes that do not; reshape them, or place the op on a CPU"};
    axes.axis[axes.count++] = axis;
  }
  return axes;
}

class Elementwise {
 public:
  Elementwise(const tw::Node& n, const char* same, const char* broadcast)
      : same_(n, same), broadcast_(n, broadcast), width_(broadcast_.device().tile().width) {}

  void operator()(tw::In<float> a, tw::In<float> b, tw::Out<float> y, tw::Frame frame) const {
    if (y.size() == 0) return;
    if (a.size() == y.size() && b.size() == y.size()) return same_.Run(frame.f, y.size(), a.v, b.v, y.v());
    const Axes axes = MergedAxes(*a.v, *b.v, *y.v());
    cl_ulong8 sizes{}, a_steps{}, b_steps{};
    cl_ulong outer = 1;
    for (size_t k = 1; k < axes.count; ++k) {
      sizes.s[k - 1] = axes.axis[k].size;
      a_steps.s[k - 1] = axes.axis[k].a_step;
      b_steps.s[k - 1] = axes.axis[k].b_step;
      outer *= axes.axis[k].size;
    }
    const Axis& inner = axes.axis[0];  // there is one: a shape without axes to walk has the size of y
    const Range items{(inner.size + width_ - 1) / width_, outer};
    broadcast_.Run(frame.f, items, Group(items.x), a.v, b.v, y.v(), inner.size, outer, inner.a_step, inner.b_step, cl_uint(axes.count - 1),
                   sizes, a_steps, b_steps);
  }

 private:
  // Few shapes of group only, because a driver may compile a function again for each.
  Range Group(size_t row_items) const {
    const size_t items = GroupSize(broadcast_), x = row_items >= 64 ? 256 : row_items >= 4 ? 16 : 1;
    return {std::min(items, x), items / std::min(items, x)};
  }

  Map same_;
  Kernel broadcast_;
  size_t width_;
};

struct Add : Elementwise {
  explicit Add(const tw::Node& n) : Elementwise(n, "add_same", "add_broadcast") {}
};
struct Sub : Elementwise {
  explicit Sub(const tw::Node& n) : Elementwise(n, "sub_same", "sub_broadcast") {}
};
struct Mul : Elementwise {
  explicit Mul(const tw::Node& n) : Elementwise(n, "mul_same", "mul_broadcast") {}
};

}  // namespace

void register_elementwise(tw::Plugin& p) {
  p.kernel<Add>("Add @OPENCL; inplace z=x");
  p.kernel<Add>("AddV2 @OPENCL; inplace z=x");
  p.kernel<Sub>("Sub @OPENCL; inplace z=x");
  p.kernel<Mul>("Mul @OPENCL; inplace z=x");
}

}  // namespace thalweg::opencl
