// Splitter: splits one signature for a Partition. First it decides what each task runs and which
// values cross between tasks (splitter.cc), then it writes each task's piece (splitter_pieces.cc).
// Threads: one at a time.
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
  // A part under construction.
  struct Work {
    Part part;
    std::set<int32_t> wanted;              // nodes of the graph that must exist
    std::vector<PieceNode> before, after;  // nodes of ours: the inputs of the graph's nodes, and the readers of their outputs
    std::map<std::string, int32_t> feed_at, fetch_at;
    std::set<std::string> targets, made, over;
  };
  Work& WorkOf(int32_t task);

  // Names of the keys and nodes that the splitter adds.
  std::string TaskText(int32_t task) const;
  std::string ValueKey(const Edge& e, int32_t task) const { return StrCat(e.node->name(), "/", e.port, "/", TaskText(task)); }
  std::string ControlKey(const Node* c, int32_t task) const { return StrCat(c->name(), "/done/", TaskText(task)); }
  // The name under which a task has a value that another task makes.
  std::string Away(const Edge& e, int32_t task);
  // The name of a node of our loop variable: "enter", "merge", ...
  const std::string& LoopName(int32_t frame, int32_t task, std::string_view what);

  // First phase: what each task runs, and what crosses.
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

  // Second phase: the pieces.
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
  std::vector<std::pair<Edge, int32_t>> fed_away_;  // values that are fed to a task other than the one that would make them
  std::vector<std::pair<int32_t, int32_t>> fetches_;
  std::string library_;
};

// A constant that is copied to the tasks that need it instead of being sent.
bool IsSmallConst(const Node& n);
// An Enter that passes the same value to every iteration.
bool IsInvariant(const Node& n);

}  // namespace thalweg::distributed
