// Offsets for the values of a plan that live in its blocks: best fit over lifetimes.
// Threads: one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace thalweg {

// Memory that is written first by one node and used last by others. Nodes are positions in the plan's order.
struct Storage {
  uint64_t bytes = 0;
  int32_t first = 0;           // the node that makes it
  std::vector<int32_t> users;  // nodes that touch it, `first` included
  uint64_t offset = 0;         // the answer
};

// For each of some nodes, those that are certainly over before it starts, as bit rows.
using Ancestors = std::vector<std::vector<uint64_t>>;
// next: the nodes that wait for each, all of them later ones.
Ancestors FindAncestors(const std::vector<std::vector<int32_t>>& next);

// What is over before what where nodes run side by side: the nodes of a batch, which follow each other, run one after the other; a batch
// starts when others are over as a whole.
struct BatchOrder {
  std::vector<int32_t> batch;  // per node
  Ancestors before;            // per batch

  bool Before(int32_t a, int32_t b) const { return batch[size_t(a)] == batch[size_t(b)] ? a < b : IsOver(a, batch[size_t(b)]); }
  // Whether node a is over when the batch, another than its own, starts.
  bool IsOver(int32_t a, int32_t starting) const {
    const size_t own = size_t(batch[size_t(a)]);
    return (before[size_t(starting)][own / 64] >> (own % 64) & 1) != 0;
  }
};

// Gives every storage an offset, in multiples of 64; storages must be sorted by `first`. order: NULL where one node runs after the other.
// Answers the bytes of the block.
uint64_t PlanOffsets(std::vector<Storage>* storages, const BatchOrder* order);

}  // namespace thalweg
