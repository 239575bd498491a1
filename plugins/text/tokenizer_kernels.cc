// The kernels of the ops on tokenizers.
#include "kernels.h"
#include "register.h"
#include "tokenizer.h"

namespace thalweg::text {
namespace {

using tw::Any;
using tw::Frame;
using tw::In;
using tw::Out;
using tw::Var;

// The error of a number that is that of no token.
[[noreturn]] void NoToken(const std::string& where, int32_t id, const Tokenizer& tokenizer) {
  Invalid(where + " is " + std::to_string(id) + ", which is the number of no token; numbers are from 0 to " +
          std::to_string(tokenizer.size() - 1));
}

class Encode {
 public:
  explicit Encode(const tw::Node& n) : special_(n.b("add_special_tokens")) {}
  void operator()(Frame f, Var<Any> handle, In<tw_string> input, Out<int32_t> values, Out<Any> splits, Out<int64_t> starts,
                  Out<int64_t> limits) const {
    const auto& tokenizer = Opened<Tokenizer>(handle);
    const tw::Charge charge(f, input.size() * sizeof(Parts));
    std::vector<Parts> rows(input.size(), Parts(f));
    EachRow(f, input.size(), [&](uint64_t i) { tokenizer.Encode(f, View(input[i]), special_, &rows[i]); });
    const int64_t n = PutSplits(splits, rows, [](const Parts& row) { return row.size(); });
    Allocate(values, {n});
    Allocate(starts, {n});
    Allocate(limits, {n});
    uint64_t at = 0;
    for (const Parts& row : rows) {
      for (const Part& p : row) {
        values[at] = p.id;
        starts[at] = p.begin;
        limits[at++] = p.end;
      }
    }
  }

 private:
  const bool special_;
};

class Decode {
 public:
  explicit Decode(const tw::Node& n) : skips_(n.b("skip_special_tokens")) {}
  void operator()(Frame f, Var<Any> handle, In<int32_t> values, In<Any> splits, Out<tw_string> output) const {
    const auto& tokenizer = Opened<Tokenizer>(handle);
    if (values.rank() != 1) Invalid("'input_values' is " + tw::text(values.dims(), values.rank()) + "; it must be a vector");
    CheckSplits(splits.v, values.size(), "input_splits");
    for (uint64_t i = 0; i < values.size(); ++i) {
      if (!tokenizer.Has(values[i])) NoToken("'input_values'[" + std::to_string(i) + "]", values[i], tokenizer);
    }
    const uint64_t rows = splits.size() - 1;
    Allocate(output, {int64_t(rows)});
    const tw::Charge charge(f, rows * sizeof(tw::TempString));
    std::vector<tw::TempString> texts(rows, tw::TempString(f));
    EachRow(f, rows, [&](uint64_t i) {
      const int64_t begin = SplitAt(splits.v, i), end = SplitAt(splits.v, i + 1);
      texts[i] = tokenizer.Decode(f, values.data() + begin, size_t(end - begin), skips_);
    });
    for (uint64_t i = 0; i < rows; ++i) output.set(i, texts[i]);
  }

 private:
  const bool skips_;
};

void TokenizerSize(Var<Any> handle, Out<int32_t> size) { size[0] = Opened<Tokenizer>(handle).size(); }

void TokenOfId(Var<Any> handle, In<int32_t> input, Out<tw_string> values) {
  const auto& tokenizer = Opened<Tokenizer>(handle);
  for (uint64_t i = 0; i < input.size(); ++i) {
    if (!tokenizer.Has(input[i])) NoToken("element " + std::to_string(i) + " of 'input'", input[i], tokenizer);
    values.set(i, tokenizer.text(input[i]));
  }
}

void IdOfToken(Var<Any> handle, In<tw_string> input, Out<int32_t> values) {
  for (uint64_t i = 0; i < input.size(); ++i) values[i] = Opened<Tokenizer>(handle).Find(View(input[i]));
}

}  // namespace

void register_tokenizer(tw::Plugin& p) {
  p.resource({TW_SIZED(tw_resource_def), TW_S(Tokenizer::kResource), 1, nullptr, Destroy<Tokenizer>, nullptr, nullptr});
  p.kernel<OpenModel<Tokenizer>>("TextTokenizer @CPU");
  p.kernel<Encode>("TextTokenizerEncode @CPU; read tokenizer");
  p.kernel<Decode>("TextTokenizerDecode @CPU; read tokenizer");
  p.kernel<TokenizerSize>("TextTokenizerVocabSize @CPU; read tokenizer");
  p.kernel<TokenOfId>("TextTokenizerIdToString @CPU; read tokenizer");
  p.kernel<IdOfToken>("TextTokenizerStringToId @CPU; read tokenizer");
}

}  // namespace thalweg::text
