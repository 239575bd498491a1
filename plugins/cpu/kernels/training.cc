// One step of an optimizer, in place: ResourceApplyGradientDescent, ResourceApplyMomentum, ResourceApplyAdam, ResourceSparseApplyMomentum.
// Each reads and writes every element once. The formulas are TensorFlow's, Nesterov's variants included; half and bfloat16 compute in
// float.
#include <algorithm>
#include <cmath>

#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/register.h"
#include "kernels/widen.h"

namespace thalweg::cpu {
namespace {

// Elements that are worked on at a time; where they are widened first, they stay in the first-level cache.
template <class T>
constexpr int64_t kRun = kIsSmallFloat<T> ? 512 : 4096;

// Locks are held and uninitialised variables refused by the host; that the variable fits the gradient is known only here.
template <class T>
void CheckVariable(const tw::Var<T>& v, const char* name, const tw_view* like, const char* like_name) {
  if (v.v->dtype != like->dtype)
    Invalid(std::string(name) + " and " + like_name + " have different element types: " + tw::text(int64_t(v.v->dtype)) + " and " +
            tw::text(int64_t(like->dtype)));
  if (v.rank() != like->rank || !std::equal(v.dims(), v.dims() + v.rank(), like->dims))
    Invalid(std::string(name) + " has shape " + DimsText(v.v) + ", " + like_name + " " + DimsText(like) + "; they must be equal");
}

template <class T>
Wide<T> Scalar(const tw::In<T>& v, const char* name) {
  if (v.size() != 1) Invalid(std::string(name) + " must be a scalar, but its shape is " + DimsText(v.v));
  return Wide<T>(v[0]);
}

// n elements of a gradient as the update loops want them: where they lie, or widened for as long as this lives.
template <class T>
class Given {
 public:
  Given(const VectorTable& v, const T* at, int64_t n) {
    if constexpr (kIsSmallFloat<T>) {
      Widen(v, at, wide_, n);
      at_ = wide_;
    } else {
      at_ = at;
    }
  }
  const Wide<T>* data() const { return at_; }

 private:
  const Wide<T>* at_;
  Wide<T> wide_[kIsSmallFloat<T> ? kRun<T> : 1];
};

// The same of a variable, written back at the end.
template <class T>
class Updated {
 public:
  Updated(const VectorTable& v, T* at, int64_t n) : vector_(v), to_(at), n_(n) {
    if constexpr (kIsSmallFloat<T>) Widen(v, at, wide_, n);
  }
  Updated(const Updated&) = delete;
  ~Updated() {
    if constexpr (kIsSmallFloat<T>) Narrow(vector_, wide_, to_, n_);
  }
  Wide<T>* data() {
    if constexpr (kIsSmallFloat<T>)
      return wide_;
    else
      return to_;
  }

 private:
  const VectorTable& vector_;
  T* to_;
  int64_t n_;
  Wide<T> wide_[kIsSmallFloat<T> ? kRun<T> : 1];
};

template <class T>
const UpdateLoops<Wide<T>>& LoopsOf(const VectorTable& v) {
  if constexpr (std::is_same_v<T, double>)
    return v.update_f64;
  else
    return v.update_f32;
}

// run(first, n) for pieces of [0, size), all of them kRun<T> long but for the last, wherever threads cut.
template <class T, class F>
void ForRuns(const tw_frame* f, int64_t size, int64_t cost, F&& run) {
  ParallelFor(f, (size + kRun<T> - 1) / kRun<T>, kRun<T> * cost, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) run(r * kRun<T>, std::min(kRun<T>, size - r * kRun<T>));
  });
}

template <class T>
class ApplyGradientDescent {
 public:
  explicit ApplyGradientDescent(const tw::Node& n) : vector_(&TW_CPU_FOR_ISA(DetectIsa(n.host()), Vectors)) {}

  void operator()(tw::Frame frame, tw::Var<T> var, tw::In<T> alpha, tw::In<T> delta) const {
    CheckVariable(var, "var", delta.v, "delta");
    const Wide<T> rate = Scalar(alpha, "alpha");
    ForRuns<T>(frame.f, int64_t(var.size()), 1, [&](int64_t i, int64_t n) {
      Updated<T> w(*vector_, var.data() + i, n);
      const Given<T> d(*vector_, delta.data() + i, n);
      LoopsOf<T>(*vector_).gradient_descent(w.data(), d.data(), rate, n);
    });
  }

 private:
  const VectorTable* vector_;
};

template <class T>
class ApplyMomentum {
 public:
  explicit ApplyMomentum(const tw::Node& n) : vector_(&TW_CPU_FOR_ISA(DetectIsa(n.host()), Vectors)), nesterov_(n.b("use_nesterov")) {}

  void operator()(tw::Frame frame, tw::Var<T> var, tw::Var<T> accum, tw::In<T> lr, tw::In<T> grad, tw::In<T> momentum) const {
    CheckVariable(var, "var", grad.v, "grad");
    CheckVariable(accum, "accum", grad.v, "grad");
    const Wide<T> rate = Scalar(lr, "lr"), keep = Scalar(momentum, "momentum");
    ForRuns<T>(frame.f, int64_t(var.size()), 2, [&](int64_t i, int64_t n) {
      Updated<T> w(*vector_, var.data() + i, n), a(*vector_, accum.data() + i, n);
      const Given<T> g(*vector_, grad.data() + i, n);
      LoopsOf<T>(*vector_).momentum(w.data(), a.data(), g.data(), rate, keep, nesterov_, n);
    });
  }

 private:
  const VectorTable* vector_;
  bool nesterov_;
};

template <class T>
class ApplyAdam {
 public:
  explicit ApplyAdam(const tw::Node& n) : vector_(&TW_CPU_FOR_ISA(DetectIsa(n.host()), Vectors)), nesterov_(n.b("use_nesterov")) {}

  void operator()(tw::Frame frame, tw::Var<T> var, tw::Var<T> m, tw::Var<T> v, tw::In<T> beta1_power, tw::In<T> beta2_power, tw::In<T> lr,
                  tw::In<T> beta1, tw::In<T> beta2, tw::In<T> epsilon, tw::In<T> grad) const {
    CheckVariable(var, "var", grad.v, "grad");
    CheckVariable(m, "m", grad.v, "grad");
    CheckVariable(v, "v", grad.v, "grad");
    const Wide<T> b1 = Scalar(beta1, "beta1"), b2 = Scalar(beta2, "beta2"), eps = Scalar(epsilon, "epsilon");
    // Both averages start at 0; this takes their bias out.
    const Wide<T> alpha = Scalar(lr, "lr") * std::sqrt(1 - Scalar(beta2_power, "beta2_power")) / (1 - Scalar(beta1_power, "beta1_power"));
    ForRuns<T>(frame.f, int64_t(var.size()), 6, [&](int64_t i, int64_t n) {
      Updated<T> w(*vector_, var.data() + i, n), first(*vector_, m.data() + i, n), second(*vector_, v.data() + i, n);
      const Given<T> g(*vector_, grad.data() + i, n);
      LoopsOf<T>(*vector_).adam(w.data(), first.data(), second.data(), g.data(), alpha, b1, b2, eps, nesterov_, n);
    });
  }

 private:
  const VectorTable* vector_;
  bool nesterov_;
};

// Row grad[i] updates row indices[i]; a row that is named twice is updated twice, in order. Rows are dealt out by index, so one thread
// meets all updates of a row.
template <class T, class I>
class SparseApplyMomentum {
 public:
  explicit SparseApplyMomentum(const tw::Node& n)
      : vector_(&TW_CPU_FOR_ISA(DetectIsa(n.host()), Vectors)), nesterov_(n.b("use_nesterov")) {}

  void operator()(tw::Frame frame, tw::Var<T> var, tw::Var<T> accum, tw::In<T> lr, tw::In<T> grad, tw::In<I> indices,
                  tw::In<T> momentum) const {
    CheckVariable(accum, "accum", var.v, "var");
    if (var.v->dtype != grad.v->dtype) Invalid("var and grad must have the same element type");
    if (indices.rank() != 1 || var.rank() < 1 || grad.rank() != var.rank() || grad.dim(0) != indices.dim(0) ||
        !std::equal(grad.dims() + 1, grad.dims() + grad.rank(), var.dims() + 1))
      Invalid("grad " + DimsText(grad.v) + " must have a row of var " + DimsText(var.v) + " for each of indices " + DimsText(indices.v));
    const int64_t rows = var.dim(0), updates = indices.dim(0), width = rows ? int64_t(var.size()) / rows : 0;
    for (int64_t i = 0; i < updates; ++i)
      if (indices[uint64_t(i)] < 0 || int64_t(indices[uint64_t(i)]) >= rows)
        Invalid("indices[" + tw::text(i) + "] is " + tw::text(int64_t(indices[uint64_t(i)])) + ", outside [0, " + tw::text(rows) +
                "), the rows of var " + DimsText(var.v));
    const Wide<T> rate = Scalar(lr, "lr"), keep = Scalar(momentum, "momentum");
    constexpr int64_t kHands = 16;  // among which rows are dealt
    ParallelFor(frame.f, kHands, updates * width / kHands * 3, [&](int64_t begin, int64_t end) {
      for (int64_t i = 0; i < updates; ++i) {
        const int64_t row = int64_t(indices[uint64_t(i)]);
        if (row % kHands < begin || row % kHands >= end) continue;
        UpdateRow(var.data() + row * width, accum.data() + row * width, grad.data() + i * width, width, rate, keep);
      }
    });
  }

 private:
  void UpdateRow(T* var, T* accum, const T* grad, int64_t width, Wide<T> rate, Wide<T> keep) const {
    for (int64_t c = 0; c < width; c += kRun<T>) {
      const int64_t n = std::min(kRun<T>, width - c);
      Updated<T> w(*vector_, var + c, n), a(*vector_, accum + c, n);
      const Given<T> g(*vector_, grad + c, n);
      LoopsOf<T>(*vector_).momentum(w.data(), a.data(), g.data(), rate, keep, nesterov_, n);
    }
  }

  const VectorTable* vector_;
  bool nesterov_;
};

template <class T>
void Register(tw::Plugin& p) {
  p.kernel<ApplyGradientDescent<T>>("ResourceApplyGradientDescent @CPU; update var");
  p.kernel<ApplyMomentum<T>>("ResourceApplyMomentum @CPU; update var accum");
  p.kernel<ApplyAdam<T>>("ResourceApplyAdam @CPU; update var m v");
  p.kernel<SparseApplyMomentum<T, int32_t>, SparseApplyMomentum<T, int64_t>>("ResourceSparseApplyMomentum @CPU; update var accum");
}

}  // namespace

void register_training(tw::Plugin& p) {
  Register<float>(p);
  Register<double>(p);
  Register<half>(p);
  Register<bfloat16>(p);
}

}  // namespace thalweg::cpu
