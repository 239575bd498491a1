// Offsets for the values of a plan that live in its blocks: best fit over lifetimes.
// Threads: one.
#pragma once
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

// For each node, the nodes that are certainly over before it starts, as bit rows. Empty: order alone decides (one node at a time).
using Ancestors = std::vector<std::vector<uint64_t>>;
Ancestors FindAncestors(const std::vector<std::vector<int32_t>>& next);

// Gives every storage an offset, in multiples of 64; storages must be sorted by `first`. Answers the bytes of the block.
uint64_t PlanOffsets(std::vector<Storage>* storages, const Ancestors& ancestors);

}  // namespace thalweg
