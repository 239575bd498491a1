#include "kernels/lookup_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace thalweg::cpu {
namespace {

uint64_t Count(const std::vector<int64_t>& dims) { return uint64_t(Product(dims.data(), 0, int(dims.size()))); }

// Replaces -0 by 0 in n floats of the size of Bits.
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
  if (dtype_ != TW_STRING) return;  // rows without elements
  if (texts_.size() < (at + 1) * per_row_) texts_.resize((at + 1) * per_row_);
  for (uint64_t k = 0; k < per_row_; ++k) {
    const tw_string& s = StringAt(v, row * per_row_ + k);
    std::string& text = texts_[at * per_row_ + k];
    text_heap_ -= HeapOf(text);
    text = std::string(s.size ? s.data : "", s.size);  // allocates exactly the memory that it needs
    text_heap_ += HeapOf(text);
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

void Rows::GetAll(const tw_frame* f, size_t n, const tw_view* to) const {
  if (width_ > 0 && n > 0) std::memcpy(Bytes(to), bytes_.data(), n * width_);
  for (size_t k = 0; dtype_ == TW_STRING && k < n; ++k) Get(f, k, to, k);
}

void Rows::Append(std::string_view bytes, std::vector<std::string> texts) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  for (std::string& s : texts) {
    texts_.push_back(std::move(s));
    text_heap_ += HeapOf(texts_.back());
  }
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
    for (uint64_t k = 0; k < per_row_; ++k) {
      text_heap_ -= HeapOf(texts_[at * per_row_ + k]);
      if (at != last) texts_[at * per_row_ + k] = std::exchange(texts_[last * per_row_ + k], std::string());
    }
    texts_.resize(last * per_row_);
  }
}

void Rows::Clear() {
  std::vector<char>().swap(bytes_);
  std::vector<std::string>().swap(texts_);
  text_heap_ = 0;
}

LookupTable::LookupTable(About about)
    : about_(std::move(about)),
      per_key_(Count(about_.key_shape)),
      key_width_(per_key_ * ElementBytes(about_.key_dtype)),
      values_(about_.value_dtype, Count(about_.value_shape)) {}

// FNV-1a by words, then a finalizer in which every bit counts (SplitMix64).
uint64_t LookupTable::Hash(std::string_view key) {
  uint64_t h = 0xcbf29ce484222325 ^ key.size();
  for (size_t k = 0; k < key.size(); k += 8) {
    uint64_t word = 0;
    std::memcpy(&word, key.data() + k, std::min<size_t>(8, key.size() - k));
    h = (h ^ word) * 0x9e3779b97f4a7c15;
    h ^= h >> 32;
  }
  h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9;
  return h ^ h >> 27;
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
  if (about_.key_dtype != TW_STRING) {
    key = {Bytes(keys) + k * key_width_, key_width_};
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

uint64_t LookupTable::TextHeap(const tw_view* keys, const tw_view* values, uint64_t n, uint64_t begin, uint64_t end) {
  uint64_t bytes = 0;
  for (const tw_view* v : {keys, values}) {
    const uint64_t each = v->dtype == TW_STRING && n > 0 ? v->count / n : 0;
    for (uint64_t i = begin * each; i < end * each; ++i)
      bytes += Rows::HeapOf(StringAt(v, i).size + (v == keys && each > 1 ? 8 : 0)) + (v == keys && each > 1 ? 8 : 0);
  }
  return bytes;
}

// Room grows by half, so the cost per row does not depend on the number of rows. During growth the
// old and the new memory both exist.
void LookupTable::Reserve(tw::Payer payer, size_t n, uint64_t text_heap) {
  const size_t wanted = size_ + n;
  const bool text_keys = about_.key_dtype == TW_STRING;
  const size_t there = std::max({room_, size_t{16}});
  const size_t room = wanted <= room_ ? room_ : std::max(wanted, there + there / 2);
  const auto keys_for = [&](size_t rows) { return text_keys ? rows * sizeof(std::string) : rows * key_width_; };
  const uint64_t grown =
      sizeof *this + values_.HeapFor(room) + (values_.heap() - values_.HeapFor(0)) +
      std::max<uint64_t>(keys_for(room), text_keys ? key_texts_.capacity() * sizeof(std::string) : key_bytes_.capacity()) + key_heap_ +
      index_.BytesFor(room);
  const uint64_t before = heap();
  held_.set(payer, grown + text_heap + (room > room_ ? before : 0));
  try {
    if (text_keys)
      key_texts_.reserve(room);
    else
      key_bytes_.reserve(keys_for(room));
    values_.Reserve(room);
    index_.Reserve(room, [this](int64_t row) { return HashOf(row); });
  } catch (...) {
    held_.set(payer, std::min(held_.bytes(), heap()));
    throw;
  }
  room_ = room;
  held_.set(payer, std::min(held_.bytes(), heap() + text_heap));
}

void LookupTable::MakeRoom() {
  index_.Reserve(size_ + 1, [this](int64_t row) { return HashOf(row); });
}

void LookupTable::PushKey(std::string_view key, uint64_t hash) {
  if (about_.key_dtype == TW_STRING)
    key_heap_ += Rows::HeapOf(key_texts_.emplace_back(key));
  else
    key_bytes_.insert(key_bytes_.end(), key.begin(), key.end());
  index_.Put(hash, int64_t(size_++));
}

void LookupTable::Insert(std::string_view key, uint64_t hash, const tw_view* values, uint64_t row) {
  if (const int64_t at = Find(key, hash); at >= 0) return values_.Set(size_t(at), values, row);
  MakeRoom();
  values_.Set(size_, values, row);
  PushKey(key, hash);
}

bool LookupTable::IsKey(std::string_view key) const {
  if (std::find(about_.reserved.begin(), about_.reserved.end(), key) != about_.reserved.end()) return false;
  if (about_.key_dtype != TW_STRING) return key.size() == key_width_;
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

void LookupTable::Append(std::string_view key, std::string_view bytes, std::vector<std::string> texts) {
  MakeRoom();
  values_.Append(bytes, std::move(texts));
  PushKey(key, Hash(key));
}

void LookupTable::Remove(std::string_view key) {
  const uint64_t hash = Hash(key);
  const int64_t at = Find(key, hash);
  if (at < 0) return;
  const int64_t last = int64_t(size_) - 1;
  index_.Erase(hash, at, [this](int64_t row) { return HashOf(row); });
  if (at != last) index_.Renumber(HashOf(last), last, at);
  values_.Remove(size_t(at), size_t(last));
  if (about_.key_dtype == TW_STRING) {
    key_heap_ -= Rows::HeapOf(key_texts_[size_t(at)]);
    if (at != last) key_texts_[size_t(at)] = std::exchange(key_texts_.back(), std::string());
    key_texts_.pop_back();
  } else {
    if (at != last) std::memcpy(key_bytes_.data() + size_t(at) * key_width_, key_bytes_.data() + size_t(last) * key_width_, key_width_);
    key_bytes_.resize(size_t(last) * key_width_);
  }
  --size_;
}

void LookupTable::Clear() {
  index_.Clear();
  std::vector<char>().swap(key_bytes_);
  std::vector<std::string>().swap(key_texts_);
  key_heap_ = 0;
  values_.Clear();
  room_ = 0;
  size_ = 0;
}

void LookupTable::GetTextKey(const tw_frame* f, size_t at, const tw_view* to) const {
  const std::string_view key = this->key(at);
  const auto put = [&](uint64_t i, std::string_view s) {
    tw::check(f->host->tensor->set_string(to->tensor, at * per_key_ + i, s.data(), s.size()));
  };
  if (per_key_ == 1) return put(0, key);
  size_t from = 0;
  for (uint64_t i = 0; i < per_key_; ++i) {
    uint64_t n = 0;
    std::memcpy(&n, key.data() + from, sizeof n);
    put(i, key.substr(from + sizeof n, n));
    from += sizeof n + n;
  }
}

void LookupTable::GetAll(const tw_frame* f, const tw_view* keys, const tw_view* values) const {
  for (size_t k = 0; about_.key_dtype == TW_STRING && k < size_; ++k) GetTextKey(f, k, keys);
  if (!key_bytes_.empty()) std::memcpy(Bytes(keys), key_bytes_.data(), key_bytes_.size());
  values_.GetAll(f, size_, values);
}

}  // namespace thalweg::cpu
