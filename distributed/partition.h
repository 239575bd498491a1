// Partition: splits a signature of a client's graph into pieces, one for each task that takes part,
// with a `_Send` and a `_Recv` for each value and task that needs it. A loop over several tasks
// runs in all of them: each has a loop variable of ours that goes round as long as the loop's
// condition, sent to it in every iteration, says so; receives inside the loop wait for that
// variable. A Partition remembers, per task until Forget, the nodes that the task was told of, and
// does not send them again. Threads: one at a time.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "distributed/forms.h"
#include "distributed/piece.h"
#include "distributed/task_placement.h"
#include "framework/session/session.h"

namespace thalweg::distributed {

// The part of a signature that one task runs.
struct Part {
  int32_t task = 0;
  PieceMessage piece;
  std::vector<int32_t> feeds;  // per feed of the piece: the client's feed
  struct Crossing {
    std::string key;
    int32_t task = 0;    // at the other end
    bool small = false;  // small according to the graph, so that it may be pushed
  };
  std::vector<Crossing> comes, goes;  // the values that the part receives, and sends
  std::vector<int32_t> nodes;         // nodes of the client's graph that the piece adds
  std::vector<std::string> made;      // names of the nodes of ours that the piece adds
};

struct Parts {
  std::vector<Part> parts;  // by task
  // Per fetch: the index of the part and of the fetch in it; part -1 means feed number `second`.
  std::vector<std::pair<int32_t, int32_t>> fetches;
};

class Partition {
 public:
  // graph: receives the nodes of branches and loops that are lowered to primitives (Forms).
  Partition(Graph* graph, const ClusterSpec* cluster, TaskPlacement* placement, DeviceSpec wish)
      : graph_(graph), cluster_(cluster), placement_(placement), wish_(std::move(wish)), forms_(graph) {}
  // Places new nodes. Errors: those of placement; UNIMPLEMENTED for values that cannot leave their
  // task.
  StatusOr<Parts> Split(const CallableSpec& spec);
  // Records that the task has been told of the part.
  void Told(const Part& part);
  // Records that the task knows nothing any more.
  void Forget(int32_t task);

 private:
  friend class Splitter;
  bool WasTold(const Node* n) const;
  std::string TaskName(int32_t task) const;
  // Returns a name for a node of ours: derived from `base`, and unused in the graph.
  const std::string& NameFor(const std::string& base);
  struct Known {
    std::set<int32_t> nodes;
    std::set<std::string> made;
    std::string library;
  };
  Graph* const graph_;
  const ClusterSpec* const cluster_;
  TaskPlacement* const placement_;
  const DeviceSpec wish_;
  Forms forms_;
  std::map<int32_t, Known> known_;
  std::map<std::string, std::string> names_;
};

}  // namespace thalweg::distributed
