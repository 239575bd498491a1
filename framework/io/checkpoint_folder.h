// A folder of checkpoints `name`-`step`: which are kept, which is the latest, and what to fall back to when that is damaged. Several names
// may share a folder and its file "checkpoint": each keeps and removes its own, and leaves the others' lines as they are.
//
// A save writes the checkpoint, then the file "checkpoint" that names it (checkpoint_state.h), then removes what is not kept any more: a
// crash at any point leaves a folder whose latest checkpoint is whole, the old one or the new one.
//
// Threads: a CheckpointFolder by one thread at a time, one in a folder and name at a time. Looking for checkpoints: any. All block on
// files.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/io/checkpoint_state.h"
#include "framework/io/file_system.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// Part k of n of a checkpoint that several processes write: a checkpoint of its own beside it, until they are merged.
std::string CheckpointPart(std::string_view prefix, size_t k, size_t n);

// What stays when a checkpoint is added; all rules hold at once.
struct CheckpointKeep {
  uint32_t last = 5;               // the newest; 0: all
  uint32_t best = 0;               // those of the best metric
  bool smaller_is_better = false;  // such as a loss
  double every_seconds = 0;        // one of those that would go, for good, this often; 0: none
};

class CheckpointFolder {
 public:
  // Makes the folder where it is missing, reads which checkpoints of that name its file names, the only ones that are ever removed, and
  // removes what crashes have left.
  // Errors: INVALID_ARGUMENT for a name with a slash; the file system's.
  static StatusOr<std::unique_ptr<CheckpointFolder>> Open(const std::string& folder, const std::string& name, const CheckpointKeep& keep,
                                                          FileSystem& files = LocalFiles());

  // Saves `values` as `name`-`step` in that many data files. A step that is there already is replaced. metric: what it is worth, where that
  // is known. now: seconds since 1970. Answers the bytes written. Errors: as CheckpointWriter; what the folder named as its latest before
  // is whole. Where the checkpoint itself was written but the folder could not be told, the next save does.
  StatusOr<uint64_t> Save(int64_t step, std::optional<double> metric, double now, const NamedTensors& values, int32_t shards = 1);
  // The same where others write the files: `write` makes a whole checkpoint under the prefix, may put parts (CheckpointPart) beside it
  // meanwhile, and answers the bytes. Parts that a failure leaves are removed, those that a crash leaves when the folder is opened again.
  using Writer = std::function<StatusOr<uint64_t>(const std::string& prefix)>;
  StatusOr<uint64_t> SaveBy(int64_t step, std::optional<double> metric, double now, const Writer& write);

  const std::string& folder() const { return folder_; }
  const std::string& name() const { return name_; }
  const CheckpointState& state() const { return state_; }  // what is of this name

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
  std::set<std::string> condemned_;  // to be removed once the folder does not name them any more
};

// The step of a prefix that ends in -`step`; -1: it does not.
int64_t StepOfCheckpoint(std::string_view prefix);

// Prefixes of the checkpoints of a folder, those to try first in front: what the file "checkpoint" names as the latest, the others that it
// names from the newest on, then those that only lie there, by step. name: only `name`-`step`, and `name` where the file names that; "":
// any that end in a step, and all that the file names. notes: gets a line about each thing that was not as it should be. Nothing is known
// yet about whether they are whole. Errors: where the folder cannot be listed.
StatusOr<std::vector<std::string>> FindCheckpoints(const std::string& folder, std::string_view name, FileSystem& files,
                                                   std::vector<std::string>* notes);

// What opening or reading a checkpoint said means that it is missing or damaged, so that another may take its place; not that the
// machine lacks something, or that it may not be read here.
bool IsNoWholeCheckpoint(const Status& status);

// The prefix of the best by metric among those `name`-`step` that the folder names. NOT_FOUND where none has one.
StatusOr<std::string> BestCheckpoint(const std::string& folder, std::string_view name, bool smaller_is_better, FileSystem& files);

}  // namespace thalweg
