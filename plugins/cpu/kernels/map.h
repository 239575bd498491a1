// The body and the registration that all element-wise ops of one input share. Also their loops for
// types without objects of their own per instruction set.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_MAP_H_
#define THALWEG_PLUGINS_CPU_KERNELS_MAP_H_

#include <string>

#include "kernels/common/kernel.h"
#include "kernels/common/types.h"
#include "kernels/elementwise.h"

namespace thalweg::cpu {

// Runs a one-input op on the input and output of the frame.
void RunUnary(const tw_frame* f, const UnaryKernel& k);

// y[i] = f(x[i]) for i < n, in the tensors' types, on the calling thread.
void MapRun(const UnaryKernel& k, const char* x, char* y, int64_t n);

template <auto kFunction, class T, class Result>
void MapLoop(const void* x, void* y, int64_t n) {
  auto* from = static_cast<const T*>(x);
  auto* to = static_cast<Result*>(y);
  for (int64_t i = 0; i < n; ++i) to[i] = Result(kFunction(Wide<T>(from[i])));
}
template <auto kFunction, class T, class Result, uint32_t kCost>
inline constexpr UnaryKernel kMap{MapLoop<kFunction, T, Result>, sizeof(T), sizeof(Result), kCost, nullptr, nullptr};

// Adds a kernel such as "Abs(float -> float) @CPU; inplace y=x". in, out: the schema's names of the
// input and the output.
inline void AddUnary(tw::Plugin& p, const std::string& op, const char* type, const char* result, const UnaryKernel& k,
                     const std::string& in = "x", const std::string& out = "y") {
  const std::string inplace = k.x_bytes == k.y_bytes ? "; inplace " + out + "=" + in : "";
  AddKernel<RunUnary>(p, op + "(" + type + " -> " + result + ") @CPU" + inplace, k);
}
template <auto kFunction, uint32_t kCost, class... T>
void AddMap(tw::Plugin& p, const char* op) {
  (AddUnary(p, op, tw::dtype<T>, tw::dtype<T>, kMap<kFunction, T, T, kCost>), ...);
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_MAP_H_
