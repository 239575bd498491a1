// Regular expressions by RE2: the time is linear in the text, and the memory is bounded for every
// pattern. At invalid UTF-8 the text matches only \C.
#include <algorithm>
#include <optional>

#include <re2/re2.h>

#include "kernels/common/temp.h"
#include "kernels/common/text.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

re2::StringPiece Piece(std::string_view text) { return {text.data(), text.size()}; }

class Pattern {
 public:
  // payer: is charged for the memory that RE2 may use for the pattern and for matching.
  Pattern(tw::Payer payer, std::string_view text) {
    held_.set(payer, kLittle + kPerByte * text.size());
    re_.emplace(Piece(text), Options(kLittle));
    if (re_->error_code() == RE2::ErrorPatternTooLarge) {
      re_.reset();
      held_.add(payer, kMost - kLittle);
      re_.emplace(Piece(text), Options(kMost));
    }
    if (re_->ok()) return;
    std::string_view why = re_->error();  // "what: where", of any length
    if (why.ends_with(re_->error_arg())) why.remove_suffix(re_->error_arg().size());
    Invalid("'pattern' is " + Quoted(text) + ", which is no regular expression: " + std::string(why) + Quoted(re_->error_arg()));
  }

  void Match(const tw::In<tw_string>& input, const tw::Out<bool>& output) const {
    for (uint64_t i = 0; i < output.size(); ++i) output[i] = RE2::FullMatch(Piece(View(input[i])), *re_);
  }

  void Replace(tw::Frame f, const tw::In<tw_string>& input, std::string_view rewrite, bool all, const tw::Out<tw_string>& output) const {
    CheckRewrite(rewrite);
    for (uint64_t i = 0; i < output.size(); ++i) {
      tw::TempString text(f);
      Replaced(View(input[i]), rewrite, all, &text);
      output.set(i, text);
    }
  }

  void CheckRewrite(std::string_view rewrite) const {
    std::string error;
    if (!re_->CheckRewriteString(Piece(rewrite), &error)) Invalid("'rewrite' is " + Quoted(rewrite) + ": " + error);
  }

 private:
  static constexpr int kGroups = 10;  // the groups that a rewrite may name
  // Bytes of RE2's programs and states: enough for most patterns, and RE2's own default, which
  // TensorFlow uses. kPerByte is the memory that a byte of a pattern may take after parsing.
  static constexpr int64_t kLittle = 512 << 10, kMost = 8 << 20, kPerByte = 96;

  // Does the work of RE2::Replace and RE2::GlobalReplace in memory that is charged to the session,
  // because a rewrite may have any length and there may be as many matches as characters.
  void Replaced(std::string_view text, std::string_view rewrite, bool all, tw::TempString* to) const {
    if (!text.data()) text = "";  // a non-null place to match at
    re2::StringPiece groups[kGroups];
    const int wanted = 1 + RE2::MaxSubmatch(Piece(rewrite));
    const char *at = text.data(), *end = at + text.size(), *last_end = nullptr;
    while (at <= end && re_->Match(Piece(text), size_t(at - text.data()), text.size(), RE2::UNANCHORED, groups, wanted)) {
      const char* found = groups[0].data();
      to->append(at, size_t(found - at));
      at = found;
      if (groups[0].empty() && found == last_end) {  // no two empty matches at one place: the next character is skipped
        const size_t n = std::min<size_t>(CharacterSize(at, end), size_t(end - at));
        to->append(at, n);
        at += std::max<size_t>(n, 1);
        continue;
      }
      AppendRewrite(rewrite, groups, to);
      at = last_end = found + groups[0].size();
      if (!all) break;
    }
    if (at < end) to->append(at, size_t(end - at));
  }

  static void AppendRewrite(std::string_view rewrite, const re2::StringPiece* groups, tw::TempString* to) {
    for (size_t k = 0; k < rewrite.size(); ++k) {
      if (rewrite[k] != '\\') {
        to->push_back(rewrite[k]);
      } else if (++k < rewrite.size() && rewrite[k] != '\\') {
        const re2::StringPiece& group = groups[rewrite[k] - '0'];
        if (!group.empty()) to->append(group.data(), group.size());
      } else {
        to->push_back('\\');
      }
    }
  }

  // Returns the bytes of the UTF-8 character that begins here, or 1 if none does.
  static size_t CharacterSize(const char* at, const char* end) {
    if (at == end) return 0;
    const auto byte = [at](size_t k) { return uint8_t(at[k]); };
    const size_t n = byte(0) < 0x80                      ? 1
                     : byte(0) >= 0xc2 && byte(0) < 0xe0 ? 2
                     : (byte(0) & 0xf0) == 0xe0          ? 3
                     : byte(0) >= 0xf0 && byte(0) < 0xf5 ? 4
                                                         : 1;
    if (n > size_t(end - at)) return 1;
    for (size_t k = 1; k < n; ++k) {
      if ((byte(k) & 0xc0) != 0x80) return 1;
    }
    const bool too_long = (n == 3 && byte(0) == 0xe0 && byte(1) < 0xa0) || (n == 4 && byte(0) == 0xf0 && byte(1) < 0x90);
    return too_long || (n == 4 && byte(0) == 0xf4 && byte(1) > 0x8f) ? 1 : n;
  }

  static RE2::Options Options(int64_t memory) {
    RE2::Options options;
    options.set_max_mem(memory);
    options.set_log_errors(false);
    return options;
  }

  tw::Holding held_;  // declared first, so that it is destroyed last
  std::optional<RE2> re_;
};

class StaticMatch {
 public:
  explicit StaticMatch(const tw::Node& n) : pattern_(tw::Payer(n.host()), n.s("pattern")) {}
  void operator()(tw::In<tw_string> input, tw::Out<bool> output) const { pattern_.Match(input, output); }

 private:
  Pattern pattern_;
};

class StaticReplace {
 public:
  explicit StaticReplace(const tw::Node& n)
      : pattern_(tw::Payer(n.host()), n.s("pattern")), rewrite_(n.s("rewrite")), all_(n.b("replace_global")) {
    pattern_.CheckRewrite(rewrite_);
  }
  void operator()(tw::Frame f, tw::In<tw_string> input, tw::Out<tw_string> output) const {
    pattern_.Replace(f, input, rewrite_, all_, output);
  }

 private:
  Pattern pattern_;
  std::string rewrite_;
  bool all_;
};

void Match(tw::Frame f, tw::In<tw_string> input, tw::In<tw_string> pattern, tw::Out<bool> output) {
  Pattern(f, View(pattern[0])).Match(input, output);
}

class Replace {
 public:
  explicit Replace(const tw::Node& n) : all_(n.b("replace_global")) {}
  void operator()(tw::Frame f, tw::In<tw_string> input, tw::In<tw_string> pattern, tw::In<tw_string> rewrite,
                  tw::Out<tw_string> output) const {
    Pattern(f, View(pattern[0])).Replace(f, input, View(rewrite[0]), all_, output);
  }

 private:
  bool all_;
};

}  // namespace

void register_regex(tw::Plugin& p) {
  p.kernel<StaticMatch>("StaticRegexFullMatch @CPU");
  p.kernel<StaticReplace>("StaticRegexReplace @CPU");
  p.kernel<Match>("RegexFullMatch @CPU");
  p.kernel<Replace>("RegexReplace @CPU");
}

}  // namespace thalweg::cpu
