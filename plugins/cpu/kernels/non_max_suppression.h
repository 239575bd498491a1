// The choice of non-overlapping boxes by their scores, shared by the NonMaxSuppression kernels.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_NON_MAX_SUPPRESSION_H_
#define THALWEG_PLUGINS_CPU_KERNELS_NON_MAX_SUPPRESSION_H_

#include <algorithm>
#include <cmath>

#include "kernels/common/temp.h"

namespace thalweg::cpu {

// A box by its smallest and largest coordinates.
struct BoxOf {
  float top, left, bottom, right;
  explicit BoxOf(const float* c)
      : top(std::min(c[0], c[2])), left(std::min(c[1], c[3])), bottom(std::max(c[0], c[2])), right(std::max(c[1], c[3])) {}
  float area() const { return (bottom - top) * (right - left); }
};
// Returns the area that both boxes cover divided by the area that either covers; 0 if a box has no
// area.
inline float Overlap(const float* a, const float* b) {
  const BoxOf x(a), y(b);
  const float area_x = x.area(), area_y = y.area();
  if (area_x <= 0 || area_y <= 0) return 0;
  const float height = std::max(std::min(x.bottom, y.bottom) - std::max(x.top, y.top), 0.0F);
  const float width = std::max(std::min(x.right, y.right) - std::max(x.left, y.left), 0.0F);
  const float both = height * width;
  return both / (area_x + area_y - both);
}

// A box that has not been chosen yet. It has been compared with the first `seen` chosen boxes.
struct Candidate {
  float score;
  int32_t box, seen;
  // Orders by score; of equal scores the first box wins.
  bool operator<(const Candidate& o) const { return score < o.score || (score == o.score && box > o.box); }
};
struct Chosen {
  int32_t box;
  float score;
};

// Limits of a choice. `round` rounds to the element type of the scores. sigma > 0: overlapping
// boxes get lower scores instead of being left out.
struct ChoiceLimits {
  int64_t most;
  float overlap, score, sigma;
  float (*round)(float);
};

// Appends the chosen boxes to `chosen`, best first. score(i): of box i; overlap(i, j): of two boxes.
template <class Score, class OverlapOf>
void ChooseBoxes(int64_t n, const ChoiceLimits& limits, Score&& score, OverlapOf&& overlap, tw::TempVector<Candidate>& heap,
                 tw::TempVector<Chosen>& chosen) {
  heap.clear();
  chosen.clear();
  for (int64_t i = 0; i < n; ++i)
    if (score(i) > limits.score) heap.push_back({score(i), int32_t(i), 0});
  std::make_heap(heap.begin(), heap.end());
  const bool soft = limits.sigma > 0;
  const float scale = soft ? limits.round(-0.5F / limits.sigma) : 0;
  while (int64_t(chosen.size()) < limits.most && !heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    Candidate next = heap.back();
    heap.pop_back();
    const float before = next.score;
    bool left_out = false;
    // The last chosen boxes have similar scores and are therefore likely to overlap.
    for (int64_t j = int64_t(chosen.size()) - 1; j >= next.seen; --j) {
      const float shared = limits.round(overlap(next.box, chosen[size_t(j)].box));
      const bool inside = shared <= limits.overlap;
      next.score = soft || inside ? limits.round(next.score * limits.round(std::exp(limits.round(scale * shared * shared)))) : 0;
      left_out = !soft && shared > limits.overlap;
      if (left_out || next.score <= limits.score) break;
    }
    next.seen = int32_t(chosen.size());
    if (left_out) continue;
    if (next.score == before) {
      chosen.push_back({next.box, next.score});
    } else if (next.score > limits.score) {
      heap.push_back(next);
      std::push_heap(heap.begin(), heap.end());
    }
  }
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_NON_MAX_SUPPRESSION_H_
