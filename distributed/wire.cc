#include "distributed/wire.h"

#include <bit>
#include <memory>

#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/proto/tensor_proto.h"

namespace thalweg::distributed {
namespace {

static_assert(std::endian::native == std::endian::little);

bool IsPlain(uint32_t dtype) { return dtype != TW_STRING && dtype != TW_RESOURCE && dtype != TW_VARIANT && DTypeBytes(dtype) > 0; }

Status CannotTravel(uint32_t dtype) {
  return Unimplemented("a value of type ", DTypeName(dtype), " cannot leave its task; place what makes it and what takes it together");
}

}  // namespace

Status WireReader::End(std::string_view what) const {
  if (!ok_) return Bad(StrCat(what, " is cut short"));
  return rest_.empty() ? Status() : InvalidArgument(what, " has ", rest_.size(), " bytes too many");
}

Payload Payload::Of(std::string text) {
  auto owner = std::make_shared<const std::string>(std::move(text));
  return {owner->data(), owner->size(), owner};
}

Payload Payload::PaidBy(Meter paid) && {
  if (!paid.pays()) return std::move(*this);
  struct Paid {
    Meter meter;
    std::shared_ptr<const void> owner;  // declared last, so destroyed first
  };
  return {data, bytes, std::make_shared<const Paid>(Paid{std::move(paid), std::move(owner)}), true};
}

void PutTensorHead(const Tensor& t, WireWriter* to) {
  to->Number(uint32_t(t.dtype()));
  to->Number(uint32_t(t.rank()));
  for (int32_t i = 0; i < t.rank(); ++i) to->Number(t.dim(i));
}

TensorHead GetTensorHead(WireReader* from) {
  TensorHead head;
  head.dtype = from->Number<uint32_t>();
  const uint32_t rank = from->Room(&head.dims, sizeof(int64_t));
  for (uint32_t i = 0; i < rank; ++i) head.dims.push_back(from->Number<int64_t>());
  return head;
}

StatusOr<Payload> TensorBody(const Tensor& t) {
  if (IsPlain(t.dtype())) return Payload{t.data(), t.bytes(), std::make_shared<const Tensor>(t), true};
  if (t.dtype() != TW_STRING) return CannotTravel(t.dtype());
  WireWriter w;
  w.Reserve(WireBytes(t));
  for (uint64_t i = 0; i < t.count(); ++i) {
    if (t.str(i).size() > UINT32_MAX) return ResourceExhausted("a string of ", t.str(i).size(), " bytes is too long to be sent");
    w.Text(t.str(i));
  }
  return Payload::Of(w.Take());
}

Status CheckTensorHead(const TensorHead& head, uint64_t bytes) {
  if (!IsPlain(head.dtype) && head.dtype != TW_STRING) {
    return InvalidArgument("a tensor that was sent has type number ", head.dtype, ", which cannot be sent");
  }
  if (head.dims.size() > size_t(kMaxRank)) return InvalidArgument("a tensor that was sent has rank ", head.dims.size());
  const auto rank = int32_t(head.dims.size());
  ASSIGN_OR_RETURN(const int64_t count, CountElements(head.dims.data(), rank));
  if (head.dtype == TW_STRING) {
    if (uint64_t(count) <= bytes / sizeof(uint32_t)) return Status();
    return InvalidArgument("a tensor that was sent has ", count, " strings in ", bytes, " bytes");
  }
  ASSIGN_OR_RETURN(const int64_t want, CountBytes(head.dims.data(), rank, head.dtype));
  if (uint64_t(want) == bytes) return Status();
  return InvalidArgument("a tensor that was sent, ", DTypeName(head.dtype), ShapeText(head.dims.data(), rank), ", has ", bytes,
                         " bytes and not ", want);
}

StatusOr<Tensor> MakeTensor(const TensorHead& head, MemoryBudget* budget) {
  return Tensor::Make(head.dtype, head.dims.data(), int32_t(head.dims.size()), nullptr, budget);
}

StatusOr<Tensor> TensorFrom(const TensorHead& head, std::string_view body, MemoryBudget* budget) {
  RETURN_IF_ERROR(CheckTensorHead(head, body.size()));
  ASSIGN_OR_RETURN(Tensor t, MakeTensor(head, budget));
  if (head.dtype != TW_STRING) {
    if (!body.empty()) std::memcpy(t.data(), body.data(), body.size());
    RETURN_IF_ERROR(CheckElements(t));
    return t;
  }
  WireReader r(body);
  for (uint64_t i = 0; i < t.count(); ++i) {
    const std::string_view text = r.Text();
    if (!r.ok()) break;
    RETURN_IF_ERROR(t.SetString(i, text));
  }
  RETURN_IF_ERROR(r.End("a tensor of strings"));
  return t;
}

Status PutTensor(const Tensor& t, WireWriter* to) {
  ASSIGN_OR_RETURN(const Payload body, TensorBody(t));
  PutTensorHead(t, to);
  to->Number(body.bytes);
  if (body.bytes > 0) to->Raw(body.data, size_t(body.bytes));
  return Status();
}

uint64_t WireBytes(const Tensor& t) {
  uint64_t bytes = 2 * sizeof(uint32_t) + uint64_t(t.rank()) * sizeof(int64_t) + sizeof(uint64_t);
  if (t.dtype() != TW_STRING) return bytes + t.bytes();
  for (uint64_t i = 0; i < t.count(); ++i) bytes += sizeof(uint32_t) + t.str(i).size();
  return bytes;
}

StatusOr<Tensor> GetTensor(WireReader* from, MemoryBudget* budget) {
  const TensorHead head = GetTensorHead(from);
  const std::string_view bytes = from->Raw(from->Number<uint64_t>());
  if (!from->ok()) return from->Bad("a tensor is cut short");
  return TensorFrom(head, bytes, budget);
}

Status PutTensors(const Tensor* tensors, size_t n, WireWriter* to) {
  to->Number(uint32_t(n));
  for (size_t i = 0; i < n; ++i) RETURN_IF_ERROR(PutTensor(tensors[i], to));
  return Status();
}

StatusOr<std::vector<Tensor>> GetTensors(std::string_view body, MemoryBudget* budget) {
  WireReader r(body);
  std::vector<Tensor> all;
  const uint32_t n = r.Room(&all, 16);
  for (uint32_t i = 0; i < n; ++i) {
    ASSIGN_OR_RETURN(Tensor t, GetTensor(&r, budget));
    all.push_back(std::move(t));
  }
  RETURN_IF_ERROR(r.End("a list of tensors"));
  return all;
}

}  // namespace thalweg::distributed
