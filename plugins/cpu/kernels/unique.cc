// Unique, UniqueV2: elements, or slices along an axis, in order of first occurrence. Numbers are
// compared by value: 0 equals -0, and NaN equals nothing. The hash table's seed changes from call
// to call, so nobody can choose elements that collide.
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/common/slices.h"
#include "kernels/common/temp.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Describes how the bits of a type's numbers are compared. An element has `units` units of `bytes`
// bytes. A floating-point type has a sign bit, and bits above `largest` are NaN. Types without a
// negative zero use its bits for NaN.
struct Format {
  uint32_t bytes, units = 1;
  uint64_t sign = 0, largest = ~uint64_t{0};
};

Format FormatOf(uint32_t dtype) {
  switch (dtype) {
    case TW_HALF: return {2, 1, 0x8000, 0x7c00};
    case TW_BFLOAT16: return {2, 1, 0x8000, 0x7f80};
    case TW_FLOAT: return {4, 1, 0x80000000u, 0x7f800000u};
    case TW_DOUBLE: return {8, 1, uint64_t{1} << 63, uint64_t{0x7ff} << 52};
    case TW_COMPLEX64: return {4, 2, 0x80000000u, 0x7f800000u};
    case TW_COMPLEX128: return {8, 2, uint64_t{1} << 63, uint64_t{0x7ff} << 52};
    case TW_FLOAT8_E5M2: return {1, 1, 0x80, 0x7c};
    case TW_FLOAT8_E4M3FN: return {1, 1, 0x80, 0x7e};
    case TW_FLOAT8_E4M3FNUZ:
    case TW_FLOAT8_E4M3B11FNUZ:
    case TW_FLOAT8_E5M2FNUZ: return {1, 1, 0x80, 0};  // largest 0: NaN is the negative zero
    default: return {ElementBytes(dtype)};
  }
}

// The tensor as `count` items. Item i is `outer` runs of `inner` elements; consecutive runs are
// count * inner elements apart.
struct Items {
  const tw_view* v;
  int64_t outer, count, inner;
  int64_t at(int64_t o, int64_t i) const { return (o * count + i) * inner; }
};

template <class U>
U Load(const char* p) {
  U u;
  std::memcpy(&u, p, sizeof u);
  return u;
}

// Sets *key to bits that are the same for equal numbers. Returns false for NaN, which equals
// nothing.
bool Key(const Format& format, uint64_t bits, uint64_t* key) {
  *key = bits;
  if (format.sign == 0) return true;
  if (format.largest == 0) return bits != format.sign;
  const uint64_t size = bits & ~format.sign;
  if (size == 0) *key = 0;
  return size <= format.largest;
}

// Items as the search sees them. Code(i, &code) sets a number that is the same for equal items, and
// returns false for an item that equals nothing. If different items may share a code, Equal(i, j)
// compares them.

// Items of one number of the size of U.
template <class U>
class Scalars {
 public:
  Scalars(const Items& items, uint64_t) : data_(Bytes(items.v)), format_(FormatOf(items.v->dtype)) {}
  bool Code(int64_t i, uint64_t* code) const { return Key(format_, Load<U>(data_ + i * int64_t(sizeof(U))), code); }
  bool Equal(int64_t, int64_t) const { return true; }

 private:
  const char* data_;
  Format format_;
};

class Slices {
 public:
  Slices(const Items& items, uint64_t seed) : items_(items), format_(FormatOf(items.v->dtype)), seed_(seed) {}
  bool Code(int64_t i, uint64_t* code) const {
    uint64_t h = seed_;
    bool comparable = true;
    ForUnits(i, [&](const char* p) {
      uint64_t key = 0;
      comparable = comparable && Key(format_, Unit(p), &key);
      h = Mix(h ^ key) + seed_;
    });
    *code = h;
    return comparable;
  }
  bool Equal(int64_t i, int64_t j) const {
    const int64_t away = (j - i) * items_.inner * int64_t(format_.units * format_.bytes);
    bool same = true;
    ForUnits(i, [&](const char* p) {
      uint64_t a = 0, b = 0;
      same = same && Key(format_, Unit(p), &a) && Key(format_, Unit(p + away), &b) && a == b;
    });
    return same;
  }

 private:
  template <class F>
  void ForUnits(int64_t i, F&& unit) const {
    const int64_t n = items_.inner * format_.units;
    for (int64_t o = 0; o < items_.outer; ++o) {
      const char* p = Bytes(items_.v) + items_.at(o, i) * int64_t(format_.units * format_.bytes);
      for (int64_t k = 0; k < n; ++k) unit(p + k * format_.bytes);
    }
  }
  uint64_t Unit(const char* p) const {
    switch (format_.bytes) {
      case 1: return Load<uint8_t>(p);
      case 2: return Load<uint16_t>(p);
      case 4: return Load<uint32_t>(p);
      default: return Load<uint64_t>(p);
    }
  }

  Items items_;
  Format format_;
  uint64_t seed_;
};

class Strings {
 public:
  Strings(const Items& items, uint64_t seed) : items_(items), seed_(seed) {}
  bool Code(int64_t i, uint64_t* code) const {
    uint64_t h = seed_;
    ForStrings(i, [&](int64_t at) {
      const tw_string& s = StringAt(items_.v, uint64_t(at));
      h = Mix(h ^ s.size) + seed_;
      for (uint64_t k = 0; k < s.size; k += 8) {
        uint64_t word = 0;
        std::memcpy(&word, s.data + k, size_t(std::min<uint64_t>(8, s.size - k)));
        h = Mix(h ^ word) + seed_;
      }
    });
    *code = h;
    return true;
  }
  bool Equal(int64_t i, int64_t j) const {
    bool same = true;
    ForStrings(i, [&](int64_t at) {
      const tw_string &a = StringAt(items_.v, uint64_t(at)), &b = StringAt(items_.v, uint64_t(at + (j - i) * items_.inner));
      same = same && std::string_view(a.data, a.size) == std::string_view(b.data, b.size);
    });
    return same;
  }

 private:
  template <class F>
  void ForStrings(int64_t i, F&& one) const {
    for (int64_t o = 0; o < items_.outer; ++o)
      for (int64_t k = 0; k < items_.inner; ++k) one(items_.at(o, i) + k);
  }

  Items items_;
  uint64_t seed_;
};

// Maps codes to places in the list of found items, with open addressing, at most half full.
class Table {
 public:
  Table(tw::Frame f, uint64_t seed) : seed_(seed), slots_(64, Slot{0, -1}, f) {}
  // Returns the place of an item for which same(place) holds. If there is none, inserts `next` and
  // returns it.
  template <class Same>
  int64_t FindOrPut(uint64_t code, int64_t next, Same&& same) {
    if (used_ * 2 >= slots_.size()) Grow();
    size_t at = First(code);
    for (; slots_[at].place >= 0; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at].code == code && same(slots_[at].place)) return slots_[at].place;
    slots_[at] = {code, next};
    ++used_;
    return next;
  }

 private:
  struct Slot {
    uint64_t code;
    int64_t place;  // -1: free
  };
  size_t First(uint64_t code) const { return size_t(Mix(code ^ seed_)) & (slots_.size() - 1); }
  void Grow() {
    tw::TempVector<Slot> old(slots_.size() * 4, Slot{0, -1}, slots_.get_allocator());
    old.swap(slots_);
    for (const Slot& s : old) {
      if (s.place < 0) continue;
      size_t at = First(s.code);
      while (slots_[at].place >= 0) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = s;
    }
  }

  uint64_t seed_;
  size_t used_ = 0;
  tw::TempVector<Slot> slots_;
};

// Writes for each item the index of its equal among the found items. Returns the found items, in
// order.
template <class Elements, class Index>
tw::TempVector<int64_t> Find(tw::Frame f, const Items& items, uint64_t seed, Index* idx) {
  const Elements elements(items, seed);
  Table table(f, seed);
  tw::TempVector<int64_t> found(f);
  for (int64_t i = 0; i < items.count; ++i) {
    uint64_t code = 0;
    int64_t place = int64_t(found.size());
    if (elements.Code(i, &code)) place = table.FindOrPut(code, place, [&](int64_t k) { return elements.Equal(found[size_t(k)], i); });
    if (place == int64_t(found.size())) found.push_back(i);
    idx[i] = Index(place);
  }
  return found;
}

template <class Index>
tw::TempVector<int64_t> FindItems(tw::Frame f, const Items& items, uint64_t seed, Index* idx) {
  if (items.v->dtype == TW_STRING) return Find<Strings>(f, items, seed, idx);
  const Format format = FormatOf(items.v->dtype);
  if (items.inner != 1 || items.outer != 1 || format.units != 1) return Find<Slices>(f, items, seed, idx);
  switch (format.bytes) {
    case 1: return Find<Scalars<uint8_t>>(f, items, seed, idx);
    case 2: return Find<Scalars<uint16_t>>(f, items, seed, idx);
    case 4: return Find<Scalars<uint32_t>>(f, items, seed, idx);
    default: return Find<Scalars<uint64_t>>(f, items, seed, idx);
  }
}

template <class Index>
void Run(const tw::Frame& f, const Items& items, int axis, const tw::Out<tw::Any>& y, const tw::Out<Index>& idx) {
  CheckMovable(items.v->dtype);
  if (items.count > int64_t{std::numeric_limits<Index>::max()})
    Invalid("x has " + std::to_string(items.count) + " elements, which int32 cannot count; ask for out_idx int64");
  const int64_t n[] = {items.count};
  Allocate(idx, n, 1);
  const uint64_t seed = Mix(uint64_t(f.f->host->run->now(f.f->host)) ^ uint64_t(reinterpret_cast<uintptr_t>(&items)));
  const tw::TempVector<int64_t> found = FindItems(f, items, seed, idx.data());
  Ints dims;
  for (int i = 0; i < items.v->rank; ++i) dims.push(i == axis ? int64_t(found.size()) : items.v->dims[i]);
  Allocate(y, dims.at, dims.n);
  const int64_t u = int64_t(found.size());
  if (items.outer == 1) return CopySlices(f.f, items.v, y.v(), u, items.inner, [&](int64_t k) { return found[size_t(k)] * items.inner; });
  for (int64_t k = 0; k < u; ++k) {
    Box box;
    box.Add(items.outer, items.count * items.inner, u * items.inner);
    box.Add(items.inner, 1, 1);
    CopyBox(f.f, box, items.v, found[size_t(k)] * items.inner, y.v(), k * items.inner);
  }
}

template <class Index>
void Unique(tw::Frame f, tw::In<tw::Any> x, tw::Out<tw::Any> y, tw::Out<Index> idx) {
  Run(f, Items{x.v, 1, int64_t(x.size()), 1}, 0, y, idx);
}

template <class Index>
void UniqueAxis(tw::Frame f, tw::In<tw::Any> x, tw::In<tw::Any> axis, tw::Out<tw::Any> y, tw::Out<Index> idx) {
  if (axis.size() == 0 && x.rank() != 1) Invalid("x is " + DimsText(x.v) + "; it must be a vector where no axis is given");
  const int k = axis.size() == 0 ? 0 : Axis(IndexAt(axis.v, 0), x.rank());
  Run(f, Items{x.v, Product(x.dims(), 0, k), x.dim(k), Product(x.dims(), k + 1, x.rank())}, k, y, idx);
}

}  // namespace

void register_unique(tw::Plugin& p) {
  p.kernel<Unique<int32_t>, Unique<int64_t>>("Unique @CPU");
  p.kernel<UniqueAxis<int32_t>, UniqueAxis<int64_t>>("UniqueV2 @CPU");
}

}  // namespace thalweg::cpu
