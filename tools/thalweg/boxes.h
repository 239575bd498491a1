// A graph as it is drawn: a box for each operation and for each scope that is not open, an arrow for what goes from one to another.
#pragma once
#include <string>
#include <vector>

#include "thalweg/cpp/thalweg.hpp"

namespace thalweg::cli {

enum class BoxKind { kOperation, kInput, kVariable, kConstant, kScope };

struct Box {
  BoxKind kind = BoxKind::kOperation;
  std::string name;           // in full; a scope's ends in a slash
  std::string type, outputs;  // of an operation
  size_t operations = 0;      // how many it stands for
};

struct Arrow {
  size_t from = 0, to = 0;  // boxes
  size_t values = 0;        // how many go that way; 0: only one comes before the other
  std::string label;        // the type and shape of the one value; "" for several
};

struct Boxes {
  std::vector<Box> boxes;
  std::vector<Arrow> arrows;
  size_t depth = 0;   // down to which scopes are open
  size_t closed = 0;  // boxes that are scopes
};

// depth: 1 shows what is in no scope and the outermost scopes as boxes; 0: as deep as `most` boxes allow. A scope of one operation is
// shown as that.
Boxes MakeBoxes(const tw::Graph& graph, size_t depth, size_t most);

// Puts constants that only one box reads into one box for each such reader: what is drawn stays readable where there are many.
void GroupConstants(Boxes* boxes);

}  // namespace thalweg::cli
