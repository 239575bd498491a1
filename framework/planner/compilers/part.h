// Part: several nodes of a plan that a graph compiler runs as one.
// Threads: a Part is immutable once it is in a plan; steps share its state as those of a kernel do.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/graph.h"
#include "framework/graph/op_schema.h"
#include "framework/planner/compilers/part_graph.h"
#include "framework/registry/kernel_spec.h"
#include "framework/registry/role.h"

namespace thalweg {

class ArtefactCache;

class Part final : private ShapeRule {
 public:
  // Compiles the part, or loads an earlier compilation from the cache. cache: NULL for none.
  // *loaded: true if it was loaded. Errors: those of the compiler; INVALID_ARGUMENT if the memory
  // wishes of the members cannot be met for all of them together.
  static StatusOr<std::shared_ptr<const Part>> Make(std::shared_ptr<const CompilerRole> role, PartGraph graph, Device* device,
                                                    ArtefactCache* cache, bool* loaded);
  ~Part() override;

  const PartGraph& graph() const { return graph_; }
  const Node& node() const { return node_; }  // stands for the members in the plan
  const KernelDef& kernel() const { return kernel_; }
  void* state() const { return state_; }
  // Returns true if the compiled state accepts other shapes; if not, other shapes need another
  // plan.
  bool serves_other_shapes() const { return role_->def.prepare != nullptr; }
  // Returns true if the state may rely on limits of unknown sizes, which hold for the feeds of this
  // plan.
  bool limited() const { return limited_; }

 private:
  Part(std::shared_ptr<const CompilerRole> role, PartGraph graph, Device* device);
  Status Arrange();
  Status Compile(ArtefactCache* cache, bool* loaded);
  bool Load(ArtefactCache* cache, const std::string& tag);
  Status CheckPrepare();
  void AskInPlace();
  // Runs the shape rules of the members, one after the other.
  Status Infer(const ShapeQuery& query, ShapeAnswer* out) const override;
  Status InferAll(const std::vector<tw_shape>& in, const std::vector<const tw_view*>& values, const std::vector<const HandleInfo*>& handles,
                  std::vector<ShapeAnswer>* out) const;
  tw_compile_call Call(const tw_part* part) const;
  static tw_status* Prepare(const tw_node* n, void* state, uint64_t* out_scratch);

  const std::shared_ptr<const CompilerRole> role_;
  const PartGraph graph_;
  Device* const device_;
  OpSchema op_;
  Node node_;
  KernelDef kernel_;
  void* state_ = nullptr;
  bool made_ = false;
  bool limited_ = false;
};

}  // namespace thalweg
