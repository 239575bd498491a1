// Parts of graphs for compilers: standard ops with the expected results of each node.
// Threads: one at a time.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/graph/graph.h"
#include "tools/conformance/guarded.h"
#include "tools/conformance/world.h"

namespace thalweg::conformance {

class CaseFile;

// A small graph: its nodes without the placeholders, in an order in which inputs come first; and its values for fixed feeds.
struct Sample {
  std::string name;
  std::shared_ptr<Graph> graph;
  std::vector<const Node*> feeds, nodes;
  std::vector<std::map<std::string, AttrValue>> attrs;  // per node
  std::vector<Tensor> fed;                              // per feed
  std::vector<std::vector<Tensor>> results;             // per node and output, by the oracle
};
// Our own, then the author's; file: NULL: there are none. Errors: what is wrong with a graph of the author's.
StatusOr<std::vector<Sample>> MakeSamples(World* world, World* oracle, const CaseFile* file);

// Some nodes of a sample as a part: what comes from outside, what goes out.
struct PartOf {
  std::vector<uint32_t> nodes;  // of the sample, in order
  std::vector<Edge> in, out;
  std::vector<Tensor> in_values, out_values;
};
PartOf Cut(const Sample& sample, std::vector<uint32_t> nodes);
// The record, in guarded memory. known: shapes are told.
const tw_part* PartRecord(const PartOf& part, const Sample& sample, bool known, Guarded* memory);
// No path leaves the set and comes back to it.
bool IsConvex(const Sample& sample, const std::vector<uint32_t>& nodes);

}  // namespace thalweg::conformance
