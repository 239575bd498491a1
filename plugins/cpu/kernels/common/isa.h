// Selects the instruction set of this process's kernels. A source that is built once per set
// (cpu_isa_kernels in CMakeLists.txt) exports a table of functions from each set's namespace. The
// file that registers kernels picks one table and gives the table's functions to the kernels:
//   TW_CPU_DECLARE_ISA(ReduceTable, Reduce)                                       // in the header both include
//   const ReduceTable& Reduce() { static constexpr ReduceTable t{...}; return t; } // in the source, in namespace thalweg::cpu::THALWEG_ISA
//   const ReduceTable& t = TW_CPU_FOR_ISA(DetectIsa(p.h), Reduce);                // in register_reduce
#ifndef THALWEG_PLUGINS_CPU_KERNELS_COMMON_ISA_H_
#define THALWEG_PLUGINS_CPU_KERNELS_COMMON_ISA_H_

#include "thalweg/plugin/plugin.h"

namespace thalweg::cpu {

enum class Isa { kBaseline, kAvx2, kAvx512 };

// Returns the best set of this machine, or the set that the plugin's setting `isa` (baseline, avx2,
// avx512) names. REQUIRES: called from init.
// Throws tw::Error INVALID_ARGUMENT for an unknown word, and for a set that the machine lacks.
Isa DetectIsa(const tw_host* host);

}  // namespace thalweg::cpu

// Only the baseline exists off x86-64, and where the build says so. A sanitized build has no AVX2 set
// and takes the baseline instead. Use both macros inside namespace thalweg::cpu.
#if defined(__x86_64__) && !defined(THALWEG_ISA_ONLY_BASELINE)
#define TW_CPU_DECLARE_ISA(Type, Table) \
  namespace Baseline {                  \
  const Type& Table();                  \
  }                                     \
  namespace Avx2 {                      \
  const Type& Table();                  \
  }                                     \
  namespace Avx512 {                    \
  const Type& Table();                  \
  }
#if defined(THALWEG_ISA_WITHOUT_AVX2)
#define TW_CPU_FOR_ISA(isa, Table) ((isa) == Isa::kAvx512 ? Avx512::Table() : Baseline::Table())
#else
#define TW_CPU_FOR_ISA(isa, Table) ((isa) == Isa::kAvx512 ? Avx512::Table() : (isa) == Isa::kAvx2 ? Avx2::Table() : Baseline::Table())
#endif
#else
#define TW_CPU_DECLARE_ISA(Type, Table) \
  namespace Baseline {                  \
  const Type& Table();                  \
  }
#define TW_CPU_FOR_ISA(isa, Table) (static_cast<void>(isa), Baseline::Table())
#endif

#endif  // THALWEG_PLUGINS_CPU_KERNELS_COMMON_ISA_H_
