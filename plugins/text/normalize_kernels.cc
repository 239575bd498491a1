// CaseFoldUTF8 and NormalizeUTF8.
#include <algorithm>

#include "kernels.h"
#include "register.h"
#include "unicode.h"

namespace thalweg::text {
namespace {

// Applies change(&chars) to each text.
template <class F>
void Change(tw::Frame f, const tw::In<tw_string>& input, const tw::Out<tw_string>& output, const F& change) {
  const tw::Charge charge(f, input.size() * sizeof(tw::TempString));
  std::vector<tw::TempString> texts(input.size(), tw::TempString(f));
  EachRow(f, input.size(), [&](uint64_t i) {
    Chars chars(f);
    DecodeChars(View(input[i]), &chars);
    change(&chars);
    texts[i].reserve(chars.size());
    for (const Char& c : chars) AppendChar(c.c, &texts[i]);
  });
  for (uint64_t i = 0; i < input.size(); ++i) output.set(i, texts[i]);
}

void CaseFoldUtf8(tw::Frame f, tw::In<tw_string> input, tw::Out<tw_string> output) { Change(f, input, output, CaseFold); }

class NormalizeUtf8 {
 public:
  explicit NormalizeUtf8(const tw::Node& n) : form_(FormOf(n.s("normalization_form"))) {}
  void operator()(tw::Frame f, tw::In<tw_string> input, tw::Out<tw_string> output) const {
    Change(f, input, output, [this](Chars* text) { Normalize(form_, text); });
  }

 private:
  static Form FormOf(std::string_view name) {
    std::string upper(name.substr(0, 5));
    for (char& c : upper) {
      if (c >= 'a' && c <= 'z') c = char(c - 'a' + 'A');
    }
    if (upper == "NFC") return Form::kNfc;
    if (upper == "NFD") return Form::kNfd;
    if (upper == "NFKC") return Form::kNfkc;
    if (upper == "NFKD") return Form::kNfkd;
    Invalid("'normalization_form' is " + Quoted(name) + "; it must be NFC, NFD, NFKC or NFKD");
  }

  const Form form_;
};

}  // namespace

void register_normalize(tw::Plugin& p) {
  p.kernel<CaseFoldUtf8>("CaseFoldUTF8 @CPU");
  p.kernel<NormalizeUtf8>("NormalizeUTF8 @CPU");
}

}  // namespace thalweg::text
