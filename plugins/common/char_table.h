// Tables of characters, sorted by their first character, as scripts make them from the Unicode
// Character Database. Threads: pure functions.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace thalweg::common {

struct CharRange {
  uint32_t first, last;
};
struct CharRun {  // every `step`th character from `first` to `last` maps to the character at this distance
  uint32_t first, last, step;
  int32_t difference;
};
struct CharExpansion {                  // a character that maps to several
  uint32_t from, first, second, third;  // the result ends at the first 0
};

// Returns the last entry whose field `first` is not above c, or NULL.
template <class T, size_t N>
const T* FindChar(const T (&table)[N], uint32_t c, uint32_t T::* first) {
  const T* behind = std::upper_bound(table, table + N, c, [first](uint32_t value, const T& entry) { return value < entry.*first; });
  return behind == table ? nullptr : behind - 1;
}

template <size_t N>
bool InRanges(const CharRange (&table)[N], uint32_t c) {
  const CharRange* r = FindChar(table, c, &CharRange::first);
  return r && c <= r->last;
}

// Calls append(to) for each character that c maps to; for c itself if neither table has it.
template <size_t N, size_t M, class Append>
void MapChar(uint32_t c, const CharRun (&runs)[N], const CharExpansion (&several)[M], const Append& append) {
  if (const CharExpansion* s = FindChar(several, c, &CharExpansion::from); s && s->from == c) {
    for (const uint32_t to : {s->first, s->second, s->third}) {
      if (to) append(to);
    }
    return;
  }
  const CharRun* r = FindChar(runs, c, &CharRun::first);
  const bool in = r && c <= r->last && (c - r->first) % r->step == 0;
  append(in ? uint32_t(int32_t(c) + r->difference) : c);
}

}  // namespace thalweg::common
