// GraphHost: what a graph needs of the runtime that it belongs to: ops, the values of constant
// nodes, and a place for the state of its sessions. `Runtime` implements it; the graph knows nothing
// else of it. Threads: any.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

class MemoryBudget;
class Node;
struct OpSchema;

class GraphHost {
 public:
  virtual ~GraphHost() = default;
  // Returns NULL if no loaded plugin defines the op.
  virtual const OpSchema* FindOp(std::string_view name) const = 0;
  // Returns "; did you mean 'x'?" for a defined op, or "".
  virtual std::string MeantOp(std::string_view name) const = 0;
  // Returns the op that plays a role; FAILED_PRECONDITION if no loaded plugin has one.
  virtual StatusOr<const OpSchema*> FindRole(std::string_view role) const = 0;
  // Computes the outputs of a node whose inputs are known as far as CanEvaluate asks. budget: is
  // charged for the results. NOT_FOUND if there is no kernel for host memory; RESOURCE_EXHAUSTED;
  // the kernel's errors.
  virtual StatusOr<std::vector<Tensor>> Evaluate(const Node& node, std::span<const tw_shape> shapes, std::span<const Tensor> values,
                                                 MemoryBudget* budget) = 0;
  // Returns a name for the container of one graph, which no other graph has.
  virtual std::string NewContainer() = 0;
  // Removes the state in that container.
  virtual void EndContainer(const std::string& container) noexcept = 0;
  // Level 0 is debug, 1 info, 2 warning, 3 error.
  virtual void Log(uint32_t level, std::string_view text) const = 0;
};

}  // namespace thalweg
