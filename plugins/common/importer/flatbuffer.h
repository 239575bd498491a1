// Reads flatbuffers whose contents are not trusted: every offset is compared with the bytes that are there. A position is an offset from
// the beginning of the buffer. Numbers are little-endian. Failures are Error (INVALID_ARGUMENT) and name the byte.
// Threads: one thread at a time, because the buffer counts what its reader spends.
#pragma once
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tensor.h"

namespace thalweg::importer {

class FlatBuffer {
 public:
  // what: the subject of messages, such as "the export of JAX". most: the bytes that `spend` accepts.
  FlatBuffer(std::string_view bytes, const char* what, uint64_t most) : bytes_(bytes), what_(what), left_(most) {}
  FlatBuffer(const FlatBuffer&) = delete;

  std::string_view bytes() const { return bytes_; }

  template <class T>
  T number(uint64_t at) const {
    if (at > bytes_.size() || bytes_.size() - at < sizeof(T)) Fail(at, "a number lies behind the end");
    std::make_unsigned_t<T> v = 0;
    for (size_t i = sizeof(T); i-- > 0;)
      v = static_cast<std::make_unsigned_t<T>>((uint64_t{v} << 8) | static_cast<uint8_t>(bytes_[at + i]));
    return static_cast<T>(v);
  }
  // Returns the position to which the offset at this position leads.
  uint64_t follow(uint64_t at) const {
    const uint64_t to = at + number<uint32_t>(at);
    if (to == at || to >= bytes_.size()) Fail(at, "an offset leads behind the end");
    return to;
  }
  // The position of a table's field; none if the table lacks it.
  std::optional<uint64_t> field(uint64_t table, unsigned i) const {
    const int64_t vtable = static_cast<int64_t>(table) - number<int32_t>(table);
    if (vtable < 0) Fail(table, "a table has no list of fields");
    const auto at = static_cast<uint64_t>(vtable);
    const uint64_t size = number<uint16_t>(at), place = 4 + 2 * uint64_t{i};
    if (size < 4 || place + 2 > size) return std::nullopt;
    const uint64_t offset = number<uint16_t>(at + place);
    if (!offset) return std::nullopt;
    return table + offset;
  }
  // The first element of a list and the number of its elements, each of `size` bytes.
  uint64_t list(uint64_t at, uint64_t size, uint64_t* count) const {
    const uint64_t to = follow(at), n = number<uint32_t>(to);
    if (n * size > bytes_.size() - to - 4) Fail(to, "a list has " + std::to_string(n) + " elements, but the file ends before");
    *count = n;
    return to + 4;
  }
  std::string_view text(uint64_t at) const {
    uint64_t n = 0;
    const uint64_t first = list(at, 1, &n);
    return bytes_.substr(first, n);
  }
  // Several offsets may lead to one text or list, so that the bytes of the file do not bound what is made of them.
  void spend(uint64_t at, uint64_t bytes) const {
    if (bytes > left_) Fail(at, "its lists and texts together are too long");
    left_ -= bytes;
  }
  [[noreturn]] void Fail(uint64_t at, const std::string& text) const {
    throw Error{TW_INVALID_ARGUMENT, std::string(what_) + " is damaged at byte " + std::to_string(at) + ": " + text};
  }

 private:
  std::string_view bytes_;
  const char* what_;
  mutable uint64_t left_;
};

// A table of a flatbuffer. A default-constructed one has no fields.
class FlatTable {
 public:
  FlatTable() = default;
  FlatTable(const FlatBuffer& buffer, uint64_t at) : b_(&buffer), at_(at) {}
  explicit operator bool() const { return b_ != nullptr; }
  uint64_t at() const { return at_; }

  template <class T>
  T number(unsigned field, T otherwise) const {
    const std::optional<uint64_t> at = find(field);
    return at ? b_->number<T>(*at) : otherwise;
  }
  bool flag(unsigned field, bool otherwise = false) const { return number<uint8_t>(field, otherwise) != 0; }
  float real(unsigned field, float otherwise) const {
    const std::optional<uint64_t> at = find(field);
    return at ? Real(*at) : otherwise;
  }
  std::string_view text(unsigned field) const {
    const std::optional<uint64_t> at = find(field);
    return at ? b_->text(*at) : std::string_view();
  }
  FlatTable table(unsigned field) const {
    const std::optional<uint64_t> at = find(field);
    return at ? FlatTable(*b_, b_->follow(*at)) : FlatTable();
  }
  // The elements of a list of numbers; none if the table lacks it.
  template <class T>
  std::vector<int64_t> numbers(unsigned field) const {
    std::vector<int64_t> all;
    Each(&all, field, sizeof(T), sizeof(int64_t), [&](uint64_t at) { all.push_back(static_cast<int64_t>(b_->number<T>(at))); });
    return all;
  }
  std::vector<double> reals(unsigned field) const {
    std::vector<double> all;
    Each(&all, field, 4, sizeof(double), [&](uint64_t at) { all.push_back(Real(at)); });
    return all;
  }
  // spent: the bytes that the reader makes of each table.
  std::vector<FlatTable> tables(unsigned field, uint64_t spent) const {
    std::vector<FlatTable> all;
    Each(&all, field, 4, spent, [&](uint64_t at) { all.emplace_back(*b_, b_->follow(at)); });
    return all;
  }
  void spend(uint64_t bytes) const { b_->spend(at_, bytes); }  // REQUIRES: *this
  [[noreturn]] void Fail(const std::string& text) const { b_->Fail(at_, text); }

 private:
  std::optional<uint64_t> find(unsigned field) const { return b_ ? b_->field(at_, field) : std::nullopt; }
  float Real(uint64_t at) const {
    const auto bits = b_->number<uint32_t>(at);
    float v;
    std::memcpy(&v, &bits, sizeof v);
    return v;
  }
  template <class Item, class Use>
  void Each(std::vector<Item>* all, unsigned field, uint64_t size, uint64_t spent, const Use& use) const {
    const std::optional<uint64_t> at = find(field);
    if (!at) return;
    uint64_t n = 0;
    const uint64_t first = b_->list(*at, size, &n);
    b_->spend(first, n * spent);
    all->reserve(n);
    for (uint64_t i = 0; i < n; ++i) use(first + i * size);
  }

  const FlatBuffer* b_ = nullptr;
  uint64_t at_ = 0;
};

}  // namespace thalweg::importer
