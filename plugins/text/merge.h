// Byte-pair encoding: neighbours are merged, the best pair first, until no pair can be merged. Time
// n log n for n symbols. Threads: pure functions.
#ifndef THALWEG_PLUGINS_TEXT_MERGE_H_
#define THALWEG_PLUGINS_TEXT_MERGE_H_

#include <algorithm>
#include <cstdint>

#include "thalweg/cpp/memory.hpp"

namespace thalweg::text {

// A part [begin, end) of a text. After a merge the left symbol is both parts, and the right one is
// empty.
struct Symbol {
  int32_t id;
  uint32_t begin, end;
  int32_t before, next;  // -1: there is none
  bool frozen;           // takes part in no merge
};
using Symbols = tw::TempVector<Symbol>;

inline void AppendSymbol(int32_t id, uint32_t begin, uint32_t end, bool frozen, Symbols* to) {
  const auto i = int32_t(to->size());
  if (i > 0) to->back().next = i;
  to->push_back({id, begin, end, i - 1, -1, frozen});
}

// The result of a pair. The pair with the smallest `order` is merged first, of equals the leftmost.
struct Merged {
  double order;
  int32_t id;
};

// find(left, right, &merged) returns whether two symbols merge. skip() returns true to leave out a
// merge that was about to happen.
template <class Find, class Skip>
void MergePairs(Symbols* symbols, const Find& find, const Skip& skip) {
  struct Candidate {
    double order;
    int32_t left, right, id;
    uint32_t size;
  };
  tw::TempVector<Candidate> heap(symbols->get_allocator());
  const auto later = [](const Candidate& a, const Candidate& b) { return a.order != b.order ? a.order > b.order : a.left > b.left; };
  Symbols& s = *symbols;
  const auto add = [&](int32_t left, int32_t right) {
    Merged merged;
    if (left < 0 || right < 0 || s[size_t(left)].frozen || s[size_t(right)].frozen || !find(s[size_t(left)], s[size_t(right)], &merged))
      return;
    heap.push_back({merged.order, left, right, merged.id, s[size_t(right)].end - s[size_t(left)].begin});
    std::push_heap(heap.begin(), heap.end(), later);
  };
  for (size_t i = 1; i < s.size(); ++i) add(int32_t(i) - 1, int32_t(i));
  while (!heap.empty()) {
    const Candidate best = heap.front();
    std::pop_heap(heap.begin(), heap.end(), later);
    heap.pop_back();
    Symbol &left = s[size_t(best.left)], &right = s[size_t(best.right)];
    const bool same = left.begin < left.end && right.begin < right.end && right.end - left.begin == best.size && left.next == best.right;
    if (!same || skip()) continue;  // not the same: one of them has been merged since
    left.id = best.id;
    left.end = right.end;
    left.next = right.next;
    if (right.next >= 0) s[size_t(right.next)].before = best.left;
    right.end = right.begin;
    add(left.before, best.left);
    add(best.left, left.next);
  }
}

// Calls visit(symbol) for those that are left, in order.
template <class F>
void EachSymbol(const Symbols& symbols, const F& visit) {
  for (int32_t i = symbols.empty() ? -1 : 0; i >= 0; i = symbols[size_t(i)].next) visit(symbols[size_t(i)]);
}

}  // namespace thalweg::text

#endif  // THALWEG_PLUGINS_TEXT_MERGE_H_
