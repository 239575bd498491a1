#include "unicode.h"

#include <algorithm>
#include <iterator>

#include "../common/char_table.h"

namespace thalweg::text {
namespace {

struct GroupRun {  // from `first` to the next entry
  uint32_t first, group;
};
struct ClassRun {
  uint32_t first, last, combining;
};
struct Pair {  // kCanonical: character, its parts; second part 0: there is one.   kComposed: the parts, the character
  uint32_t a, b, c;
};
struct Place {
  uint32_t from, at, size;
};
using Run = common::CharRun;
using Several = common::CharExpansion;
using Range = common::CharRange;

#include "unicode_data.inc"

enum Group : uint32_t { kRest, kMn, kMark, kConnector, kPunctuation, kFraction, kNumber, kOther, kLetter };

// Hangul syllables are composed by arithmetic (chapter 3.12).
constexpr uint32_t kSyllable = 0xac00, kLead = 0x1100, kVowel = 0x1161, kTrail = 0x11a7;
constexpr uint32_t kLeads = 19, kVowels = 21, kTrails = 28, kSyllables = kLeads * kVowels * kTrails;

using common::FindChar;

uint32_t GroupOf(uint32_t c) { return FindChar(kGroups, c, &GroupRun::first)->group; }

uint32_t CombiningClass(uint32_t c) {
  if (c < 0x300) return 0;
  const ClassRun* r = FindChar(kCombining, c, &ClassRun::first);
  return r && c <= r->last ? r->combining : 0;
}

void AppendDecomposed(uint32_t c, bool compatible, const Char& origin, Chars* to) {
  if (c < 0xa0) {
    to->push_back({c, origin.begin, origin.end});
    return;
  }
  if (c - kSyllable < kSyllables) {
    const uint32_t k = c - kSyllable;
    to->push_back({kLead + k / (kVowels * kTrails), origin.begin, origin.end});
    to->push_back({kVowel + k % (kVowels * kTrails) / kTrails, origin.begin, origin.end});
    if (k % kTrails) to->push_back({kTrail + k % kTrails, origin.begin, origin.end});
    return;
  }
  if (const Pair* p = FindChar(kCanonical, c, &Pair::a); p && p->a == c) {
    AppendDecomposed(p->b, compatible, origin, to);
    if (p->c) AppendDecomposed(p->c, compatible, origin, to);
    return;
  }
  const Place* p = compatible ? FindChar(kCompatible, c, &Place::from) : nullptr;
  if (p && p->from == c) {
    for (uint32_t k = 0; k < p->size; ++k) AppendDecomposed(kCompatibleText[p->at + k], compatible, origin, to);
    return;
  }
  to->push_back({c, origin.begin, origin.end});
}

// Sorts each run of combining characters by their classes.
void Reorder(Chars* text) {
  for (size_t i = 0; i < text->size();) {
    if (CombiningClass((*text)[i].c) == 0) {
      ++i;
      continue;
    }
    size_t end = i + 1;
    while (end < text->size() && CombiningClass((*text)[end].c) != 0) ++end;
    if (end - i > 1) {
      const tw::Charge charge(text->get_allocator().payer(), (end - i) * sizeof(Char));  // for the buffer of the sort
      std::stable_sort(text->begin() + std::ptrdiff_t(i), text->begin() + std::ptrdiff_t(end),
                       [](const Char& a, const Char& b) { return CombiningClass(a.c) < CombiningClass(b.c); });
    }
    i = end;
  }
}

// Returns the character that a and b compose, or 0.
uint32_t Composed(uint32_t a, uint32_t b) {
  if (a - kLead < kLeads && b - kVowel < kVowels) return kSyllable + ((a - kLead) * kVowels + (b - kVowel)) * kTrails;
  if (a - kSyllable < kSyllables && (a - kSyllable) % kTrails == 0 && b - kTrail < kTrails && b != kTrail) return a + (b - kTrail);
  const Pair* p = std::lower_bound(std::begin(kComposed), std::end(kComposed), Pair{a, b, 0},
                                   [](const Pair& x, const Pair& y) { return x.a != y.a ? x.a < y.a : x.b < y.b; });
  return p != std::end(kComposed) && p->a == a && p->b == b ? p->c : 0;
}

// Composes in place, starting from a text in order.
void Compose(Chars* text) {
  size_t size = 0, starter = SIZE_MAX;
  uint32_t last = 0;  // the class of the character before, if one stands between it and the starter
  for (const Char& next : *text) {
    const uint32_t combining = CombiningClass(next.c);
    const bool adjacent = starter != SIZE_MAX && starter + 1 == size;
    if (starter != SIZE_MAX && (adjacent || last < combining)) {
      Char& first = (*text)[starter];
      if (const uint32_t whole = Composed(first.c, next.c)) {
        first = {whole, std::min(first.begin, next.begin), std::max(first.end, next.end)};
        continue;
      }
    }
    if (combining == 0) starter = size;
    last = combining;
    const Char kept = next;  // `next` may be the place that is written
    (*text)[size++] = kept;
  }
  text->resize(size);
}

template <class F>
void Each(Chars* text, const F& append) {
  Chars changed(text->get_allocator());
  changed.reserve(text->size());
  for (const Char& c : *text) append(c, &changed);
  text->swap(changed);
}

template <size_t N, size_t M>
void AppendMapped(const Char& c, const Run (&single)[N], const Several (&several)[M], Chars* to) {
  common::MapChar(c.c, single, several, [&](uint32_t mapped) { to->push_back({mapped, c.begin, c.end}); });
}

// Characters below this one are the same in all forms; those of NFC even if others follow.
constexpr uint32_t kPlain = 0x80;

bool IsPlain(const Chars& text) {
  return std::all_of(text.begin(), text.end(), [](const Char& c) { return c.c < kPlain; });
}

}  // namespace

void Normalize(Form form, Chars* text) {
  if (IsPlain(*text)) return;
  const bool compatible = form == Form::kNfkc || form == Form::kNfkd;
  Each(text, [compatible](const Char& c, Chars* to) { AppendDecomposed(c.c, compatible, c, to); });
  Reorder(text);
  if (form == Form::kNfc || form == Form::kNfkc) Compose(text);
}

// unicode_data.py compares this order of steps with the mapping in the Unicode Character Database.
void CaseFold(Chars* text) {
  if (!IsPlain(*text)) Each(text, [](const Char& c, Chars* to) { AppendDecomposed(c.c, true, c, to); });
  Each(text, [](const Char& c, Chars* to) { AppendMapped(c, kFoldedRuns, kFoldedSeveral, to); });
  if (IsPlain(*text)) return;
  Each(text, [](const Char& c, Chars* to) { AppendDecomposed(c.c, true, c, to); });
  text->erase(std::remove_if(text->begin(), text->end(), [](const Char& c) { return common::InRanges(kIgnorable, c.c); }), text->end());
  Reorder(text);
  Compose(text);
}

void Lower(Chars* text) {
  Each(text, [](const Char& c, Chars* to) { AppendMapped(c, kLowerRuns, kLowerSeveral, to); });
}

bool IsSpace(uint32_t c) {
  return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
         c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool IsPunctuation(uint32_t c) {
  const uint32_t group = GroupOf(c);
  return group == kPunctuation || group == kConnector;
}
bool IsNumber(uint32_t c) {
  const uint32_t group = GroupOf(c);
  return group == kNumber || group == kFraction;
}
bool IsMark(uint32_t c) {
  const uint32_t group = GroupOf(c);
  return group == kMn || group == kMark;
}
bool IsNonspacing(uint32_t c) { return GroupOf(c) == kMn; }
bool IsOther(uint32_t c) { return GroupOf(c) == kOther; }
bool IsWord(uint32_t c) {
  // Joiners, and symbols that are letters in circles and squares.
  constexpr Range kMore[] = {{0x200c, 0x200d}, {0x24b6, 0x24e9}, {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189}};
  if (std::any_of(std::begin(kMore), std::end(kMore), [c](const Range& r) { return r.first <= c && c <= r.last; })) return true;
  const uint32_t group = GroupOf(c);
  return group == kLetter || group == kMn || group == kMark || group == kNumber || group == kConnector;
}

}  // namespace thalweg::text
