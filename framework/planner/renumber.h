// Renumber and SortNodes: a work graph whose nodes a pass puts in another order. Threads: one.
#pragma once
#include <cstdint>
#include <vector>

#include "framework/planner/work_graph.h"

namespace thalweg {

// Lists for each node those that read it or wait for it, dead nodes and constants included. A list
// names a node once for each of its edges, except for edges that close a loop.
std::vector<std::vector<int32_t>> AllReaders(const WorkGraph& w);

// Maps what names nodes of the work graph from outside the nodes, after a pass has moved them.
// at: the new number of each node. read(e): the value that a fetch of e becomes. wait(i): the target
// that stands for node i.
template <class Read, class Wait>
void Renumber(WorkGraph* w, const std::vector<int32_t>& at, const Read& read, const Wait& wait) {
  for (WorkEdge& e : w->fetches) e = read(e);
  for (int32_t& t : w->targets) t = wait(t);
  for (int32_t& f : w->feeds) f = f < 0 ? f : at[size_t(f)];
  for (auto& [a, b] : w->equal_shapes) {
    a.node = at[size_t(a.node)];
    b.node = at[size_t(b.node)];
  }
}

// Puts every node behind those that it reads and waits for; otherwise the nodes keep their order.
// REQUIRES: only edges of `back` close loops.
void SortNodes(WorkGraph* w);

}  // namespace thalweg
