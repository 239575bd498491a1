#include "state.h"

#include <cstring>

namespace thalweg::data {
namespace {

constexpr uint64_t kMaxRank = 254, kMaxComponents = 1 << 16;
constexpr int kMaxDepth = 8;  // of datasets in elements of datasets

enum Kind : uint64_t { kNoDataset = 0, kList = 1 };

}  // namespace

void StateWriter::Number(uint64_t n) {
  char b[8];
  for (int i = 0; i < 8; ++i) b[i] = char(n >> 8 * i);
  bytes_.append(b, 8);
}

void StateWriter::Text(std::string_view s) {
  Number(s.size());
  bytes_.append(s);
}

void StateWriter::Variant(const tw_view& v, uint64_t i) {
  const void* object = nullptr;
  tw_status* s = tw::variants(host_).get(host_, &v, i, &tw::variant_type<DatasetObject>, &object);
  const DatasetPtr dataset = s ? nullptr : static_cast<const DatasetObject*>(object)->dataset;
  if (s) host_->status->release(s);
  const std::vector<Element>* elements = dataset ? dataset->Elements() : nullptr;
  if (!elements) {
    Fail(TW_UNIMPLEMENTED, "the position holds an element with " +
                               (dataset ? "a " + dataset->name : std::string("a variant that is no dataset")) +
                               ", which has no bytes; map it to tensors before a shuffle or another op that holds elements");
  }
  Number(kList);
  Number(dataset->types.size());
  for (uint32_t t : dataset->types) Number(t);
  Elements(*elements);
}

void StateWriter::Value(const Ref& value) {
  const tw_view& v = value.view();
  Number(v.dtype);
  Number(uint64_t(v.rank));
  for (int32_t k = 0; k < v.rank; ++k) Number(uint64_t(v.dims[k]));
  if (v.dtype == TW_STRING) {
    const auto* s = static_cast<const tw_string*>(v.data);
    for (uint64_t i = 0; i < v.count; ++i) Text({s[i].data, s[i].size});
  } else if (v.dtype == TW_VARIANT) {
    for (uint64_t i = 0; i < v.count; ++i) Variant(v, i);
  } else if (v.dtype == TW_RESOURCE) {
    Fail(TW_UNIMPLEMENTED, "the position holds an element with a resource, which has no bytes");
  } else {
    bytes_.append(static_cast<const char*>(v.data), v.bytes);
  }
}

void StateWriter::Values(const Element& e) {
  Number(e.size());
  for (const Ref& t : e) Value(t);
}

void StateWriter::Elements(const std::vector<Element>& elements) {
  Number(elements.size());
  for (const Element& e : elements) Values(e);
}

void StateReader::Damaged() { Fail(TW_DATA_LOSS, "these bytes are no position of this dataset"); }

uint64_t StateReader::Number(uint64_t most) {
  if (bytes_.size() < 8) Damaged();
  uint64_t n = 0;
  for (int i = 0; i < 8; ++i) n |= uint64_t(static_cast<unsigned char>(bytes_[size_t(i)])) << 8 * i;
  bytes_.remove_prefix(8);
  if (n > most) Damaged();
  return n;
}

std::string_view StateReader::Text() {
  const uint64_t n = Number(bytes_.size());
  if (n > bytes_.size()) Damaged();
  const std::string_view s = bytes_.substr(0, n);
  bytes_.remove_prefix(n);
  return s;
}

Ref StateReader::Value(Call& c, int depth) {
  if (depth > kMaxDepth) Damaged();
  const auto dtype = uint32_t(Number(TW_UINT2));
  if (dtype == TW_INVALID_TYPE || dtype == TW_RESOURCE) Damaged();
  std::vector<int64_t> dims(Number(kMaxRank));
  const bool text = dtype == TW_STRING || dtype == TW_VARIANT;
  const uint64_t each = text ? 8 : ElementBytes(dtype);  // a string has at least its length here
  uint64_t count = 1;
  for (int64_t& d : dims) {
    d = int64_t(Number(INT64_MAX));
    if (d > 0 && count > UINT64_MAX / uint64_t(d)) Damaged();
    count *= uint64_t(d);
  }
  if (count > bytes_.size() / each) Damaged();  // so memory grows only with the bytes that are there
  Ref t = c.Make(dtype, dims);
  if (dtype == TW_STRING) {
    for (uint64_t i = 0; i < count; ++i) {
      const std::string_view s = Text();
      tw::check(c.host()->tensor->set_string(t.get(), i, s.data(), s.size()));
    }
  } else if (dtype == TW_VARIANT) {
    for (uint64_t i = 0; i < count; ++i) {
      if (Number(kList) != kList) Damaged();
      std::vector<uint32_t> types(Number(kMaxComponents));
      for (uint32_t& type : types) type = uint32_t(Number(TW_UINT2));
      DatasetPtr list = ListOf(Elements(c, types, depth + 1), types);
      tw::put(c.f.f, &t.view(), i, std::make_unique<DatasetObject>(DatasetObject{std::move(list)}));
    }
  } else if (count > 0) {
    std::memcpy(t.view().data, bytes_.data(), count * each);
    if (dtype == TW_BOOL) {
      auto* b = static_cast<unsigned char*>(t.view().data);
      for (uint64_t i = 0; i < count; ++i) b[i] = b[i] != 0;
    }
    bytes_.remove_prefix(count * each);
  }
  return t;
}

Element StateReader::Values(Call& c, const std::vector<uint32_t>& types, int depth) {
  Element e(Number(kMaxComponents));
  if (e.size() != types.size()) Damaged();
  for (size_t k = 0; k < e.size(); ++k) {
    e[k] = Value(c, depth);
    if (e[k].view().dtype != types[k]) Damaged();
  }
  return e;
}

std::vector<Element> StateReader::Elements(Call& c, const std::vector<uint32_t>& types, int depth) {
  const uint64_t n = Number(bytes_.size() / 8);  // an element has at least its number of components
  std::vector<Element> elements;
  for (uint64_t i = 0; i < n; ++i) elements.push_back(Values(c, types, depth));
  return elements;
}

}  // namespace thalweg::data
