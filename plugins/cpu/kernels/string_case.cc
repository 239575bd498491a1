// StringLower, StringUpper and StringStrip.
#include <algorithm>

#include "kernels/common/temp.h"
#include "kernels/common/text.h"
#include "kernels/register.h"
#include "kernels/unicode_case.h"

namespace thalweg::cpu {
namespace {

char AsciiLower(char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; }
char AsciiUpper(char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; }

template <char (*kAscii)(char), std::string (*kUnicode)(std::string_view)>
class Case {
 public:
  explicit Case(const tw::Node& n) : unicode_(n.s("encoding") == "utf-8") {}
  void operator()(tw::Frame f, tw::In<tw_string> input, tw::Out<tw_string> output) const {
    for (uint64_t i = 0; i < output.size(); ++i) {
      // A character may become three. During growth the old text exists too, and all characters
      // exist as numbers.
      const tw::Charge charge(f, (unicode_ ? 13 : 1) * input[i].size);
      output.set(i, Changed(View(input[i])));
    }
  }

 private:
  std::string Changed(std::string_view text) const {
    if (unicode_) return kUnicode(text);
    std::string changed(text);
    std::transform(changed.begin(), changed.end(), changed.begin(), kAscii);
    return changed;
  }

  bool unicode_;
};

void Strip(tw::In<tw_string> input, tw::Out<tw_string> output) {
  for (uint64_t i = 0; i < output.size(); ++i) output.set(i, Stripped(View(input[i])));
}

}  // namespace

void register_string_case(tw::Plugin& p) {
  p.kernel<Case<AsciiLower, UnicodeLower>>("StringLower @CPU");
  p.kernel<Case<AsciiUpper, UnicodeUpper>>("StringUpper @CPU");
  p.kernel<Strip>("StringStrip @CPU");
}

}  // namespace thalweg::cpu
