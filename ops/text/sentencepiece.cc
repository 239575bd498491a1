// Models of SentencePiece: the op that makes a handle of a model, and ops that turn texts into
// pieces and back.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// There is a row of splits for each text, unless each text has several.
void TokenizeRule(const tw::Shape& s) {
  WantVector(s, 1, "input");
  const bool counted = s.known(1) && !s.b("return_nbest");
  s.out(0, Dims{-1});
  s.out(1, Dims{counted ? s.calc('+', s.dim(1, 0), 1) : -1});
  for (uint32_t o = 2; o < s.c->n_out; ++o) s.out(o, Dims{-1});
}

void DetokenizeRule(const tw::Shape& s) {
  WantVector(s, 1, "input_values");
  WantVector(s, 2, "input_splits");
  if (s.known(2) && s.dim(2, 0) == 0) Fail("'input_splits' is empty; it needs at least one entry");
  s.out(0, Dims{s.known(2) ? s.calc('-', s.dim(2, 0), 1) : -1});
}

}  // namespace

void register_sentencepiece(tw::Plugin& p) {
#define MODEL "stateful; resource sp_handle org.thalweg.sentencepiece; "
#define OPTIONS "add_bos: bool [], add_eos: bool [], reverse: bool []"
#define TOKENIZE                                                                            \
  "(sp_handle: resource [], input: string, nbest_size: int32 [], alpha: float [], " OPTIONS \
  ") -> (output_values: out_type, output_splits: Tsplits"
#define ATTRS                                                                                              \
  "out_type: {int32, string} = int32; Tsplits: {int32, int64} = int64; return_nbest: bool = false; " MODEL \
  "no_gradient \"text has no derivative\"; "
  p.op(
      "SentencepieceOp() -> (handle: resource []); model: string = \"\"; container: string = \"\"; shared_name: string = \"\"; "
      "use_node_name_sharing: bool = false; stateful; once; resource handle org.thalweg.sentencepiece; no_gradient \"it has no inputs\"; "
      "doc \"a handle to a model of SentencePiece\"");
  p.op<nullptr, TokenizeRule>("SentencepieceTokenizeOp" TOKENIZE "); " ATTRS "doc \"the pieces of each text\"");
  p.op<nullptr, TokenizeRule>("SentencepieceTokenizeWithOffsetsOp" TOKENIZE
                              ", output_offset_starts: int64, output_offset_limits: int64); " ATTRS
                              "doc \"the pieces of each text, and where they are in it\"");
  p.op<nullptr, DetokenizeRule>("SentencepieceDetokenizeOp(sp_handle: resource [], input_values: T, input_splits: Tsplits, " OPTIONS
                                ") -> (output: string); T: {int32, string} = int32; Tsplits: {int32, int64} = int64; " MODEL
                                "no_gradient \"text has no derivative\"; doc \"the texts that pieces make up\"");
  p.op("SentencepieceVocabSizeOp(sp_handle: resource []) -> (vocab_size: int32 []); " MODEL
       "no_gradient \"a number of pieces has no derivative\"; doc \"how many pieces a model has\"");
  p.op("SentencepieceIdToStringOp(sp_handle: resource [], input: int32 [*s]) -> (values: string [*s]); " MODEL
       "no_gradient \"text has no derivative\"; doc \"the texts of pieces by their numbers\"");
  p.op("SentencepieceStringToIdOp(sp_handle: resource [], input: string [*s]) -> (values: int32 [*s]); " MODEL
       "no_gradient \"text has no derivative\"; doc \"the numbers of pieces by their texts\"");
#undef MODEL
#undef OPTIONS
#undef TOKENIZE
#undef ATTRS
}

}  // namespace thalweg::ops
