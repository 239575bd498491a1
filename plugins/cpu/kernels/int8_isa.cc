// Products of numbers of 8 bits, compiled once per instruction set; see int8_tiles.h.
#include "kernels/int8_tiles.h"

namespace thalweg::cpu::THALWEG_ISA {

const Int8Table& Int8() { return kInt8Table; }

}  // namespace thalweg::cpu::THALWEG_ISA
