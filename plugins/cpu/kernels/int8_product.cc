#include "kernels/int8_product.h"

#include "common/setting.h"

namespace thalweg::cpu {
namespace {

// VNNI is no part of the set AVX-512; processors from Ice Lake and Zen 4 on have it.
bool HasVnni() {
#if defined(__x86_64__) && !defined(THALWEG_ISA_ONLY_BASELINE)
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

}  // namespace

const Int8Table& Int8TableFor(const tw_host* host) {
  const Isa isa = DetectIsa(host);
#if defined(__x86_64__) && !defined(THALWEG_ISA_ONLY_BASELINE)
  if (isa == Isa::kAvx512 && HasVnni() && common::Setting(host, "isa").empty()) return Avx512::Int8Vnni();
#endif
  return TW_CPU_FOR_ISA(isa, Int8);
}

void PackInt8(const Int8Table& t, const tw_frame* f, const Int8Product& p, const Int8Scratch& s, char* scratch) {
  auto* packed = reinterpret_cast<uint8_t*>(scratch);
  auto* terms = reinterpret_cast<int32_t*>(scratch + s.b);
  const uint8_t flip = p.signed_b ? 0 : 0x80;
  const uint32_t zero_a = p.zero_a + (p.signed_a ? 128 : 0), zero_b = p.zero_b - (p.signed_b ? 0 : 128);
  const int64_t bytes = s.groups * t.columns * 4;
  ParallelFor(f, s.panels, Cost(t.columns, std::max<int64_t>(p.k, 1)) / 4, [&](int64_t begin, int64_t end) {
    const int64_t j0 = begin * t.columns, n = std::min(p.n, end * t.columns) - j0;
    t.pack_b(p.k, n, p.b + j0 * p.b_column, p.b_row, p.b_column, flip, packed + begin * bytes, terms + j0);
    const uint32_t both = uint32_t(p.k) * zero_a * zero_b;
    for (int64_t j = j0; j < end * t.columns; ++j) terms[j] = int32_t(both - zero_a * uint32_t(terms[j]));
  });
}

}  // namespace thalweg::cpu
