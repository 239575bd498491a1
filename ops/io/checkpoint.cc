// SaveV2, RestoreV2 and MergeV2Checkpoints handle tensors in checkpoint files; ShardedFilename and
// ShardedFilespec make names of data files. `shape_and_slices` holds one string per tensor, empty
// for a whole tensor.
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
// Only the file knows the shapes, so the kernel allocates the outputs.
void RestoreRule(const tw::Shape& s) { WantEntries(s, s.c->n_out); }

void MergeRule(const tw::Shape& s) {
  WantVector(s, 0, "checkpoint_prefixes");
  WantScalar(s, 1, "destination_prefix");
}

void FilenameRule(const tw::Shape& s) {
  const char* names[] = {"basename", "shard", "num_shards"};
  for (uint32_t i = 0; i < 3; ++i) WantScalar(s, i, names[i]);
  Set(s, 0, Dims{});
}

void FilespecRule(const tw::Shape& s) {
  WantScalar(s, 0, "basename");
  WantScalar(s, 1, "num_shards");
  Set(s, 0, Dims{});
}

}  // namespace

void register_checkpoint(tw::Plugin& p) {
  p.op<nullptr, SaveRule>(R"(
      SaveV2(prefix: string, tensor_names: string, shape_and_slices: string, tensors: dtypes) -> (); dtypes: list(type) >= 1;
      stateful; touches files; no_gradient "it has no outputs";
      doc "writes tensors into the checkpoint files of that prefix, all or nothing")");
  p.op<nullptr, RestoreRule>(R"(
      RestoreV2(prefix: string, tensor_names: string, shape_and_slices: string) -> (tensors: dtypes); dtypes: list(type) >= 1;
      stateful; touches files; no_gradient "what it gives stands in a file";
      doc "reads tensors from the checkpoint files of that prefix")");
  p.op<nullptr, MergeRule>(R"(
      MergeV2Checkpoints(checkpoint_prefixes: string, destination_prefix: string) -> (); delete_old_dirs: bool = true;
      allow_missing_files: bool = false; stateful; touches files; no_gradient "it has no outputs";
      doc "makes one checkpoint of several, whose data files become its shards")");
  p.op<nullptr, FilenameRule>(R"(
      ShardedFilename(basename: string, shard: int32, num_shards: int32) -> (filename: string); no_gradient "text has no derivative";
      doc "the name of a data file: basename-00001-of-00004")");
  p.op<nullptr, FilespecRule>(R"(
      ShardedFilespec(basename: string, num_shards: int32) -> (filename: string); no_gradient "text has no derivative";
      doc "a pattern of the names of all data files: basename-?????-of-00004")");
}

}  // namespace thalweg::ops
