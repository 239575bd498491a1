// From a file to a graph. Threads: one thread at a time.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "graph.h"

namespace thalweg::tflite {

// A file while it is imported.
struct Import {
  const File& file;
  std::vector<std::string> errors;  // of operators; the import goes on to find more of them
  uint32_t code = 0;                // of the first error
  int depth = 0;                    // of the bodies around the current operator
  int64_t operators = 0;            // that were translated, once for each call of a subgraph
  int64_t nodes = 0;                // of ours, in all graphs
  uint64_t made = 0;                // bytes of constants that were computed
};

// Counts bytes that a constant takes besides the file. Throws Error (RESOURCE_EXHAUSTED) if all take too many.
void CountBytes(Import& import, uint64_t bytes);

// Runs `step` on the subgraph as long as `condition` holds; runs one of two subgraphs. in: stored values of `g`.
std::vector<Value> RunWhile(Graph& g, size_t condition, size_t step, const std::vector<Value>& in);
std::vector<Value> RunIf(Graph& g, const Value& condition, size_t then, size_t otherwise, const std::vector<Value>& in);

struct Port {
  std::string name;
  Value value;
  Edge edge = 0;
  std::vector<std::string> symbols;  // none: the format has no names of sizes
};

struct Ports {
  std::string name;
  std::vector<Port> inputs, outputs;
};

// Translates every signature that is wanted, or the first subgraph as "main" if the file has none, into `sink`. Throws one Error that lists
// all unknown operators with their counts, or else all operators that failed.
std::vector<Ports> ImportFile(const File& file, Sink& sink, const std::function<bool(const std::string&)>& wants);

}  // namespace thalweg::tflite
