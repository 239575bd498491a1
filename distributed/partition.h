// Partition: a signature of a client's graph as pieces, one for each task that takes part, with a `_Send` and a `_Recv` for each value and
// task that needs it. A loop over several tasks runs in all of them: each has a variable of ours that goes round as long as the loop's
// condition, which is sent to it in every iteration, says so, and what it receives within the loop waits for that variable. What a task was
// told before is not told again: a Partition remembers it, per task, until it is forgotten. Threads: one at a time.
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

// What one task does of a signature.
struct Part {
  int32_t task = 0;
  PieceMessage piece;
  std::vector<int32_t> feeds;  // which of the client's feeds each feed of the piece is
  struct Crossing {
    std::string key;
    int32_t task = 0;    // at the other end
    bool small = false;  // as the graph says, so that it may come unasked
  };
  std::vector<Crossing> comes, goes;  // the values that it receives, and sends
  std::vector<int32_t> nodes;         // of the client's graph that the piece adds
  std::vector<std::string> made;      // nodes of its own that it adds
};

struct Parts {
  std::vector<Part> parts;  // by task
  // Per fetch: the index of the part and of the fetch in it; part -1: it is feed number `second`.
  std::vector<std::pair<int32_t, int32_t>> fetches;
};

class Partition {
 public:
  // graph: gets the nodes of branches and loops that are made of primitives (Forms).
  Partition(Graph* graph, const ClusterSpec* cluster, TaskPlacement* placement, DeviceSpec wish)
      : graph_(graph), cluster_(cluster), placement_(placement), wish_(std::move(wish)), forms_(graph) {}
  // Places nodes that are new. Errors: those of placement; UNIMPLEMENTED for values that cannot leave their task.
  StatusOr<Parts> Split(const CallableSpec& spec);
  // The task has been told of the part.
  void Told(const Part& part);
  // It knows nothing any more.
  void Forget(int32_t task);

 private:
  friend class Splitter;
  bool WasTold(const Node* n) const;
  std::string TaskName(int32_t task) const;
  // The name that a node of ours gets: of that base, and no node of the graph has it.
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
