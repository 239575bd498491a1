// Element-wise kernels of one input, or of two that broadcast.
#include "kernels/kernel.h"
#include "kernels/register.h"

namespace thalweg::fake {
namespace {

// Returns the stride of x along each axis of y, or 0 if x repeats. The rank of x may be smaller.
Dims Steps(const Dims& x, const Dims& y) {
  Dims steps(y.size(), 0);
  int64_t step = 1;
  for (size_t i = x.size(); i-- > 0;) {
    if (x[i] != 1) steps[i + y.size() - x.size()] = step;
    step *= x[i];
  }
  return steps;
}

// Calls f with the elements of two inputs for each element of y, in order.
template <class F>
void Walk(const Array& a, const Array& b, const Array& y, F&& f) {
  const Dims a_steps = Steps(a.dims, y.dims), b_steps = Steps(b.dims, y.dims);
  Dims at(y.dims.size(), 0);
  int64_t i = 0, j = 0;
  for (uint64_t k = 0; k < y.count; ++k) {
    f(i, j, k);
    for (size_t axis = at.size(); axis-- > 0;) {
      i += a_steps[axis], j += b_steps[axis];
      if (++at[axis] < y.dims[axis]) break;
      i -= a_steps[axis] * y.dims[axis], j -= b_steps[axis] * y.dims[axis];
      at[axis] = 0;
    }
  }
}

template <class T, class F>
class Binary : Kernel {
 public:
  using Kernel::Kernel;
  void operator()(tw::Frame frame, tw::In<T> a, tw::In<T> b, tw::Out<T> y) const {
    Launch(frame.f, {a.v, b.v, y.v()}, [](std::vector<Array>& v) {
      const T *x0 = v[0].as<T>(), *x1 = v[1].as<T>();
      T* out = v[2].as<T>();
      Walk(v[0], v[1], v[2], [&](int64_t i, int64_t j, uint64_t k) { out[k] = F()(x0[i], x1[j]); });
    });
  }
};

template <class T, class U, class F>
class Unary : Kernel {
 public:
  using Kernel::Kernel;
  void operator()(tw::Frame frame, tw::In<T> x, tw::Out<U> y) const {
    Launch(frame.f, {x.v, y.v()}, [](std::vector<Array>& v) {
      for (uint64_t k = 0; k < v[1].count; ++k) v[1].as<U>()[k] = F()(v[0].as<T>()[k]);
    });
  }
};

// Integers wrap around.
struct Add {
  template <class T>
  T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>)
      return T(std::make_unsigned_t<T>(x) + std::make_unsigned_t<T>(y));
    else
      return x + y;
  }
};
struct Sub {
  template <class T>
  T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>)
      return T(std::make_unsigned_t<T>(x) - std::make_unsigned_t<T>(y));
    else
      return x - y;
  }
};
struct Mul {
  template <class T>
  T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>)
      return T(std::make_unsigned_t<T>(x) * std::make_unsigned_t<T>(y));
    else
      return x * y;
  }
};
struct ReluGrad {
  template <class T>
  T operator()(T dy, T x) const {
    return x > 0 ? dy : T(0);
  }
};
struct Neg {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_integral_v<T>)
      return Sub()(T(0), x);
    else
      return -x;  // -0 for 0
  }
};
struct Square {
  template <class T>
  T operator()(T x) const {
    return Mul()(x, x);
  }
};
struct Relu {
  template <class T>
  T operator()(T x) const {
    return x < 0 ? T(0) : x;  // NaN stays NaN
  }
};
template <class U>
struct To {
  template <class T>
  U operator()(T x) const {
    return U(x);
  }
};

template <class F, class... T>
void AddBinary(tw::Plugin& p, const char* spec) {
  p.kernel<Binary<T, F>...>(spec);
}
template <class F, class... T>
void AddUnary(tw::Plugin& p, const char* spec) {
  p.kernel<Unary<T, T, F>...>(spec);
}

}  // namespace

void register_elementwise(tw::Plugin& p) {
  AddBinary<Add, float, double, int32_t, int64_t>(p, "Add @FAKE; capture_safe; inplace z=x");
  AddBinary<Add, float, double, int32_t, int64_t>(p, "AddV2 @FAKE; capture_safe; inplace z=x");
  AddBinary<Sub, float, double, int32_t, int64_t>(p, "Sub @FAKE; capture_safe; inplace z=x");
  AddBinary<Mul, float, double, int32_t, int64_t>(p, "Mul @FAKE; capture_safe; inplace z=x");
  AddBinary<ReluGrad, float, double>(p, "ReluGrad @FAKE; capture_safe; inplace backprops=gradients");
  AddUnary<Neg, float, double, int32_t, int64_t>(p, "Neg @FAKE; capture_safe; inplace y=x");
  AddUnary<Square, float, double, int32_t, int64_t>(p, "Square @FAKE; capture_safe; inplace y=x");
  AddUnary<Relu, float, double>(p, "Relu @FAKE; capture_safe; inplace activations=features");
  p.kernel<Unary<float, double, To<double>>, Unary<double, float, To<float>>, Unary<int32_t, float, To<float>>,
           Unary<int32_t, int64_t, To<int64_t>>>("Cast @FAKE; capture_safe");
}

}  // namespace thalweg::fake
