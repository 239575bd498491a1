// The graph compiler that finds subgraphs that cuDNN computes at once: a convolution with its
// additions and its Relu, attention, and sequences of LSTM cells. If cuDNN has no engine for the
// shapes, the nodes run one by one.
#ifndef THALWEG_PLUGINS_CUDA_KERNELS_PATTERNS_H_
#define THALWEG_PLUGINS_CUDA_KERNELS_PATTERNS_H_

#include <memory>
#include <optional>
#include <vector>

#include "kernels/copy.h"
#include "kernels/dnn_call.h"

namespace thalweg::opencl {

// A view of a part, or of the nodes from which a part is taken, for patterns.
class PartView {
 public:
  explicit PartView(const tw_part& part);

  const tw_part& part() const { return part_; }
  const tw_part_node& node(uint32_t i) const { return *part_.nodes[i]; }
  std::string_view op(uint32_t i) const { return {node(i).op, node(i).op_len}; }
  uint32_t type_out(uint32_t i) const { return node(i).types[node(i).n_in]; }
  const tw_shape& shape_in(uint32_t i, uint32_t k) const { return node(i).shapes[k]; }
  const tw_shape& shape_out(uint32_t i) const { return node(i).shapes[node(i).n_in]; }
  // Returns the only reader of node i's only output, inside and outside the part. Empty if there
  // are several readers, or none.
  std::optional<uint32_t> OnlyReader(uint32_t i) const;
  // Returns true if `output` is the only output of node i that is read, inside and outside the
  // part.
  bool NobodyReadsBut(uint32_t i, uint32_t output) const;
  // Returns the constant at input k of node i, if it is one.
  std::optional<float> NumberIn(uint32_t i, uint32_t k) const;
  std::optional<int64_t> WholeNumberIn(uint32_t i, uint32_t k) const;
  // The index of node i's input k in the part's frame.
  uint32_t InputAt(uint32_t i, uint32_t k) const { return node(i).in[k].port; }

 private:
  const tw_part& part_;
  std::vector<std::vector<uint32_t>> readers_;  // a reader appears once per read
};

class Pattern {
 public:
  virtual ~Pattern() = default;
  // Returns true if the pattern begins at node `first` and the library computes it for the shapes
  // there. REQUIRES: the nodes are like those in which it was found.
  virtual bool Serves(const tw_host* host, const PartView& part, uint32_t first) const = 0;
  virtual void Run(const tw_frame* f) const = 0;
};

// Returns a P for the pattern that begins at node `first`, or NULL; if `nodes` is not NULL, *nodes
// receives its nodes. P is a Pattern with Match(part, first) -> optional<P::Nodes> and
// Nodes::All().
template <class P>
std::unique_ptr<Pattern> FindPattern(const tw_host* host, Device& device, const PartView& part, uint32_t first,
                                     std::vector<uint32_t>* nodes) {
  const auto found = P::Match(part, first);
  if (!found) return nullptr;
  if (nodes) *nodes = found->All();
  return std::make_unique<P>(host, device, part, *found);
}

// FindPattern for the pattern of each file.
std::unique_ptr<Pattern> FindConvolution(const tw_host* host, Device& device, const PartView& part, uint32_t first,
                                         std::vector<uint32_t>* nodes);
std::unique_ptr<Pattern> FindAttention(const tw_host* host, Device& device, const PartView& part, uint32_t first,
                                       std::vector<uint32_t>* nodes);
std::unique_ptr<Pattern> FindLstm(const tw_host* host, Device& device, const PartView& part, uint32_t first, std::vector<uint32_t>* nodes);

// The alignment, in bytes, that a pattern promises to the library.
constexpr uint32_t kAligned = 16;

// A tensor with this alignment for one call: the tensor itself or a copy.
class Aligned {
 public:
  Aligned(const Copy& copy, const tw_view* v);
  Place place() const { return own_ ? At(view_) : memory_.place(); }
  void Fetch(const tw_frame* f) const;  // copies the tensor to place()
  void Leave(const tw_frame* f) const;  // copies place() to the tensor

 private:
  const Copy& copy_;
  const tw_view* const view_;
  const bool own_;
  const Temporary memory_;
};

bool AllKnown(const tw_shape& s);  // true if all sizes are known and none is 0

}  // namespace thalweg::opencl

namespace thalweg::cuda {

void RegisterPatterns(tw_registrar* to);

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_KERNELS_PATTERNS_H_
