// NameIndex: maps names to numbers; the owner of the numbers keeps the names. It needs eight bytes
// per slot, in one array. Threads: one writer or many readers.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "framework/base/keyed_hash.h"

namespace thalweg {

class NameIndex {
 public:
  static constexpr int32_t kNone = -1;

  // Reserves room for n names in all.
  void Reserve(size_t n) {
    if (n > Room(slots_.size())) Grow(n);
  }
  // Returns the number of the name, or kNone. name_of(number): returns the name of a number that
  // was added.
  template <class NameOf>
  int32_t Find(std::string_view name, const NameOf& name_of) const {
    return slots_.empty() ? kNone : slots_[Place(name, Hash(name), name_of)].number;
  }
  // Like Find; if the name is unknown, adds it with `number` and returns kNone.
  template <class NameOf>
  int32_t FindOrAdd(std::string_view name, int32_t number, const NameOf& name_of) {
    Reserve(used_ + 1);
    const uint32_t hash = Hash(name);
    Slot& slot = slots_[Place(name, hash, name_of)];
    if (slot.number != kNone) return slot.number;
    slot = {hash, number};
    ++used_;
    return kNone;
  }
  void Clear() {
    slots_.clear();
    used_ = 0;
  }

 private:
  struct Slot {
    uint32_t hash = 0;
    int32_t number = kNone;
  };
  static uint32_t Hash(std::string_view name) { return uint32_t(KeyedHash(name)); }
  static size_t Room(size_t slots) { return slots / 4 * 3; }

  // Returns the slot of the name, or the free slot where it belongs.
  template <class NameOf>
  size_t Place(std::string_view name, uint32_t hash, const NameOf& name_of) const {
    const size_t mask = slots_.size() - 1;
    size_t at = hash & mask;
    while (slots_[at].number != kNone && (slots_[at].hash != hash || name_of(slots_[at].number) != name)) at = (at + 1) & mask;
    return at;
  }
  void Grow(size_t n) {
    size_t size = 16;
    while (Room(size) < n) size *= 2;
    std::vector<Slot> larger(size);
    for (const Slot& s : slots_) {
      if (s.number == kNone) continue;
      size_t at = s.hash & (size - 1);
      while (larger[at].number != kNone) at = (at + 1) & (size - 1);
      larger[at] = s;
    }
    slots_.swap(larger);
  }

  std::vector<Slot> slots_;  // the size is a power of two; a quarter stays free
  size_t used_ = 0;
};

}  // namespace thalweg
