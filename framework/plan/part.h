// Part: several nodes of a plan that a graph compiler runs as one, and how compilers are shown nodes: PartGraph is the runtime's side of
// tw_part, PartView the records.
// Threads: a Part is immutable once it is in a plan; steps share its state as those of a kernel do.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/graph/graph.h"
#include "framework/graph/op_schema.h"
#include "framework/plan/work_graph.h"
#include "framework/registry/kernel_spec.h"
#include "framework/registry/role.h"

namespace thalweg {

// Nodes in an order in which they can run. An edge with node -1 is input `port` of the whole.
struct PartGraph {
  struct Member {
    const Node* node = nullptr;
    const KernelDef* kernel = nullptr;
    std::vector<WorkEdge> in;
    std::vector<int32_t> after;
    std::vector<Shape> shapes;  // of the outputs
  };
  struct Input {
    WorkEdge from;  // in the work graph
    Edge edge;      // in the graph; empty: a feed
    uint32_t dtype = 0;
    Shape shape;
    Tensor value;  // empty: not the same in every step
    HandleInfo handle;
  };
  std::vector<Member> members;
  std::vector<Input> inputs;
  std::vector<WorkEdge> out;         // what somebody outside reads
  std::vector<int32_t> work;         // per member: where it is in the work graph
  std::vector<int32_t> work_before;  // nodes of the work graph that some member waits for without reading them

  Edge out_edge(size_t o) const { return {members[size_t(out[o].node)].node, out[o].port}; }
};

// Who reads what, by the nodes that run.
class Readers {
 public:
  explicit Readers(const WorkGraph& w);
  // Nodes that wait for this one.
  std::span<const int32_t> after(int32_t node) const { return after_[size_t(node)]; }
  // Nodes that read this output; fetches are -1.
  std::span<const int32_t> of(const WorkEdge& e) const { return of_[slot(e)]; }
  // Outputs by number.
  size_t slot(const WorkEdge& e) const { return first_[size_t(e.node)] + size_t(e.port); }
  size_t n_slots() const { return of_.size(); }

 private:
  // Lists one behind the other: how long each is has to be known before it is filled.
  class Lists {
   public:
    void Count(size_t list) { ++begin_[list + 1]; }
    void Begin();
    void Add(size_t list, int32_t value) { values_[at_[list]++] = value; }
    std::span<const int32_t> operator[](size_t list) const { return {values_.data() + begin_[list], begin_[list + 1] - begin_[list]}; }
    size_t size() const { return begin_.size() - 1; }
    explicit Lists(size_t n) : begin_(n + 1, 0) {}

   private:
    std::vector<uint32_t> begin_, at_;
    std::vector<int32_t> values_;
  };
  std::vector<size_t> first_;
  Lists after_, of_;
};

// work: nodes that run, in the order of the work graph.
PartGraph TakePart(const WorkGraph& w, const Readers& readers, const std::vector<int32_t>& work);

// The records of nodes.
class PartRecords {
 public:
  PartRecords() = default;
  PartRecords(const PartRecords&) = delete;
  const tw_part* c() const { return &c_; }

 protected:
  // Room for all that will be added: records point at each other.
  void Reserve(size_t nodes, size_t in, size_t out, size_t after, size_t attrs);
  // A node, then its inputs, its outputs and what it waits for.
  void Add(const Node& n);
  void AddIn(tw_part_edge from, tw_shape shape, const tw_view* value);
  void AddOut(tw_shape shape);
  void AddAfter(int32_t node);
  void AddInput(uint32_t type, tw_shape shape);
  void AddOutput(tw_part_edge from) { out_.push_back(from); }
  void Finish();

 private:
  std::vector<tw_part_node> records_;
  std::vector<const tw_part_node*> nodes_;
  std::vector<tw_part_edge> in_, out_;
  std::vector<tw_shape> shapes_, in_shapes_;
  std::vector<const tw_view*> values_;  // beside shapes_
  std::vector<int32_t> after_;
  std::vector<uint32_t> in_types_;
  CAttrs attrs_;
  tw_part c_{};
};

class PartView final : public PartRecords {
 public:
  // Borrows the graph.
  explicit PartView(const PartGraph& g);
};

// What `claim` sees: nodes of a work graph, without taking them out of it.
class ShownNodes final : public PartRecords {
 public:
  // Borrows all three.
  ShownNodes(const WorkGraph& w, const Readers& readers, const std::vector<int32_t>& work);
  const std::vector<int32_t>& work() const { return work_; }
  const Node* node(uint32_t i) const { return w_.nodes[size_t(work_[i])].node; }

 private:
  const WorkGraph& w_;
  const std::vector<int32_t>& work_;
};

// All that a compiler sees of a part, as bytes: two parts with the same are the same.
std::string DescribePart(const PartGraph& g);

class ArtefactCache;

class Part final : private ShapeRule {
 public:
  // Compiles, or loads what was compiled before. cache: NULL for none. *loaded: which of the two. Errors: the compiler's; INVALID_ARGUMENT
  // where memory that the members want cannot be had for all of them together.
  static StatusOr<std::shared_ptr<const Part>> Make(std::shared_ptr<const CompilerRole> role, PartGraph graph, Device* device,
                                                    ArtefactCache* cache, bool* loaded);
  ~Part() override;

  const PartGraph& graph() const { return graph_; }
  const Node& node() const { return node_; }  // what stands for the members in the plan
  const KernelDef& kernel() const { return kernel_; }
  void* state() const { return state_; }
  // The state may be asked to; else other shapes need another plan.
  bool serves_other_shapes() const { return role_->def.prepare != nullptr; }

 private:
  Part(std::shared_ptr<const CompilerRole> role, PartGraph graph, Device* device);
  Status Arrange();
  Status Compile(ArtefactCache* cache, bool* loaded);
  bool Load(ArtefactCache* cache, const std::string& tag);
  Status CheckPrepare();
  void AskInPlace();
  // The shape rules of the members, one after the other.
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
};

}  // namespace thalweg
