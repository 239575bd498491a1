// Regular expressions by RE2, whose time is linear in the text and whose memory is bounded, whatever the pattern. Text that is no UTF-8
// matches nothing but \C where it is broken.
#include <re2/re2.h>

#include "kernels/common/text.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

re2::StringPiece Piece(std::string_view text) { return {text.data(), text.size()}; }

class Pattern {
 public:
  explicit Pattern(std::string_view text) : re_(Piece(text), Options()) {
    if (re_.ok()) return;
    std::string_view why = re_.error();  // "what: where", of any length
    if (why.ends_with(re_.error_arg())) why.remove_suffix(re_.error_arg().size());
    Invalid("'pattern' is " + Quoted(text) + ", which is no regular expression: " + std::string(why) + Quoted(re_.error_arg()));
  }

  void Match(const tw::In<tw_string>& input, const tw::Out<bool>& output) const {
    for (uint64_t i = 0; i < output.size(); ++i) output[i] = RE2::FullMatch(Piece(View(input[i])), re_);
  }

  void Replace(const tw::In<tw_string>& input, std::string_view rewrite, bool all, const tw::Out<tw_string>& output) const {
    CheckRewrite(rewrite);
    for (uint64_t i = 0; i < output.size(); ++i) {
      std::string text(View(input[i]));
      all ? void(RE2::GlobalReplace(&text, re_, Piece(rewrite))) : void(RE2::Replace(&text, re_, Piece(rewrite)));
      output.set(i, text);
    }
  }

  void CheckRewrite(std::string_view rewrite) const {
    std::string error;
    if (!re_.CheckRewriteString(Piece(rewrite), &error)) Invalid("'rewrite' is " + Quoted(rewrite) + ": " + error);
  }

 private:
  static RE2::Options Options() {
    RE2::Options options;
    options.set_log_errors(false);
    return options;
  }

  RE2 re_;
};

class StaticMatch {
 public:
  explicit StaticMatch(const tw::Node& n) : pattern_(n.s("pattern")) {}
  void operator()(tw::In<tw_string> input, tw::Out<bool> output) const { pattern_.Match(input, output); }

 private:
  Pattern pattern_;
};

class StaticReplace {
 public:
  explicit StaticReplace(const tw::Node& n) : pattern_(n.s("pattern")), rewrite_(n.s("rewrite")), all_(n.b("replace_global")) {
    pattern_.CheckRewrite(rewrite_);
  }
  void operator()(tw::In<tw_string> input, tw::Out<tw_string> output) const { pattern_.Replace(input, rewrite_, all_, output); }

 private:
  Pattern pattern_;
  std::string rewrite_;
  bool all_;
};

void Match(tw::In<tw_string> input, tw::In<tw_string> pattern, tw::Out<bool> output) { Pattern(View(pattern[0])).Match(input, output); }

class Replace {
 public:
  explicit Replace(const tw::Node& n) : all_(n.b("replace_global")) {}
  void operator()(tw::In<tw_string> input, tw::In<tw_string> pattern, tw::In<tw_string> rewrite, tw::Out<tw_string> output) const {
    Pattern(View(pattern[0])).Replace(input, View(rewrite[0]), all_, output);
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
