// Putting finished files in the place of the checkpoint that stands under a prefix: what writing and merging end with.
// Threads: any number of publications at once, also of one prefix; the last wins. Blocks on files and on the folder's lock.
#pragma once
#include <string>
#include <vector>

#include "framework/io/checkpoint_index.h"
#include "framework/io/file_system.h"
#include "framework/io/whole_file.h"

namespace thalweg {

// Names the data files, which are whole and synced, as the shards of `prefix` and writes `index`, whose entries number their shards from 0
// on in the order of `data`. Readers see the old checkpoint or the new one at every moment, and so does whoever comes after a power
// failure. Errors: the file system's; the files of `data` are then where they were, and the old checkpoint is whole. Only where the very
// last sync of the folder fails the new one is in place, not certain to survive a power failure; *published says so.
Status PublishCheckpoint(const std::string& prefix, const std::vector<std::string>& data, CheckpointIndex index, FileSystem& files,
                         bool* published);

}  // namespace thalweg
