// Loops and branches, whose bodies are subgraphs of the file.
#include <iterator>

#include "../import.h"

namespace thalweg::tflite {
namespace {

size_t IndexOf(const Node& n, unsigned field) {
  const int64_t index = n.i(field);
  if (index < 1) n.fail("subgraph " + std::to_string(index) + " cannot be a body");
  return static_cast<size_t>(index);
}

std::vector<Value> Stored(const Node& n, size_t begin) {
  std::vector<Value> all;
  for (size_t i = begin; i < n.inputs(); ++i) all.push_back(n.stored(i));
  return all;
}

void SetStored(Graph& g, Node& n, const std::vector<Value>& values) {
  if (values.size() != n.outputs())
    n.fail("its body returns " + std::to_string(values.size()) + " values, but it has " + std::to_string(n.outputs()) + " outputs");
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].dtype() != n.out_dtype(i)) n.fail("its body returns another type than output " + std::to_string(i) + " has");
    g.set_stored(n.op.outputs[i], values[i]);
  }
}

void If(Graph& g, Node& n) { SetStored(g, n, RunIf(g, n.in(0), IndexOf(n, 0), IndexOf(n, 1), Stored(n, 1))); }
void While(Graph& g, Node& n) { SetStored(g, n, RunWhile(g, IndexOf(n, 0), IndexOf(n, 1), Stored(n, 0))); }

constexpr Entry kTable[] = {{118, "IF", &If}, {119, "WHILE", &While}};

}  // namespace

Family control_translators() { return {std::begin(kTable), std::end(kTable)}; }

}  // namespace thalweg::tflite
