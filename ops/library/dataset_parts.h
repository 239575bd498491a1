// What the builders of thalweg/dataset.h share: the components of a dataset's elements, and adding
// a dataset operation.
#pragma once
#include <string>
#include <vector>

#include "ops/library/block.h"
#include "thalweg/dataset.h"

namespace thalweg::library {

// Types and shapes of the components of the elements.
struct Components {
  struct Shape {
    std::vector<int64_t> dims;
    bool known_rank = true;
    tw_shape c() const { return {dims.data(), known_rank ? int32_t(dims.size()) : -1, 0}; }
  };
  void Add(uint32_t dtype, const tw_shape& shape);
  std::vector<tw_shape> c() const;
  // The same with `size` (-1: unknown) as a new first axis of each component; without the first.
  Components Stacked(int64_t size) const;
  Components Rows() const;

  std::vector<uint32_t> types;
  std::vector<Shape> shapes;
};

// Returns false if the value is not the output of a dataset operation.
bool ComponentsOf(const tw_graph* graph, tw_output dataset, Components* out);
// The same for a value of the scope's graph; fails the scope and returns nothing.
Components Elements(tw_scope* scope, const char* function, tw_output dataset);

// Refuses n below `least`, except -1 if `all`.
void CheckLeast(tw_scope* scope, const char* function, const char* what, int64_t n, int64_t least, bool all = false);

// How a batch is padded. size: its number of elements, a value. known: that number, or -1. shapes,
// padding: as in tw_dataset_padded_batch. filler: what unknown sizes become; 0: the largest of the batch.
struct Padding {
  tw_output size;
  int64_t known;
  const tw_shape* shapes;
  const tw_output* padding;
  uint32_t whole;
  tw_output filler;
};
tw_output PaddedBatch(tw_scope* scope, const char* function, tw_output dataset, const Padding& how);

// Ends an operation with these attributes: output_types (or `types`) and output_shapes.
tw_output EndDataset(OpenOp* op, const Components& elements, const char* types = "output_types");
// Adds an operation without further attributes.
tw_output AddDataset(tw_scope* scope, const char* op, const std::vector<tw_output>& inputs, const Components& elements);

inline tw_output Flag(tw_scope* scope, uint32_t value) { return tw_scope_scalar(scope, TW_BOOL, value != 0); }
// Adds a scalar string constant.
tw_output String(tw_scope* scope, const std::string& text);

}  // namespace thalweg::library
