#include "framework/io/checkpoint_publish.h"

#include <algorithm>
#include <set>

namespace thalweg {
namespace {

// Removes an unreferenced file: a failure to remove it is harmless.
void RemoveQuietly(const std::string& path, FileSystem& files) { files.Remove(path).IgnoreError(); }

// Returns the index of the existing checkpoint; without shards if there is none or it is damaged.
StatusOr<CheckpointIndex> OldIndex(const std::string& path, FileSystem& files) {
  CheckpointIndex none;
  none.shards = 0;
  auto file = files.Open(path);
  if (absl::IsNotFound(file.status())) return none;
  if (!file.ok()) return file.status();  // there may be a good checkpoint that cannot be read right now
  auto index = ReadCheckpointIndex(**file, path);
  return absl::IsDataLoss(index.status()) ? none : index;
}

Status WriteIndex(const CheckpointIndex& index, const std::string& path, FileSystem& files) {
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, files.Create(path));
  Status s = WriteCheckpointIndex(index, file.get());
  if (s.ok()) s = file->Sync();
  if (s.ok()) s = file->Close();
  if (!s.ok()) RemoveQuietly(path, files);
  return s;
}

// The two sets of names that n data files use alternately. An index is never without its data,
// because the old index's data are in the other set.
struct ShardNames {
  std::string prefix;
  int32_t n, first, total;
  ShardNames(std::string p, int32_t count, int32_t old_shards) : prefix(std::move(p)), n(count) {
    first = old_shards == n ? n : 0;
    total = std::max(first + n, 1);  // an empty checkpoint may have no data
  }
  std::string Path(int32_t i) const { return ShardPath(prefix, first + i, total); }
  std::string OtherPath(int32_t i) const { return first == 0 ? ShardPath(prefix, n + i, 2 * n) : ShardPath(prefix, i, n); }
};

// Renames the data files to their final names; on failure none of them.
Status RenameData(const std::vector<std::string>& data, const ShardNames& names, FileSystem& files) {
  Status s;
  int32_t done = 0;
  for (; done < names.n; ++done) {
    s = files.Rename(data[size_t(done)], names.Path(done));
    if (!s.ok()) break;
  }
  if (s.ok()) s = files.SyncFolderOf(names.prefix);
  for (; !s.ok() && done > 0; --done) files.Rename(names.Path(done - 1), data[size_t(done) - 1]).IgnoreError();
  return s;
}

// A file system on another machine may have renamed the file before its answer was lost, or may still
// do so.
bool MayHaveHappened(const Status& s) { return absl::IsUnavailable(s) || absl::IsDeadlineExceeded(s); }

}  // namespace

Status PublishCheckpoint(const std::string& prefix, const std::vector<std::string>& data, CheckpointIndex index, FileSystem& files,
                         bool* published) {
  *published = false;
  const std::string path = IndexPath(prefix), temporary = TemporaryName(prefix, "index");
  // No other saver may come between from here to the end.
  ASSIGN_OR_RETURN(std::unique_ptr<FolderLock> lock, files.LockFolderOf(path));
  ASSIGN_OR_RETURN(const CheckpointIndex old, OldIndex(path, files));
  const ShardNames names(prefix, int32_t(data.size()), old.shards);
  index.shards = names.total;
  for (CheckpointEntry& e : index.entries) e.shard += e.pieces.empty() ? names.first : 0;

  RETURN_IF_ERROR(WriteIndex(index, temporary, files));
  Status s = RenameData(data, names, files);
  if (s.ok()) {
    s = files.Rename(temporary, path);
    // If the new index may be in place, the data stay where it wants them; the old index does not use
    // these names.
    const bool undo = !s.ok() && !MayHaveHappened(s);
    for (int32_t i = names.n; undo && i > 0; --i) files.Rename(names.Path(i - 1), data[size_t(i) - 1]).IgnoreError();
  }
  if (!s.ok()) {
    RemoveQuietly(temporary, files);
    return s;
  }
  *published = true;
  // The old data stay until the new index is certain to survive.
  RETURN_IF_ERROR(files.SyncFolderOf(path));
  std::set<std::string> stale;
  for (const CheckpointEntry& e : old.entries) stale.insert(ShardPath(prefix, e.shard, old.shards));
  for (int32_t i = 0; i < names.n; ++i) stale.insert(names.OtherPath(i));
  for (int32_t i = 0; i < names.n; ++i) stale.erase(names.Path(i));
  for (const std::string& p : stale) RemoveQuietly(p, files);
  return Status();
}

}  // namespace thalweg
