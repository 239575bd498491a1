// The body and the registration that all element-wise ops of two inputs share. Also their loops for
// types without objects of their own per instruction set. Used by binary.cc and compare.cc.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_ZIP_H_
#define THALWEG_PLUGINS_CPU_KERNELS_ZIP_H_

#include <string>

#include "kernels/common/arithmetic.h"
#include "kernels/common/kernel.h"
#include "kernels/common/types.h"
#include "kernels/elementwise.h"

namespace thalweg::cpu {

// Runs a two-input op on the inputs and output of the frame. Throws INVALID_ARGUMENT if the loop
// found an element without a result; the message names both operands.
void RunBinary(const tw_frame* f, const BinaryKernel& k);

// Does the same on any three tensors; z may be x or y.
void Zip(const tw_frame* f, const BinaryKernel& k, const tw_view* x, const tw_view* y, const tw_view* z);

// z[i] = f(x[i * x_step], y[i * y_step]) for i < n, in the tensors' type, on the calling thread.
// Returns as BinaryLoop does.
int64_t ZipRun(const BinaryKernel& k, const char* x, int64_t x_step, const char* y, int64_t y_step, char* z, int64_t n);

// Returns true if the shapes do not broadcast and the op is Equal or NotEqual: there is one answer
// for both tensors, which are then unequal.
inline bool Unlike(const tw_view* x, const tw_view* y, const tw_view* z) { return z->count == 1 && (x->count != 1 || y->count != 1); }

inline constexpr auto kAdd = [](auto x, auto y) { return Plus(x, y); };
inline constexpr auto kSub = [](auto x, auto y) { return Minus(x, y); };

// Sets z to kFunction(x, y) for each pair.
template <auto kFunction, class T, class Result>
int64_t ZipLoop(const void* x, int64_t x_step, const void* y, int64_t y_step, void* z, int64_t n) {
  auto* a = static_cast<const T*>(x);
  auto* b = static_cast<const T*>(y);
  auto* to = static_cast<Result*>(z);
  if (x_step && y_step) {
    for (int64_t i = 0; i < n; ++i) to[i] = kFunction(a[i], b[i]);
  } else if (x_step) {
    T c = *b;
    for (int64_t i = 0; i < n; ++i) to[i] = kFunction(a[i], c);
  } else {
    T c = *a;
    for (int64_t i = 0; i < n; ++i) to[i] = kFunction(c, b[i]);
  }
  return n;
}

// Calls kFunction(x, y, &z) for each pair. kFunction returns false if there is no value.
template <auto kFunction, class T>
int64_t PartialZipLoop(const void* x, int64_t x_step, const void* y, int64_t y_step, void* z, int64_t n) {
  auto* a = static_cast<const T*>(x);
  auto* b = static_cast<const T*>(y);
  auto* to = static_cast<T*>(z);
  for (int64_t i = 0; i < n; ++i)
    if (!kFunction(a[i * x_step], b[i * y_step], to + i)) return i;
  return n;
}

template <auto kFunction, class T, class Result, uint32_t kCost>
inline constexpr BinaryKernel kZip{ZipLoop<kFunction, T, Result>, sizeof(T), sizeof(Result), kCost, nullptr, nullptr};
template <auto kFunction, class T, uint32_t kCost>
inline constexpr BinaryKernel kPartialZip{PartialZipLoop<kFunction, T>, sizeof(T), sizeof(T), kCost, nullptr, nullptr};

// Adds a kernel such as "Add(float, float -> float) @CPU; inplace z=x; inplace z=y". result: the
// type of z, or empty for the type of the inputs.
inline void AddBinary(tw::Plugin& p, std::string_view op, const std::string& type, const std::string& result, const BinaryKernel& k) {
  std::string spec = std::string(op) + "(" + type + ", " + type + " -> " + (result.empty() ? type : result) + ") @CPU";
  const bool grad = op.ends_with("Grad");  // the arguments of a gradient are y and dy
  if (k.xy_bytes == k.z_bytes) spec += grad ? "; inplace z=y; inplace z=dy" : "; inplace z=x; inplace z=y";
  AddKernel<RunBinary>(p, spec, k);
}

// The same function for half or bfloat16, computed in float.
template <auto kFunction>
inline constexpr auto kWidened = [](auto x, auto y) { return decltype(x)(kFunction(float(x), float(y))); };

template <auto kFunction, uint32_t kCost, class... T>
void AddZip(tw::Plugin& p, std::string_view op) {
  (AddBinary(p, op, tw::dtype<T>, "", kZip<kFunction, T, T, kCost>), ...);
}
// Adds kernels for double, and for float, half and bfloat16 computed in float. For functions that
// gain nothing from an instruction set.
template <auto kFunction, uint32_t kCost>
void AddFloatZip(tw::Plugin& p, std::string_view op) {
  AddZip<kFunction, kCost, float, double>(p, op);
  AddZip<kWidened<kFunction>, kCost + 2, half, bfloat16>(p, op);
}
template <auto kFunction, class... T>
void AddTest(tw::Plugin& p, std::string_view op) {
  (AddBinary(p, op, tw::dtype<T>, "bool", kZip<kFunction, T, bool, 1>), ...);
}
template <auto kFunction, uint32_t kCost, class... T>
void AddPartialZip(tw::Plugin& p, std::string_view op) {
  (AddBinary(p, op, tw::dtype<T>, "", kPartialZip<kFunction, T, kCost>), ...);
}

// Adds the float, half and bfloat16 kernels of an op, from the table of the instruction set in use.
inline void AddSmallFloats(tw::Plugin& p, std::string_view op, const Elementwise& t, const BinaryKernel BinaryKernels::* member) {
  const BinaryKernels* tables[] = {&t.binary_float, &t.binary_half, &t.binary_bfloat16};
  const char* types[] = {"float", "half", "bfloat16"};
  for (int i = 0; i < 3; ++i) {
    const BinaryKernel& k = tables[i]->*member;
    AddBinary(p, op, types[i], k.z_bytes == 1 ? "bool" : "", k);
  }
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_ZIP_H_
