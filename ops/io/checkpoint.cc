// SaveV2 and RestoreV2: tensors in checkpoint files. `shape_and_slices` holds one text per tensor, empty for a whole tensor.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// Inputs 1 and 2 hold one entry for each of n tensors.
void WantEntries(const tw::Shape& s, uint32_t n) {
  const char* names[] = {"prefix", "tensor_names", "shape_and_slices"};
  WantScalar(s, 0, names[0]);
  for (uint32_t i : {1u, 2u}) {
    WantVector(s, i, names[i]);
    if (s.known(i) && Known(s.dim(i, 0)) && s.dim(i, 0) != n)
      Fail("'" + std::string(names[i]) + "' has " + tw::text(s.dim(i, 0)) + " entries for " + std::to_string(n) +
           " tensors; give one for each");
  }
}

void SaveRule(const tw::Shape& s) { WantEntries(s, s.c->n_in - 3); }
// The file alone knows the shapes: the kernel allocates.
void RestoreRule(const tw::Shape& s) { WantEntries(s, s.c->n_out); }

}  // namespace

void register_checkpoint(tw::Plugin& p) {
  p.op<nullptr, SaveRule>(R"(
      SaveV2(prefix: string, tensor_names: string, shape_and_slices: string, tensors: dtypes) -> (); dtypes: list(type) >= 1; stateful;
      no_gradient "it has no outputs"; doc "writes tensors into the checkpoint files of that prefix, all or nothing")");
  p.op<nullptr, RestoreRule>(R"(
      RestoreV2(prefix: string, tensor_names: string, shape_and_slices: string) -> (tensors: dtypes); dtypes: list(type) >= 1; stateful;
      no_gradient "what it gives stands in a file"; doc "reads tensors from the checkpoint files of that prefix")");
}

}  // namespace thalweg::ops
