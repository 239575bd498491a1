// Parts of graphs for compilers: standard ops with the expected results of each node.
// Threads: one at a time.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "framework/graph/graph.h"
#include "tools/conformance/guarded.h"
#include "tools/conformance/world.h"

namespace thalweg::conformance {

class CaseFile;

// A small graph: its nodes in topological order without placeholders and constants, and its values for
// fixed feeds.
struct Sample {
  std::string name;
  std::shared_ptr<Graph> graph;
  std::vector<const Node*> feeds, nodes;                // feeds: constants, too
  std::vector<std::map<std::string, AttrValue>> attrs;  // per node
  std::vector<Tensor> fed;                              // per feed
  std::set<const Node*> constants;                      // feeds whose value a part shows
  std::vector<std::vector<Tensor>> results;             // per node and output, by the oracle
};
// Returns our samples, then the author's. file: NULL if the author has none. Errors name a graph of the
// author and its fault.
StatusOr<std::vector<Sample>> MakeSamples(World* world, World* oracle, const CaseFile* file);

// Some nodes of a sample as a part, with its inputs from outside and its outputs.
struct PartOf {
  std::vector<uint32_t> nodes;  // indices in the sample, in order
  std::vector<Edge> in, out;
  std::vector<Tensor> in_values, out_values;
};
PartOf Cut(const Sample& sample, std::vector<uint32_t> nodes);
// Makes the record of the part in guarded memory. known: the record has the shapes.
const tw_part* PartRecord(const PartOf& part, const Sample& sample, bool known, Guarded* memory);
// Returns true if no path leaves the set and returns to it.
bool IsConvex(const Sample& sample, const std::vector<uint32_t>& nodes);

}  // namespace thalweg::conformance
