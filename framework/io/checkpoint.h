// Checkpoints: tensors by name in files, in TensorFlow's V2 bundle format. `prefix`.index says where each tensor lies in the data files
// (shards) `prefix`.data-NNNNN-of-MMMMM.
//
// Saving never harms what is there. All is written under temporary names, synced, then renamed: the data files first, the index last, and
// the rename of the index is the moment at which the new checkpoint takes the old one's place. So that the old index keeps its data until
// then, saving over a checkpoint alternates between the names data-00000-of-00001 and data-00001-of-00002, or for n data files between
// those of n and the second half of those of 2n: a crash at any point leaves the old checkpoint or the new one, never a mix.
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

constexpr int32_t kMostDataFiles = 1000;  // that a save may have

class CheckpointWriter {
 public:
  // Starts the data files, `shards` of them, under temporary names beside the final ones; their folder must exist.
  static StatusOr<std::unique_ptr<CheckpointWriter>> Create(std::string_view prefix, FileSystem& files = LocalFiles(), int32_t shards = 1);
  // Removes the temporary files unless Commit succeeded.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Writes the tensor, which is in host memory and dense, into the data file that is smallest so far. In any order; no name twice. After a
  // failed write nothing can be added or committed. Errors: INVALID_ARGUMENT for an empty name and such, ALREADY_EXISTS, UNIMPLEMENTED
  // for resources and variants, and the file system's.
  Status Add(std::string_view name, const tw_view& value);
  // Writes a piece of the tensor of that name and shape `whole`; the others may be in other checkpoints, to be merged. A piece that is
  // the whole is Add. Errors: as Add, and INVALID_ARGUMENT where piece, value and what was added before do not fit.
  Status AddPiece(std::string_view name, const Shape& whole, const CheckpointPiece& piece, const tw_view& value);
  // Bytes of all data files so far.
  uint64_t bytes() const;
  // Publishes. On failure the checkpoint that was there is whole, and nothing of this one is left; only where the very last sync of the
  // folder fails the new one is in place, not certain to survive a power failure. Once.
  Status Commit();

 private:
  struct Shard {
    std::string temporary, buffer;  // small tensors are written together
    std::unique_ptr<WritableFile> file;
    uint64_t written = 0;  // including what is in the buffer
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
  Status failure_;  // of a write: the files are then of no use
  bool spent_ = false;
};

// Makes one checkpoint of several, in their order: their data files become shards of `prefix` and their indexes go away; no bytes are
// copied, so all must be in one file system. Pieces of one tensor come together. remove_folders: also the folders that held the parts,
// where that leaves them empty. Errors: NOT_FOUND, DATA_LOSS; INVALID_ARGUMENT for none, for a tensor that two of them have whole, or
// with different types or shapes; whatever the file system says. The checkpoint that was at `prefix` is then whole.
Status MergeCheckpoints(const std::vector<std::string>& parts, const std::string& prefix, bool remove_folders,
                        FileSystem& files = LocalFiles());

class CheckpointReader {
 public:
  // Reads the index, opens the shards it needs and checks every entry against them; no two entries have a byte in common. NOT_FOUND without
  // an index; DATA_LOSS and others as ReadCheckpointIndex, naming file and tensor.
  static StatusOr<std::unique_ptr<CheckpointReader>> Open(std::string_view prefix, FileSystem& files = LocalFiles());

  // Tensors by name, without the pieces of partitioned ones.
  std::vector<const CheckpointEntry*> entries() const;
  const CheckpointEntry* Find(std::string_view name) const;  // NULL: none
  // That the tensor takes in the files, all its pieces together.
  uint64_t BytesOf(const CheckpointEntry& entry) const;
  // The tensor in host memory, checksum verified; a partitioned one is put together. Errors: NOT_FOUND; DATA_LOSS; UNIMPLEMENTED for
  // types that this runtime cannot hold.
  StatusOr<Tensor> Read(std::string_view name) const;
  // A part of it, of a partitioned tensor from those pieces alone that it needs. Errors: as Read; INVALID_ARGUMENT for a part that the
  // tensor's shape has not.
  StatusOr<Tensor> ReadPart(std::string_view name, const CheckpointPiece& part) const;
  // Reads the tensor's bytes and compares the checksum, in little memory.
  Status Verify(const CheckpointEntry& entry) const;
  // All of them, pieces too; the first failure.
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
  std::string title(const CheckpointEntry& e) const;  // how messages name a tensor

  const std::string prefix_;
  CheckpointIndex index_;
  std::map<int32_t, std::unique_ptr<ReadableFile>> shards_;
};

}  // namespace thalweg
