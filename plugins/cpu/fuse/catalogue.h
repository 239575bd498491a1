// The kernels that can run on a piece of their tensors. They are written down by calling the functions that register them, with a registrar
// that takes notes, so that fused nodes run the very loops that they run alone.
// Threads: immutable once made.
#ifndef THALWEG_PLUGINS_CPU_FUSE_CATALOGUE_H_
#define THALWEG_PLUGINS_CPU_FUSE_CATALOGUE_H_

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fuse/chain.h"
#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cpu {

// How the inputs of a kernel that is called lie. kAlike: all full. kChoice: full, or one number. kClip: the same, the first one full.
// kBias: full and a row. kRows: full, and only whole rows will do.
enum class Pattern : uint8_t { kAlike, kChoice, kClip, kBias, kRows };

// What an op is in a chain; swapped: with its inputs in the other order.
struct LinkRule {
  std::string_view op;
  Link link, swapped;
};

struct Operation {
  enum Body : uint8_t { kMap, kZip, kReduce, kCall };
  Body body;
  Pattern pattern = Pattern::kAlike;  // of kCall
  bool inplace = false;               // the result may lie where an input of its type lies
  int64_t cost = 1;                   // units of ParallelFor per element
  const void* loops = nullptr;        // UnaryKernel, BinaryKernel or ReduceKernel; of the others nothing
  tw_kernel_def def{};                // of kCall; without its spec
  const LinkRule* link = nullptr;     // of float and double it can be a part of a chain
  std::vector<uint32_t> types;        // of the inputs; 0: any
};

class Catalogue {
 public:
  explicit Catalogue(const tw_host* h);
  // All of an op; NULL: nothing of it can run on a piece.
  const std::vector<Operation>* OfOp(std::string_view op) const;
  // That for inputs of these types, or NULL.
  static const Operation* ForTypes(const std::vector<Operation>& all, const uint32_t* types, uint32_t n);
  const ChainTable& chains() const { return chains_; }
  int slots() const { return slots_; }  // workers at most

 private:
  struct Notes;
  void Note(const tw_kernel_def& d, const Notes& notes);

  const ChainTable& chains_;
  const int slots_;  // asking for it opens a file
  std::unordered_map<std::string, std::vector<Operation>> operations_;
};

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_FUSE_CATALOGUE_H_
