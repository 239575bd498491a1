// Loops over elements as bits that gain from their own instruction set: shifts by a separate amount
// for each element, and the choice between two elements by a third. Built once per set in
// bits_isa.cc and reached through a table. The per-set source includes this header, so it holds
// plain declarations only.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_BITS_H_
#define THALWEG_PLUGINS_CPU_KERNELS_BITS_H_

#include <stdint.h>

#include "kernels/elementwise.h"

namespace thalweg::cpu {

// to[i] = c[i] ? t[i] : e[i]; `to` may be t or e.
using ChooseLoop = void (*)(const bool* c, const void* t, const void* e, void* to, int64_t n);

struct BitsTable {
  // For int8, int16, int32, int64, uint8, uint16, uint32, uint64.
  BinaryKernel left_shift[8], right_shift[8];
  // For elements of 1, 2, 4 and 8 bytes.
  ChooseLoop choose[4];
};

TW_CPU_DECLARE_ISA(BitsTable, Bits)

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_BITS_H_
