#include "framework/planner/renumber.h"

#include <functional>
#include <queue>
#include <utility>

namespace thalweg {

std::vector<std::vector<int32_t>> AllReaders(const WorkGraph& w) {
  std::vector<std::vector<int32_t>> readers(w.nodes.size());
  for (size_t i = 0; i < w.nodes.size(); ++i) {
    for (const WorkEdge& e : w.nodes[i].in) {
      if (e.node >= 0) readers[size_t(e.node)].push_back(int32_t(i));
    }
    for (int32_t c : w.nodes[i].controls) readers[size_t(c)].push_back(int32_t(i));
  }
  return readers;
}

void SortNodes(WorkGraph* w) {
  const size_t n = w->nodes.size();
  const auto readers = AllReaders(*w);
  std::vector<int32_t> left(n, 0), at(n, -1);
  for (const auto& list : readers) {
    for (int32_t r : list) ++left[size_t(r)];
  }
  std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> ready;
  for (size_t i = 0; i < n; ++i) {
    if (left[i] == 0) ready.push(int32_t(i));
  }
  std::vector<WorkNode> sorted;
  sorted.reserve(n);
  while (!ready.empty()) {
    const auto i = size_t(ready.top());
    ready.pop();
    at[i] = int32_t(sorted.size());
    sorted.push_back(std::move(w->nodes[i]));
    for (int32_t r : readers[i]) {
      if (--left[size_t(r)] == 0) ready.push(r);
    }
  }
  w->nodes = std::move(sorted);
  const auto now = [&](int32_t i) { return i < 0 ? i : at[size_t(i)]; };
  const auto moved = [&](const WorkEdge& e) { return WorkEdge{now(e.node), e.port}; };
  for (WorkNode& x : w->nodes) {
    for (WorkEdge& e : x.in) e = moved(e);
    for (int32_t& c : x.controls) c = now(c);
    for (WorkEdge& e : x.back) e = moved(e);
  }
  Renumber(w, at, moved, now);
}

}  // namespace thalweg
