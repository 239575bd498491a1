// Checkpoints: tensors by name in files, in TensorFlow's V2 bundle format. `prefix`.index says where each tensor lies in the data files
// (shards) `prefix`.data-NNNNN-of-MMMMM.
//
// Saving never harms what is there. All is written under temporary names, synced, then renamed: the data file first, the index last, and
// the rename of the index is the moment at which the new checkpoint takes the old one's place. So that the old index keeps its data until
// then, saving over a checkpoint alternates between the names data-00000-of-00001 and data-00001-of-00002: a crash at any point leaves
// the old checkpoint or the new one, never a mix.
//
// Threads: one writer by one thread at a time; several writers may save under one prefix, the last wins. A reader's calls from any
// thread; it keeps its files open, so a save under the same prefix does not disturb it.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/io/checkpoint_index.h"
#include "framework/io/file_system.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

class CheckpointWriter {
 public:
  // Starts the data file under a temporary name beside the final ones; its folder must exist.
  static StatusOr<std::unique_ptr<CheckpointWriter>> Create(std::string_view prefix, FileSystem& files = LocalFiles());
  // Removes the temporary files unless Commit succeeded.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Writes the tensor, which is in host memory and dense. In any order; no name twice. After a failed write nothing can be added or
  // committed. Errors: INVALID_ARGUMENT for an empty name and such, ALREADY_EXISTS, UNIMPLEMENTED for resources and variants, and the
  // file system's.
  Status Add(std::string_view name, const tw_view& value);
  // Publishes. On failure the checkpoint that was there is whole, and nothing of this one is left; only where the very last sync of the
  // folder fails the new one is in place, not certain to survive a power failure. Once.
  Status Commit();

 private:
  CheckpointWriter(std::string prefix, FileSystem& files);
  Status Append(const void* bytes, uint64_t n, uint32_t* crc);
  Status WriteStrings(const tw_view& value, uint32_t* crc);
  Status Flush();
  StatusOr<CheckpointIndex> OldIndex(const std::string& path);
  Status Publish();
  Status WriteIndex(int32_t shard, int32_t shards);
  void RemoveQuietly(const std::string& path);

  const std::string prefix_, data_temp_, index_temp_;
  FileSystem& files_;
  std::unique_ptr<WritableFile> data_;
  std::string buffer_;    // small tensors are written together
  uint64_t written_ = 0;  // including what is in the buffer
  std::map<std::string, CheckpointEntry, std::less<>> entries_;
  Status failure_;  // of a write: the file is then of no use
  bool spent_ = false, data_temp_exists_ = false, index_temp_exists_ = false;
};

class CheckpointReader {
 public:
  // Reads the index, opens the shards it needs and checks every entry against them. NOT_FOUND without an index; DATA_LOSS and others as
  // ReadCheckpointIndex, naming file and tensor.
  static StatusOr<std::unique_ptr<CheckpointReader>> Open(std::string_view prefix, FileSystem& files = LocalFiles());

  // Tensors by name, without the pieces of partitioned ones.
  std::vector<const CheckpointEntry*> entries() const;
  const CheckpointEntry* Find(std::string_view name) const;  // NULL: none
  // The tensor in host memory, checksum verified; a partitioned one is put together. Errors: NOT_FOUND; DATA_LOSS; UNIMPLEMENTED for
  // types that this runtime cannot hold.
  StatusOr<Tensor> Read(std::string_view name) const;
  // Reads the tensor's bytes and compares the checksum, in little memory.
  Status Verify(const CheckpointEntry& entry) const;
  // All of them, pieces too; the first failure.
  Status VerifyAll() const;

 private:
  explicit CheckpointReader(std::string prefix) : prefix_(std::move(prefix)) {}
  Status OpenShards(FileSystem& files);
  StatusOr<Tensor> ReadWhole(const CheckpointEntry& e) const;
  StatusOr<Tensor> ReadPieces(const CheckpointEntry& e) const;
  StatusOr<Tensor> ReadStrings(const CheckpointEntry& e) const;
  std::string title(const CheckpointEntry& e) const;  // how messages name a tensor

  const std::string prefix_;
  CheckpointIndex index_;
  std::map<int32_t, std::unique_ptr<ReadableFile>> shards_;
};

}  // namespace thalweg
