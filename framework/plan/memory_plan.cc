#include "framework/plan/memory_plan.h"

#include <algorithm>

namespace thalweg {

Ancestors FindAncestors(const std::vector<std::vector<int32_t>>& next) {
  size_t n = next.size(), words = (n + 63) / 64;
  Ancestors rows(n, std::vector<uint64_t>(words, 0));
  for (size_t i = 0; i < n; ++i) {
    for (int32_t k : next[i]) {
      auto& row = rows[size_t(k)];
      for (size_t w = 0; w <= i / 64; ++w) row[w] |= rows[i][w];
      row[i / 64] |= uint64_t{1} << (i % 64);
    }
  }
  return rows;
}

uint64_t PlanOffsets(std::vector<Storage>* storages, const Ancestors& ancestors) {
  constexpr uint64_t kGrain = 64;
  auto over_before = [&](const Storage& old, int32_t node) {
    for (int32_t u : old.users) {
      if (u == node) return false;
      if (ancestors.empty() ? u > node : !(ancestors[size_t(node)][size_t(u) / 64] >> (size_t(u) % 64) & 1)) return false;
    }
    return true;
  };
  uint64_t block = 0;
  // Storages that may still be in use. With order alone, what is over stays over, so the list stays short; with ancestors a storage may be
  // over for one node and not for another, so all stay.
  std::vector<const Storage*> live, conflicts;
  for (Storage& s : *storages) {
    s.bytes = (s.bytes + kGrain - 1) / kGrain * kGrain;
    if (s.bytes == 0) continue;
    conflicts.clear();
    size_t kept = 0;
    for (const Storage* old : live) {
      bool over = over_before(*old, s.first);
      if (!over) conflicts.push_back(old);
      if (!over || !ancestors.empty()) live[kept++] = old;
    }
    live.resize(kept);
    std::sort(conflicts.begin(), conflicts.end(), [](const Storage* a, const Storage* b) { return a->offset < b->offset; });
    uint64_t best = UINT64_MAX, best_gap = UINT64_MAX, end = 0;
    for (const Storage* c : conflicts) {
      if (c->offset > end && c->offset - end >= s.bytes && c->offset - end < best_gap) {
        best = end;
        best_gap = c->offset - end;
      }
      end = std::max(end, c->offset + c->bytes);
    }
    s.offset = best != UINT64_MAX ? best : end;
    block = std::max(block, s.offset + s.bytes);
    live.push_back(&s);
  }
  return block;
}

}  // namespace thalweg
