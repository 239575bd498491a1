// PartGraph: several nodes taken out of a work graph for a graph compiler; the runtime's side of
// tw_part. Readers: the nodes that read each value of a work graph. Threads: one.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "framework/graph/graph.h"
#include "framework/planner/work_graph.h"
#include "framework/registry/kernel_spec.h"

namespace thalweg {

class ValueLimits;

// Nodes in an order in which they can run. An edge with node -1 is input `port` of the part.
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
    Edge edge;      // in the graph; empty for a feed
    uint32_t dtype = 0;
    Shape shape;
    Shape limit;   // the largest sizes that it can have; -1 for those that are not known
    Tensor value;  // empty if it is not the same in every step
    HandleInfo handle;
  };
  std::vector<Member> members;
  std::vector<Input> inputs;
  std::vector<WorkEdge> out;         // the values that nodes outside read
  std::vector<int32_t> work;         // per member: its index in the work graph
  std::vector<int32_t> work_before;  // nodes of the work graph that some member waits for without reading them

  Edge out_edge(size_t o) const { return {members[size_t(out[o].node)].node, out[o].port}; }
};

// The readers of each output and the waiters of each node, among nodes that run.
class Readers {
 public:
  explicit Readers(const WorkGraph& w);
  // Nodes that wait for `node`.
  std::span<const int32_t> after(int32_t node) const { return after_[size_t(node)]; }
  // Nodes that read this output; a fetch is -1.
  std::span<const int32_t> of(const WorkEdge& e) const { return of_[slot(e)]; }
  // Numbers the outputs.
  size_t slot(const WorkEdge& e) const { return first_[size_t(e.node)] + size_t(e.port); }
  size_t n_slots() const { return of_.size(); }

 private:
  // Lists in one array, one behind the other: the length of each has to be known before it is
  // filled.
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

// work: nodes that run, in the order of the work graph. limits: of w.
PartGraph TakePart(const WorkGraph& w, const Readers& readers, const std::vector<int32_t>& work, ValueLimits* limits);

// Returns the SHA-256 of the elements, in hexadecimal; types that are neither plain nor strings have no
// elements here.
std::string DigestOf(const Tensor& value);

// Serializes all that a compiler sees of a part: two parts with equal bytes are equal.
std::string DescribePart(const PartGraph& g);

}  // namespace thalweg
