// RegexSplitWithOffsets.
#include "kernels.h"
#include "pattern.h"
#include "register.h"

namespace thalweg::text {
namespace {

struct Cut {
  uint64_t begin, end;
};
using Cuts = tw::TempVector<Cut>;

// A match of the delimiters ends the part before it. The rest of the text is then seen as a text of
// its own.
void Split(std::string_view text, const Pattern& delimiters, const Pattern* kept, Cuts* to) {
  size_t at = 0;
  while (const auto match = delimiters.Find(text, at, true)) {
    if (at < match->group_begin) to->push_back({at, match->group_begin});
    if (kept && kept->Matches(text.substr(match->group_begin, match->group_end - match->group_begin)))
      to->push_back({match->group_begin, match->group_end});
    at = match->end;
  }
  if (at < text.size()) to->push_back({at, text.size()});
}

void RegexSplit(tw::Frame f, tw::In<tw_string> input, tw::In<tw_string> delimiters, tw::In<tw_string> keep, tw::Out<tw_string> tokens,
                tw::Out<int64_t> begins, tw::Out<int64_t> ends, tw::Out<tw::Any> splits) {
  const Pattern pattern(f, View(One(delimiters, "delim_regex_pattern")), "delim_regex_pattern");
  const std::string_view keep_text = View(One(keep, "keep_delim_regex_pattern"));
  std::optional<Pattern> kept;
  if (!keep_text.empty()) kept.emplace(f, keep_text, "keep_delim_regex_pattern");
  const tw::Charge charge(f, input.size() * sizeof(Cuts));
  std::vector<Cuts> rows(input.size(), Cuts(f));
  EachRow(f, input.size(), [&](uint64_t i) { Split(View(input[i]), pattern, kept ? &*kept : nullptr, &rows[i]); });
  const int64_t n = PutSplits(splits, rows, [](const Cuts& row) { return row.size(); });
  Allocate(tokens, {n});
  Allocate(begins, {n});
  Allocate(ends, {n});
  uint64_t at = 0;
  for (uint64_t i = 0; i < input.size(); ++i) {
    for (const Cut& s : rows[i]) {
      tokens.set(at, View(input[i]).substr(s.begin, s.end - s.begin));
      begins[at] = int64_t(s.begin);
      ends[at++] = int64_t(s.end);
    }
  }
}

}  // namespace

void register_regex_split(tw::Plugin& p) {
  p.kernel<RegexSplit>("RegexSplitWithOffsets(string, string, string -> string, int64, int64, int64) @CPU");
}

}  // namespace thalweg::text
