// A regular expression in the syntax of RE2: time linear in the text, memory bounded for every
// pattern. Threads: many readers.
#ifndef THALWEG_PLUGINS_TEXT_PATTERN_H_
#define THALWEG_PLUGINS_TEXT_PATTERN_H_

#include <optional>
#include <string_view>

#include <re2/re2.h>

#include "thalweg/cpp/memory.hpp"

namespace thalweg::text {

class Pattern {
 public:
  struct Match {
    size_t begin, end;              // of the match
    size_t group_begin, group_end;  // of group 1; of the match if group 1 took no part
    bool group;                     // whether group 1 took part
  };

  // payer: is charged for the memory that RE2 may use. what: names the pattern in errors. Throws
  // INVALID_ARGUMENT.
  Pattern(tw::Payer payer, std::string_view pattern, const char* what);

  // Finds the first match in text[at, ...). Nothing before `at` is looked at if `alone`: ^ then
  // matches at `at`. An empty match does not count.
  std::optional<Match> Find(std::string_view text, size_t at, bool alone) const;
  bool Matches(std::string_view text) const;  // as a whole

 private:
  tw::Holding held_;  // declared first, so that it is destroyed last
  std::optional<re2::RE2> re_;
};

}  // namespace thalweg::text

#endif  // THALWEG_PLUGINS_TEXT_PATTERN_H_
