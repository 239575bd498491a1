#include "framework/planner/passes/deadness.h"

#include <algorithm>
#include <iterator>

namespace thalweg {

void Deadness::AddLoop(const std::vector<int32_t>& enters, const std::vector<int32_t>& exits) {
  for (int32_t i : exits) loop_of_[size_t(i)] = int32_t(loops_.size());
  loops_.push_back(enters);
}

// Enters may come after exits of their loop, so this takes as many rounds as loops that follow each
// other.
void Deadness::Find() {
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < w_.nodes.size(); ++i) {
      if (needs_[i].known || (w_.nodes[i].frame != 0 && w_.nodes[i].into != 0)) continue;
      needs_[i] = Work(int32_t(i));
      changed = changed || needs_[i].known;
    }
  }
}

bool Deadness::Together(const std::vector<int32_t>& nodes) const {
  return std::all_of(nodes.begin(), nodes.end(),
                     [&](int32_t i) { return needs_[size_t(i)].known && needs_[size_t(i)].ways == needs_[size_t(nodes[0])].ways; });
}

// Returns the value that decides, before all nodes that only forwarded it.
WorkEdge Deadness::Decider(WorkEdge e) const {
  for (;;) {
    const WorkNode& n = w_.nodes[size_t(e.node)];
    if (!n.node || n.flow != Flow::kNone || n.node->op().algebra.passes != 0 || n.in.size() != 1 || !n.controls.empty()) return e;
    e = n.in[0];
  }
}

// Adds the branches that the value needs. Returns false if they are not known yet.
bool Deadness::NeedsOf(const WorkEdge& e, std::set<Way>* ways) const {
  const Needs& maker = needs_[size_t(e.node)];
  if (!maker.known) return false;
  ways->insert(maker.ways.begin(), maker.ways.end());
  const WorkNode& n = w_.nodes[size_t(e.node)];
  if (n.flow != Flow::kSwitch) return true;
  const WorkEdge by = Decider(n.in[1]);
  ways->insert({by.node, by.port, e.port});
  return true;
}

Deadness::Needs Deadness::Work(int32_t i) const {
  const WorkNode& n = w_.nodes[size_t(i)];
  if (n.flow == Flow::kExit) {
    const int32_t loop = loop_of_[size_t(i)];
    if (loop < 0) return {true, {{i, -1, -1}}};
    const std::vector<int32_t>& enters = loops_[size_t(loop)];
    if (std::any_of(enters.begin(), enters.end(), [&](int32_t e) { return !needs_[size_t(e)].known; })) return {};
    return Together(enters) ? needs_[size_t(enters[0])] : Needs{true, {{i, -1, -1}}};
  }
  if (n.flow == Flow::kControlTrigger) return {true, {}};
  if (n.flow == Flow::kMerge) return WorkMerge(i);
  Needs needs{true, {}};
  for (const WorkEdge& e : n.in) needs.known = needs.known && NeedsOf(e, &needs.ways);
  for (int32_t c : n.controls) needs.known = needs.known && NeedsOf({c, -1}, &needs.ways);
  return needs;
}

// A merge of both branches of one decision is alive whenever the decision is made.
Deadness::Needs Deadness::WorkMerge(int32_t i) const {
  const WorkNode& n = w_.nodes[size_t(i)];
  const Needs unknown{true, {{i, -1, -1}}};
  if (n.in.size() != 2) return unknown;
  std::set<Way> a, b, both;
  if (!NeedsOf(n.in[0], &a) || !NeedsOf(n.in[1], &b)) return {};
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(both, both.end()));
  if (a.size() != both.size() + 1 || b.size() != both.size() + 1) return unknown;
  const auto other = [&](const std::set<Way>& ways) {
    return *std::find_if(ways.begin(), ways.end(), [&](const Way& w) { return !both.count(w); });
  };
  const Way one = other(a), two = other(b);
  const bool decided = one.way >= 0 && one.node == two.node && one.port == two.port && one.way + two.way == 1;
  return decided ? Needs{true, both} : unknown;
}

}  // namespace thalweg
