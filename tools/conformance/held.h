// Held describes the target of a resource input: a variable, or a resource that an op of the plugin
// makes. State holds the resources of one call.
// Threads: one thread at a time for each state, unless the threads only read it.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/graph/graph.h"
#include "tools/conformance/case_attrs.h"
#include "tools/conformance/place.h"
#include "tools/conformance/world.h"

namespace thalweg {
class Resource;
}

namespace thalweg::conformance {

struct Held {
  std::string maker;  // op that makes the handle; empty: the target is a variable
  Tensor value;       // of the variable, in host memory; empty: it has no value yet
  Attrs attrs;        // of the maker; State generates other required ones
  // Returns the facts that a graph would know about the target.
  HandleInfo info() const { return value ? HandleInfo{value.dtype(), value.shape()} : HandleInfo(); }
};
using HeldBy = std::map<uint32_t, Held>;  // by flat input

// Returns the facts about handles for a shape rule, by flat input; NULL: nothing is known. The results
// point into *infos.
std::vector<const HandleInfo*> InfosOf(const HeldBy& held, size_t n_in, std::vector<HandleInfo>* infos);

class State {
 public:
  // Makes the targets of the inputs in the world's runtime. Variables are on the device.
  static StatusOr<std::unique_ptr<State>> Make(World* world, Device* device, const HeldBy& held);
  ~State();
  State(const State&) = delete;
  // Returns the inputs with the handles in their places.
  std::vector<Tensor> WithHandles(const std::vector<Tensor>& inputs) const;
  // Returns the current content by input, in host memory: a variable's value, the bytes that `save`
  // of a plugin's type writes, or only whether the resource exists.
  StatusOr<std::vector<Tensor>> Contents() const;
  // Describes writes outside the values of variables, and to variables that are not in `updated`.
  // Empty: none.
  std::string Breach(const std::vector<uint32_t>& updated) const;
  // Returns the resource of the input, borrowed.
  Resource* Of(uint32_t input) const;
  const HeldBy& held() const { return held_; }

 private:
  State(World* world, Device* device, const HeldBy& held);
  StatusOr<Tensor> MakeVariable(uint32_t input, const Tensor& value);
  StatusOr<Tensor> CallMaker(const Held& held);
  // Returns the handle that the node's kernel makes; NOT_FOUND if the node has no kernel.
  StatusOr<Tensor> AskMaker(const Node* node);
  StatusOr<Tensor> Walled(uint32_t input, const Tensor& value);
  World* world_;
  Device* device_;
  const HeldBy held_;
  const std::string container_;  // of the variables
  std::map<uint32_t, Tensor> handles_;
  std::map<uint32_t, std::shared_ptr<Place>> walls_;
};

// Returns the bytes that `save` of the resource's type writes now.
StatusOr<std::string> Saved(const Resource& resource);

}  // namespace thalweg::conformance
