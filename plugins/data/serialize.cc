// SerializeTensor and ParseTensor; SerializeSparse, SerializeManySparse, DeserializeSparse and
// DeserializeManySparse. A serialized sparse tensor is three elements, its places, its values and its
// sizes, each the bytes of a tensor or a variant that holds a tensor.
#include <algorithm>
#include <cstring>
#include <optional>

#include "feature_tensors.h"
#include "register.h"
#include "rows.h"
#include "tensor_bytes.h"

namespace thalweg::data {
namespace {

constexpr int64_t kParts = 3;

// The object behind a variant of a serialized sparse tensor.
struct HeldTensor {
  Ref tensor;
  static constexpr std::string_view variant_name = "org.thalweg.tensor";
  uint64_t bytes() const { return sizeof *this; }
};

void SerializeTensor(tw::Frame f, tw::In<tw::Any> tensor, tw::Out<tw_string> serialized) {
  tw::TempString bytes(f);
  AppendTensor(TensorPart::Of(*tensor.v), false, &bytes);
  Allocate(serialized, {});
  serialized.set(0, bytes);
}

void ParseTensor(tw::Frame f, tw::In<tw_string> serialized, tw::Out<tw::Any> output) {
  if (serialized.rank() != 0) Invalid("'serialized' is " + DimsText(*serialized.v) + "; it must be a scalar, the bytes of one tensor");
  const TensorBytes tensor(View(serialized[0]), "'serialized'");
  const uint32_t type = output.v()->dtype;
  if (tensor.dtype() != type) Invalid("'serialized' holds " + tw::dtype_text(tensor.dtype()) + ", but out_type is " + tw::dtype_text(type));
  Allocate(output, tensor.dims());
  tensor.CopyTo(f.f->host, *output.v(), 0);
}

// ---- Writing sparse tensors ----

void WantSparseParts(const tw::In<int64_t>& indices, const tw::In<tw::Any>& values, const tw::In<int64_t>& shape) {
  if (indices.rank() != 2 || values.rank() != 1 || shape.rank() != 1 || indices.dim(0) != values.dim(0) || indices.dim(1) != shape.dim(0))
    Invalid("sparse_indices is " + DimsText(*indices.v) + ", sparse_values " + DimsText(*values.v) + " and sparse_shape " +
            DimsText(*shape.v) + "; give a row and a value for each element, and a column and a size for each axis");
  for (uint64_t i = 0; i < shape.size(); ++i)
    if (shape[i] < 0) Invalid("sparse_shape[" + std::to_string(i) + "] is " + std::to_string(shape[i]) + "; sizes must not be negative");
  if (values.v->dtype == TW_RESOURCE || values.v->dtype == TW_VARIANT)
    Fail(TW_UNIMPLEMENTED, "sparse_values of type " + tw::dtype_text(values.v->dtype) + " have no bytes; serialize numbers or texts");
}

// Writes element i of the output: the bytes of a tensor, or a variant that holds a copy of it.
void PutPart(const Call& c, const TensorPart& part, const tw::Out<tw::Any>& out, uint64_t i) {
  if (out.v()->dtype == TW_STRING) {
    tw::TempString bytes(c.f);
    AppendTensor(part, true, &bytes);
    return out.set(i, bytes);
  }
  const Ref copy = c.Make(part.dtype, {part.dims, part.dims + part.rank});
  tw_view from = copy.view();
  from.data = const_cast<void*>(part.data);
  from.offset = 0;
  CopyInto(c, from, copy, 0);
  tw::put(c.f.f, out.v(), i, std::make_unique<HeldTensor>(HeldTensor{copy}));
}

void SerializeSparse(tw::Frame f, tw::In<int64_t> indices, tw::In<tw::Any> values, tw::In<int64_t> shape, tw::Out<tw::Any> out) {
  WantSparseParts(indices, values, shape);
  Functions functions;
  const Call c(f, &functions);
  Allocate(out, {kParts});
  PutPart(c, TensorPart::Of(*indices.v), out, 0);
  PutPart(c, TensorPart::Of(*values.v), out, 1);
  PutPart(c, TensorPart::Of(*shape.v), out, 2);
}

void SerializeManySparse(tw::Frame f, tw::In<int64_t> indices, tw::In<tw::Any> values, tw::In<int64_t> shape, tw::Out<tw::Any> out) {
  WantSparseParts(indices, values, shape);
  const int64_t rank = shape.dim(0), n = values.dim(0), inner = rank - 1;
  if (rank < 2) Invalid("the sparse tensor has " + std::to_string(rank) + " axes; it needs one for the batch and at least one more");
  const int64_t rows = shape[0];
  Functions functions;
  const Call c(f, &functions);
  Allocate(out, {rows, kParts});
  const uint64_t each = std::max<uint64_t>(ElementBytes(values.v->dtype), values.v->dtype == TW_STRING ? sizeof(tw_string) : 1);
  tw::TempVector<int64_t> places(f);
  int64_t at = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t first = at;
    places.clear();
    for (; at < n && indices[uint64_t(at * rank)] == row; ++at) {
      const int64_t* place = indices.data() + at * rank;
      places.insert(places.end(), place + 1, place + rank);
    }
    const int64_t dims[] = {at - first, inner};
    PutPart(c, {TW_INT64, dims, 2, places.data(), places.size()}, out, uint64_t(row * kParts));
    PutPart(c, {values.v->dtype, dims, 1, values.data() + uint64_t(first) * each, uint64_t(at - first)}, out, uint64_t(row * kParts + 1));
    PutPart(c, {TW_INT64, &inner, 1, shape.data() + 1, uint64_t(inner)}, out, uint64_t(row * kParts + 2));
  }
  if (at < n)
    Invalid("sparse_indices[" + std::to_string(at) + ", 0] is " + std::to_string(indices[uint64_t(at * rank)]) +
            "; the places must be sorted by the first axis and in [0, " + std::to_string(rows) + ") there");
}

// ---- Reading sparse tensors ----

// One part of a serialized sparse tensor: bytes, or the tensor that a variant holds.
class SparsePart {
 public:
  SparsePart(const tw_frame* f, const tw_view& serialized, uint64_t i, const char* part)
      : what_("the " + std::string(part) + " of sparse tensor " + std::to_string(i / kParts)) {
    if (serialized.dtype == TW_STRING) {
      const auto* texts = reinterpret_cast<const tw_string*>(static_cast<const char*>(serialized.data) + serialized.offset);
      bytes_.emplace(View(texts[i]), what_);
      // Elements that the bytes leave out would let a few bytes take any amount of memory.
      if (uint64_t(bytes_->count()) > texts[i].size)
        Invalid(what_ + " has " + std::to_string(bytes_->count()) + " elements in " + std::to_string(texts[i].size) + " bytes");
    } else {
      held_ = &tw::get<HeldTensor>(f, &serialized, i).tensor.view();
    }
  }
  uint32_t dtype() const { return bytes_ ? bytes_->dtype() : held_->dtype; }
  std::vector<int64_t> dims() const { return bytes_ ? bytes_->dims() : DimsOf(*held_); }
  std::string Text() const { return what_ + " is " + tw::dtype_text(dtype()) + " " + tw::text(dims().data(), int32_t(dims().size())); }

  // Writes the elements to those of `to`, of the same type, from number `at` on.
  void CopyTo(const tw_host* host, const tw_view& to, uint64_t at) const {
    if (bytes_) return bytes_->CopyTo(host, to, at);
    if (at + held_->count > to.count) Fail(TW_INTERNAL, what_ + " has no room");
    if (held_->dtype == TW_STRING) {
      const auto* texts = static_cast<const tw_string*>(held_->data);
      for (uint64_t i = 0; i < held_->count; ++i) tw::check(host->tensor->set_string(to.tensor, at + i, texts[i].data, texts[i].size));
    } else if (held_->count > 0) {
      const uint64_t each = ElementBytes(held_->dtype);
      std::memcpy(static_cast<char*>(to.data) + to.offset + at * each, held_->data, held_->count * each);
    }
  }
  tw::TempVector<int64_t> Numbers(tw::Frame f) const {
    const std::vector<int64_t> size = dims();
    int64_t n = 1;
    for (int64_t s : size) n *= s;  // the tensor exists, or its bytes were checked
    tw::TempVector<int64_t> numbers(size_t(n), 0, f);
    tw_view to{};
    to.data = numbers.data();
    to.dtype = TW_INT64;
    to.count = numbers.size();
    CopyTo(f.f->host, to, 0);
    return numbers;
  }

 private:
  const std::string what_;
  std::optional<TensorBytes> bytes_;
  const tw_view* held_ = nullptr;
};

// A serialized sparse tensor, checked as far as types and shapes go.
struct SerializedSparse {
  SparsePart indices, values, shape;
  int64_t count, rank;

  SerializedSparse(const tw_frame* f, const tw_view& serialized, uint64_t number, uint32_t dtype)
      : indices(f, serialized, number * kParts, "places"),
        values(f, serialized, number * kParts + 1, "values"),
        shape(f, serialized, number * kParts + 2, "sizes") {
    if (indices.dtype() != TW_INT64 || indices.dims().size() != 2) Invalid(indices.Text() + "; it must be a matrix of int64");
    if (values.dtype() != dtype || values.dims().size() != 1)
      Invalid(values.Text() + "; it must be a vector of " + tw::dtype_text(dtype) + ", the dtype of the node");
    if (shape.dtype() != TW_INT64 || shape.dims().size() != 1) Invalid(shape.Text() + "; it must be a vector of int64");
    count = indices.dims()[0];
    rank = indices.dims()[1];
    if (values.dims()[0] != count || shape.dims()[0] != rank)
      Invalid(indices.Text() + ", " + values.Text() + " and " + shape.Text() +
              "; there must be a row and a value for each element, and a column and a size for each axis");
  }
};

// Joins serialized sparse tensors along the axes `lead`, which come before theirs.
void JoinSparse(tw::Frame f, const tw_view& serialized, const std::vector<int64_t>& lead, const tw::Out<int64_t>& out_indices,
                const tw::Out<tw::Any>& out_values, const tw::Out<int64_t>& out_shape) {
  const uint64_t n = serialized.count / kParts;
  const uint32_t dtype = out_values.v()->dtype;
  int64_t total = 0, rank = -1;
  for (uint64_t i = 0; i < n; ++i) {
    const SerializedSparse sparse(f.f, serialized, i, dtype);
    if (rank >= 0 && sparse.rank != rank)
      Invalid("sparse tensor " + std::to_string(i) + " has " + std::to_string(sparse.rank) + " axes and those before it have " +
              std::to_string(rank) + "; they must agree");
    rank = sparse.rank;
    if (__builtin_add_overflow(total, sparse.count, &total)) Invalid("the sparse tensors have more than 2^63-1 elements");
  }
  const int64_t out_rank = int64_t(lead.size()) + rank;
  Allocate(out_indices, {total, out_rank});
  Allocate(out_values, {total});
  Allocate(out_shape, {out_rank});
  std::copy(lead.begin(), lead.end(), out_shape.data());
  std::fill_n(out_shape.data() + lead.size(), rank, 0);
  int64_t* to = out_indices.data();
  uint64_t at = 0;
  for (uint64_t i = 0; i < n; ++i) {
    const SerializedSparse sparse(f.f, serialized, i, dtype);
    if (sparse.rank != rank || at + uint64_t(sparse.count) > uint64_t(total))
      Fail(TW_INTERNAL, "the serialized bytes changed while they were read");
    const tw::TempVector<int64_t> places = sparse.indices.Numbers(f), sizes = sparse.shape.Numbers(f);
    for (int64_t axis = 0; axis < rank; ++axis) {
      int64_t& size = out_shape[lead.size() + size_t(axis)];
      if (sizes[size_t(axis)] < 0)
        Invalid("sparse tensor " + std::to_string(i) + " has the size " + std::to_string(sizes[size_t(axis)]) + " along axis " +
                std::to_string(axis) + "; sizes must not be negative");
      size = std::max(size, sizes[size_t(axis)]);
    }
    for (int64_t k = 0; k < sparse.count; ++k) {
      uint64_t rest = i;
      for (size_t axis = lead.size(); axis-- > 0; rest /= uint64_t(lead[axis])) to[axis] = int64_t(rest % uint64_t(lead[axis]));
      to += lead.size();
      for (int64_t axis = 0; axis < rank; ++axis) {
        const int64_t place = places[size_t(k * rank + axis)];
        if (place < 0 || place >= sizes[size_t(axis)])
          Invalid("the places of sparse tensor " + std::to_string(i) + " at [" + std::to_string(k) + ", " + std::to_string(axis) +
                  "] are " + std::to_string(place) + "; it must be in [0, " + std::to_string(sizes[size_t(axis)]) + ")");
        *to++ = place;
      }
    }
    sparse.values.CopyTo(f.f->host, *out_values.v(), at);
    at += uint64_t(sparse.count);
  }
}

template <bool kMany>
void DeserializeSparse(tw::Frame f, tw::In<tw::Any> serialized, tw::Out<int64_t> indices, tw::Out<tw::Any> values, tw::Out<int64_t> shape) {
  if (serialized.rank() < 1 || (kMany && serialized.rank() != 2) || serialized.dim(-1) != kParts)
    Invalid("'serialized_sparse' is " + DimsText(*serialized.v) + "; " +
            (kMany ? "it must be a matrix of 3 columns" : "its last axis must have the size 3"));
  if (serialized.size() == 0) Invalid("'serialized_sparse' is " + DimsText(*serialized.v) + "; there must be at least one sparse tensor");
  JoinSparse(f, *serialized.v, {serialized.dims(), serialized.dims() + serialized.rank() - 1}, indices, values, shape);
}

}  // namespace

void register_serialize(tw::Plugin& p) {
  p.kernel<SerializeTensor>("SerializeTensor @CPU");
  p.kernel<ParseTensor>("ParseTensor @CPU");
  p.kernel<SerializeSparse>("SerializeSparse @CPU");
  p.kernel<SerializeManySparse>("SerializeManySparse @CPU");
  p.kernel<DeserializeSparse<false>>("DeserializeSparse @CPU");
  p.kernel<DeserializeSparse<true>>("DeserializeManySparse @CPU");
}

}  // namespace thalweg::data
