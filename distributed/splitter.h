// Splitter: one signature's way through a Partition. First it decides what each task does and which values cross from one to another
// (splitter.cc), then it writes each task's piece (splitter_pieces.cc). Threads: one at a time.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "distributed/needed_nodes.h"
#include "distributed/partition.h"

namespace thalweg::distributed {

class Splitter {
 public:
  Splitter(Partition* partition, const CallableSpec& spec)
      : p_(*partition), flow_(partition->placement_->flow()), spec_(spec), needed_(partition->graph_, &partition->forms_, &spec_) {}
  StatusOr<Parts> Run();

 private:
  // What is to become a part.
  struct Work {
    Part part;
    std::set<int32_t> wanted;              // nodes of the graph that must be there
    std::vector<PieceNode> before, after;  // nodes of ours: what nodes of the graph read, and what reads them
    std::map<std::string, int32_t> feed_at, fetch_at;
    std::set<std::string> targets, made, over;
  };
  Work& WorkOf(int32_t task);

  // Names of what is ours.
  std::string TaskText(int32_t task) const;
  std::string ValueKey(const Edge& e, int32_t task) const { return StrCat(e.node->name(), "/", e.port, "/", TaskText(task)); }
  std::string ControlKey(const Node* c, int32_t task) const { return StrCat(c->name(), "/done/", TaskText(task)); }
  // The name under which a task has a value that another makes.
  std::string Away(const Edge& e, int32_t task);
  // Of our variable of a loop: "enter", "merge", ...
  const std::string& LoopName(int32_t frame, int32_t task, std::string_view what);

  // What each task does, and what crosses.
  Status AddNode(const Node& n, int32_t task);
  Status AddInput(const Edge& input, int32_t task);
  Status AddOver(const Node* c, int32_t task);
  Status AddControl(const Node* c, int32_t task);
  Status AddLoop(const Node& n, int32_t task);
  Status AddLoop(int32_t frame, int32_t task);
  Status AddFetch(const Edge& fetch);
  void AddFeed(int32_t task, const std::string& text, int32_t feed);
  void AddTarget(int32_t task, const std::string& name);
  bool IsEnteredThere(const Node& n, int32_t task) const;
  Status Transfer(const Edge& e, int32_t from, int32_t task);
  StatusOr<std::string> DoneOf(const Node* c, int32_t from);
  Status Send(const std::string& value, uint32_t type, bool small, const std::string& key, int32_t from, int32_t task);
  bool AddMade(Work* w, PieceNode n, std::vector<PieceNode>* list) const;

  // The pieces.
  Status Emit();
  Status EmitNodes(int32_t task, Work* w);
  Status EmitNode(const Node& n, int32_t task, Work* w);
  Status EmitLibrary(int32_t task, Work* w);
  Edge Read(const Edge& e) const;
  Status NeedAway(const Edge& e, int32_t task, Work* w);
  Status ReadInvariant(const Edge& e, int32_t task, Work* w, PieceNode* enter);
  Status AddReceive(const std::string& name, const std::string& key, uint32_t type, const Edge& of, int32_t from, Work* w);
  StatusOr<PieceNode> LoopNode(int32_t frame, int32_t task, std::string_view what, std::string_view role);
  Status BeginLoop(int32_t frame, int32_t task, Work* w);
  Status EndLoop(int32_t frame, int32_t task, Work* w);
  Parts Finish();

  Partition& p_;
  const FlowMap& flow_;
  const CallableSpec& spec_;
  NeededNodes needed_;
  std::map<int32_t, Work> work_;                    // by task
  std::set<std::string> sent_;                      // keys
  std::set<std::pair<int32_t, int32_t>> loops_;     // frame and task
  std::vector<std::pair<Edge, int32_t>> fed_away_;  // values that are fed to a task beside the one that would make them
  std::vector<std::pair<int32_t, int32_t>> fetches_;
  std::string library_;
};

// A constant that is made where it is needed rather than sent.
bool IsSmallConst(const Node& n);
// An Enter that hands the same value to every iteration.
bool IsInvariant(const Node& n);

}  // namespace thalweg::distributed
