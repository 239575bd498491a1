// CheckpointFolder: a folder of checkpoints `name`-`step`. It decides which are kept, which is the
// latest, and which to fall back to when that one is damaged. Several names may share a folder and
// its file "checkpoint": each keeps and removes its own checkpoints, and leaves the others' lines
// unchanged.
//
// A save writes the checkpoint, then the file "checkpoint" that names it (checkpoint_state.h), then
// removes the checkpoints that are no longer kept. A crash at any point leaves a folder whose
// latest checkpoint is whole, the old one or the new one.
//
// Threads: a CheckpointFolder by one thread at a time, and one per folder and name at a time.
// Finding checkpoints: any. All calls block on files.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/files/file_system.h"
#include "framework/io/checkpoint_state.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// Part k of n of a checkpoint that several processes write: a checkpoint of its own beside it,
// until the parts are merged.
std::string CheckpointPart(std::string_view prefix, size_t k, size_t n);

// The checkpoints that stay when one is added; all rules hold at once.
struct CheckpointKeep {
  uint32_t last = 5;               // the newest; 0 means all
  uint32_t best = 0;               // the best by metric
  bool smaller_is_better = false;  // such as a loss
  double every_seconds = 0;        // at most once in so many seconds, keeps a checkpoint for good that would be removed; 0 means never
};

class CheckpointFolder {
 public:
  // Makes the folder if it is missing, reads the checkpoints of that name that its file lists (only
  // these are ever removed), and removes files that crashes left.
  // Errors: INVALID_ARGUMENT for a name with a slash; those of the file system.
  static StatusOr<std::unique_ptr<CheckpointFolder>> Open(const std::string& folder, const std::string& name, const CheckpointKeep& keep,
                                                          FileSystem& files = LocalFiles());

  // Saves `values` as `name`-`step` in `shards` data files. An existing checkpoint of that step is
  // replaced. metric: the quality of the checkpoint, if known. now: seconds since 1970. Returns the
  // bytes written. Errors: those of CheckpointWriter; the checkpoint that the folder named as its
  // latest before is then whole. If the checkpoint was written but the file "checkpoint" was not
  // updated, the next save updates it.
  StatusOr<uint64_t> Save(int64_t step, std::optional<double> metric, double now, const NamedTensors& values, int32_t shards = 1);
  // Saves through `write`, which makes a whole checkpoint under the prefix, may put parts
  // (CheckpointPart) beside it meanwhile, and returns the bytes. Parts left by a failure are
  // removed at once, parts left by a crash when the folder is opened again.
  using Writer = std::function<StatusOr<uint64_t>(const std::string& prefix)>;
  StatusOr<uint64_t> SaveBy(int64_t step, std::optional<double> metric, double now, const Writer& write);

  const std::string& folder() const { return folder_; }
  const std::string& name() const { return name_; }
  const CheckpointState& state() const { return state_; }  // the entries of this name

 private:
  CheckpointFolder(std::string folder, std::string name, const CheckpointKeep& keep, FileSystem& files)
      : folder_(std::move(folder)), name_(std::move(name)), keep_(keep), files_(files) {}
  Status Load();
  void Sweep(const std::vector<std::string>& names);
  void RemoveParts(const std::string& path);
  StatusOr<uint64_t> Add(int64_t step, std::optional<double> metric, double now, const Writer& write);
  std::set<std::string> Best() const;
  void Drop(double now);
  Status Publish() const;
  void RemoveCondemned();

  const std::string folder_, name_;
  const CheckpointKeep keep_;
  FileSystem& files_;
  CheckpointState state_;
  std::set<std::string> condemned_;  // to be removed once the folder no longer names them
};

// Returns the step of a prefix that ends in -`step`; -1 for other prefixes.
int64_t StepOfCheckpoint(std::string_view prefix);

// Returns the prefixes of the checkpoints of a folder, in the order in which to try them: the
// latest according to the file "checkpoint", the others that the file lists, newest first, then
// unlisted ones, by step. name: only `name`-`step`, and `name` if the file lists it; "" means all
// that end in a step, and all that the file lists. notes: receives a line about each irregularity.
// The checkpoints are not checked for damage. Errors: the folder cannot be listed.
StatusOr<std::vector<std::string>> FindCheckpoints(const std::string& folder, std::string_view name, FileSystem& files,
                                                   std::vector<std::string>* notes);

// Returns true if an error of opening or reading a checkpoint means that it is missing or damaged,
// so that another may take its place; false if the machine lacks a resource, or the checkpoint may
// not be read here.
bool IsNoWholeCheckpoint(const Status& status);

// Returns the prefix of the best checkpoint by metric among those `name`-`step` that the folder
// lists. NOT_FOUND if none has a metric.
StatusOr<std::string> BestCheckpoint(const std::string& folder, std::string_view name, bool smaller_is_better, FileSystem& files);

}  // namespace thalweg
