#include <set>

#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/io/checkpoint.h"
#include "framework/io/checkpoint_publish.h"

namespace thalweg {
namespace {

// The contents of the merged checkpoint.
struct Merged {
  std::map<std::string, CheckpointEntry> entries;
  std::vector<std::string> data;  // in the order of the shards
  std::vector<std::string> rest;  // files of the parts that the new checkpoint does not use

  // Combines pieces of one tensor; every other tensor may occur once.
  Status Add(CheckpointEntry e, const std::string& part) {
    auto [it, is_new] = entries.emplace(e.name, e);
    if (is_new) return Status();
    CheckpointEntry& before = it->second;
    if (e.pieces.empty() || before.pieces.empty() || before.dtype != e.dtype || before.shape != e.shape) {
      return InvalidArgument(OfCheckpoint(part), " tensor '", Shown(e.name.c_str() + e.is_piece()), "', ", DTypeName(e.dtype), " of shape ",
                             e.shape.text(), ", is in another part, too, as ", DTypeName(before.dtype), " of shape ", before.shape.text(),
                             "; save each tensor or piece once");
    }
    before.pieces.insert(before.pieces.end(), e.pieces.begin(), e.pieces.end());
    return Status();
  }
};

Status AddPart(const std::string& part, const std::string& prefix, FileSystem& files, Merged* merged) {
  const std::string path = IndexPath(part);
  auto file = files.Open(path);
  if (!file.ok() && part != prefix) return Prefix(file.status(), OfCheckpoint(part));
  // If an index of the whole had another name, it would be removed as a part's.
  const StatusOr<bool> same = part == prefix ? true : (*file)->IsAt(IndexPath(prefix));
  if (!same.ok()) return same.status();
  if (*same) return InvalidArgument(OfCheckpoint(prefix), " it is one of the parts itself, '", part, "'; merge them to another prefix");
  ASSIGN_OR_RETURN(CheckpointIndex index, ReadCheckpointIndex(**file, path));
  std::map<int32_t, int32_t> shards;  // the part's numbers to the merged ones
  for (CheckpointEntry& e : index.entries) {
    if (e.pieces.empty()) {
      auto [it, is_new] = shards.emplace(e.shard, int32_t(merged->data.size()));
      if (is_new) merged->data.push_back(ShardPath(part, e.shard, index.shards));
      e.shard = it->second;
    }
    RETURN_IF_ERROR(merged->Add(std::move(e), part));
  }
  merged->rest.push_back(path);
  for (int32_t i = 0; i < index.shards; ++i) {
    if (!shards.count(i)) merged->rest.push_back(ShardPath(part, i, index.shards));
  }
  return Status();
}

}  // namespace

Status MergeCheckpoints(const std::vector<std::string>& parts, const std::string& prefix, bool remove_folders, FileSystem& files) {
  if (parts.empty()) return InvalidArgument(OfCheckpoint(prefix), " there are no parts to merge");
  Merged merged;
  for (const std::string& part : parts) {
    RETURN_IF_ERROR(AddPart(part, prefix, files, &merged));
  }
  CheckpointIndex index;
  for (auto& [name, entry] : merged.entries) index.entries.push_back(entry);
  bool published;
  RETURN_IF_ERROR(Prefix(PublishCheckpoint(prefix, merged.data, std::move(index), files, &published), OfCheckpoint(prefix)));
  // The remaining files of the parts are useless; a failure to remove them is harmless.
  for (const std::string& path : merged.rest) files.Remove(path).IgnoreError();
  if (!remove_folders) return Status();
  std::set<std::string> folders;
  for (const std::string& part : parts) {
    if (FolderOf(part) != FolderOf(prefix)) folders.insert(FolderOf(part));
  }
  for (const std::string& folder : folders) files.RemoveFolder(folder).IgnoreError();
  return Status();
}

}  // namespace thalweg
