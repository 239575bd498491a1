#include "framework/plan/memory_plan.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <utility>

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

namespace {

// Memory that is taken and given back: the smallest gap that fits, the lowest of equal ones, else the end.
class Arena {
 public:
  uint64_t Take(uint64_t bytes) {
    auto it = by_size_.lower_bound({bytes, 0});
    if (it == by_size_.end()) return std::exchange(end_, end_ + bytes);
    auto [size, offset] = *it;
    RemoveGap(offset, size);
    if (size > bytes) AddGap(offset + bytes, size - bytes);
    return offset;
  }
  void Give(uint64_t offset, uint64_t bytes) {
    auto after = gaps_.find(offset + bytes);
    if (after != gaps_.end()) {
      bytes += after->second;
      RemoveGap(after->first, after->second);
    }
    auto before = gaps_.lower_bound(offset);
    if (before != gaps_.begin() && (--before)->first + before->second == offset) {
      offset = before->first;
      bytes += before->second;
      RemoveGap(before->first, before->second);
    }
    if (offset + bytes == end_) {
      end_ = offset;
    } else {
      AddGap(offset, bytes);
    }
  }

 private:
  void AddGap(uint64_t offset, uint64_t bytes) {
    gaps_[offset] = bytes;
    by_size_.insert({bytes, offset});
  }
  void RemoveGap(uint64_t offset, uint64_t bytes) {
    gaps_.erase(offset);
    by_size_.erase({bytes, offset});
  }
  uint64_t end_ = 0;
  std::map<uint64_t, uint64_t> gaps_;  // offset -> bytes; no two touch
  std::set<std::pair<uint64_t, uint64_t>> by_size_;
};

// One node at a time: what is over stays over.
void PlanInOrder(const std::vector<Storage*>& storages) {
  using Last = std::pair<int32_t, const Storage*>;
  std::priority_queue<Last, std::vector<Last>, std::greater<>> live;
  Arena arena;
  for (Storage* s : storages) {
    for (; !live.empty() && live.top().first < s->first; live.pop()) arena.Give(live.top().second->offset, live.top().second->bytes);
    s->offset = arena.Take(s->bytes);
    live.push({*std::max_element(s->users.begin(), s->users.end()), s});
  }
}

// Side by side: a storage may be over for one node and not for another, so each is compared with all before it.
void PlanSideBySide(const std::vector<Storage*>& storages, const Ancestors& ancestors) {
  auto over_before = [&](const Storage& old, int32_t node) {
    return std::all_of(old.users.begin(), old.users.end(),
                       [&](int32_t u) { return (ancestors[size_t(node)][size_t(u) / 64] >> (size_t(u) % 64) & 1) != 0; });
  };
  std::vector<const Storage*> placed;  // by offset
  for (Storage* s : storages) {
    uint64_t best = UINT64_MAX, best_gap = UINT64_MAX, end = 0;
    for (const Storage* old : placed) {
      if (over_before(*old, s->first)) continue;
      if (old->offset > end && old->offset - end >= s->bytes && old->offset - end < best_gap) {
        best = end;
        best_gap = old->offset - end;
      }
      end = std::max(end, old->offset + old->bytes);
    }
    s->offset = best != UINT64_MAX ? best : end;
    placed.insert(std::upper_bound(placed.begin(), placed.end(), s, [](auto* a, auto* b) { return a->offset < b->offset; }), s);
  }
}

}  // namespace

uint64_t PlanOffsets(std::vector<Storage>* storages, const Ancestors& ancestors) {
  constexpr uint64_t kGrain = 64;
  std::vector<Storage*> filled;
  for (Storage& s : *storages) {
    s.bytes = (s.bytes + kGrain - 1) / kGrain * kGrain;
    if (s.bytes) filled.push_back(&s);
  }
  if (ancestors.empty()) {
    PlanInOrder(filled);
  } else {
    PlanSideBySide(filled, ancestors);
  }
  uint64_t block = 0;
  for (const Storage* s : filled) block = std::max(block, s->offset + s->bytes);
  return block;
}

}  // namespace thalweg
