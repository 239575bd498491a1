// Products of numbers of 8 bits with AVX-512's dot products of bytes (VNNI), which AVX-512 itself
// does not include. Compiled for that set alone, with -mavx512vnni; see int8_tiles.h.
#include "kernels/int8_tiles.h"

#if !defined(__AVX512VNNI__)
#error "compile this source with -mavx512vnni"
#endif

namespace thalweg::cpu::THALWEG_ISA {

const Int8Table& Int8Vnni() { return kInt8Table; }

}  // namespace thalweg::cpu::THALWEG_ISA
