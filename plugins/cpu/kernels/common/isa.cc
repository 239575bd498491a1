#include "kernels/common/isa.h"

#include <string>

#include "common/setting.h"

namespace thalweg::cpu {
namespace {

constexpr const char* kNames[] = {"baseline", "avx2", "avx512"};

// Returns the best set whose features -march=x86-64-v3 or -v4 let the compiler use. Three features
// of v3 are not checked: LZCNT, MOVBE and F16C came to every processor line together with BMI2 and
// FMA, and Clang 14 has no names for them.
Isa Best() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  bool v3 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return v4 ? Isa::kAvx512 : v3 ? Isa::kAvx2 : Isa::kBaseline;
#else
  return Isa::kBaseline;
#endif
}

}  // namespace

Isa DetectIsa(const tw_host* host) {
  Isa best = Best();
  std::string wanted = common::Setting(host, "isa");
  if (wanted.empty()) return best;
  for (int i = 0; i < 3; ++i) {
    if (wanted != kNames[i]) continue;
    if (i <= int(best)) return Isa(i);
    throw tw::Error{TW_INVALID_ARGUMENT,
                    "setting 'isa' is '" + wanted + "', but this machine goes up to '" + kNames[int(best)] + "'; ask for that or less"};
  }
  throw tw::Error{TW_INVALID_ARGUMENT, "setting 'isa' is '" + wanted + "'; known: baseline, avx2, avx512"};
}

}  // namespace thalweg::cpu
