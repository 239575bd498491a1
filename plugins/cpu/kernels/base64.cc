// EncodeBase64 and DecodeBase64: base64url of RFC 4648. Bits after the last whole byte are ignored.
#include <array>
#include <string>

#include "kernels/common/parallel.h"
#include "kernels/common/temp.h"
#include "kernels/common/text.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

constexpr std::array<int8_t, 256> Values() {
  std::array<int8_t, 256> values{};
  for (int8_t& v : values) v = -1;
  for (int8_t i = 0; i < 64; ++i) values[uint8_t(kDigits[i])] = i;
  return values;
}
constexpr std::array<int8_t, 256> kValues = Values();

class Encode {
 public:
  explicit Encode(const tw::Node& n) : pad_(n.b("pad")) {}
  void operator()(tw::Frame f, tw::In<tw_string> input, tw::Out<tw_string> output) const {
    tw::TempString text(f);
    for (uint64_t i = 0; i < output.size(); ++i) {
      text.clear();
      Append(View(input[i]), &text);
      output.set(i, text);
    }
  }

 private:
  // Three bytes become four digits; one or two bytes at the end become two or three.
  void Append(std::string_view bytes, tw::TempString* text) const {
    for (; !bytes.empty(); bytes.remove_prefix(std::min<size_t>(3, bytes.size()))) {
      const size_t n = std::min<size_t>(3, bytes.size());
      uint32_t bits = 0;
      for (size_t k = 0; k < 3; ++k) bits = bits << 8 | (k < n ? uint8_t(bytes[k]) : 0);
      for (size_t k = 0; k <= n; ++k) *text += kDigits[bits >> (18 - 6 * k) & 63];
      if (pad_) text->append(3 - n, '=');
    }
  }

  bool pad_;
};

void DecodeTexts(const tw::In<tw_string>& input, uint64_t begin, uint64_t end, const tw::Out<tw_string>& output) {
  tw::TempString bytes(output.f);
  for (uint64_t i = begin; i < end; ++i) {
    std::string_view digits = View(input[i]);
    for (int k = 0; k < 2 && digits.size() % 4 == (k ? 3 : 0) && digits.ends_with('='); ++k) digits.remove_suffix(1);
    if (digits.size() % 4 == 1)
      Invalid(ElementText("input", input.v, i) + ", with " + std::to_string(digits.size()) + " digits, one too many or three too few");
    bytes.resize(digits.size() / 4 * 3 + digits.size() % 4);
    char* to = bytes.data();
    uint32_t bits = 0;
    for (size_t k = 0; k < digits.size(); ++k) {
      const int8_t value = kValues[uint8_t(digits[k])];
      if (value < 0)
        Invalid(ElementText("input", input.v, i) + ", with " + Quoted(digits.substr(k, 1)) + ", which is no digit of base64url");
      bits = bits << 6 | uint32_t(value);
      if (k % 4) *to++ = char(bits >> (6 - k % 4 * 2) & 255);
    }
    output.set(i, {bytes.data(), size_t(to - bytes.data())});
  }
}

void Decode(tw::Frame f, tw::In<tw_string> input, tw::Out<tw_string> output) {
  ParallelFor(f.f, int64_t(output.size()), 200,
              [&](int64_t begin, int64_t end) { DecodeTexts(input, uint64_t(begin), uint64_t(end), output); });
}

}  // namespace

void register_base64(tw::Plugin& p) {
  p.kernel<Encode>("EncodeBase64 @CPU");
  p.kernel<Decode>("DecodeBase64 @CPU");
}

}  // namespace thalweg::cpu
