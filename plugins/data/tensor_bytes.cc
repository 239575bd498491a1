#include "tensor_bytes.h"

#include <algorithm>
#include <cstring>

#include "wire.h"

namespace thalweg::data {
namespace {

constexpr size_t kMostAxes = 254;
constexpr uint32_t kTypeField = 1, kShapeField = 2, kContentField = 4, kTextsField = 8, kSmallFloatsField = 18;

// A list of elements in a TensorProto: its field, the form of an entry, and the entries for an element.
struct ElementList {
  uint32_t field;
  Fields::Wire wire;
  uint32_t entries = 1;
};

ElementList ListOfType(uint32_t dtype) {
  switch (dtype) {
    case TW_FLOAT: return {5, Fields::kFixed32};
    case TW_DOUBLE: return {6, Fields::kFixed64};
    case TW_COMPLEX64: return {9, Fields::kFixed32, 2};
    case TW_COMPLEX128: return {12, Fields::kFixed64, 2};
    case TW_INT64: return {10, Fields::kVarint};
    case TW_BOOL: return {11, Fields::kVarint};
    case TW_HALF:
    case TW_BFLOAT16: return {13, Fields::kVarint};
    case TW_UINT32: return {16, Fields::kVarint};
    case TW_UINT64: return {17, Fields::kVarint};
    default: return {7, Fields::kVarint};
  }
}

bool IsFloat8(uint32_t dtype) { return dtype >= TW_FLOAT8_E5M2 && dtype <= TW_FLOAT8_E5M2FNUZ; }

// The bytes of an entry of a list in memory. Entries in the wire's order of bytes are stored as they
// are: all supported machines are little-endian.
uint32_t EntryBytes(uint32_t dtype, const ElementList& list) { return uint32_t(ElementBytes(dtype)) / list.entries; }

}  // namespace

void AppendTensor(const TensorPart& tensor, bool texts_as_content, tw::TempString* out) {
  if (tensor.dtype == TW_RESOURCE || tensor.dtype == TW_VARIANT)
    Fail(TW_UNIMPLEMENTED, "a tensor of type " + tw::dtype_text(tensor.dtype) + " has no bytes; serialize tensors of numbers or texts");
  PutNumber(out, kTypeField, tensor.dtype);
  tw::TempString shape(out->get_allocator());
  for (int32_t i = 0; i < tensor.rank; ++i) {
    const auto size = uint64_t(tensor.dims[i]);
    PutTag(&shape, 2, Fields::kBytes);
    PutVarint(&shape, size == 0 ? 0 : 1 + VarintBytes(size));
    if (size != 0) PutNumber(&shape, 1, size);
  }
  PutBytes(out, kShapeField, shape);
  if (tensor.count == 0) return;
  if (tensor.dtype != TW_STRING) {
    const auto* data = static_cast<const char*>(tensor.data);
    return PutBytes(out, kContentField, {data, size_t(tensor.count * ElementBytes(tensor.dtype))});
  }
  const auto* texts = static_cast<const tw_string*>(tensor.data);
  if (!texts_as_content) {
    for (uint64_t i = 0; i < tensor.count; ++i) PutBytes(out, kTextsField, {texts[i].data, size_t(texts[i].size)});
    return;
  }
  tw::TempString content(out->get_allocator());
  for (uint64_t i = 0; i < tensor.count; ++i) PutVarint(&content, texts[i].size);
  for (uint64_t i = 0; i < tensor.count; ++i) content.append(texts[i].data, size_t(texts[i].size));
  PutBytes(out, kContentField, content);
}

// ---- Reading ----

// Writes elements one after the other, no more than there is room for.
class TensorBytes::Filler {
 public:
  Filler(const tw_host* host, const tw_view& to, uint64_t at, uint64_t count)
      : host_(host), to_(to), each_(size_t(ElementBytes(to.dtype))), at_(at), end_(at + count) {
    if (end_ > to.count) Fail(TW_INTERNAL, "a serialized tensor has more elements than its place");
  }
  bool full() const { return at_ == end_; }
  uint64_t room() const { return end_ - at_; }
  void Text(std::string_view text) { tw::check(host_->tensor->set_string(to_.tensor, at_++, text.data(), text.size())); }
  // Writes whole elements.
  void Raw(std::string_view bytes) {
    std::memcpy(Place(at_), bytes.data(), bytes.size());
    at_ += bytes.size() / each_;
  }
  // Repeats the last element, or 0 if there is none, up to the end.
  void Rest(bool any, std::string_view last_text) {
    for (; to_.dtype == TW_STRING && !full();) Text(last_text);
    if (full()) return;
    if (!any) {
      std::memset(Place(at_), 0, size_t(room()) * each_);
    } else {
      for (; !full(); ++at_) std::memcpy(Place(at_), Place(at_ - 1), each_);
    }
    at_ = end_;
  }
  void MakeTruth(uint64_t first) {
    for (char *p = Place(first), *end = Place(end_); p < end; ++p) *p = *p != 0 ? 1 : 0;
  }

 private:
  char* Place(uint64_t i) const { return static_cast<char*>(to_.data) + to_.offset + i * each_; }

  const tw_host* host_;
  const tw_view& to_;
  const size_t each_;
  uint64_t at_;
  const uint64_t end_;
};

void TensorBytes::Damaged(const std::string& why) const {
  Invalid(what_ + " of " + std::to_string(bytes_.size()) + " bytes is no serialized tensor: " + why);
}

TensorBytes::TensorBytes(std::string_view bytes, std::string what) : bytes_(bytes), what_(std::move(what)) {
  Fields f(bytes);
  while (f.Next()) {
    if (f.number == kTypeField && f.wire == Fields::kVarint) dtype_ = uint32_t(std::min<uint64_t>(f.value, UINT32_MAX));
    if (f.number == kShapeField && f.wire == Fields::kBytes) ReadShape(f.bytes);
    if (f.number == kContentField && f.wire == Fields::kBytes) content_ = f.bytes;
  }
  if (!f.good()) Damaged("its fields are damaged");
  if (dtype_ == TW_INVALID_TYPE || dtype_ >= std::size(tw::dtype_names)) Damaged("it has the type " + std::to_string(dtype_));
  if (dtype_ == TW_RESOURCE || dtype_ == TW_VARIANT)
    Fail(TW_UNIMPLEMENTED, what_ + " holds a tensor of type " + tw::dtype_text(dtype_) + ", which cannot be read from bytes");
  if (unknown_rank_) Damaged("its rank is unknown");
  for (int64_t size : dims_)
    if (size < 0) Damaged("its shape is " + tw::text(dims_.data(), int32_t(dims_.size())));
  const bool empty = std::find(dims_.begin(), dims_.end(), 0) != dims_.end();
  for (size_t i = 0; i < dims_.size() && !empty; ++i)
    if (__builtin_mul_overflow(count_, dims_[i], &count_)) Damaged("its shape has more than 2^63-1 elements");
  if (empty) count_ = 0;
  const uint64_t each = ElementBytes(dtype_);
  if (!content_.empty() && each > 0 && (content_.size() % each != 0 || content_.size() / each != uint64_t(count_)))
    Damaged("its content of " + std::to_string(content_.size()) + " bytes does not fit " + std::to_string(count_) + " elements of " +
            tw::dtype_text(dtype_));
}

void TensorBytes::ReadShape(std::string_view message) {
  Fields shape(message);
  while (shape.Next()) {
    if (shape.number == 3 && shape.wire == Fields::kVarint) unknown_rank_ = shape.value != 0;
    if (shape.number != 2 || shape.wire != Fields::kBytes) continue;
    if (dims_.size() == kMostAxes) Damaged("its shape has more than " + std::to_string(kMostAxes) + " axes");
    Fields dim(shape.bytes);
    int64_t size = 0;
    while (dim.Next())
      if (dim.number == 1 && dim.wire == Fields::kVarint) size = int64_t(dim.value);
    if (!dim.good()) Damaged("its shape is damaged");
    dims_.push_back(size);
  }
  if (!shape.good()) Damaged("its shape is damaged");
}

void TensorBytes::CopyTo(const tw_host* host, const tw_view& to, uint64_t at) const {
  Filler filler(host, to, at, uint64_t(count_));
  if (count_ == 0) return;
  if (!content_.empty())
    CopyContent(&filler);
  else if (dtype_ == TW_STRING)
    CopyTexts(&filler);
  else
    CopyList(&filler);
  if (dtype_ == TW_BOOL) filler.MakeTruth(at);
}

// The content of texts is their sizes and then their bytes.
void TensorBytes::CopyContent(Filler* to) const {
  if (dtype_ != TW_STRING) return to->Raw(content_);
  std::string_view sizes = content_, texts = content_;
  uint64_t size = 0;
  for (int64_t i = 0; i < count_; ++i)
    if (!TakeVarint(&texts, &size)) Damaged("its content has fewer than " + std::to_string(count_) + " texts");
  while (!to->full()) {
    (void)TakeVarint(&sizes, &size);
    if (size > texts.size()) Damaged("its content ends inside a text");
    to->Text(texts.substr(0, size_t(size)));
    texts.remove_prefix(size_t(size));
  }
  if (!texts.empty()) Damaged("its content has " + std::to_string(texts.size()) + " bytes after the last text");
}

void TensorBytes::CopyTexts(Filler* to) const {
  Fields f(bytes_);
  std::string_view last;
  while (f.Next() && !to->full()) {
    if (f.number == kTextsField && f.wire == Fields::kBytes) to->Text(last = f.bytes);
  }
  to->Rest(true, last);
}

void TensorBytes::CopyList(Filler* to) const {
  const ElementList list = IsFloat8(dtype_) ? ElementList{kSmallFloatsField, Fields::kBytes} : ListOfType(dtype_);
  const size_t entry_bytes = EntryBytes(dtype_, list);
  char element[16];
  size_t filled = 0;
  bool any = false;
  // Adds an entry in the low bytes.
  const auto add = [&](const char* entry) {
    std::memcpy(element + filled, entry, entry_bytes);
    filled += entry_bytes;
    if (filled < entry_bytes * list.entries) return;
    filled = 0;
    any = true;
    to->Raw({element, entry_bytes * list.entries});
  };
  const auto add_number = [&](uint64_t v) {
    if (dtype_ == TW_BOOL) v = v != 0 ? 1 : 0;
    char bytes[8];
    std::memcpy(bytes, &v, sizeof v);
    add(bytes);
  };
  Fields f(bytes_);
  while (f.Next()) {
    if (f.number != list.field) continue;
    if (list.wire == Fields::kVarint && f.wire == Fields::kVarint) {
      if (!to->full()) add_number(f.value);
      continue;
    }
    const bool single = f.wire == list.wire && list.wire != Fields::kVarint, packed = f.wire == Fields::kBytes;
    if (!single && !packed) Damaged("its elements are damaged");
    std::string_view left = f.bytes;
    if (list.wire == Fields::kVarint) {
      for (uint64_t v = 0; !left.empty() && !to->full();) {
        if (!TakeVarint(&left, &v)) Damaged("its elements are damaged");
        add_number(v);
      }
      continue;
    }
    if (left.size() % entry_bytes != 0) Damaged("its elements are damaged");
    for (; !left.empty() && !to->full(); left.remove_prefix(entry_bytes)) add(left.data());
  }
  if (filled != 0) Damaged("its last complex number has no imaginary part");
  to->Rest(any, {});
}

}  // namespace thalweg::data
