// Chains of simple operations on floats or doubles in one pass: a block of elements stays in registers from the first operation to the
// last. Only operations that round once and so have the same bits in any loop. Built once per instruction set in chain_isa.cc: plain
// declarations only.
#ifndef THALWEG_PLUGINS_CPU_FUSE_CHAIN_H_
#define THALWEG_PLUGINS_CPU_FUSE_CHAIN_H_

#include <stdint.h>

#include "kernels/common/isa.h"

namespace thalweg::cpu {

// What becomes of the value at hand, a; b is the operand. From kAdd on there is one.
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
  // The same with a and b in the other order.
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

// y = x after all steps; y may be x or any operand that does not repeat.
using ChainLoop = void (*)(const void* x, const ChainStep* steps, int n_steps, void* y, int64_t n);
struct ChainTable {
  ChainLoop f32, f64;
};
TW_CPU_DECLARE_ISA(ChainTable, Chains)

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_FUSE_CHAIN_H_
