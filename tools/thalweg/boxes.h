// A graph prepared for drawing: a box for each operation and each closed scope, and an arrow for
// the values that go from one to another.
#pragma once
#include <string>
#include <vector>

#include "thalweg/cpp/thalweg.hpp"

namespace thalweg::cli {

enum class BoxKind { kOperation, kInput, kVariable, kConstant, kScope };

struct Box {
  BoxKind kind = BoxKind::kOperation;
  std::string name;           // full name; a scope's name ends with a slash
  std::string type, outputs;  // of an operation
  size_t operations = 0;      // number of operations that the box stands for
};

struct Arrow {
  size_t from = 0, to = 0;  // indices of boxes
  size_t values = 0;        // number of values on the arrow; 0: a control dependency
  std::string label;        // type and shape of the value if it is the only one, else ""
};

struct Boxes {
  std::vector<Box> boxes;
  std::vector<Arrow> arrows;
  size_t depth = 0;   // the depth down to which scopes are open
  size_t closed = 0;  // number of boxes that are scopes
};

// Makes the boxes of `graph`. depth: 1 shows the operations outside any scope, and a box for each
// outermost scope; 0 chooses the largest depth that makes at most `most` boxes. A scope with a
// single operation is drawn as that operation.
Boxes MakeBoxes(const tw::Graph& graph, size_t depth, size_t most);

// Merges constants that only one box reads into one box per reader, so that a drawing with many
// constants stays readable.
void GroupConstants(Boxes* boxes);

}  // namespace thalweg::cli
