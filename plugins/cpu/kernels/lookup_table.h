// LookupTable: the object behind the handles of hash tables. It holds keys, each with a row of
// values. Keys are compared as bytes; a key of -0 has the bytes of 0. Threads: one writer or many
// readers; the host holds the locks.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_LOOKUP_TABLE_H_
#define THALWEG_PLUGINS_CPU_KERNELS_LOOKUP_TABLE_H_

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/common/element.h"
#include "kernels/row_index.h"
#include "thalweg/cpp/memory.hpp"

namespace thalweg::cpu {

inline constexpr char kLookupTable[] = "org.thalweg.lookup_table";

// Rows of `per_row` elements each, of any type that has bytes or is a string.
class Rows {
 public:
  // Returns the heap bytes of a string made of `bytes` characters.
  static uint64_t HeapOf(uint64_t bytes) { return bytes > 15 ? bytes + 1 + tw::kHeapBlock : 0; }
  static uint64_t HeapOf(const std::string& s) { return s.capacity() > 15 ? s.capacity() + 1 + tw::kHeapBlock : 0; }

  Rows(uint32_t dtype, uint64_t per_row) : dtype_(dtype), per_row_(per_row), width_(per_row * ElementBytes(dtype)) {}
  uint32_t dtype() const { return dtype_; }
  uint64_t per_row() const { return per_row_; }
  // The storage of one row: `width` bytes, or `texts` strings.
  uint64_t width() const { return width_; }
  uint64_t texts() const { return dtype_ == TW_STRING ? per_row_ : 0; }
  std::string_view bytes(size_t at) const { return {bytes_.data() + at * width_, width_}; }
  const std::string& text(size_t at, uint64_t i) const { return texts_[at * per_row_ + i]; }
  // The heap bytes of all rows, and the heap bytes after room is made for n rows, without their
  // texts.
  uint64_t heap() const { return bytes_.capacity() + texts_.capacity() * sizeof(std::string) + text_heap_; }
  uint64_t HeapFor(size_t n) const {
    return std::max<uint64_t>(bytes_.capacity(), n * width_) + std::max<uint64_t>(texts_.capacity(), n * texts()) * sizeof(std::string);
  }
  // Makes room for n rows.
  void Reserve(size_t n) {
    bytes_.reserve(n * width_);
    texts_.reserve(n * texts());
  }
  // REQUIRES: the bytes and texts of exactly one row.
  void Append(std::string_view bytes, std::vector<std::string> texts);
  // Sets row `at` to row `row` of the view. Appends it if `at` is one past the end.
  void Set(size_t at, const tw_view* v, uint64_t row);
  void Get(const tw_frame* f, size_t at, const tw_view* to, uint64_t row) const;
  // Writes the first n rows, in order.
  void GetAll(const tw_frame* f, size_t n, const tw_view* to) const;
  bool Equal(size_t at, const tw_view* v, uint64_t row) const;
  // Moves the last row to row `at`, which is removed.
  void Remove(size_t at, size_t last);
  void Clear();

 private:
  uint32_t dtype_;
  uint64_t per_row_, width_;  // bytes; 0: strings
  std::vector<char> bytes_;
  std::vector<std::string> texts_;
  uint64_t text_heap_ = 0;  // of all texts
};

class LookupTable {
 public:
  // The properties that the creating op gives the table. kind: the op's name.
  struct About {
    std::string kind;
    uint32_t key_dtype, value_dtype;
    std::vector<int64_t> key_shape, value_shape;
    bool initializable = false;         // filled once, as a whole
    std::vector<std::string> reserved;  // keys that may not be used
  };
  explicit LookupTable(About about);
  const About& about() const { return about_; }
  size_t size() const { return size_; }
  bool initialized = false;

  // CountKeys checks the type and shape of `keys` and returns the number of keys. WantValues checks
  // those of `values`. Both throw INVALID_ARGUMENT.
  uint64_t CountKeys(const tw_view* keys) const;
  void WantValues(const tw_view* keys, const tw_view* values) const;

  // Returns the bytes that identify key k of the tensor; they may be in `scratch`. Throws
  // INVALID_ARGUMENT for a reserved key.
  std::string_view Key(const tw_view* keys, uint64_t k, std::string* scratch) const;
  static uint64_t Hash(std::string_view key);
  // Returns the row of the key, or -1 if the table does not have it.
  int64_t Find(std::string_view key) const { return Find(key, Hash(key)); }
  int64_t Find(std::string_view key, uint64_t hash) const {
    return index_.Find(hash, [&](int64_t row) { return this->key(size_t(row)) == key; });
  }
  void Prefetch(uint64_t hash) const { index_.Prefetch(hash); }
  // Makes room for n more rows, to be called before they are inserted. `text_heap` is the heap
  // bytes of their texts, keys and values together. Throws RESOURCE_EXHAUSTED if the payer may not
  // hold that much; the table is then unchanged.
  void Reserve(tw::Payer payer, size_t n, uint64_t text_heap);
  // Sets the paid amount to the table's present size.
  void Settle(tw::Payer payer) { held_.set(payer, heap()); }
  // Returns the heap bytes of the texts of keys [begin, end) and their rows.
  static uint64_t TextHeap(const tw_view* keys, const tw_view* values, uint64_t n, uint64_t begin, uint64_t end);
  void Insert(std::string_view key, uint64_t hash, const tw_view* values, uint64_t row);
  void Remove(std::string_view key);
  void Clear();
  const Rows& values() const { return values_; }
  // For a restore: the bytes that identify key `at`; whether some bytes can be those of a key; and
  // the insertion of a key that is not in the table.
  std::string_view key(size_t at) const {
    if (about_.key_dtype == TW_STRING) return key_texts_[at];
    return {key_bytes_.data() + at * key_width_, key_width_};
  }
  bool IsKey(std::string_view key) const;
  void Append(std::string_view key, std::string_view bytes, std::vector<std::string> texts);
  // Writes all keys and their rows, in the same order.
  void GetAll(const tw_frame* f, const tw_view* keys, const tw_view* values) const;

 private:
  void GetTextKey(const tw_frame* f, size_t at, const tw_view* to) const;
  uint64_t HashOf(int64_t row) const { return Hash(key(size_t(row))); }
  // Appends the key, as the key of the last row. REQUIRES: room in the index.
  void PushKey(std::string_view key, uint64_t hash);
  void MakeRoom();
  uint64_t heap() const {
    return sizeof *this + values_.heap() + key_bytes_.capacity() + key_texts_.capacity() * sizeof(std::string) + key_heap_ + index_.bytes();
  }

  About about_;
  uint64_t per_key_;
  size_t key_width_, size_ = 0, room_ = 0;
  std::vector<char> key_bytes_;         // by row; only for keys that are not strings
  std::vector<std::string> key_texts_;  // by row; only for string keys
  uint64_t key_heap_ = 0;               // of key_texts_
  RowIndex index_;
  Rows values_;
  tw::Holding held_;
};

// Fills a table that is filled only once, with as many keys as there are values. A key may occur
// twice if its value is the same. Throws FAILED_PRECONDITION if the table has been filled with
// other contents, UNIMPLEMENTED for other tables, and INVALID_ARGUMENT.
void InitializeTable(tw::Payer payer, LookupTable* table, const tw_view* keys, const tw_view* values);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_LOOKUP_TABLE_H_
