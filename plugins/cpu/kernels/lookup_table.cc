#include "kernels/lookup_table.h"

#include <algorithm>
#include <cstring>

namespace thalweg::cpu {
namespace {

uint64_t Count(const std::vector<int64_t>& dims) { return uint64_t(Product(dims.data(), 0, int(dims.size()))); }

// -0 becomes 0: of each of n floats of that many bytes.
template <class Bits>
void ClearNegativeZeros(char* bytes, size_t n) {
  constexpr Bits kNegativeZero = Bits(Bits{1} << (sizeof(Bits) * 8 - 1));
  for (size_t k = 0; k < n; ++k) {
    Bits b;
    std::memcpy(&b, bytes + k * sizeof b, sizeof b);
    if (b == kNegativeZero) std::memset(bytes + k * sizeof b, 0, sizeof b);
  }
}

bool HasNegativeZero(uint32_t dtype) { return dtype == TW_FLOAT || dtype == TW_DOUBLE || dtype == TW_HALF || dtype == TW_BFLOAT16; }

void AddLength(std::string* s, uint64_t n) { s->append(reinterpret_cast<const char*>(&n), sizeof n); }

}  // namespace

void Rows::Set(size_t at, const tw_view* v, uint64_t row) {
  if (width_ > 0) {
    if (bytes_.size() < (at + 1) * width_) bytes_.resize((at + 1) * width_);
    std::memcpy(bytes_.data() + at * width_, Bytes(v) + row * width_, width_);
    return;
  }
  if (dtype_ != TW_STRING) return;  // rows of no elements
  if (texts_.size() < (at + 1) * per_row_) texts_.resize((at + 1) * per_row_);
  for (uint64_t k = 0; k < per_row_; ++k) {
    const tw_string& s = StringAt(v, row * per_row_ + k);
    texts_[at * per_row_ + k].assign(s.size ? s.data : "", s.size);
  }
}

void Rows::Get(const tw_frame* f, size_t at, const tw_view* to, uint64_t row) const {
  if (width_ > 0) {
    std::memcpy(Bytes(to) + row * width_, bytes_.data() + at * width_, width_);
    return;
  }
  for (uint64_t k = 0; dtype_ == TW_STRING && k < per_row_; ++k) {
    const std::string& s = texts_[at * per_row_ + k];
    tw::check(f->host->tensor->set_string(to->tensor, row * per_row_ + k, s.data(), s.size()));
  }
}

void Rows::Append(std::string_view bytes, std::vector<std::string> texts) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  for (std::string& s : texts) texts_.push_back(std::move(s));
}

bool Rows::Equal(size_t at, const tw_view* v, uint64_t row) const {
  if (width_ > 0) return std::memcmp(bytes_.data() + at * width_, Bytes(v) + row * width_, width_) == 0;
  for (uint64_t k = 0; dtype_ == TW_STRING && k < per_row_; ++k) {
    const tw_string& s = StringAt(v, row * per_row_ + k);
    if (texts_[at * per_row_ + k] != std::string_view(s.data, s.size)) return false;
  }
  return true;
}

void Rows::Remove(size_t at, size_t last) {
  if (width_ > 0) {
    if (at != last) std::memcpy(bytes_.data() + at * width_, bytes_.data() + last * width_, width_);
    bytes_.resize(last * width_);
  } else if (dtype_ == TW_STRING) {
    for (uint64_t k = 0; at != last && k < per_row_; ++k) texts_[at * per_row_ + k] = std::move(texts_[last * per_row_ + k]);
    texts_.resize(last * per_row_);
  }
}

void Rows::Clear() {
  bytes_.clear();
  texts_.clear();
}

LookupTable::LookupTable(About about)
    : about_(std::move(about)), per_key_(Count(about_.key_shape)), values_(about_.value_dtype, Count(about_.value_shape)) {}

// FNV-1a by words, then a finalizer in which every bit counts (SplitMix64).
size_t LookupTable::Hash::operator()(std::string_view key) const {
  uint64_t h = 0xcbf29ce484222325 ^ key.size();
  for (size_t k = 0; k < key.size(); k += 8) {
    uint64_t word = 0;
    std::memcpy(&word, key.data() + k, std::min<size_t>(8, key.size() - k));
    h = (h ^ word) * 0x9e3779b97f4a7c15;
    h ^= h >> 32;
  }
  h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9;
  return size_t(h ^ h >> 27);
}

uint64_t LookupTable::CountKeys(const tw_view* keys) const {
  if (keys->dtype != about_.key_dtype)
    Invalid("the keys are " + TypeText(keys->dtype) + ", those of the table " + TypeText(about_.key_dtype));
  const int rank = int(about_.key_shape.size()), outer = keys->rank - rank;
  bool fits = outer >= 0;
  for (int k = 0; fits && k < rank; ++k) fits = keys->dims[outer + k] == about_.key_shape[size_t(k)];
  if (!fits)
    Invalid("the keys are " + DimsText(keys) + ", which does not end with the shape of a key, " + tw::text(about_.key_shape.data(), rank));
  return uint64_t(Product(keys->dims, 0, outer));
}

void LookupTable::WantValues(const tw_view* keys, const tw_view* values) const {
  if (values->dtype != about_.value_dtype)
    Invalid("the values are " + TypeText(values->dtype) + ", those of the table " + TypeText(about_.value_dtype));
  std::vector<int64_t> dims(keys->dims, keys->dims + keys->rank - int64_t(about_.key_shape.size()));
  dims.insert(dims.end(), about_.value_shape.begin(), about_.value_shape.end());
  if (std::vector<int64_t>(values->dims, values->dims + values->rank) != dims)
    Invalid("the values are " + DimsText(values) + ", but must be " + tw::text(dims.data(), int32_t(dims.size())) + " for keys " +
            DimsText(keys));
}

std::string_view LookupTable::Key(const tw_view* keys, uint64_t k, std::string* scratch) const {
  std::string_view key;
  if (const size_t width = per_key_ * ElementBytes(about_.key_dtype); about_.key_dtype != TW_STRING) {
    key = {Bytes(keys) + k * width, width};
    if (HasNegativeZero(about_.key_dtype)) {
      scratch->assign(key);
      const uint32_t bytes = ElementBytes(about_.key_dtype);
      if (bytes == 2) ClearNegativeZeros<uint16_t>(scratch->data(), per_key_);
      if (bytes == 4) ClearNegativeZeros<uint32_t>(scratch->data(), per_key_);
      if (bytes == 8) ClearNegativeZeros<uint64_t>(scratch->data(), per_key_);
      key = *scratch;
    }
  } else if (per_key_ == 1) {
    const tw_string& s = StringAt(keys, k);
    key = {s.size ? s.data : "", s.size};
  } else {
    scratch->clear();
    for (uint64_t i = 0; i < per_key_; ++i) {
      const tw_string& s = StringAt(keys, k * per_key_ + i);
      AddLength(scratch, s.size);
      scratch->append(s.size ? s.data : "", s.size);
    }
    key = *scratch;
  }
  for (size_t i = 0; i < about_.reserved.size(); ++i)
    if (key == about_.reserved[i])
      Invalid(std::string("a key equals ") + (i ? "'deleted_key'" : "'empty_key'") + ", which may not be used");
  return key;
}

int64_t LookupTable::Find(std::string_view key) const {
  const auto it = at_.find(key);
  return it == at_.end() ? -1 : int64_t(it->second);
}

void LookupTable::Insert(std::string_view key, const tw_view* values, uint64_t row) {
  const auto it = at_.find(key);
  if (it != at_.end()) return values_.Set(it->second, values, row);
  const size_t at = keys_.size();
  values_.Set(at, values, row);
  keys_.push_back(nullptr);
  try {
    keys_[at] = &at_.emplace(std::string(key), at).first->first;
  } catch (...) {  // no memory
    keys_.pop_back();
    throw;
  }
}

bool LookupTable::IsKey(std::string_view key) const {
  if (std::find(about_.reserved.begin(), about_.reserved.end(), key) != about_.reserved.end()) return false;
  if (about_.key_dtype != TW_STRING) return key.size() == per_key_ * ElementBytes(about_.key_dtype);
  for (uint64_t i = 0; per_key_ != 1 && i < per_key_; ++i) {
    uint64_t n = 0;
    if (key.size() < sizeof n) return false;
    std::memcpy(&n, key.data(), sizeof n);
    key.remove_prefix(sizeof n);
    if (n > key.size()) return false;
    key.remove_prefix(n);
  }
  return per_key_ == 1 || key.empty();
}

void LookupTable::Append(const std::string& key, std::string_view bytes, std::vector<std::string> texts) {
  values_.Append(bytes, std::move(texts));
  keys_.push_back(nullptr);
  keys_.back() = &at_.emplace(key, keys_.size() - 1).first->first;
}

void LookupTable::Remove(std::string_view key) {
  const auto it = at_.find(key);
  if (it == at_.end()) return;
  const size_t at = it->second, last = keys_.size() - 1;
  values_.Remove(at, last);
  if (at != last) {
    keys_[at] = keys_[last];
    at_.find(*keys_[at])->second = at;
  }
  keys_.pop_back();
  at_.erase(it);
}

void LookupTable::Clear() {
  at_.clear();
  keys_.clear();
  values_.Clear();
}

void LookupTable::GetKey(const tw_frame* f, size_t at, const tw_view* to, uint64_t row) const {
  const std::string& key = *keys_[at];
  if (about_.key_dtype != TW_STRING) {
    std::memcpy(Bytes(to) + row * key.size(), key.data(), key.size());
    return;
  }
  const auto put = [&](uint64_t i, std::string_view s) {
    tw::check(f->host->tensor->set_string(to->tensor, row * per_key_ + i, s.data(), s.size()));
  };
  if (per_key_ == 1) return put(0, key);
  size_t from = 0;
  for (uint64_t i = 0; i < per_key_; ++i) {
    uint64_t n = 0;
    std::memcpy(&n, key.data() + from, sizeof n);
    put(i, std::string_view(key).substr(from + sizeof n, n));
    from += sizeof n + n;
  }
}

}  // namespace thalweg::cpu
