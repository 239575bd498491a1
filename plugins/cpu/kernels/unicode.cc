// UnicodeDecode, UnicodeDecodeWithOffsets, UnicodeEncode and UnicodeTranscode. Bytes that are no
// character are errors of the longest run of bytes that could have begun one, as the Unicode
// standard recommends (chapter 3.9, "U+FFFD substitution of maximal subparts").
#include <string>

#include "common/utf8.h"
#include "kernels/common/temp.h"
#include "kernels/common/text.h"
#include "kernels/ragged.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

enum class Encoding { kUtf8, kUtf16Be, kUtf16Le, kUtf32Be, kUtf32Le, kAscii, kLatin1 };

constexpr struct {
  const char* name;
  Encoding encoding;
} kEncodings[] = {{"UTF-8", Encoding::kUtf8},        {"UTF8", Encoding::kUtf8},         {"UTF-16-BE", Encoding::kUtf16Be},
                  {"UTF-16BE", Encoding::kUtf16Be},  {"UTF-16-LE", Encoding::kUtf16Le}, {"UTF-16LE", Encoding::kUtf16Le},
                  {"UTF-32-BE", Encoding::kUtf32Be}, {"UTF-32BE", Encoding::kUtf32Be},  {"UTF-32-LE", Encoding::kUtf32Le},
                  {"UTF-32LE", Encoding::kUtf32Le},  {"US-ASCII", Encoding::kAscii},    {"ASCII", Encoding::kAscii},
                  {"ISO-8859-1", Encoding::kLatin1}, {"LATIN1", Encoding::kLatin1}};

Encoding FindEncoding(const tw::Node& n, const char* attribute) {
  const std::string_view name = n.s(attribute);
  std::string upper(name), known;
  for (char& c : upper)
    if (c >= 'a' && c <= 'z') c = char(c - 'a' + 'A');
  for (const auto& e : kEncodings) {
    if (upper == e.name) return e.encoding;
    known += (known.empty() ? "" : ", ") + std::string(e.name);
  }
  throw tw::Error{TW_UNIMPLEMENTED, std::string(attribute) + " is " + Quoted(name) + ", which is no known encoding; known are " + known};
}

constexpr int32_t kNone = -1;  // no character

bool IsCharacter(int64_t c) { return c >= 0 && c <= 0x10ffff && (c < 0xd800 || c >= 0xe000); }

// Reads the character at `at`, sets `size` to its bytes, at least 1, and returns it or kNone.
int32_t ReadUtf8(std::string_view text, size_t at, size_t* size) {
  size_t end = at;
  bool valid = false;
  const uint32_t c = common::NextChar(text, &end, &valid);
  *size = end - at;
  return valid ? int32_t(c) : kNone;
}

// Reads a number of `bytes` bytes; kNone if the text ends before.
int64_t ReadUnit(std::string_view text, size_t at, size_t bytes, bool big) {
  if (text.size() - at < bytes) return kNone;
  uint32_t v = 0;
  for (size_t i = 0; i < bytes; ++i) v = v << 8 | uint8_t(text[at + (big ? i : bytes - 1 - i)]);
  return v;
}

int32_t ReadUtf16(std::string_view text, size_t at, bool big, size_t* size) {
  const int64_t unit = ReadUnit(text, at, 2, big);
  *size = unit < 0 ? text.size() - at : 2;
  if (unit < 0xd800 || unit >= 0xe000) return int32_t(unit);
  if (unit >= 0xdc00 || at + 2 > text.size()) return kNone;
  const int64_t second = ReadUnit(text, at + 2, 2, big);
  if (second < 0xdc00 || second >= 0xe000) return kNone;
  *size = 4;
  return int32_t(0x10000 + ((unit - 0xd800) << 10) + (second - 0xdc00));
}

int32_t ReadCharacter(Encoding encoding, std::string_view text, size_t at, size_t* size) {
  switch (encoding) {
    case Encoding::kUtf8: return ReadUtf8(text, at, size);
    case Encoding::kUtf16Be:
    case Encoding::kUtf16Le: return ReadUtf16(text, at, encoding == Encoding::kUtf16Be, size);
    case Encoding::kUtf32Be:
    case Encoding::kUtf32Le: {
      const int64_t c = ReadUnit(text, at, 4, encoding == Encoding::kUtf32Be);
      *size = c < 0 ? text.size() - at : 4;
      return IsCharacter(c) ? int32_t(c) : kNone;
    }
    case Encoding::kAscii: *size = 1; return uint8_t(text[at]) < 0x80 ? text[at] : kNone;
    case Encoding::kLatin1: *size = 1; return uint8_t(text[at]);
  }
  return kNone;
}

template <class Text>
void Append(Encoding encoding, int32_t c, Text* out) {
  const auto put = [out](int32_t byte) { out->push_back(char(byte & 0xff)); };
  if (encoding == Encoding::kUtf32Be) {
    for (int shift = 24; shift >= 0; shift -= 8) put(c >> shift);
  } else if (encoding == Encoding::kUtf16Be) {
    const int32_t units[] = {c < 0x10000 ? c : 0xd800 + ((c - 0x10000) >> 10), 0xdc00 + ((c - 0x10000) & 0x3ff)};
    for (int i = 0; i < (c < 0x10000 ? 1 : 2); ++i) {
      put(units[i] >> 8);
      put(units[i]);
    }
  } else {
    common::AppendChar(uint32_t(c), out);
  }
}

// What becomes of characters that are none.
struct Errors {
  explicit Errors(const tw::Node& n)
      : strict(n.s("errors") == "strict"),
        ignore(n.s("errors") == "ignore"),
        controls(n.find("replace_control_characters") && n.b("replace_control_characters")),
        replacement(int32_t(n.i("replacement_char"))) {}
  const bool strict, ignore, controls;
  const int32_t replacement;

  // Calls add(c, at) for each character of a text, which begins at byte `at`.
  template <class F>
  void Read(Encoding encoding, const tw_view* input, uint64_t i, F&& add) const {
    const std::string_view text = View(StringAt(input, i));
    for (size_t at = 0, size = 0; at < text.size(); at += size) {
      const int32_t c = ReadCharacter(encoding, text, at, &size);
      if (c == kNone && strict)
        Invalid(ElementText("input", input, i) + ", whose byte " + std::to_string(at) +
                " begins no character; errors may be replaced or ignored");
      if (c != kNone && !(controls && c <= 0x1f))
        add(c, at);
      else if (!ignore)
        add(replacement, at);
    }
  }
};

template <bool kOffsets>
class Decode {
 public:
  explicit Decode(const tw::Node& n) : encoding_(FindEncoding(n, "input_encoding")), errors_(n) {}

  void Run(tw::Frame f, const tw_view* input, const tw::Out<tw::Any>& splits, const tw::Out<int32_t>& values,
           const tw::Out<int64_t>* starts) const {
    tw::TempVector<int32_t> found(f);
    tw::TempVector<int64_t> begins(f);
    const int64_t entries = int64_t(input->count) + 1;
    Allocate(splits, &entries, 1);
    PutIndex(splits.v(), 0, 0);
    for (uint64_t i = 0; i < input->count; ++i) {
      errors_.Read(encoding_, input, i, [&](int32_t c, size_t at) {
        found.push_back(c);
        if (kOffsets) begins.push_back(int64_t(at));
      });
      CheckCountable(splits.v()->dtype, int64_t(found.size()));
      PutIndex(splits.v(), i + 1, int64_t(found.size()));
    }
    const int64_t n = int64_t(found.size());
    Allocate(values, &n, 1);
    std::copy(found.begin(), found.end(), values.data());
    if (!kOffsets) return;
    Allocate(*starts, &n, 1);
    std::copy(begins.begin(), begins.end(), starts->data());
  }

 private:
  Encoding encoding_;
  Errors errors_;
};

class DecodePlain : Decode<false> {
 public:
  explicit DecodePlain(const tw::Node& n) : Decode(n) {}
  void operator()(tw::Frame f, tw::In<tw_string> input, tw::Out<tw::Any> splits, tw::Out<int32_t> values) const {
    Run(f, input.v, splits, values, nullptr);
  }
};

class DecodeWithOffsets : Decode<true> {
 public:
  explicit DecodeWithOffsets(const tw::Node& n) : Decode(n) {}
  void operator()(tw::Frame f, tw::In<tw_string> input, tw::Out<tw::Any> splits, tw::Out<int32_t> values, tw::Out<int64_t> starts) const {
    Run(f, input.v, splits, values, &starts);
  }
};

class Encode {
 public:
  explicit Encode(const tw::Node& n) : encoding_(FindEncoding(n, "output_encoding")), errors_(n) {}

  void operator()(tw::Frame f, tw::In<int32_t> values, tw::In<tw::Any> splits, tw::Out<tw_string> output) const {
    if (values.rank() != 1) Invalid("input_values " + DimsText(values.v) + " must be a vector");
    CheckSplits(splits.v, int64_t(values.size()), "input_splits");
    const int64_t rows = int64_t(splits.size()) - 1;
    Allocate(output, &rows, 1);
    tw::TempString text(f);
    for (int64_t row = 0; row < rows; ++row) {
      text.clear();
      for (int64_t i = IndexAt(splits.v, uint64_t(row)); i < IndexAt(splits.v, uint64_t(row) + 1); ++i) {
        const int32_t c = values[uint64_t(i)];
        const bool good = IsCharacter(c);
        if (!good && errors_.strict)
          Invalid("input_values[" + std::to_string(i) + "] is " + std::to_string(c) + ", the number of no character");
        if (good || !errors_.ignore) Append(encoding_, good ? c : errors_.replacement, &text);
      }
      output.set(uint64_t(row), text);
    }
  }

 private:
  Encoding encoding_;
  Errors errors_;
};

class Transcode {
 public:
  explicit Transcode(const tw::Node& n) : from_(FindEncoding(n, "input_encoding")), to_(FindEncoding(n, "output_encoding")), errors_(n) {}

  void operator()(tw::Frame f, tw::In<tw_string> input, tw::Out<tw_string> output) const {
    tw::TempString text(f);
    for (uint64_t i = 0; i < input.size(); ++i) {
      text.clear();
      errors_.Read(from_, input.v, i, [&](int32_t c, size_t) { Append(to_, c, &text); });
      output.set(i, text);
    }
  }

 private:
  Encoding from_, to_;
  Errors errors_;
};

}  // namespace

void register_unicode(tw::Plugin& p) {
  p.kernel<DecodePlain>("UnicodeDecode @CPU");
  p.kernel<DecodeWithOffsets>("UnicodeDecodeWithOffsets @CPU");
  p.kernel<Encode>("UnicodeEncode @CPU");
  p.kernel<Transcode>("UnicodeTranscode @CPU");
}

}  // namespace thalweg::cpu
