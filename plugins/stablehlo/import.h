// From a module to a graph. Threads: one thread at a time.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "exported.h"
#include "translate.h"

namespace thalweg::stablehlo {

// A module while it is imported, and the errors found so far.
struct Import {
  const Module& module;
  std::vector<std::string> errors;      // of operations; the import goes on to find more of them
  uint32_t code = 0;                    // of the first error
  int depth = 0;                        // of bodies and calls around the current operation
  int64_t operations = 0;               // that were translated, each time that a function is called or a body used; 16 values count as one
  std::vector<std::string_view> calls;  // the functions around the current operation
  std::string name;                     // wanted for the nodes of the current operation
  std::vector<Edge> effects;            // nodes of the main graph that run with it
  int64_t nodes = 0;                    // of ours, in all graphs
};

// What imports into one model have used up together.
struct Spent {
  int64_t operations = 0, nodes = 0;
};

// An input or output of `main`.
struct Port {
  std::string name;
  Value value;
  Edge edge = 0;
  std::vector<std::string> symbols;  // per axis; "" for a size that is known or has no name
};

struct Ports {
  std::vector<Port> inputs, outputs;
  std::vector<Edge> effects;  // nodes that run with the outputs
};

// A file: a module alone, or inside an export of JAX.
struct File {
  std::unique_ptr<Module> module;
  Exported exported;  // of a module alone: empty
};

// How sure the first bytes of a file are those of a portable artifact or of an export of JAX: 0 to 100. bytes: the size of the file.
uint32_t Recognise(std::string_view head, uint64_t bytes);
// Reads the bytes of a file; constants stay where they are, so `keep` must hold the bytes. Throws Error.
File ReadFile(std::string_view bytes, std::shared_ptr<const void> keep);
// Translates function `main` into `sink`. Throws one Error that lists all unknown ops with their counts, or else all operations that
// failed.
// spent: counts on from an import into the same model; may be NULL.
Ports ImportFile(const File& file, Sink& sink, Spent* spent = nullptr);

}  // namespace thalweg::stablehlo
