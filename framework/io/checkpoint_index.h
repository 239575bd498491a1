// The index file of a checkpoint: a LevelDB table from tensor names to the location of their bytes,
// with a header under the empty key.
// Threads: values, no sharing.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/files/file_system.h"
#include "framework/tensor/payer.h"
#include "framework/tensor/shape.h"

namespace thalweg {

// A part of a partitioned tensor: sizes[i] elements from starts[i] on axis i; size -1 means the
// whole axis.
struct CheckpointPiece {
  std::vector<int64_t> starts, sizes;
};

struct CheckpointEntry {
  std::string name;  // of the tensor; for a piece its key, which begins with NUL (see PieceKey)
  uint32_t dtype = 0;
  Shape shape;
  // Location of the bytes, and their masked checksum. Unused if the tensor has pieces.
  int32_t shard = 0;
  uint64_t offset = 0, size = 0;
  uint32_t crc = 0;
  std::vector<CheckpointPiece> pieces;
  bool is_piece() const { return !name.empty() && name[0] == '\0'; }
};

struct CheckpointIndex {
  int32_t shards = 1;
  std::vector<CheckpointEntry> entries;                      // by name
  std::shared_ptr<PaidBytes> paid;                           // charged for the entries that were read
  const CheckpointEntry* Find(std::string_view name) const;  // NULL if there is none
};

// "a/b.data-00000-of-00001", "a/b.index".
std::string ShardPath(std::string_view prefix, int32_t shard, int32_t shards);
std::string IndexPath(std::string_view prefix);
// "checkpoint 'a/b':", the beginning of messages about it.
std::string OfCheckpoint(std::string_view prefix);
// Bytes that are read, or written, and checked in one go, while they are in the cache.
constexpr uint64_t kChunkBytes = 1u << 20;

// Reads the file; checks each entry for consistency, but not yet against the shards. Errors:
// DATA_LOSS for a torn, damaged or foreign file; FAILED_PRECONDITION and UNIMPLEMENTED for a file
// written for other readers. The errors name the file, which was opened as `path`, and the tensor.
StatusOr<CheckpointIndex> ReadCheckpointIndex(const ReadableFile& file, const std::string& path);
// Appends the whole table to `file`. REQUIRES: entries are sorted by name.
Status WriteCheckpointIndex(const CheckpointIndex& index, WritableFile* file);

}  // namespace thalweg
