// EagerEntry: the graph that holds the op of one key, a session of that graph, and the Prepared that
// runs the op. An entry lives as long as the cache, a run or a tape holds it.
// Threads: any.
#pragma once
#include <functional>
#include <memory>
#include <mutex>

#include "framework/base/status.h"
#include "framework/eager/call.h"
#include "framework/eager/prepared.h"
#include "framework/graph/graph.h"
#include "framework/session/options.h"

namespace thalweg {

// The name of the node that runs an op; error messages contain it.
inline constexpr char kEagerNode[] = "eager";

class MemoryBudget;
class Runtime;
class Session;

class EagerEntry {
 public:
  // account: charged with the memory of the entry and its values; NULL: none. Errors: those of
  // `build` and of Session::Create.
  static StatusOr<std::shared_ptr<EagerEntry>> Make(std::shared_ptr<Runtime> runtime, const SessionOptions& options, MemoryBudget* account,
                                                    const EagerBuild& build);
  ~EagerEntry();
  Prepared& op() { return *op_; }

  uint64_t used = 0;  // when last used, by the clock of the cache, whose mutex guards it

 private:
  EagerEntry();
  std::unique_ptr<Session> session_;
  std::mutex differentiating_;
  std::unique_ptr<Prepared> op_;  // declared after session_, so that it is destroyed first
};

// Adds the nodes of a call: a placeholder for each input, and the op. Errors: those of Graph::AddNode,
// which name op and value; INVALID_ARGUMENT for a resource without a name, and for an op on
// references.
Status BuildCall(const EagerCall& call, Graph* graph, Prepared::Parts* parts);
// Adds a placeholder of unknown shape for input i.
StatusOr<Edge> AddInput(Graph* graph, uint32_t dtype, size_t i);

}  // namespace thalweg
