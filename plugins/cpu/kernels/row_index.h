// RowIndex: finds the numbers of rows by the hash of their keys; the keys themselves are stored
// elsewhere. It uses open addressing with linear probing and eight bytes a slot. A slot holds part
// of the hash, which avoids most comparisons of keys. Threads: one writer or many readers.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_ROW_INDEX_H_
#define THALWEG_PLUGINS_CPU_KERNELS_ROW_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace thalweg::cpu {

class RowIndex {
 public:
  // Returns the row with this hash that `same(row)` accepts, or -1.
  template <class Same>
  int64_t Find(uint64_t hash, const Same& same) const {
    if (slots_.empty()) return -1;
    for (size_t at = Home(hash);; at = Next(at)) {
      if (slots_[at] == 0) return -1;
      if (Tag(slots_[at]) == Tag(hash) && same(Row(slots_[at]))) return Row(slots_[at]);
    }
  }
  // Prefetches the slot of a key that will be looked up soon.
  void Prefetch(uint64_t hash) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[Home(hash)]);
  }

  // The bytes that the index uses, and the bytes that it will use once there is room for n rows.
  uint64_t bytes() const { return slots_.size() * sizeof(uint64_t); }
  uint64_t BytesFor(size_t n) const { return n <= slots_.size() / 4 * 3 ? bytes() : SizeFor(n) * sizeof(uint64_t); }

  // Makes room for n rows; calls hash_of(row) for each row in the index. Throws std::bad_alloc; the
  // index is then unchanged.
  template <class HashOf>
  void Reserve(size_t n, const HashOf& hash_of) {
    if (n <= slots_.size() / 4 * 3) return;
    std::vector<uint64_t> old(SizeFor(n));
    old.swap(slots_);
    for (const uint64_t slot : old)
      if (slot != 0) Put(hash_of(Row(slot)), Row(slot));
  }
  // REQUIRES: there is room, and the row is not in the index.
  void Put(uint64_t hash, int64_t row) {
    size_t at = Home(hash);
    while (slots_[at] != 0) at = Next(at);
    slots_[at] = Slot(hash, row);
  }
  // Changes the number of the row with this hash. REQUIRES: the row is in the index.
  void Renumber(uint64_t hash, int64_t row, int64_t to) { slots_[At(hash, row)] = Slot(hash, to); }
  // Moves later entries up if the gap would make them unreachable. REQUIRES: the row is in the
  // index.
  template <class HashOf>
  void Erase(uint64_t hash, int64_t row, const HashOf& hash_of) {
    size_t gap = At(hash, row);
    for (size_t at = Next(gap); slots_[at] != 0; at = Next(at)) {
      const size_t home = Home(hash_of(Row(slots_[at])));
      if (((at - home) & (slots_.size() - 1)) < ((at - gap) & (slots_.size() - 1))) continue;
      slots_[gap] = slots_[at];
      gap = at;
    }
    slots_[gap] = 0;
  }
  void Clear() { std::vector<uint64_t>().swap(slots_); }

 private:
  static constexpr int kRowBits = 40;
  static constexpr uint64_t kRows = (uint64_t{1} << kRowBits) - 1;
  static size_t SizeFor(size_t n) {
    size_t size = 16;
    while (n > size / 4 * 3) size *= 2;
    return size;
  }
  static uint64_t Tag(uint64_t hash) { return hash >> kRowBits; }
  static int64_t Row(uint64_t slot) { return int64_t(slot & kRows) - 1; }
  static uint64_t Slot(uint64_t hash, int64_t row) { return Tag(hash) << kRowBits | uint64_t(row + 1); }
  size_t Home(uint64_t hash) const { return size_t(hash) & (slots_.size() - 1); }
  size_t Next(size_t at) const { return (at + 1) & (slots_.size() - 1); }
  size_t At(uint64_t hash, int64_t row) const {
    size_t at = Home(hash);
    while (slots_[at] != Slot(hash, row)) at = Next(at);
    return at;
  }

  std::vector<uint64_t> slots_;  // 0: empty; the size is a power of two, and a quarter of the slots is empty
};

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_ROW_INDEX_H_
