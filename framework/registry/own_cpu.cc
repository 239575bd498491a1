#include "framework/registry/own_cpu.h"

#include <algorithm>
#include <iterator>
#include <utility>

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace thalweg {
namespace {

#if defined(__x86_64__)
// The builtin takes only literals.
#define HAS(name) {name, __builtin_cpu_supports(name) != 0}
bool Lacks(std::string_view set) {
  __builtin_cpu_init();
  const std::pair<std::string_view, bool> sets[] = {
      HAS("sse3"),     HAS("ssse3"),      HAS("sse4.1"),     HAS("sse4.2"),  HAS("popcnt"),   HAS("avx"),      HAS("avx2"),
      HAS("fma"),      HAS("bmi"),        HAS("bmi2"),       HAS("avx512f"), HAS("avx512cd"), HAS("avx512bw"), HAS("avx512dq"),
      HAS("avx512vl"), HAS("avx512vnni"), HAS("avx512bf16"), HAS("sse4a"),   HAS("fma4"),     HAS("xop"),
  };
#undef HAS
#elif defined(__aarch64__)
bool Lacks(std::string_view set) {
  const unsigned long one = getauxval(AT_HWCAP), two = getauxval(AT_HWCAP2);
  const std::pair<std::string_view, bool> sets[] = {
      {"lse", one & HWCAP_ATOMICS}, {"dotprod", one & HWCAP_ASIMDDP}, {"fp16", one & HWCAP_ASIMDHP}, {"bf16", two & HWCAP2_BF16},
      {"i8mm", two & HWCAP2_I8MM},  {"sve", one & HWCAP_SVE},         {"sve2", two & HWCAP2_SVE2},
  };
#else
bool Lacks(std::string_view set) {
  const std::pair<std::string_view, bool> sets[] = {{"", true}};
#endif
  const auto* found = std::find_if(std::begin(sets), std::end(sets), [set](const auto& s) { return s.first == set; });
  return found != std::end(sets) && !found->second;
}

}  // namespace

std::string MissingOnThisCpu(std::string_view cpu) {
  std::string missing;
  for (size_t at = 0; at < cpu.size();) {
    const size_t end = std::min(cpu.find(' ', at), cpu.size());
    const std::string_view set = cpu.substr(at, end - at);
    if (!set.empty() && Lacks(set)) missing += (missing.empty() ? "" : " ") + std::string(set);
    at = end + 1;
  }
  return missing;
}

}  // namespace thalweg
