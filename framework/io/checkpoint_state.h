// The file "checkpoint" of a folder: which checkpoints there are and which is the latest, as TensorFlow writes it (a CheckpointState
// message as text). Several names may share it. What a checkpoint was worth stands behind its name as a comment, and so do what is to be
// removed and when each name last kept one for good; other readers skip that.
//
// Threads: values, no sharing. Reading and writing block on files.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/io/file_system.h"

namespace thalweg {

struct SavedCheckpoint {
  std::string path;              // its prefix; where it is relative, from the folder on
  double time = 0;               // seconds since 1970
  std::optional<double> metric;  // what it was worth
};

struct CheckpointState {
  std::string latest;
  std::vector<SavedCheckpoint> all;         // from the oldest on
  double last_preserved = 0;                // time of the latest that is kept for good; 0: none
  std::map<std::string, double> preserved;  // the same, for each name
  std::vector<std::string> removed;         // paths that are not kept any more; their files may still be there
};

std::string CheckpointStateText(const CheckpointState& state);
// DATA_LOSS with the line that is no such text.
StatusOr<CheckpointState> ParseCheckpointState(std::string_view text);

// Errors: NOT_FOUND; DATA_LOSS; they name the file.
StatusOr<CheckpointState> ReadCheckpointState(const std::string& folder, FileSystem& files);
// Replaces the file: a crash at any point leaves the old one or the new one.
Status WriteCheckpointState(const CheckpointState& state, const std::string& folder, FileSystem& files);

}  // namespace thalweg
