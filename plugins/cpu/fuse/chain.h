// Chains of simple operations on floats or doubles in one pass. A block of elements stays in
// registers from the first operation to the last. A chain holds only operations that round once, so
// the results have the same bits in any loop. chain_isa.cc is built once per instruction set, so
// this header holds plain declarations only.
#ifndef THALWEG_PLUGINS_CPU_FUSE_CHAIN_H_
#define THALWEG_PLUGINS_CPU_FUSE_CHAIN_H_

#include <stdint.h>

#include "kernels/common/isa.h"

namespace thalweg::cpu {

// The operation that a step applies to the current value, a. kAdd and the operations after it also
// take an operand, b.
enum class Link : uint8_t {
  kNeg,
  kAbs,
  kSquare,
  kSqrt,
  kRsqrt,
  kReciprocal,
  kRelu,
  kRelu6,
  kAdd,
  kMul,
  kSquaredDifference,
  kSub,
  kDiv,
  kMaximum,
  kMinimum,
  // The same operations with a and b swapped.
  kSubFrom,
  kDivInto,
  kMaximumOf,
  kMinimumOf,
};

struct ChainStep {
  Link link;
  bool repeats;   // the operand is one number for all elements
  const void* b;  // the operand
};

// Computes y = x after all steps. `y` may be `x` or any operand that does not repeat.
using ChainLoop = void (*)(const void* x, const ChainStep* steps, int n_steps, void* y, int64_t n);
struct ChainTable {
  ChainLoop f32, f64;
};
TW_CPU_DECLARE_ISA(ChainTable, Chains)

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_FUSE_CHAIN_H_
