// The kernels of the ops on models of SentencePiece.
#include "register.h"
#include "sentencepiece.h"
#include "vocabulary_kernels.h"

namespace thalweg::text {
namespace {

using tw::Any;
using tw::Frame;
using tw::In;
using tw::Out;
using tw::Var;

using Flag = In<bool>;

SentencePiece::Options OptionsOf(const SentencePiece& model, const Flag& bos, const Flag& eos, const Flag& reverse) {
  const SentencePiece::Options options = {One(bos, "add_bos"), One(eos, "add_eos"), One(reverse, "reverse")};
  model.Check(options);
  return options;
}

class Tokenize {
 public:
  explicit Tokenize(const tw::Node& n) : name_(n.name()), all_best_(n.b("return_nbest")) {}
  void operator()(Frame f, Var<Any> handle, In<tw_string> input, In<int32_t> nbest_size, In<float> alpha, Flag bos, Flag eos, Flag reverse,
                  Out<Any> values, Out<Any> splits) const {
    Put(Opened<SentencePiece>(handle), Rows(f, handle, input, nbest_size, alpha, bos, eos, reverse), values, splits);
  }

 protected:
  SentencePiece::Rows Rows(Frame f, Var<Any> handle, In<tw_string> input, In<int32_t> nbest_size, In<float> alpha, Flag bos, Flag eos,
                           Flag reverse) const {
    const auto& model = Opened<SentencePiece>(handle);
    const SentencePiece::Options options = OptionsOf(model, bos, eos, reverse);
    const int32_t best = One(nbest_size, "nbest_size");
    if (all_best_ && best < 1) Invalid("'nbest_size' is " + std::to_string(best) + "; it must be at least 1 if 'return_nbest' is true");
    const tw::Charge charge(f, input.size() * (sizeof(SentencePiece::Row) + sizeof(SentencePiece::Rows)));
    if (all_best_) return BestRows(f, model, input, size_t(best), options);
    const double temperature = double(One(alpha, "alpha"));
    const bool draws = best != 0 && best != 1;
    const uint64_t seed = draws ? SeedOf(model.NextDraw()) : 0;
    SentencePiece::Rows rows(input.size(), SentencePiece::Row(f));
    EachRow(f, input.size(), [&](uint64_t i) {
      rows[i] = draws ? model.Sample(f, View(input[i]), best, temperature, seed + i, options) : model.Encode(f, View(input[i]), options);
    });
    return rows;
  }

  static void Put(const SentencePiece& model, const SentencePiece::Rows& rows, const Out<Any>& values, const Out<Any>& splits) {
    const int64_t n = PutSplits(splits, rows, [](const SentencePiece::Row& row) { return row.pieces.size(); });
    Allocate(values, {n});
    uint64_t at = 0;
    for (const SentencePiece::Row& row : rows) {
      for (const SentencePiece::Piece& p : row.pieces) {
        if (values.v()->dtype == TW_INT32)
          reinterpret_cast<int32_t*>(values.data())[at++] = p.id;
        else
          values.set(at++, p.own ? std::string_view(model.text(p.id)) : std::string_view(row.normalized).substr(p.text, p.size));
      }
    }
  }

 private:
  static SentencePiece::Rows BestRows(Frame f, const SentencePiece& model, const In<tw_string>& input, size_t best,
                                      const SentencePiece::Options& options) {
    std::vector<SentencePiece::Rows> all(input.size());
    EachRow(f, input.size(), [&](uint64_t i) { model.EncodeBest(f, View(input[i]), best, options, &all[i]); });
    SentencePiece::Rows rows;
    for (SentencePiece::Rows& some : all) {
      for (SentencePiece::Row& row : some) rows.push_back(std::move(row));
    }
    return rows;
  }
  // FNV-1a of the node's name, and the number of the call. The rows of a call have neighbouring
  // seeds.
  uint64_t SeedOf(uint64_t call) const {
    uint64_t h = 0xcbf29ce484222325;
    for (const char c : name_) h = (h ^ uint8_t(c)) * 0x100000001b3;
    return h + (call << 32);
  }

  const std::string name_;
  const bool all_best_;
};

class TokenizeWithOffsets : public Tokenize {
 public:
  using Tokenize::Tokenize;
  void operator()(Frame f, Var<Any> handle, In<tw_string> input, In<int32_t> nbest_size, In<float> alpha, Flag bos, Flag eos, Flag reverse,
                  Out<Any> values, Out<Any> splits, Out<int64_t> starts, Out<int64_t> limits) const {
    const SentencePiece::Rows rows = Rows(f, handle, input, nbest_size, alpha, bos, eos, reverse);
    Put(Opened<SentencePiece>(handle), rows, values, splits);
    Allocate(starts, {int64_t(values.size())});
    Allocate(limits, {int64_t(values.size())});
    uint64_t at = 0;
    for (const SentencePiece::Row& row : rows) {
      for (const SentencePiece::Piece& p : row.pieces) {
        starts[at] = p.begin;
        limits[at++] = p.end;
      }
    }
  }
};

void Detokenize(Frame f, Var<Any> handle, In<Any> values, In<Any> splits, Flag bos, Flag eos, Flag reverse, Out<tw_string> output) {
  const auto& model = Opened<SentencePiece>(handle);
  const SentencePiece::Options options = OptionsOf(model, bos, eos, reverse);
  CheckRows(values, splits);
  tw::TempVector<SentencePiece::Given> given(f);
  given.reserve(values.size());
  for (uint64_t i = 0; i < values.size(); ++i) {
    if (values.v->dtype == TW_INT32) {
      const int32_t id = reinterpret_cast<const int32_t*>(values.data())[i];
      CheckValue(model, id, i);
      given.push_back({id, model.text(id)});
    } else {
      const std::string_view text = View(reinterpret_cast<const tw_string*>(values.data())[i]);
      given.push_back({model.Find(text), text});
    }
  }
  PutTexts(f, splits, output, [&](int64_t begin, int64_t end) {
    const tw::TempVector<SentencePiece::Given> row(given.begin() + begin, given.begin() + end, f);
    return model.Decode(f, row, options);
  });
}

}  // namespace

void register_sentencepiece(tw::Plugin& p) {
  p.resource({TW_SIZED(tw_resource_def), TW_S(SentencePiece::kResource), 1, nullptr, Destroy<SentencePiece>, nullptr, nullptr});
  p.kernel<OpenModel<SentencePiece>>("SentencepieceOp @CPU");
  p.kernel<Tokenize>("SentencepieceTokenizeOp @CPU; read sp_handle; nondeterministic");
  p.kernel<TokenizeWithOffsets>("SentencepieceTokenizeWithOffsetsOp @CPU; read sp_handle; nondeterministic");
  p.kernel<Detokenize>("SentencepieceDetokenizeOp @CPU; read sp_handle");
  p.kernel<CountTokens<SentencePiece>>("SentencepieceVocabSizeOp @CPU; read sp_handle");
  p.kernel<TextsOfIds<SentencePiece>>("SentencepieceIdToStringOp @CPU; read sp_handle");
  p.kernel<IdsOfTexts<SentencePiece>>("SentencepieceStringToIdOp @CPU; read sp_handle");
}

}  // namespace thalweg::text
