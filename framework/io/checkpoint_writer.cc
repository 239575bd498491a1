#include <algorithm>
#include <utility>

#include "framework/base/checked.h"
#include "framework/base/crc32c.h"
#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/io/checkpoint.h"
#include "framework/io/checkpoint_pieces.h"
#include "framework/io/checkpoint_publish.h"
#include "framework/io/checkpoint_strings.h"
#include "framework/tensor/payer.h"

namespace thalweg {
namespace {

constexpr size_t kBufferBytes = 256u << 10;

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

// A data file being written; small appends are collected in its buffer.
class Sink {
 public:
  Sink(WritableFile* file, std::string* buffer, uint64_t* written) : file_(file), buffer_(buffer), written_(written) {}

  Status Append(const void* bytes, uint64_t n, uint32_t* crc) {
    const char* p = static_cast<const char*>(bytes);
    *written_ += n;
    if (buffer_->size() + n > kBufferBytes) RETURN_IF_ERROR(Flush());
    for (uint64_t part; n > kBufferBytes; p += part, n -= part) {
      part = std::min(n, kChunkBytes);
      *crc = ExtendCrc32c(*crc, p, part);
      RETURN_IF_ERROR(file_->Append(p, part));
    }
    *crc = ExtendCrc32c(*crc, p, n);
    buffer_->append(p, n);
    return Status();
  }
  Status AppendStrings(const tw_string* s, uint64_t count, uint32_t* crc) {
    constexpr uint64_t kLongest = 10;  // bytes of a length
    uint32_t head_crc, ignored = 0;
    PaidBytes paid;
    RETURN_IF_ERROR(paid.Take(kLongest * count));
    const std::string head = EncodeStringLengths(s, count, &head_crc);
    RETURN_IF_ERROR(Append(head.data(), head.size(), &ignored));
    *crc = head_crc;
    for (uint64_t i = 0; i < count; ++i) RETURN_IF_ERROR(Append(s[i].data, s[i].size, crc));
    return Status();
  }
  Status Flush() {
    if (buffer_->empty()) return Status();
    RETURN_IF_ERROR(file_->Append(buffer_->data(), buffer_->size()));
    buffer_->clear();
    return Status();
  }

 private:
  WritableFile* file_;
  std::string* buffer_;
  uint64_t* written_;
};

}  // namespace

StatusOr<std::unique_ptr<CheckpointWriter>> CheckpointWriter::Create(std::string_view prefix, FileSystem& files, int32_t shards) {
  if (prefix.empty() || prefix.back() == '/') {
    return InvalidArgument("checkpoint prefix '", prefix, "' has no file name; give one such as 'folder/model'");
  }
  if (shards < 1 || shards > kMostDataFiles) {
    return InvalidArgument(OfCheckpoint(prefix), " ", shards, " data files; give a number from 1 to ", kMostDataFiles);
  }
  std::unique_ptr<CheckpointWriter> w(new CheckpointWriter(std::string(prefix), files));
  for (int32_t i = 0; i < shards; ++i) {
    Shard shard;
    shard.temporary = TemporaryName(prefix, "data");
    auto file = files.Create(shard.temporary);
    if (!file.ok()) return Prefix(file.status(), OfCheckpoint(prefix));
    shard.file = *std::move(file);
    w->shards_.push_back(std::move(shard));
  }
  return w;
}

CheckpointWriter::~CheckpointWriter() { RemoveTemporaries(); }

// Nothing refers to these files: a failure to remove them is harmless.
void CheckpointWriter::RemoveTemporaries() {
  for (Shard& shard : shards_) {
    shard.file.reset();
    try {
      files_.Remove(shard.temporary).IgnoreError();
    } catch (...) {  // no memory for the error that the file does not exist
    }
  }
  shards_.clear();
}

uint64_t CheckpointWriter::bytes() const {
  uint64_t sum = 0;
  for (const Shard& shard : shards_) sum += shard.written;
  return sum;
}

Status CheckpointWriter::CheckName(std::string_view name) const {
  if (spent_) return FailedPrecondition(OfCheckpoint(prefix_), " it is over; create a new writer");
  if (!failure_.ok()) return failure_;
  if (name.empty() || name[0] == '\0') return InvalidArgument(OfCheckpoint(prefix_), " a tensor's name is empty or begins with NUL");
  return Status();
}

// Writes the value and sets its location in *e.
Status CheckpointWriter::Write(std::string_view title, const tw_view& value, CheckpointEntry* e) {
  auto smallest = std::min_element(shards_.begin(), shards_.end(), [](auto& a, auto& b) { return a.written < b.written; });
  Sink sink(smallest->file.get(), &smallest->buffer, &smallest->written);
  e->dtype = value.dtype;
  e->shape = Shape(value.dims, value.rank);
  e->shard = int32_t(smallest - shards_.begin());
  e->offset = smallest->written;
  uint32_t crc = 0;
  const char* data = static_cast<const char*>(value.data) + value.offset;
  const Status s = value.dtype == TW_STRING ? sink.AppendStrings(reinterpret_cast<const tw_string*>(data), value.count, &crc)
                                            : sink.Append(data, value.bytes, &crc);
  if (!s.ok()) return failure_ = Prefix(s, title);
  e->size = smallest->written - e->offset;
  e->crc = MaskCrc(crc);
  return Status();
}

Status CheckpointWriter::Add(std::string_view name, const tw_view& value) {
  RETURN_IF_ERROR(CheckName(name));
  if (entries_.count(name)) return AlreadyExists(OfCheckpoint(prefix_), " tensor '", Shown(name), "' was added before; names must differ");
  const std::string title = StrCat(OfCheckpoint(prefix_), " tensor '", Shown(name), "':");
  if (Status s = CheckValue(value); !s.ok()) return Prefix(s, title);
  CheckpointEntry e;
  e.name = name;
  RETURN_IF_ERROR(Write(title, value, &e));
  entries_.emplace(e.name, std::move(e));
  return Status();
}

Status CheckpointWriter::AddPiece(std::string_view name, const Shape& whole, const CheckpointPiece& piece, const tw_view& value) {
  RETURN_IF_ERROR(CheckName(name));
  const std::string title = StrCat(OfCheckpoint(prefix_), " a piece of tensor '", Shown(name), "':");
  if (Status s = CheckPiece(piece, whole); !s.ok()) return Prefix(s, title);
  if (Status s = CheckValue(value); !s.ok()) return Prefix(s, title);
  const Shape shape(value.dims, value.rank);
  if (shape != PieceShape(piece, whole)) {
    return InvalidArgument(title, " it has shape ", shape.text(), ", but covers ", PieceShape(piece, whole).text(), " of the tensor");
  }
  if (IsWhole(piece, whole)) return Add(name, value);

  CheckpointEntry whole_entry, part;
  whole_entry.name = name;
  whole_entry.dtype = value.dtype;
  whole_entry.shape = whole;
  auto found = entries_.find(name);
  const CheckpointEntry& before = found == entries_.end() ? whole_entry : found->second;
  part.name = PieceKey(name, piece);
  if ((found != entries_.end() && before.pieces.empty()) || entries_.count(part.name)) {
    return AlreadyExists(title, " it was added before");
  }
  if (before.dtype != value.dtype || before.shape != whole) {
    return InvalidArgument(title, " it is of a ", DTypeName(value.dtype), " of shape ", whole.text(), ", another piece of a ",
                           DTypeName(before.dtype), " of shape ", before.shape.text());
  }
  RETURN_IF_ERROR(Write(title, value, &part));
  entries_.emplace(part.name, std::move(part));
  entries_.emplace(whole_entry.name, whole_entry).first->second.pieces.push_back(piece);
  return Status();
}

Status CheckpointWriter::Publish() {
  std::vector<std::string> data;
  for (Shard& shard : shards_) {
    RETURN_IF_ERROR(Sink(shard.file.get(), &shard.buffer, &shard.written).Flush());
    RETURN_IF_ERROR(shard.file->Sync());
    RETURN_IF_ERROR(shard.file->Close());
    data.push_back(shard.temporary);
  }
  CheckpointIndex index;
  for (auto& [name, entry] : entries_) index.entries.push_back(entry);
  bool published = false;
  const Status s = PublishCheckpoint(prefix_, data, std::move(index), files_, &published);
  if (published) shards_.clear();
  return s;
}

Status CheckpointWriter::Commit() {
  if (spent_) return FailedPrecondition(OfCheckpoint(prefix_), " it is over; create a new writer");
  spent_ = true;
  const Status s = failure_.ok() ? Prefix(Publish(), OfCheckpoint(prefix_)) : failure_;
  RemoveTemporaries();
  return s;
}

}  // namespace thalweg
