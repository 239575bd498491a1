#include "framework/io/checkpoint_index.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <new>

#include "google/protobuf/io/coded_stream.h"
#include "leveldb/env.h"
#include "leveldb/iterator.h"
#include "leveldb/options.h"
#include "leveldb/table.h"
#include "leveldb/table_builder.h"

#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/proto/checkpoint.pb.h"
#include "framework/proto/tensor_proto.h"

namespace thalweg {
namespace {

constexpr int32_t kVersion = 1;         // of the format, for reader and writer
constexpr int32_t kMostShards = 99999;  // five digits in the file name
constexpr uint64_t kFooterBytes = 48;   // two block handles, padding, eight magic bytes of a table
constexpr uint64_t kBlockTrailer = 5;   // compression, checksum
constexpr unsigned char kMagic[8] = {0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb};
// Neighbouring keys share prefixes in the file, so a small file can claim many long ones.
constexpr uint64_t kKeyBytesPerFileByte = 8, kFreeKeyBytes = 32u << 20;
constexpr size_t kMostEntryBytes = 4u << 20;
// So can a compressed block, by a factor of twenty.
constexpr uint64_t kUnfoldedPerFileByte = 8, kFreeUnfolded = 32u << 20;
constexpr char kSnappy = 1;  // the compression kind in the trailer of a block

// The file as LevelDB reads it. LevelDB does not know our statuses, so the first failure is kept
// here.
// An intact file has each byte in one block, which is read once; a block under many names would be
// decompressed again and again.
class TableSource final : public leveldb::RandomAccessFile {
 public:
  explicit TableSource(const ReadableFile& file) : file_(file) {}
  leveldb::Status Read(uint64_t offset, size_t n, leveldb::Slice* result, char* scratch) const override {
    // LevelDB continues with the next block after a failure, which is useless here.
    if (!failure_.ok()) return leveldb::Status::IOError("see failure()");
    // Short answers are legal: LevelDB reports the block as truncated.
    const uint64_t size = file_.size();
    const uint64_t n_there = offset >= size ? 0 : std::min<uint64_t>(n, size - offset);
    Status s = file_.ReadAt(offset, scratch, n_there);
    if (s.ok()) s = Count(offset, {scratch, size_t(n_there)});
    if (!s.ok()) {
      failure_ = s;
      return leveldb::Status::IOError("see failure()");
    }
    *result = leveldb::Slice(scratch, size_t(n_there));
    return leveldb::Status::OK();
  }
  const Status& failure() const { return failure_; }

 private:
  // Counts the bytes read, and the claimed sizes of decompressed blocks: LevelDB allocates that
  // much before it checks the rest.
  Status Count(uint64_t offset, std::string_view block) const {
    read_ += block.size();
    if (read_ > file_.size() + kFooterBytes) return DataLoss("is damaged: it has the same block in more than one place");
    const bool is_footer = offset + block.size() == file_.size();
    if (is_footer || block.size() < kBlockTrailer || block[block.size() - kBlockTrailer] != kSnappy) return Status();
    google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(block.data()), int(block.size() - kBlockTrailer));
    uint32_t claimed = 0;
    if (!in.ReadVarint32(&claimed)) return DataLoss("is damaged: a compressed block does not say what it unfolds to");
    unfolded_ += claimed;
    if (unfolded_ <= kUnfoldedPerFileByte * file_.size() + kFreeUnfolded) return Status();
    return DataLoss("is damaged: its compressed blocks unfold to ", unfolded_, " bytes or more, which no honest file of ", file_.size(),
                    " bytes has");
  }

  const ReadableFile& file_;
  mutable Status failure_;
  mutable uint64_t read_ = 0, unfolded_ = 0;
};

class TableSink final : public leveldb::WritableFile {
 public:
  explicit TableSink(thalweg::WritableFile* file) : file_(file) {}
  leveldb::Status Append(const leveldb::Slice& data) override {
    if (failure_.ok()) failure_ = file_->Append(data.data(), data.size());
    return failure_.ok() ? leveldb::Status::OK() : leveldb::Status::IOError("see failure()");
  }
  leveldb::Status Close() override { return leveldb::Status::OK(); }
  leveldb::Status Flush() override { return leveldb::Status::OK(); }
  leveldb::Status Sync() override { return leveldb::Status::OK(); }
  const Status& failure() const { return failure_; }

 private:
  thalweg::WritableFile* file_;
  Status failure_;
};

// The footer has no checksum, and LevelDB allocates the sizes that its handles claim before it
// reads.
Status CheckFooter(const ReadableFile& file) {
  if (file.size() < kFooterBytes) return DataLoss("is torn or no index: ", file.size(), " bytes are fewer than a table's footer has");
  unsigned char footer[kFooterBytes];
  RETURN_IF_ERROR(file.ReadAt(file.size() - kFooterBytes, footer, kFooterBytes));
  if (!std::equal(std::begin(kMagic), std::end(kMagic), footer + kFooterBytes - sizeof(kMagic))) {
    return DataLoss("is torn or no index: it does not end in a table's footer");
  }
  google::protobuf::io::CodedInputStream in(footer, int(kFooterBytes - sizeof(kMagic)));
  for (std::string_view block : {"meta index", "index"}) {
    uint64_t offset, size, end;
    const bool there = in.ReadVarint64(&offset) && in.ReadVarint64(&size);
    if (!there || __builtin_add_overflow(offset, size, &end) || __builtin_add_overflow(end, kBlockTrailer, &end) ||
        end > file.size() - kFooterBytes) {
      return DataLoss("is damaged: its footer places the ", block, " block outside the file");
    }
  }
  return Status();
}

Status ParseHeader(std::string_view bytes, CheckpointIndex* index) {
  proto::BundleHeaderProto header;
  if (!header.ParseFromArray(bytes.data(), int(bytes.size()))) return DataLoss("is damaged: its header is no BundleHeaderProto");
  if (header.num_shards() < 1 || header.num_shards() > kMostShards) {
    return DataLoss("is damaged: it claims ", header.num_shards(), " data files; there must be 1 to ", kMostShards);
  }
  if (header.endianness() != proto::BundleHeaderProto::LITTLE) {
    return Unimplemented("was written on a big-endian machine; convert it there, this runtime reads little-endian checkpoints");
  }
  const proto::VersionDef& v = header.version();
  const auto& bad = v.bad_consumers();
  if (v.min_consumer() > kVersion || std::find(bad.begin(), bad.end(), kVersion) != bad.end()) {
    return FailedPrecondition("needs a reader of version ", v.min_consumer(), " or later that is not version ", kVersion,
                              "; this runtime reads version ", kVersion, ", use a newer one");
  }
  index->shards = header.num_shards();
  return Status();
}

StatusOr<CheckpointPiece> ParsePiece(const proto::TensorSliceProto& p, const Shape& shape) {
  CheckpointPiece piece;
  if (p.extent_size() != shape.rank()) return DataLoss("a piece has ", p.extent_size(), " axes, the tensor ", shape.rank());
  for (int i = 0; i < p.extent_size(); ++i) {
    const bool whole = p.extent(i).has_length_hack_case() == proto::TensorSliceProto::Extent::HAS_LENGTH_HACK_NOT_SET;
    const int64_t start = p.extent(i).start(), size = whole ? -1 : p.extent(i).length();
    int64_t end;
    if (start < 0 || size < -1 || !CheckedAdd(start, size < 0 ? 0 : size, &end) || end > shape.dim(i) || (size < 0 && start != 0)) {
      return DataLoss("a piece covers ", start, " + ", size, " of axis ", i, ", which has ", shape.dim(i));
    }
    piece.starts.push_back(start);
    piece.sizes.push_back(size);
  }
  return piece;
}

void PieceToProto(const CheckpointPiece& piece, proto::TensorSliceProto* p) {
  for (size_t i = 0; i < piece.starts.size(); ++i) {
    proto::TensorSliceProto::Extent* extent = p->add_extent();
    if (piece.sizes[i] < 0) continue;
    extent->set_start(piece.starts[i]);
    extent->set_length(piece.sizes[i]);
  }
}

Status ParseEntry(std::string_view bytes, int32_t shards, CheckpointEntry* e) {
  proto::BundleEntryProto p;
  if (bytes.size() > kMostEntryBytes)
    return DataLoss("its entry has ", bytes.size(), " bytes; no honest one has more than ", kMostEntryBytes);
  if (!p.ParseFromArray(bytes.data(), int(bytes.size()))) return DataLoss("its entry is no BundleEntryProto");
  e->dtype = uint32_t(p.dtype());
  ASSIGN_OR_RETURN(e->shape, ShapeFromProto(p.shape()));
  if (!e->shape.known()) return DataLoss("its shape ", e->shape.text(), " is not complete");
  ASSIGN_OR_RETURN(const int64_t count, CountElements(e->shape.dims().data(), e->shape.rank()));
  if (p.shard_id() < 0 || p.shard_id() >= shards) return DataLoss("it is in data file ", p.shard_id(), " of ", shards);
  if (p.offset() < 0 || p.size() < 0) return DataLoss("it lies at byte ", p.offset(), " and has ", p.size(), " bytes");
  e->shard = p.shard_id();
  e->offset = uint64_t(p.offset());
  e->size = uint64_t(p.size());
  e->crc = p.crc32c();
  for (const auto& slice : p.slices()) {
    ASSIGN_OR_RETURN(CheckpointPiece piece, ParsePiece(slice, e->shape));
    e->pieces.push_back(std::move(piece));
  }
  if (!e->pieces.empty()) return Status();
  const DTypeInfo* type = FindDType(e->dtype);
  if (type && type->plain) {
    ASSIGN_OR_RETURN(const int64_t bytes_due, CountBytes(e->shape.dims().data(), e->shape.rank(), e->dtype));
    if (e->size != uint64_t(bytes_due)) {
      return DataLoss("it is stored in ", e->size, " bytes, but shape ", e->shape.text(), " of ", type->name, " takes ", bytes_due);
    }
  } else if (e->dtype == TW_STRING && e->size < uint64_t(count)) {
    return DataLoss(e->size, " bytes cannot hold its ", count, " strings");
  }
  return Status();
}

std::string_view AsView(const leveldb::Slice& s) { return {s.data(), s.size()}; }

// Errors in LevelDB's words; if the file itself failed, its error takes precedence.
Status TableError(const TableSource& source, const leveldb::Status& s) {
  if (!source.failure().ok()) return source.failure();
  return DataLoss("is damaged: ", s.ToString());
}

Status ReadTable(const ReadableFile& file, CheckpointIndex* index) {
  RETURN_IF_ERROR(CheckFooter(file));
  TableSource source(file);
  leveldb::Options options;
  options.paranoid_checks = true;
  leveldb::Table* opened = nullptr;
  leveldb::Status s = leveldb::Table::Open(options, &source, file.size(), &opened);
  const std::unique_ptr<leveldb::Table> table(opened);
  if (!s.ok()) return TableError(source, s);
  leveldb::ReadOptions read;
  read.verify_checksums = true;
  const std::unique_ptr<leveldb::Iterator> it(table->NewIterator(read));

  it->SeekToFirst();
  if (!it->status().ok()) return TableError(source, it->status());
  if (!it->Valid() || !it->key().empty()) return DataLoss("is damaged or no checkpoint index: it has no header");
  RETURN_IF_ERROR(ParseHeader(AsView(it->value()), index));
  uint64_t key_bytes = 0;
  index->paid = std::make_shared<PaidBytes>();
  for (it->Next(); it->Valid(); it->Next()) {
    const std::string_view key = AsView(it->key());
    if (!index->entries.empty() && key <= index->entries.back().name) return DataLoss("is damaged: '", Shown(key), "' is out of order");
    key_bytes += key.size();
    if (key_bytes > kKeyBytesPerFileByte * file.size() + kFreeKeyBytes) {
      return DataLoss("is damaged: its names take more than ", key_bytes, " bytes, which no honest file of ", file.size(), " bytes has");
    }
    // Keys of pieces begin with a zero byte; C callers could not ask for a name that contains one.
    if (key.find('\0', 1) != key.npos && key[0] != '\0') return DataLoss("is damaged: the name '", Shown(key), "' holds a zero byte");
    // Charges the entry, whose vector may have twice the capacity, its name, and its pieces.
    RETURN_IF_ERROR(index->paid->Take(2 * sizeof(CheckpointEntry) + key.size() + 8 * it->value().size()));
    CheckpointEntry e;
    e.name = key;
    Status parsed = ParseEntry(AsView(it->value()), index->shards, &e);
    // A bad entry is damage, whatever error code the parser returned: the caller has no argument to
    // fix.
    if (!parsed.ok()) return DataLoss("tensor '", Shown(e.name), "': ", Message(parsed));
    index->entries.push_back(std::move(e));
  }
  return it->status().ok() ? Status() : TableError(source, it->status());
}

}  // namespace

const CheckpointEntry* CheckpointIndex::Find(std::string_view name) const {
  auto it = std::lower_bound(entries.begin(), entries.end(), name, [](const CheckpointEntry& e, std::string_view n) { return e.name < n; });
  return it != entries.end() && it->name == name ? &*it : nullptr;
}

std::string OfCheckpoint(std::string_view prefix) { return StrCat("checkpoint '", prefix, "':"); }

std::string ShardPath(std::string_view prefix, int32_t shard, int32_t shards) {
  char tail[40];
  std::snprintf(tail, sizeof(tail), ".data-%05d-of-%05d", int(shard), int(shards));
  return StrCat(prefix, std::string_view(tail));
}

std::string IndexPath(std::string_view prefix) { return StrCat(prefix, ".index"); }

StatusOr<CheckpointIndex> ReadCheckpointIndex(const ReadableFile& file, const std::string& path) {
  CheckpointIndex index;
  Status s;
  try {
    s = ReadTable(file, &index);
  } catch (const std::bad_alloc&) {
    // A block with a correct checksum may still claim any size.
    s = ResourceExhausted("a block of the table claims more memory than there is");
  }
  if (!s.ok()) return Prefix(s, StrCat("checkpoint index '", path, "':"));
  return index;
}

Status WriteCheckpointIndex(const CheckpointIndex& index, WritableFile* file) {
  TableSink sink(file);
  leveldb::Options options;
  // Same options as TensorFlow's writer, so that the same tensors make the same file.
  options.compression = leveldb::kNoCompression;
  options.block_size = 256u << 10;
  leveldb::TableBuilder table(options, &sink);
  proto::BundleHeaderProto header;
  header.set_num_shards(index.shards);
  header.mutable_version()->set_producer(kVersion);
  table.Add("", header.SerializeAsString());
  for (const CheckpointEntry& e : index.entries) {
    proto::BundleEntryProto p;
    p.set_dtype(proto::DataType(e.dtype));
    ShapeToProto(e.shape, p.mutable_shape());
    p.set_shard_id(e.shard);
    p.set_offset(int64_t(e.offset));
    p.set_size(int64_t(e.size));
    p.set_crc32c(e.crc);
    for (const CheckpointPiece& piece : e.pieces) PieceToProto(piece, p.add_slices());
    table.Add(e.name, p.SerializeAsString());
  }
  const leveldb::Status s = table.Finish();
  RETURN_IF_ERROR(sink.failure());
  return s.ok() ? Status() : Internal("cannot build the checkpoint index: ", s.ToString());
}

}  // namespace thalweg
