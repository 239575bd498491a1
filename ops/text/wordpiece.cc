// WordpieceTokenizeWithOffsets splits words into the pieces of a vocabulary, which is a hash table.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void WordpieceRule(const tw::Shape& s) {
  WantVector(s, 0, "input_values");
  const int64_t words = s.known(0) ? s.dim(0, 0) : -1;
  s.out(0, Dims{-1});
  s.out(1, Dims{s.s("output_row_partition_type") == "row_splits" ? s.calc('+', words, 1) : words});
  s.out(2, Dims{-1});
  s.out(3, Dims{-1});
}

}  // namespace

void register_wordpiece(tw::Plugin& p) {
  p.op<nullptr, WordpieceRule>(R"(
      WordpieceTokenizeWithOffsets(input_values: string, vocab_lookup_table: resource []) ->
      (output_values: string, output_row_lengths: int64, start_values: int64, limit_values: int64);
      suffix_indicator: string; max_bytes_per_word: int >= 0; max_chars_per_token: int = 0; use_unknown_token: bool; unknown_token: string;
      split_unknown_characters: bool = false; output_row_partition_type: {"row_lengths", "row_splits"} = "row_lengths";
      stateful; resource vocab_lookup_table org.thalweg.lookup_table; no_gradient "text has no derivative";
      doc "the longest pieces of a vocabulary that make up each word, from left to right")");
}

}  // namespace thalweg::ops
