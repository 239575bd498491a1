// EagerEntry: what is prepared for one key: a graph that holds the op, a session of it, and the op ready to run. An entry lives as long as
// the cache, a run or a tape holds it.
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
#include "framework/session/session.h"

namespace thalweg {

// The name of the node that runs an op, as messages have it.
inline constexpr char kEagerNode[] = "eager";

class EagerEntry {
 public:
  // Adds nodes to an empty graph and says what goes in and comes out.
  using Build = std::function<Status(Graph*, Prepared::Parts*)>;
  // account: pays for what the entry and its values hold; NULL: nobody does. Errors: those of `build`.
  static StatusOr<std::shared_ptr<EagerEntry>> Make(std::shared_ptr<Runtime> runtime, const SessionOptions& options, MemoryBudget* account,
                                                    const Build& build);
  Prepared& op() { return *op_; }

  uint64_t used = 0;  // guarded by the cache: when last

 private:
  EagerEntry() = default;
  std::unique_ptr<Session> session_;
  std::mutex differentiating_;
  std::unique_ptr<Prepared> op_;  // after the session, so that it ends before
};

// The nodes of a call: a placeholder for each input, and the op. Errors: those of Graph::AddNode, which name op and value; INVALID_ARGUMENT
// for a resource without a name, and for an op on references.
Status BuildCall(const EagerCall& call, Graph* graph, Prepared::Parts* parts);
// A placeholder of any shape.
StatusOr<Edge> AddInput(Graph* graph, uint32_t dtype, size_t i);

}  // namespace thalweg
