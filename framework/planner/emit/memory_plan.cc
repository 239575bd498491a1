#include "framework/planner/emit/memory_plan.h"

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

// Allocates and frees memory: the smallest gap that fits, the lowest of equal ones, else the end.
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
  std::map<uint64_t, uint64_t> gaps_;  // offset -> bytes; no two gaps touch
  std::set<std::pair<uint64_t, uint64_t>> by_size_;
};

// One node runs at a time: memory whose last user has run stays free.
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

// The gaps between a few storages, in the order of their offsets.
class Gaps {
 public:
  // The storages come by offset; they may overlap.
  void Reset() {
    gaps_.clear();
    end_ = 0;
  }
  void Use(uint64_t offset, uint64_t bytes) {
    if (offset > end_) gaps_.push_back({end_, offset});
    end_ = std::max(end_, offset + bytes);
  }
  uint64_t Take(uint64_t bytes) {
    Gap* best = nullptr;
    for (Gap& g : gaps_) {
      if (g.size() >= bytes && (!best || g.size() < best->size())) best = &g;
    }
    if (!best) return std::exchange(end_, end_ + bytes);
    const uint64_t offset = std::exchange(best->begin, best->begin + bytes);
    if (best->size() == 0) gaps_.erase(gaps_.begin() + (best - gaps_.data()));
    return offset;
  }
  void Give(uint64_t offset, uint64_t bytes) {
    auto after = std::lower_bound(gaps_.begin(), gaps_.end(), offset, [](const Gap& g, uint64_t o) { return g.begin < o; });
    after = gaps_.insert(after, {offset, offset + bytes});
    if (after + 1 != gaps_.end() && (after + 1)->begin == after->end) {
      after->end = (after + 1)->end;
      gaps_.erase(after + 1);
    }
    if (after != gaps_.begin() && (after - 1)->end == after->begin) {
      (after - 1)->end = after->end;
      after = gaps_.erase(after) - 1;
    }
    if (after->end != end_) return;
    end_ = after->begin;
    gaps_.erase(after);
  }

 private:
  struct Gap {
    uint64_t begin, end;
    uint64_t size() const { return end - begin; }
  };
  std::vector<Gap> gaps_;  // no two touch, and none touches the end
  uint64_t end_ = 0;
};

// Plans batch by batch: storages that are in use when a batch starts keep their place. Storages
// whose last use is in the batch are freed in its order.
class SideBySide {
 public:
  explicit SideBySide(const BatchOrder& order) : order_(order) {}

  void Run(const std::vector<Storage*>& storages) {
    for (size_t i = 0; i < storages.size();) {
      const size_t begin = i;
      Start(BatchOf(*storages[i]));
      for (; i < storages.size() && BatchOf(*storages[i]) == batch_; ++i) Place(storages[i]);
      for (size_t k = begin; k < i; ++k)
        placed_.insert(std::upper_bound(placed_.begin(), placed_.end(), storages[k], ByOffset), storages[k]);
    }
  }

 private:
  // The last node that uses a storage, and the storage.
  using Last = std::pair<int32_t, const Storage*>;
  static bool ByOffset(const Storage* a, const Storage* b) { return a->offset < b->offset; }
  int32_t BatchOf(const Storage& s) const { return order_.batch[size_t(s.first)]; }

  void Start(int32_t batch) {
    batch_ = batch;
    gaps_.Reset();
    ending_ = {};
    for (const Storage* s : placed_) {
      if (std::all_of(s->users.begin(), s->users.end(), [&](int32_t u) { return IsOverBefore(u); })) continue;
      gaps_.Use(s->offset, s->bytes);
      EndsHere(s);
    }
  }
  bool IsOverBefore(int32_t node) const { return order_.batch[size_t(node)] != batch_ && order_.IsOver(node, batch_); }

  void Place(Storage* s) {
    for (; !ending_.empty() && ending_.top().first < s->first; ending_.pop()) {
      gaps_.Give(ending_.top().second->offset, ending_.top().second->bytes);
    }
    s->offset = gaps_.Take(s->bytes);
    EndsHere(s);
  }

  // Records the storages whose last use is in this batch.
  void EndsHere(const Storage* s) {
    int32_t last = -1;
    for (int32_t u : s->users) {
      if (order_.batch[size_t(u)] == batch_) {
        last = std::max(last, u);
      } else if (!IsOverBefore(u)) {
        return;
      }
    }
    ending_.push({last, s});
  }

  const BatchOrder& order_;
  int32_t batch_ = -1;
  std::vector<const Storage*> placed_;  // storages of planned batches, by offset
  Gaps gaps_;
  std::priority_queue<Last, std::vector<Last>, std::greater<>> ending_;
};

}  // namespace

uint64_t PlanOffsets(std::vector<Storage>* storages, const BatchOrder* order) {
  constexpr uint64_t kGrain = 64;
  std::vector<Storage*> filled;
  for (Storage& s : *storages) {
    s.bytes = (s.bytes + kGrain - 1) / kGrain * kGrain;
    if (s.bytes) filled.push_back(&s);
  }
  if (order) {
    SideBySide(*order).Run(filled);
  } else {
    PlanInOrder(filled);
  }
  uint64_t block = 0;
  for (const Storage* s : filled) block = std::max(block, s->offset + s->bytes);
  return block;
}

}  // namespace thalweg
