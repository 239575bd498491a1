// Texts as numbers of characters and back: UnicodeDecode, UnicodeDecodeWithOffsets, UnicodeEncode,
// UnicodeTranscode.
#include "ops/common/shape.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

constexpr int64_t kLastCharacter = 0x10ffff;

void CheckReplacement(const tw::Shape& s) {
  const int64_t c = s.i("replacement_char");
  if (c < 0 || c > kLastCharacter || (c >= 0xd800 && c < 0xe000))
    Fail("'replacement_char' is " + tw::text(c) + "; it must be the number of a character, at most " + tw::text(kLastCharacter) +
         " and no half of a UTF-16 pair");
}

void DecodeRule(const tw::Shape& s) {
  CheckReplacement(s);
  const MaybeDims in = In(s, 0);
  const int64_t n = in ? Product(s, *in) : -1;
  s.out(0, Dims{s.calc('+', n, 1)});
  s.out(1, Dims{-1});
  if (s.c->n_out > 2) s.out(2, Dims{-1});
}

void EncodeRule(const tw::Shape& s) {
  CheckReplacement(s);
  WantVector(s, 0, "input_values");
  WantVector(s, 1, "input_splits");
  if (s.known(1) && s.dim(1, 0) == 0) Fail("'input_splits' is empty; it needs at least one entry");
  s.out(0, Dims{s.calc('-', s.known(1) ? s.dim(1, 0) : -1, 1)});
}

void TranscodeRule(const tw::Shape& s) {
  CheckReplacement(s);
  Set(s, 0, In(s, 0));
}

#define ERRORS "errors: {\"strict\", \"replace\", \"ignore\"} = \"replace\"; replacement_char: int = 65533; "
#define TEXT "no_gradient \"text has no derivative\"; "
#define CONTROLS "replace_control_characters: bool = false; "

}  // namespace

void register_unicode(tw::Plugin& p) {
  p.op<nullptr, DecodeRule>(
      "UnicodeDecode(input: string) -> (row_splits: Tsplits, char_values: int32); input_encoding: string; " ERRORS CONTROLS
      "Tsplits: " OPS_INDEX " = int64; " TEXT "doc \"the numbers of the characters of each text, as rows\"");
  p.op<nullptr, DecodeRule>(
      "UnicodeDecodeWithOffsets(input: string) -> (row_splits: Tsplits, char_values: int32, char_to_byte_starts: int64); "
      "input_encoding: string; " ERRORS CONTROLS "Tsplits: " OPS_INDEX " = int64; " TEXT
      "doc \"the numbers of the characters of each text, and where each character begins\"");
  p.op<nullptr, EncodeRule>("UnicodeEncode(input_values: int32, input_splits: Tsplits) -> (output: string); " ERRORS
                            "output_encoding: {\"UTF-8\", \"UTF-16-BE\", \"UTF-32-BE\"}; Tsplits: " OPS_INDEX " = int64; " TEXT
                            "doc \"a text for each row of numbers of characters\"");
  p.op<nullptr, TranscodeRule>(
      "UnicodeTranscode(input: string) -> (output: string); input_encoding: string; output_encoding: {\"UTF-8\", \"UTF-16-BE\", "
      "\"UTF-32-BE\"}; " ERRORS CONTROLS TEXT "doc \"texts in another encoding\"");
}

}  // namespace thalweg::ops
