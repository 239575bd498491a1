// The file "checkpoint" of a folder: the list of its checkpoints and the latest one, in
// TensorFlow's format (a CheckpointState message as text). Several names may share it. A
// checkpoint's metric follows its name as a comment; so do the checkpoints to be removed, and the
// time at which each name last kept one for good. Other readers skip comments.
//
// Threads: values, no sharing. Reading and writing block on files.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/files/file_system.h"

namespace thalweg {

struct SavedCheckpoint {
  std::string path;              // its prefix; a relative path starts at the folder
  double time = 0;               // seconds since 1970
  std::optional<double> metric;  // the metric of the checkpoint
};

struct CheckpointState {
  std::string latest;
  std::vector<SavedCheckpoint> all;         // oldest first
  double last_preserved = 0;                // time of the latest one kept for good; 0 if none
  std::map<std::string, double> preserved;  // the same, per name
  std::vector<std::string> removed;         // paths that are not kept any more; their files may still exist
};

std::string CheckpointStateText(const CheckpointState& state);
// DATA_LOSS naming the malformed line.
StatusOr<CheckpointState> ParseCheckpointState(std::string_view text);

// Errors: NOT_FOUND; DATA_LOSS; both name the file.
StatusOr<CheckpointState> ReadCheckpointState(const std::string& folder, FileSystem& files);
// Replaces the file: a crash at any point leaves the old one or the new one.
Status WriteCheckpointState(const CheckpointState& state, const std::string& folder, FileSystem& files);

}  // namespace thalweg
