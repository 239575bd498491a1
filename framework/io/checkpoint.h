// Checkpoints: tensors by name in files, in TensorFlow's V2 bundle format. `prefix`.index tells
// where each tensor lies in the data files (shards) `prefix`.data-NNNNN-of-MMMMM.
//
// Saving never harms an existing checkpoint. All files are written under temporary names, synced,
// then renamed: the data files first, the index last. The rename of the index is the moment at
// which the new checkpoint replaces the old one. The old index needs its data until then, so saves
// over a checkpoint alternate between the names data-00000-of-00001 and data-00001-of-00002, or,
// for n data files, between those of n and the second half of those of 2n. A crash at any point
// leaves the old checkpoint or the new one, never a mix.
//
// Threads: a writer by one thread at a time; several writers may save under one prefix, the last
// wins. Any thread may call a reader. A reader keeps its files open, so a save under the same
// prefix does not disturb it.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/files/file_system.h"
#include "framework/io/checkpoint_index.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

constexpr int32_t kMostDataFiles = 1000;  // limit for one save

class CheckpointWriter {
 public:
  // Creates `shards` data files under temporary names beside the final ones; their folder must
  // exist.
  static StatusOr<std::unique_ptr<CheckpointWriter>> Create(std::string_view prefix, FileSystem& files = LocalFiles(), int32_t shards = 1);
  // Removes the temporary files unless Commit succeeded.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Writes the tensor, which is dense and in host memory, to the data file that is smallest so far.
  // Any order of names; no name twice. After a failed write nothing can be added or committed.
  // Errors: INVALID_ARGUMENT for an invalid name, such as an empty one; ALREADY_EXISTS;
  // UNIMPLEMENTED for resources and variants; those of the file system.
  Status Add(std::string_view name, const tw_view& value);
  // Writes a piece of the tensor of that name and shape `whole`; the other pieces may be in other
  // checkpoints, to be merged. A piece that covers the whole tensor is written as by Add. Errors:
  // those of Add, and INVALID_ARGUMENT if piece, value and earlier pieces do not fit each other.
  Status AddPiece(std::string_view name, const Shape& whole, const CheckpointPiece& piece, const tw_view& value);
  // Bytes of all data files so far.
  uint64_t bytes() const;
  // Publishes the checkpoint. On failure the previous checkpoint is whole, and no file of this one
  // remains. Only if the very last sync of the folder fails is the new one in place without being
  // certain to survive a power failure. REQUIRES: called once.
  Status Commit();

 private:
  struct Shard {
    std::string temporary, buffer;  // buffer: small tensors are written together
    std::unique_ptr<WritableFile> file;
    uint64_t written = 0;  // including the bytes in the buffer
  };
  CheckpointWriter(std::string prefix, FileSystem& files) : prefix_(std::move(prefix)), files_(files) {}
  Status CheckName(std::string_view name) const;
  Status Write(std::string_view title, const tw_view& value, CheckpointEntry* entry);
  Status Publish();
  void RemoveTemporaries();

  const std::string prefix_;
  FileSystem& files_;
  std::vector<Shard> shards_;
  std::map<std::string, CheckpointEntry, std::less<>> entries_;
  Status failure_;  // of a write: the files are then unusable
  bool spent_ = false;
};

// Merges several checkpoints into one, in their order: their data files become shards of `prefix`
// and their indexes are removed. No bytes are copied, so all must be in one file system. Pieces of
// one tensor are combined. remove_folders: also removes the folders of the parts if they are then
// empty. Errors: NOT_FOUND, DATA_LOSS; INVALID_ARGUMENT for no parts, for a tensor that two parts
// have whole, or with different types or shapes; those of the file system. After an error the
// previous checkpoint at `prefix` is whole. After UNAVAILABLE and DEADLINE_EXCEEDED the merged one may
// be in place instead, and the parts may have lost their data files to it: save them again.
Status MergeCheckpoints(const std::vector<std::string>& parts, const std::string& prefix, bool remove_folders,
                        FileSystem& files = LocalFiles());

class CheckpointReader {
 public:
  // Reads the index, opens the shards that it names and checks every entry against them; no two
  // entries share a byte. Errors: NOT_FOUND without an index; DATA_LOSS and others as
  // ReadCheckpointIndex, naming file and tensor.
  static StatusOr<std::unique_ptr<CheckpointReader>> Open(std::string_view prefix, FileSystem& files = LocalFiles());

  // Tensors by name, without the pieces of partitioned ones.
  std::vector<const CheckpointEntry*> entries() const;
  const CheckpointEntry* Find(std::string_view name) const;  // NULL if there is none
  // Bytes of the tensor in the files, all its pieces together.
  uint64_t BytesOf(const CheckpointEntry& entry) const;
  // Returns the tensor in host memory, with its checksum verified; a partitioned tensor is
  // assembled. Errors: NOT_FOUND; DATA_LOSS; UNIMPLEMENTED for types that this runtime cannot hold.
  StatusOr<Tensor> Read(std::string_view name) const;
  // Returns a part of the tensor; of a partitioned tensor it reads only the pieces that it needs.
  // Errors: those of Read; INVALID_ARGUMENT for a part outside the tensor's shape.
  StatusOr<Tensor> ReadPart(std::string_view name, const CheckpointPiece& part) const;
  // Reads the tensor's bytes and compares the checksum, using little memory.
  Status Verify(const CheckpointEntry& entry) const;
  // Verifies all entries, pieces too; returns the first failure.
  Status VerifyAll() const;

 private:
  explicit CheckpointReader(std::string prefix) : prefix_(std::move(prefix)) {}
  Status OpenShards(FileSystem& files);
  Status CheckShards() const;
  Status CheckExtents() const;
  StatusOr<Tensor> ReadWhole(const CheckpointEntry& e) const;
  StatusOr<Tensor> ReadPieces(const CheckpointEntry& e, const CheckpointPiece& part) const;
  StatusOr<const CheckpointEntry*> FindPiece(const CheckpointEntry& e, const CheckpointPiece& piece) const;
  StatusOr<const CheckpointEntry*> FindReadable(std::string_view name) const;
  StatusOr<Tensor> ReadStrings(const CheckpointEntry& e) const;
  std::string title(const CheckpointEntry& e) const;  // the tensor's name in messages

  const std::string prefix_;
  CheckpointIndex index_;
  std::map<int32_t, std::unique_ptr<ReadableFile>> shards_;
};

}  // namespace thalweg
