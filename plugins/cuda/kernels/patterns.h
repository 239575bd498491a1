// The graph compiler that finds what cuDNN computes at once: a convolution with what is added to it and its rectifier, attention, and
// sequences of LSTM cells. Only where it has an engine for these shapes; else the nodes run one by one.
#ifndef THALWEG_PLUGINS_CUDA_KERNELS_PATTERNS_H_
#define THALWEG_PLUGINS_CUDA_KERNELS_PATTERNS_H_

#include <memory>
#include <optional>
#include <vector>

#include "kernels/copy.h"
#include "kernels/dnn_call.h"

namespace thalweg::opencl {

// A part, or the nodes from which one is to be taken, as patterns look at them.
class PartView {
 public:
  explicit PartView(const tw_part& part);

  const tw_part& part() const { return part_; }
  const tw_part_node& node(uint32_t i) const { return *part_.nodes[i]; }
  std::string_view op(uint32_t i) const { return {node(i).op, node(i).op_len}; }
  uint32_t type_out(uint32_t i) const { return node(i).types[node(i).n_in]; }
  const tw_shape& shape_in(uint32_t i, uint32_t k) const { return node(i).shapes[k]; }
  const tw_shape& shape_out(uint32_t i) const { return node(i).shapes[node(i).n_in]; }
  // The only reader of node i's only value, inside and outside; none: there are several, or none.
  std::optional<uint32_t> OnlyReader(uint32_t i) const;
  // Whether of node i's values only `output` is read, inside and outside.
  bool NobodyReadsBut(uint32_t i, uint32_t output) const;
  // The number that input k of node i always is.
  std::optional<float> NumberIn(uint32_t i, uint32_t k) const;
  std::optional<int64_t> WholeNumberIn(uint32_t i, uint32_t k) const;
  // Where the part's frame has input k of node i, and where it has what node i makes.
  uint32_t InputAt(uint32_t i, uint32_t k) const { return node(i).in[k].port; }

 private:
  const tw_part& part_;
  std::vector<std::vector<uint32_t>> readers_;  // a node for each time that it reads
};

class Pattern {
 public:
  virtual ~Pattern() = default;
  // Whether it begins at node `first` and the library computes it for the shapes there. REQUIRES: nodes like those that it was found in.
  virtual bool Serves(const tw_host* host, const PartView& part, uint32_t first) const = 0;
  virtual void Run(const tw_frame* f) const = 0;
};

// P, a Pattern with Match(part, first) -> optional<P::Nodes> and Nodes::All(), of what begins at node `first`. NULL: nothing; *nodes, if it
// is not NULL, are those that it takes.
template <class P>
std::unique_ptr<Pattern> FindPattern(const tw_host* host, Device& device, const PartView& part, uint32_t first,
                                     std::vector<uint32_t>* nodes) {
  const auto found = P::Match(part, first);
  if (!found) return nullptr;
  if (nodes) *nodes = found->All();
  return std::make_unique<P>(host, device, part, *found);
}

// That, each for the one of its file.
std::unique_ptr<Pattern> FindConvolution(const tw_host* host, Device& device, const PartView& part, uint32_t first,
                                         std::vector<uint32_t>* nodes);
std::unique_ptr<Pattern> FindAttention(const tw_host* host, Device& device, const PartView& part, uint32_t first,
                                       std::vector<uint32_t>* nodes);
std::unique_ptr<Pattern> FindLstm(const tw_host* host, Device& device, const PartView& part, uint32_t first, std::vector<uint32_t>* nodes);

// What a pattern promises the library of addresses, in bytes.
constexpr uint32_t kAligned = 16;

// A tensor at such an address for the length of a call: its own, or that of a copy.
class Aligned {
 public:
  Aligned(const Copy& copy, const tw_view* v);
  Place place() const { return own_ ? At(view_) : memory_.place(); }
  void Fetch(const tw_frame* f) const;  // what the tensor holds, there
  void Leave(const tw_frame* f) const;  // what is there, to the tensor

 private:
  const Copy& copy_;
  const tw_view* const view_;
  const bool own_;
  const Temporary memory_;
};

bool AllKnown(const tw_shape& s);  // and none of its sizes 0

}  // namespace thalweg::opencl

namespace thalweg::cuda {

void RegisterPatterns(tw_registrar* to);

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_KERNELS_PATTERNS_H_
