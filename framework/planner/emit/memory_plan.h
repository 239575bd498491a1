// Offsets for the values of a plan that live in its blocks: best fit over lifetimes.
// Threads: one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace thalweg {

// Memory that one node writes first and others use last. Nodes are positions in the plan's order.
struct Storage {
  uint64_t bytes = 0;
  int32_t first = 0;           // the node that writes it first
  std::vector<int32_t> users;  // nodes that access it, `first` included
  uint64_t offset = 0;         // the result
};

// For each of some nodes, the nodes that have certainly ended before it starts, as bit rows.
using Ancestors = std::vector<std::vector<uint64_t>>;
// next: the nodes that wait for each node, all of them later ones.
Ancestors FindAncestors(const std::vector<std::vector<int32_t>>& next);

// Tells which nodes end before which others start when nodes run side by side: the nodes of a batch
// run in order, and a batch starts when the batches it waits for have ended as a whole.
struct BatchOrder {
  std::vector<int32_t> batch;  // per node
  Ancestors before;            // per batch

  bool Before(int32_t a, int32_t b) const { return batch[size_t(a)] == batch[size_t(b)] ? a < b : IsOver(a, batch[size_t(b)]); }
  // Returns whether node a has ended when batch `starting`, which is not its own, starts.
  bool IsOver(int32_t a, int32_t starting) const {
    const size_t own = size_t(batch[size_t(a)]);
    return (before[size_t(starting)][own / 64] >> (own % 64) & 1) != 0;
  }
};

// Gives every storage an offset, a multiple of 64; storages must be sorted by `first`. order: NULL
// if nodes run one after the other. Returns the bytes of the block.
uint64_t PlanOffsets(std::vector<Storage>* storages, const BatchOrder* order);

}  // namespace thalweg
