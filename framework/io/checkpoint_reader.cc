#include <algorithm>
#include <tuple>

#include "framework/base/checked.h"
#include "framework/base/crc32c.h"
#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/io/checkpoint.h"
#include "framework/io/checkpoint_pieces.h"
#include "framework/io/checkpoint_strings.h"
#include "framework/proto/tensor_proto.h"
#include "framework/tensor/payer.h"

namespace thalweg {
namespace {

// Makes a tensor in host memory, charged to the payer of this thread.
StatusOr<Tensor> MakePaid(uint32_t dtype, const Shape& shape) {
  return Tensor::Make(dtype, shape.dims().data(), shape.rank(), nullptr, PayerOfThread());
}

std::string NameOf(const CheckpointEntry& e) {
  // The key of a piece has the name between two NULs.
  return e.is_piece() ? StrCat("a piece of tensor '", Shown(e.name.c_str() + 1), "'") : StrCat("tensor '", Shown(e.name), "'");
}

Status CheckCrc(const CheckpointEntry& e, uint32_t crc) {
  if (MaskCrc(crc) == e.crc) return Status();
  return DataLoss("the checksum of bytes ", e.offset, " + ", e.size, " is 0x", Hex(MaskCrc(crc)), ", the index says 0x", Hex(e.crc),
                  "; the file is damaged, use another checkpoint");
}

}  // namespace

StatusOr<std::unique_ptr<CheckpointReader>> CheckpointReader::Open(std::string_view prefix, FileSystem& files) {
  constexpr int kAttempts = 20;
  const std::string index_path = IndexPath(prefix);
  Status s;
  // A concurrent save may have removed or replaced the data files of the index that was read. If
  // the index is still the same once the data files are open, they belong to it.
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    auto index_file = files.Open(index_path);
    if (absl::IsNotFound(index_file.status())) {
      return NotFound(OfCheckpoint(prefix), " there is no file '", index_path, "'; give the prefix that was saved to, without '.index'");
    }
    if (!index_file.ok()) return Prefix(index_file.status(), OfCheckpoint(prefix));
    std::unique_ptr<CheckpointReader> r(new CheckpointReader(std::string(prefix)));
    ASSIGN_OR_RETURN(r->index_, ReadCheckpointIndex(**index_file, index_path));
    s = r->OpenShards(files);
    ASSIGN_OR_RETURN(const bool current, (*index_file)->IsAt(index_path));
    if (!current) continue;
    if (s.ok()) return r;
    return absl::IsNotFound(s) ? DataLoss(Message(s), "; the checkpoint is not complete") : s;
  }
  return Error(absl::StatusCode::kUnavailable, OfCheckpoint(prefix), " it is being saved over again and again; try later");
}

std::string CheckpointReader::title(const CheckpointEntry& e) const {
  const std::string what = NameOf(e);
  if (!e.pieces.empty()) return StrCat(OfCheckpoint(prefix_), " ", what, ":");
  return StrCat(OfCheckpoint(prefix_), " ", what, " in '", ShardPath(prefix_, e.shard, index_.shards), "':");
}

Status CheckpointReader::OpenShards(FileSystem& files) {
  for (const CheckpointEntry& e : index_.entries) {
    if (!e.pieces.empty()) continue;
    std::unique_ptr<ReadableFile>& shard = shards_[e.shard];
    if (!shard) {
      auto file = files.Open(ShardPath(prefix_, e.shard, index_.shards));
      if (!file.ok()) return Prefix(file.status(), StrCat(OfCheckpoint(prefix_), " tensor '", Shown(e.name), "':"));
      shard = *std::move(file);
    }
    uint64_t end;
    if (__builtin_add_overflow(e.offset, e.size, &end) || end > shard->size()) {
      return DataLoss(title(e), " it lies at bytes ", e.offset, " + ", e.size, ", but the file has ", shard->size(), "; the file is torn");
    }
  }
  RETURN_IF_ERROR(CheckShards());
  return CheckExtents();
}

// If one file had the names of many shards, it would be read as many times.
Status CheckpointReader::CheckShards() const {
  std::map<std::string, int32_t> known;
  for (const auto& [i, shard] : shards_) {
    const std::string identity = shard->identity();
    const auto [first, is_new] = identity.empty() ? std::pair(known.end(), true) : known.emplace(identity, i);
    if (is_new) continue;
    return DataLoss(OfCheckpoint(prefix_), " '", ShardPath(prefix_, first->second, index_.shards), "' and '",
                    ShardPath(prefix_, i, index_.shards), "' are one file; the checkpoint is damaged, copy it anew or use another one");
  }
  return Status();
}

// Checks that no two tensors share bytes, so tensors never take more bytes than the files hold.
Status CheckpointReader::CheckExtents() const {
  std::vector<const CheckpointEntry*> all;
  for (const CheckpointEntry& e : index_.entries) {
    if (e.pieces.empty() && e.size > 0) all.push_back(&e);
  }
  std::sort(all.begin(), all.end(), [](const CheckpointEntry* a, const CheckpointEntry* b) {
    return std::tie(a->shard, a->offset, a->size) < std::tie(b->shard, b->offset, b->size);
  });
  for (size_t i = 1; i < all.size(); ++i) {
    const CheckpointEntry &a = *all[i - 1], &b = *all[i];
    if (a.shard != b.shard || b.offset >= a.offset + a.size) continue;
    return DataLoss(title(b), " it lies at bytes ", b.offset, " + ", b.size, ", but ", NameOf(a), " lies at bytes ", a.offset, " + ",
                    a.size, " of the same file; no two tensors share bytes: the checkpoint is damaged, use another one");
  }
  return Status();
}

std::vector<const CheckpointEntry*> CheckpointReader::entries() const {
  std::vector<const CheckpointEntry*> all;
  for (const CheckpointEntry& e : index_.entries) {
    if (!e.is_piece()) all.push_back(&e);
  }
  return all;
}

const CheckpointEntry* CheckpointReader::Find(std::string_view name) const {
  const CheckpointEntry* e = index_.Find(name);
  return e && !e->is_piece() ? e : nullptr;
}

uint64_t CheckpointReader::BytesOf(const CheckpointEntry& entry) const {
  uint64_t bytes = entry.size;
  for (const CheckpointPiece& piece : entry.pieces) {
    const CheckpointEntry* part = index_.Find(PieceKey(entry.name, piece));
    if (part && part->pieces.empty()) bytes += part->size;
  }
  return bytes;
}

StatusOr<Tensor> CheckpointReader::ReadStrings(const CheckpointEntry& e) const {
  const int64_t size = int64_t(e.size);
  ASSIGN_OR_RETURN(Tensor raw, Tensor::Make(TW_UINT8, &size, 1, nullptr, PayerOfThread()));
  RETURN_IF_ERROR(shards_.at(e.shard)->ReadAt(e.offset, raw.data(), e.size));
  ASSIGN_OR_RETURN(Tensor t, MakePaid(e.dtype, e.shape));
  uint32_t crc = 0;
  RETURN_IF_ERROR(DecodeStrings(raw.data(), e.size, &t, &crc));
  RETURN_IF_ERROR(CheckCrc(e, crc));
  return t;
}

StatusOr<Tensor> CheckpointReader::ReadWhole(const CheckpointEntry& e) const {
  // The index was checked: e.size is the size that type and shape need, and the shard has that many
  // bytes.
  ASSIGN_OR_RETURN(Tensor t, MakePaid(e.dtype, e.shape));
  char* to = static_cast<char*>(t.data());
  uint32_t crc = 0;
  for (uint64_t done = 0, n; done < e.size; done += n) {
    n = std::min(kChunkBytes, e.size - done);
    RETURN_IF_ERROR(shards_.at(e.shard)->ReadAt(e.offset + done, to + done, n));
    crc = ExtendCrc32c(crc, to + done, n);
  }
  RETURN_IF_ERROR(CheckCrc(e, crc));
  // A checksum proves that the bytes are as written, not that they are valid elements.
  if (Status s = CheckElements(t); !s.ok()) return DataLoss(Message(s));
  return t;
}

StatusOr<const CheckpointEntry*> CheckpointReader::FindPiece(const CheckpointEntry& e, const CheckpointPiece& piece) const {
  const CheckpointEntry* part = index_.Find(PieceKey(e.name, piece));
  const Shape shape = PieceShape(piece, e.shape);
  if (!part) return DataLoss("a piece of shape ", shape.text(), " is missing");
  if (!part->pieces.empty() || part->dtype != e.dtype || part->shape != shape) {
    return DataLoss("a piece is ", DTypeName(part->dtype), " of shape ", part->shape.text(), ", but must be ", DTypeName(e.dtype),
                    " of shape ", shape.text());
  }
  return part;
}

StatusOr<Tensor> CheckpointReader::ReadPieces(const CheckpointEntry& e, const CheckpointPiece& part) const {
  RETURN_IF_ERROR(CheckPieces(e.pieces, part, e.shape));
  std::vector<std::pair<const CheckpointEntry*, const CheckpointPiece*>> needed;
  CheckpointPiece common;
  for (const CheckpointPiece& piece : e.pieces) {
    if (!Intersect(piece, part, e.shape, &common)) continue;
    ASSIGN_OR_RETURN(const CheckpointEntry* found, FindPiece(e, piece));
    needed.emplace_back(found, &piece);
  }
  // Only now is it certain that the files hold all these bytes.
  ASSIGN_OR_RETURN(Tensor t, MakePaid(e.dtype, PieceShape(part, e.shape)));
  for (auto [found, piece] : needed) {
    auto read = e.dtype == TW_STRING ? ReadStrings(*found) : ReadWhole(*found);
    if (!read.ok()) return Prefix(read.status(), title(*found));
    RETURN_IF_ERROR(CopyCommon(*read, *piece, part, e.shape, &t));
  }
  return t;
}

StatusOr<const CheckpointEntry*> CheckpointReader::FindReadable(std::string_view name) const {
  const CheckpointEntry* e = Find(name);
  if (!e) return NotFound(OfCheckpoint(prefix_), " it has no tensor '", Shown(name), "'");
  const DTypeInfo* type = FindDType(e->dtype);
  if (!type || IsRef(e->dtype) || e->dtype == TW_RESOURCE || e->dtype == TW_VARIANT) {
    return Unimplemented(title(*e), " its type ", e->dtype, " (", DTypeName(e->dtype), ") cannot be read");
  }
  return e;
}

StatusOr<Tensor> CheckpointReader::Read(std::string_view name) const {
  ASSIGN_OR_RETURN(const CheckpointEntry* e, FindReadable(name));
  auto t = !e->pieces.empty() ? ReadPieces(*e, WholePiece(e->shape.rank())) : e->dtype == TW_STRING ? ReadStrings(*e) : ReadWhole(*e);
  return t.ok() ? std::move(t) : Prefix(t.status(), title(*e));
}

StatusOr<Tensor> CheckpointReader::ReadPart(std::string_view name, const CheckpointPiece& part) const {
  ASSIGN_OR_RETURN(const CheckpointEntry* e, FindReadable(name));
  if (Status s = CheckPiece(part, e->shape); !s.ok()) return Prefix(s, title(*e));
  if (!e->pieces.empty()) {
    auto t = ReadPieces(*e, part);
    return t.ok() ? std::move(t) : Prefix(t.status(), title(*e));
  }
  ASSIGN_OR_RETURN(Tensor whole, Read(name));
  if (IsWhole(part, e->shape)) return whole;
  ASSIGN_OR_RETURN(Tensor t, MakePaid(e->dtype, PieceShape(part, e->shape)));
  RETURN_IF_ERROR(CopyCommon(whole, WholePiece(e->shape.rank()), part, e->shape, &t));
  return t;
}

Status CheckpointReader::Verify(const CheckpointEntry& e) const {
  if (!e.pieces.empty()) {
    RETURN_IF_ERROR(Prefix(CheckPieces(e.pieces, WholePiece(e.shape.rank()), e.shape), title(e)));
    for (const CheckpointPiece& piece : e.pieces) {
      const CheckpointEntry* part = index_.Find(PieceKey(e.name, piece));
      if (!part || !part->pieces.empty()) return DataLoss(title(e), " a piece is missing");
      RETURN_IF_ERROR(Verify(*part));
    }
    return Status();
  }
  // The checksums of these types do not cover the bytes as stored.
  if (e.dtype == TW_VARIANT) return Unimplemented(title(e), " variants cannot be verified");
  if (e.dtype == TW_STRING) {
    auto t = ReadStrings(e);
    return Prefix(t.status(), title(e));
  }
  std::string chunk(std::min(kChunkBytes, e.size), '\0');
  uint32_t crc = 0;
  for (uint64_t done = 0, n; done < e.size; done += n) {
    n = std::min(kChunkBytes, e.size - done);
    Status s = shards_.at(e.shard)->ReadAt(e.offset + done, chunk.data(), n);
    if (!s.ok()) return Prefix(s, title(e));
    crc = ExtendCrc32c(crc, chunk.data(), n);
  }
  return Prefix(CheckCrc(e, crc), title(e));
}

Status CheckpointReader::VerifyAll() const {
  for (const CheckpointEntry& e : index_.entries) RETURN_IF_ERROR(Verify(e));
  return Status();
}

}  // namespace thalweg
