#include "pattern.h"

#include <algorithm>
#include <string>

#include "chars.h"

namespace thalweg::text {
namespace {

// Bytes of RE2's programs and states: enough for most patterns, and RE2's own default. kPerByte is
// the memory that a byte of a pattern may take after parsing.
constexpr int64_t kLittle = 1 << 20, kMost = 8 << 20, kPerByte = 96;

re2::StringPiece Piece(std::string_view text) { return {text.data(), text.size()}; }

re2::RE2::Options OptionsFor(int64_t memory) {
  re2::RE2::Options options;
  options.set_max_mem(memory);
  options.set_log_errors(false);
  return options;
}

}  // namespace

Pattern::Pattern(tw::Payer payer, std::string_view pattern, const char* what) {
  held_.set(payer, uint64_t(kLittle) + uint64_t(kPerByte) * pattern.size());
  re_.emplace(Piece(pattern), OptionsFor(kLittle));
  if (re_->error_code() == re2::RE2::ErrorPatternTooLarge) {
    re_.reset();
    held_.add(payer, uint64_t(kMost - kLittle));
    re_.emplace(Piece(pattern), OptionsFor(kMost));
  }
  if (re_->ok()) return;
  std::string_view why = re_->error();  // "what: where", of any length
  if (why.ends_with(re_->error_arg())) why.remove_suffix(re_->error_arg().size());
  Invalid("'" + std::string(what) + "' is " + Quoted(pattern) + ", which is no regular expression: " + std::string(why) +
          Quoted(re_->error_arg()));
}

std::optional<Pattern::Match> Pattern::Find(std::string_view text, size_t at, bool alone) const {
  re2::StringPiece found[2];
  const int groups = std::min(re_->NumberOfCapturingGroups(), 1) + 1;
  while (at <= text.size()) {
    const std::string_view seen = alone ? text.substr(at) : text;
    if (!re_->Match(Piece(seen), alone ? 0 : at, seen.size(), re2::RE2::UNANCHORED, found, groups)) return std::nullopt;
    const auto begin = size_t(found[0].data() - text.data());
    if (found[0].empty()) {
      at = begin;
      if (at == text.size()) return std::nullopt;
      NextChar(text, &at);
      continue;
    }
    const bool group = groups > 1 && found[1].data() != nullptr;
    const re2::StringPiece& part = found[group ? 1 : 0];
    const auto part_begin = size_t(part.data() - text.data());
    return Match{begin, begin + found[0].size(), part_begin, part_begin + part.size(), group};
  }
  return std::nullopt;
}

bool Pattern::Matches(std::string_view text) const { return re2::RE2::FullMatch(Piece(text), *re_); }

}  // namespace thalweg::text
