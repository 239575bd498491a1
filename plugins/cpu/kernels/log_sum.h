// Sums of numbers of which only the logarithms are known, in double. A sum of nothing, and the
// logarithm of 0, are -infinity; NaN stays NaN. For the kernels of CTC.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_LOG_SUM_H_
#define THALWEG_PLUGINS_CPU_KERNELS_LOG_SUM_H_

#include <cmath>
#include <cstdint>

namespace thalweg::cpu {

// Returns log(exp(a) + exp(b)).
inline double LogSum(double a, double b) {
  if (a == -INFINITY) return b;
  if (b == -INFINITY) return a;
  return a > b ? a + std::log1p(std::exp(b - a)) : b + std::log1p(std::exp(a - b));
}

// Returns log(exp(x[0]) + ... + exp(x[n - 1])). REQUIRES: n > 0.
template <class T>
double LogSumExp(const T* x, int64_t n) {
  double most = double(x[0]);
  for (int64_t i = 1; i < n; ++i)
    if (double(x[i]) > most) most = double(x[i]);
  if (most == -INFINITY) return most;
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::exp(double(x[i]) - most);
  return most + std::log(sum);
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_LOG_SUM_H_
