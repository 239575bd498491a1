// One step of an optimizer, in place. The kernels apply_*.cc share this code. A kernel names its
// op's inputs and picks a loop of update.h. This code checks that variables, gradient and factors
// fit, and runs the loop over all elements or over the rows that a sparse gradient names. Each
// element is read and written once; half and bfloat16 compute in float.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_APPLY_H_
#define THALWEG_PLUGINS_CPU_KERNELS_APPLY_H_

#include <algorithm>
#include <array>
#include <string>

#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/update.h"
#include "kernels/widen.h"

namespace thalweg::cpu {

template <class T>
struct NamedVariable {
  const char* name;
  const tw::Var<T>& value;
};

// Returns the value of a factor. Throws INVALID_ARGUMENT unless it has one element, because its
// shape may be known only at run time.
template <class T>
Wide<T> Factor(const tw::In<T>& v, const char* name) {
  if (v.size() != 1) Invalid(std::string(name) + " must be a scalar, but its shape is " + DimsText(v.v));
  return Wide<T>(v[0]);
}

// Calls add.operator()<T>() for each element type of the optimizers that do not compare elements.
template <class Add>
void ForAllNumbers(const Add& add) {
  add.template operator()<float>();
  add.template operator()<double>();
  add.template operator()<half>();
  add.template operator()<bfloat16>();
  add.template operator()<complex64>();
  add.template operator()<complex128>();
}

// Throws unless the variable has the type and shape of `like`. The host has locked the variables
// and refused uninitialised ones, but only this check can tell whether a variable fits.
template <class T>
void CheckLike(const NamedVariable<T>& v, const char* like_name, const tw_view* like) {
  const tw_view* is = v.value.v;
  if (is->dtype != like->dtype)
    Invalid(std::string(v.name) + " and " + like_name + " have different element types: " + TypeText(is->dtype) + " and " +
            TypeText(like->dtype));
  if (!SameDims(is, like))
    Invalid(std::string(v.name) + " has shape " + DimsText(is) + ", " + like_name + " " + DimsText(like) + "; they must be equal");
}

// Returns the loops of complex64 and complex128: those loops that do not compare numbers.
template <class T>
const UpdateLoops<T>& ComplexUpdates();

// The base class of the optimizer kernels.
template <class T>
class Apply {
 public:
  using Loop = UpdateLoop<Wide<T>> UpdateLoops<Wide<T>>::*;

  Apply(const tw::Node& n, Loop loop) {
    const Isa isa = DetectIsa(n.host());
    vector_ = &TW_CPU_FOR_ISA(isa, Vectors);
    const UpdateTable& updates = TW_CPU_FOR_ISA(isa, Updates);
    if constexpr (kIsComplex<T>)
      loop_ = ComplexUpdates<T>().*loop;
    else if constexpr (std::is_same_v<T, double>)
      loop_ = updates.f64.*loop;
    else
      loop_ = updates.f32.*loop;
  }

 protected:
  template <size_t kVars, size_t kFactors>
  void Dense(tw::Frame frame, const NamedVariable<T> (&vars)[kVars], const tw::In<T>& grad, const Wide<T> (&factors)[kFactors],
             const char* grad_name = "grad") const {
    for (const NamedVariable<T>& v : vars) CheckLike(v, grad_name, grad.v);
    const auto at = Starts(vars);
    const int64_t size = int64_t(grad.size());
    ParallelFor(frame.f, (size + kRun - 1) / kRun, kRun * kCost<kVars>, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) Run<kVars>(at, grad.data(), r * kRun, r * kRun, std::min(kRun, size - r * kRun), factors);
    });
  }

  // Row grad[i] updates row indices[i]. A row that is named twice is updated twice, in order. Rows
  // are distributed over threads by row index, so one thread applies all updates of a row.
  template <size_t kVars, class I, size_t kFactors>
  void Sparse(tw::Frame frame, const NamedVariable<T> (&vars)[kVars], const tw::In<T>& grad, const tw::In<I>& indices,
              const Wide<T> (&factors)[kFactors]) const {
    const tw::Var<T>& var = vars[0].value;
    for (size_t v = 1; v < kVars; ++v) CheckLike(vars[v], vars[0].name, var.v);
    CheckRows(var, grad, indices);
    const auto at = Starts(vars);
    const int64_t rows = var.dim(0), updates = indices.dim(0), width = rows ? int64_t(var.size()) / rows : 0;
    constexpr int64_t kHands = 16;  // the number of groups that rows are distributed over
    ParallelFor(frame.f, kHands, Cost(updates, width) / kHands * kCost<kVars>, [&](int64_t begin, int64_t end) {
      for (int64_t i = 0; i < updates; ++i) {
        const int64_t row = int64_t(indices[uint64_t(i)]);
        if (row % kHands < begin || row % kHands >= end) continue;
        for (int64_t c = 0; c < width; c += kRun)
          Run<kVars>(at, grad.data(), row * width + c, i * width + c, std::min(kRun, width - c), factors);
      }
    });
  }

 private:
  // The number of elements per pass. Half and bfloat16 are widened first, and the widened elements
  // stay in the first-level cache.
  static constexpr int64_t kRun = kIsSmallFloat<T> ? 512 : 4096;
  template <size_t kVars>
  static constexpr int64_t kCost = kVars == 1 ? 1 : int64_t(2 * kVars);

  template <size_t kVars>
  static std::array<T*, kVars> Starts(const NamedVariable<T> (&vars)[kVars]) {
    std::array<T*, kVars> at;
    for (size_t v = 0; v < kVars; ++v) at[v] = vars[v].value.data();
    return at;
  }

  template <class I>
  static void CheckRows(const tw::Var<T>& var, const tw::In<T>& grad, const tw::In<I>& indices) {
    if (var.v->dtype != grad.v->dtype)
      Invalid("var and grad have different element types: " + TypeText(var.v->dtype) + " and " + TypeText(grad.v->dtype));
    if (indices.rank() != 1 || var.rank() < 1 || grad.rank() != var.rank() || grad.dim(0) != indices.dim(0) ||
        !std::equal(grad.dims() + 1, grad.dims() + grad.rank(), var.dims() + 1))
      Invalid("grad " + DimsText(grad.v) + " must have a row of var " + DimsText(var.v) + " for each of indices " + DimsText(indices.v));
    for (uint64_t i = 0; i < indices.size(); ++i)
      if (indices[i] < 0 || int64_t(indices[i]) >= var.dim(0))
        Invalid("indices[" + tw::text(int64_t(i)) + "] is " + tw::text(int64_t(indices[i])) + ", outside [0, " + tw::text(var.dim(0)) +
                "), the rows of var " + DimsText(var.v));
  }

  // Updates n elements of the variables from `first` on with the elements of the gradient from
  // `from` on.
  template <size_t kVars>
  void Run(const std::array<T*, kVars>& at, const T* grad, int64_t first, int64_t from, int64_t n, const Wide<T>* factors) const {
    Wide<T>* v[kVars];
    if constexpr (kIsSmallFloat<T>) {
      Wide<T> wide[kVars + 1][kRun];
      for (size_t k = 0; k < kVars; ++k) Widen(*vector_, at[k] + first, v[k] = wide[k], n);
      Widen(*vector_, grad + from, wide[kVars], n);
      loop_(v, wide[kVars], factors, n);
      for (size_t k = 0; k < kVars; ++k) Narrow(*vector_, wide[k], at[k] + first, n);
    } else {
      for (size_t k = 0; k < kVars; ++k) v[k] = at[k] + first;
      loop_(v, grad + from, factors, n);
    }
  }

  const VectorTable* vector_;
  UpdateLoop<Wide<T>> loop_;
};

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_APPLY_H_
