// Relu, Relu6 and their gradients. NaN stays NaN. A gradient passes if the feature is strictly
// inside the range.
#include <algorithm>

#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/common/stream.h"
#include "kernels/register.h"
#include "kernels/widen.h"

namespace thalweg::cpu {
namespace {

struct ReluOf {
  template <class T>
  static T Value(T x) {
    return x < T(0) ? T(0) : x;
  }
  template <class T>
  static bool Passes(T x) {
    return x > T(0);
  }
  static auto Loop(const VectorTable& v) { return v.relu; }
  static auto GradientLoop(const VectorTable& v) { return v.relu_grad; }
};

struct Relu6Of {
  template <class T>
  static T Value(T x) {
    return x < T(0) ? T(0) : x > T(6) ? T(6) : x;
  }
  template <class T>
  static bool Passes(T x) {
    return x > T(0) && x < T(6);
  }
  static auto Loop(const VectorTable& v) { return v.relu6; }
  static auto GradientLoop(const VectorTable& v) { return v.relu6_grad; }
};

constexpr int64_t kRun = 512;  // elements of half or bfloat16 widened at a time

template <class Op, class T>
void Activate(const VectorTable& v, const void* features, void* activations, int64_t n) {
  const T* x = static_cast<const T*>(features);
  T* y = static_cast<T*>(activations);
  if constexpr (std::is_same_v<T, float>) {
    Op::Loop(v)(x, y, n);
  } else if constexpr (kIsSmallFloat<T>) {
    float wide[kRun];
    for (int64_t i = 0; i < n; i += kRun) {
      const int64_t m = std::min(kRun, n - i);
      Widen(v, x + i, wide, m);
      Op::Loop(v)(wide, wide, m);
      Narrow(v, wide, y + i, m);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = Op::Value(x[i]);
  }
}

template <class Op, class T>
void Differentiate(const VectorTable& v, const void* gradients, const void* features, void* backprops, int64_t n) {
  const T *dy = static_cast<const T*>(gradients), *x = static_cast<const T*>(features);
  T* dx = static_cast<T*>(backprops);
  if constexpr (std::is_same_v<T, float>) {
    Op::GradientLoop(v)(dy, x, dx, n);
  } else if constexpr (kIsSmallFloat<T>) {
    float wide[kRun], wide_dy[kRun];
    for (int64_t i = 0; i < n; i += kRun) {
      const int64_t m = std::min(kRun, n - i);
      Widen(v, x + i, wide, m);
      Widen(v, dy + i, wide_dy, m);
      Op::GradientLoop(v)(wide_dy, wide, wide, m);
      Narrow(v, wide, dx + i, m);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) dx[i] = Op::Passes(x[i]) ? dy[i] : T(0);
  }
}

struct Loops {
  uint32_t dtype;
  const char* type;
  void (*activate)(const VectorTable&, const void*, void*, int64_t);
  void (*differentiate)(const VectorTable&, const void*, const void*, void*, int64_t);
};

// One kernel class serves all types; only the loops differ.
template <class Op>
constexpr Loops kLoops[] = {
    {TW_FLOAT, "float", Activate<Op, float>, Differentiate<Op, float>},
    {TW_DOUBLE, "double", Activate<Op, double>, Differentiate<Op, double>},
    {TW_HALF, "half", Activate<Op, half>, Differentiate<Op, half>},
    {TW_BFLOAT16, "bfloat16", Activate<Op, bfloat16>, Differentiate<Op, bfloat16>},
    {TW_INT8, "int8", Activate<Op, int8_t>, Differentiate<Op, int8_t>},
    {TW_INT16, "int16", Activate<Op, int16_t>, Differentiate<Op, int16_t>},
    {TW_INT32, "int32", Activate<Op, int32_t>, Differentiate<Op, int32_t>},
    {TW_INT64, "int64", Activate<Op, int64_t>, Differentiate<Op, int64_t>},
    {TW_UINT8, "uint8", Activate<Op, uint8_t>, Differentiate<Op, uint8_t>},
    {TW_UINT16, "uint16", Activate<Op, uint16_t>, Differentiate<Op, uint16_t>},
    {TW_UINT32, "uint32", Activate<Op, uint32_t>, Differentiate<Op, uint32_t>},
    {TW_UINT64, "uint64", Activate<Op, uint64_t>, Differentiate<Op, uint64_t>},
};

template <class Op>
const Loops& LoopsFor(uint32_t dtype) {
  for (const Loops& l : kLoops<Op>)
    if (l.dtype == dtype) return l;
  throw tw::Error{TW_INTERNAL, "no loop for element type " + tw::text(int64_t(dtype))};
}

template <class Op>
class Activation {
 public:
  explicit Activation(const tw::Node& n)
      : vector_(&TW_CPU_FOR_ISA(DetectIsa(n.host()), Vectors)), loop_(LoopsFor<Op>(n.type_in(0)).activate) {}

  void operator()(tw::Frame frame, tw::In<tw::Any> features, tw::Out<tw::Any> activations) const {
    const uint32_t each = ElementBytes(features.v->dtype);
    const bool streamed = IsStreamed(activations.v(), {features.v});
    ParallelFor(frame.f, int64_t(features.size()), 1, [&](int64_t begin, int64_t end) {
      const char* x = Bytes(features.v) + begin * each;
      char* y = Bytes(activations.v()) + begin * each;
      if (!streamed) return loop_(*vector_, x, y, end - begin);
      Stream(y, end - begin, each, [&](int64_t i, int64_t m, char* to) {
        loop_(*vector_, x + i * each, to, m);
        return m;
      });
    });
  }

 private:
  const VectorTable* vector_;
  decltype(Loops::activate) loop_;
};

template <class Op>
class Gradient {
 public:
  explicit Gradient(const tw::Node& n)
      : vector_(&TW_CPU_FOR_ISA(DetectIsa(n.host()), Vectors)), loop_(LoopsFor<Op>(n.type_in(0)).differentiate) {}

  void operator()(tw::Frame frame, tw::In<tw::Any> gradients, tw::In<tw::Any> features, tw::Out<tw::Any> backprops) const {
    if (gradients.size() != features.size())
      Invalid("gradients " + DimsText(gradients.v) + " and features " + DimsText(features.v) + " must have the same shape");
    const uint32_t each = ElementBytes(features.v->dtype);
    const bool streamed = IsStreamed(backprops.v(), {gradients.v, features.v});
    ParallelFor(frame.f, int64_t(features.size()), 1, [&](int64_t begin, int64_t end) {
      const char *dy = Bytes(gradients.v) + begin * each, *x = Bytes(features.v) + begin * each;
      char* dx = Bytes(backprops.v()) + begin * each;
      if (!streamed) return loop_(*vector_, dy, x, dx, end - begin);
      Stream(dx, end - begin, each, [&](int64_t i, int64_t m, char* to) {
        loop_(*vector_, dy + i * each, x + i * each, to, m);
        return m;
      });
    });
  }

 private:
  const VectorTable* vector_;
  decltype(Loops::differentiate) loop_;
};

template <class Op>
void Register(tw::Plugin& p, const std::string& name) {
  for (const Loops& l : kLoops<Op>) {
    const std::string t = l.type;
    p.kernel<Activation<Op>>(name + "(" + t + " -> " + t + ") @CPU; inplace activations=features");
    p.kernel<Gradient<Op>>(name + "Grad(" + t + ", " + t + " -> " + t + ") @CPU; inplace backprops=gradients");
  }
}

}  // namespace

void register_relu(tw::Plugin& p) {
  Register<ReluOf>(p, "Relu");
  Register<Relu6Of>(p, "Relu6");
}

}  // namespace thalweg::cpu
