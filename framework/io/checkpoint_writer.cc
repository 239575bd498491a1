#include <random>
#include <set>
#include <utility>

#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/io/checkpoint.h"
#include "framework/io/checkpoint_strings.h"
#include "framework/io/crc32c.h"

namespace thalweg {
namespace {

constexpr size_t kBufferBytes = 256u << 10;

// Two savers of one prefix must not meet in a temporary file.
std::string TemporaryName(std::string_view prefix, std::string_view what) {
  std::random_device random;
  const uint64_t tag = uint64_t(random()) << 32 | random();
  return StrCat(prefix, ".", what, ".tmp-", absl::Hex(tag, absl::kZeroPad16));
}

std::string Where(std::string_view prefix) { return StrCat("checkpoint '", prefix, "':"); }

Status CheckValue(const tw_view& v) {
  const DTypeInfo* type = FindDType(v.dtype);
  if (!type) return InvalidArgument("its type ", v.dtype, " is unknown");
  if (IsRef(v.dtype) || v.dtype == TW_RESOURCE || v.dtype == TW_VARIANT) {
    return Unimplemented("a ", DTypeName(v.dtype), " cannot be saved; save the values behind it");
  }
  ASSIGN_OR_RETURN(const int64_t bytes, CountBytes(v.dims, v.rank, v.dtype));
  if (uint64_t(bytes) != v.bytes || v.strides) return InvalidArgument("it is not dense; save a copy");
  if (bytes > 0 && !v.data) return InvalidArgument("it has no data");
  return Status();
}

}  // namespace

CheckpointWriter::CheckpointWriter(std::string prefix, FileSystem& files)
    : prefix_(std::move(prefix)), data_temp_(TemporaryName(prefix_, "data")), index_temp_(TemporaryName(prefix_, "index")), files_(files) {}

StatusOr<std::unique_ptr<CheckpointWriter>> CheckpointWriter::Create(std::string_view prefix, FileSystem& files) {
  if (prefix.empty() || prefix.back() == '/') {
    return InvalidArgument("checkpoint prefix '", prefix, "' has no file name; give one such as 'folder/model'");
  }
  std::unique_ptr<CheckpointWriter> w(new CheckpointWriter(std::string(prefix), files));
  auto file = files.Create(w->data_temp_);
  if (!file.ok()) return Prefix(file.status(), Where(prefix));
  w->data_ = *std::move(file);
  w->data_temp_exists_ = true;
  return w;
}

CheckpointWriter::~CheckpointWriter() {
  data_.reset();
  if (data_temp_exists_) RemoveQuietly(data_temp_);
  if (index_temp_exists_) RemoveQuietly(index_temp_);
}

// For files that nobody refers to: a failure to remove one takes nothing from anybody.
void CheckpointWriter::RemoveQuietly(const std::string& path) { files_.Remove(path).IgnoreError(); }

Status CheckpointWriter::Flush() {
  RETURN_IF_ERROR(data_->Append(buffer_.data(), buffer_.size()));
  buffer_.clear();
  return Status();
}

Status CheckpointWriter::Append(const void* bytes, uint64_t n, uint32_t* crc) {
  *crc = ExtendCrc32c(*crc, bytes, n);
  written_ += n;
  if (buffer_.size() + n > kBufferBytes) RETURN_IF_ERROR(Flush());
  if (n > kBufferBytes) return data_->Append(bytes, n);
  buffer_.append(static_cast<const char*>(bytes), n);
  return Status();
}

Status CheckpointWriter::WriteStrings(const tw_view& value, uint32_t* crc) {
  const auto* s = reinterpret_cast<const tw_string*>(static_cast<const char*>(value.data) + value.offset);
  uint32_t head_crc, ignored = 0;
  const std::string head = EncodeStringLengths(s, value.count, &head_crc);
  RETURN_IF_ERROR(Append(head.data(), head.size(), &ignored));
  *crc = head_crc;
  for (uint64_t i = 0; i < value.count; ++i) RETURN_IF_ERROR(Append(s[i].data, s[i].size, crc));
  return Status();
}

Status CheckpointWriter::Add(std::string_view name, const tw_view& value) {
  if (spent_) return FailedPrecondition(Where(prefix_), " it is over; create a new writer");
  if (!failure_.ok()) return failure_;
  if (name.empty() || name[0] == '\0') return InvalidArgument(Where(prefix_), " a tensor's name is empty or begins with NUL");
  if (entries_.count(name)) return AlreadyExists(Where(prefix_), " tensor '", name, "' was added before; names must differ");
  const std::string where = StrCat(Where(prefix_), " tensor '", name, "':");
  Status s = CheckValue(value);
  if (!s.ok()) return Prefix(s, where);

  CheckpointEntry e;
  e.name = name;
  e.dtype = value.dtype;
  e.shape = Shape(value.dims, value.rank);
  e.offset = written_;
  uint32_t crc = 0;
  s = value.dtype == TW_STRING ? WriteStrings(value, &crc) : Append(static_cast<const char*>(value.data) + value.offset, value.bytes, &crc);
  if (!s.ok()) return failure_ = Prefix(s, where);
  e.size = written_ - e.offset;
  e.crc = MaskCrc(crc);
  entries_.emplace(e.name, std::move(e));
  return Status();
}

Status CheckpointWriter::WriteIndex(int32_t shard, int32_t shards) {
  CheckpointIndex index;
  index.shards = shards;
  for (auto& [name, entry] : entries_) {
    index.entries.push_back(entry);
    index.entries.back().shard = shard;
  }
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, files_.Create(index_temp_));
  index_temp_exists_ = true;
  RETURN_IF_ERROR(WriteCheckpointIndex(index, file.get()));
  RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

// What the checkpoint that is there has, without shards where there is none or a damaged one.
StatusOr<CheckpointIndex> CheckpointWriter::OldIndex(const std::string& path) {
  CheckpointIndex none;
  none.shards = 0;
  auto file = files_.Open(path);
  if (absl::IsNotFound(file.status())) return none;
  if (!file.ok()) return file.status();  // there may be a good checkpoint that we cannot see right now
  auto index = ReadCheckpointIndex(**file, path);
  return absl::IsDataLoss(index.status()) ? none : index;
}

Status CheckpointWriter::Publish() {
  RETURN_IF_ERROR(Flush());
  RETURN_IF_ERROR(data_->Sync());
  RETURN_IF_ERROR(data_->Close());

  const std::string index_path = IndexPath(prefix_);
  // From here to the end no other saver may come between.
  ASSIGN_OR_RETURN(std::unique_ptr<FolderLock> lock, files_.LockFolderOf(index_path));
  std::set<std::string> stale = {ShardPath(prefix_, 0, 1), ShardPath(prefix_, 1, 2)};
  ASSIGN_OR_RETURN(const CheckpointIndex old, OldIndex(index_path));
  for (const CheckpointEntry& e : old.entries) stale.insert(ShardPath(prefix_, e.shard, old.shards));
  const int32_t shard = old.shards == 1 ? 1 : 0, shards = shard + 1;
  const std::string data_path = ShardPath(prefix_, shard, shards);
  stale.erase(data_path);

  RETURN_IF_ERROR(WriteIndex(shard, shards));
  RETURN_IF_ERROR(files_.Rename(data_temp_, data_path));
  data_temp_exists_ = false;
  Status s = files_.SyncFolderOf(data_path);
  if (s.ok()) s = files_.Rename(index_temp_, index_path);
  if (!s.ok()) {
    RemoveQuietly(data_path);  // no index knows of it
    return s;
  }
  index_temp_exists_ = false;
  // The old data stays until the new index is certain to survive.
  RETURN_IF_ERROR(files_.SyncFolderOf(index_path));
  for (const std::string& path : stale) RemoveQuietly(path);
  return Status();
}

Status CheckpointWriter::Commit() {
  if (spent_) return FailedPrecondition(Where(prefix_), " it is over; create a new writer");
  spent_ = true;
  Status s = failure_.ok() ? Prefix(Publish(), Where(prefix_)) : failure_;
  data_.reset();
  if (std::exchange(data_temp_exists_, false)) RemoveQuietly(data_temp_);
  if (std::exchange(index_temp_exists_, false)) RemoveQuietly(index_temp_);
  return s;
}

}  // namespace thalweg
