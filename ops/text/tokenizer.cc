// Tokenizers as tokenizer.json describes them: the op that makes a handle, and ops that turn texts
// into tokens and back.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void TextEncodeRule(const tw::Shape& s) {
  WantVector(s, 1, "input");
  s.out(0, Dims{-1});
  s.out(1, Dims{s.known(1) ? s.calc('+', s.dim(1, 0), 1) : -1});
  s.out(2, Dims{-1});
  s.out(3, Dims{-1});
}

void TextDecodeRule(const tw::Shape& s) {
  WantVector(s, 1, "input_values");
  WantVector(s, 2, "input_splits");
  if (s.known(2) && s.dim(2, 0) == 0) Fail("'input_splits' is empty; it needs at least one entry");
  s.out(0, Dims{s.known(2) ? s.calc('-', s.dim(2, 0), 1) : -1});
}

}  // namespace

void register_tokenizer(tw::Plugin& p) {
#define SPLITS "Tsplits: {int32, int64} = int64; "
#define KEPT "stateful; resource tokenizer org.thalweg.tokenizer; "
  p.op(
      "TextTokenizer() -> (tokenizer: resource []); model: string; container: string = \"\"; shared_name: string = \"\"; stateful; once; "
      "resource tokenizer org.thalweg.tokenizer; no_gradient \"it has no inputs\"; doc \"a handle to a tokenizer\"");
  p.op<nullptr, TextEncodeRule>(
      "TextTokenizerEncode(tokenizer: resource [], input: string) -> "
      "(output_values: int32, output_splits: Tsplits, output_offset_starts: int64, output_offset_limits: int64); "
      "add_special_tokens: bool = true; " SPLITS KEPT
      "no_gradient \"text has no derivative\"; doc \"the tokens of each text, and where they are in it\"");
  p.op<nullptr, TextDecodeRule>(
      "TextTokenizerDecode(tokenizer: resource [], input_values: int32, input_splits: Tsplits) -> (output: string); "
      "skip_special_tokens: bool = true; " SPLITS KEPT "no_gradient \"text has no derivative\"; doc \"the texts that tokens make up\"");
  p.op("TextTokenizerVocabSize(tokenizer: resource []) -> (vocab_size: int32 []); " KEPT
       "no_gradient \"a number of tokens has no derivative\"; doc \"the largest number of a token, plus 1\"");
  p.op("TextTokenizerIdToString(tokenizer: resource [], input: int32 [*s]) -> (values: string [*s]); " KEPT
       "no_gradient \"text has no derivative\"; doc \"the texts of tokens by their numbers\"");
  p.op("TextTokenizerStringToId(tokenizer: resource [], input: string [*s]) -> (values: int32 [*s]); " KEPT
       "no_gradient \"text has no derivative\"; doc \"the numbers of tokens by their texts, -1 where there is none\"");
#undef SPLITS
#undef KEPT
}

}  // namespace thalweg::ops
