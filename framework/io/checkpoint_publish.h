// Replaces the checkpoint under a prefix by finished files: the last stage of writing and merging.
// Threads: any number of publications at once, also of one prefix; the last wins. Blocks on files
// and on the folder's lock.
#pragma once
#include <string>
#include <vector>

#include "framework/files/file_system.h"
#include "framework/files/whole_file.h"
#include "framework/io/checkpoint_index.h"

namespace thalweg {

// Renames the data files, which are whole and synced, to shards of `prefix` and writes `index`,
// whose entries number their shards from 0 in the order of `data`. At every moment, also after a
// power failure, readers see the old checkpoint or the new one. Errors: those of the file system;
// the files of `data` then keep their names, and the old checkpoint is whole. UNAVAILABLE and
// DEADLINE_EXCEEDED from renaming the index leave open whether it was renamed: the files of `data`
// then have their new names, so that the old and the new checkpoint are whole. From renaming a data file
// they leave open which of its two names that file has; the old checkpoint is whole. Only if the very last
// sync of the folder fails is the new one in place without being certain to survive a power
// failure; *published tells whether the new one is in place.
Status PublishCheckpoint(const std::string& prefix, const std::vector<std::string>& data, CheckpointIndex index, FileSystem& files,
                         bool* published);

}  // namespace thalweg
