// The catalogue of the kernels that can run on a piece of their tensors. The catalogue calls the
// functions that register these kernels with a registrar that records each definition. Fused nodes
// therefore run the same loops as single nodes.
// Threads: immutable once constructed.
#ifndef THALWEG_PLUGINS_CPU_FUSE_CATALOGUE_H_
#define THALWEG_PLUGINS_CPU_FUSE_CATALOGUE_H_

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fuse/chain.h"
#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cpu {

// The layout of the inputs that a called kernel accepts. kAlike: all inputs are full. kChoice: the
// first input is full, each other one is full or one number. kClip: the same, but the one number
// must be a scalar. kBias: the first input is full, the others are rows. kRows: the input is full,
// and a tile must hold whole rows.
enum class Pattern : uint8_t { kAlike, kChoice, kClip, kBias, kRows };

// The chain link of an op. `swapped` is the link when the op's two inputs change places.
struct LinkRule {
  std::string_view op;
  Link link, swapped;
};

struct Operation {
  enum Body : uint8_t { kMap, kZip, kReduce, kCall };
  Body body;
  Pattern pattern = Pattern::kAlike;  // only for kCall
  bool inplace = false;               // the result may overwrite an input of the same type
  int64_t cost = 1;                   // units of ParallelFor per element
  const void* loops = nullptr;        // a UnaryKernel, BinaryKernel or ReduceKernel; NULL for kCall
  tw_kernel_def def{};                // only for kCall; without its spec
  const LinkRule* link = nullptr;     // the node can be a link of a chain if its type is float or double; else NULL
  std::vector<uint32_t> types;        // the dtypes of the inputs; 0 means any
};

class Catalogue {
 public:
  explicit Catalogue(const tw_host* h);
  // Returns all operations of an op, or NULL if no kernel of the op can run on a piece.
  const std::vector<Operation>* OfOp(std::string_view op) const;
  // Returns the operation for inputs of these types, or NULL.
  static const Operation* ForTypes(const std::vector<Operation>& all, const uint32_t* types, uint32_t n);
  const ChainTable& chains() const { return chains_; }
  int slots() const { return slots_; }  // the largest number of workers

 private:
  struct Notes;
  void Note(const tw_kernel_def& d, const Notes& notes);

  const ChainTable& chains_;
  const int slots_;  // kept here because WorkerSlots opens a file
  std::unordered_map<std::string, std::vector<Operation>> operations_;
};

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_FUSE_CATALOGUE_H_
