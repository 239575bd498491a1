// The kernels of the ops on tokenizers.
#include "register.h"
#include "tokenizer.h"
#include "vocabulary_kernels.h"

namespace thalweg::text {
namespace {

using tw::Any;
using tw::Frame;
using tw::In;
using tw::Out;
using tw::Var;

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
    CheckRows(values, splits);
    for (uint64_t i = 0; i < values.size(); ++i) CheckValue(tokenizer, values[i], i);
    PutTexts(f, splits, output,
             [&](int64_t begin, int64_t end) { return tokenizer.Decode(f, values.data() + begin, size_t(end - begin), skips_); });
  }

 private:
  const bool skips_;
};

}  // namespace

void register_tokenizer(tw::Plugin& p) {
  p.resource({TW_SIZED(tw_resource_def), TW_S(Tokenizer::kResource), 1, nullptr, Destroy<Tokenizer>, nullptr, nullptr});
  p.kernel<OpenModel<Tokenizer>>("TextTokenizer @CPU");
  p.kernel<Encode>("TextTokenizerEncode @CPU; read tokenizer");
  p.kernel<Decode>("TextTokenizerDecode @CPU; read tokenizer");
  p.kernel<CountTokens<Tokenizer>>("TextTokenizerVocabSize @CPU; read tokenizer");
  p.kernel<TextsOfIds<Tokenizer>>("TextTokenizerIdToString @CPU; read tokenizer");
  p.kernel<IdsOfTexts<Tokenizer>>("TextTokenizerStringToId @CPU; read tokenizer");
}

}  // namespace thalweg::text
