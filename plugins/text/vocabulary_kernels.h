// Kernels of every kind of model: its size, texts and numbers of tokens, and rows of tokens as texts. A Model has
//   int32_t size() const;                           the largest number of a token, plus 1
//   bool Has(int32_t id) const;
//   const std::string& text(int32_t id) const;      REQUIRES: Has(id)
//   int32_t Find(std::string_view text) const;
//   std::string RefusalOfId() const;                what follows "is 9" in the error of a number that it does not have
// Threads: any.
#ifndef THALWEG_PLUGINS_TEXT_VOCABULARY_KERNELS_H_
#define THALWEG_PLUGINS_TEXT_VOCABULARY_KERNELS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels.h"

namespace thalweg::text {

// Throws INVALID_ARGUMENT if the model has no token of this number. where(): says which element it is.
template <class Model, class Where>
void CheckToken(const Model& model, int32_t id, const Where& where) {
  if (!model.Has(id)) Invalid(where() + " is " + std::to_string(id) + model.RefusalOfId());
}
// The same for an element of 'input_values'.
template <class Model>
void CheckValue(const Model& model, int32_t id, uint64_t i) {
  CheckToken(model, id, [i] { return "'input_values'[" + std::to_string(i) + "]"; });
}

template <class Model>
void CountTokens(tw::Var<tw::Any> handle, tw::Out<int32_t> size) {
  size[0] = Opened<Model>(handle).size();
}

template <class Model>
void TextsOfIds(tw::Var<tw::Any> handle, tw::In<int32_t> input, tw::Out<tw_string> values) {
  const auto& model = Opened<Model>(handle);
  for (uint64_t i = 0; i < input.size(); ++i) {
    CheckToken(model, input[i], [i] { return "element " + std::to_string(i) + " of 'input'"; });
    values.set(i, model.text(input[i]));
  }
}

template <class Model>
void IdsOfTexts(tw::Var<tw::Any> handle, tw::In<tw_string> input, tw::Out<int32_t> values) {
  for (uint64_t i = 0; i < input.size(); ++i) values[i] = Opened<Model>(handle).Find(View(input[i]));
}

// Throws INVALID_ARGUMENT unless `values` is a vector that `splits` cut into rows.
template <class T>
void CheckRows(const tw::In<T>& values, const tw::In<tw::Any>& splits) {
  if (values.rank() != 1) Invalid("'input_values' is " + tw::text(values.dims(), values.rank()) + "; it must be a vector");
  CheckSplits(splits.v, values.size(), "input_splits");
}

// Writes decode(begin, end), a text, for each row of the splits, on several threads. REQUIRES: CheckRows.
template <class Decode>
void PutTexts(tw::Frame f, const tw::In<tw::Any>& splits, const tw::Out<tw_string>& output, const Decode& decode) {
  const uint64_t rows = splits.size() - 1;
  Allocate(output, {int64_t(rows)});
  const tw::Charge charge(f, rows * sizeof(tw::TempString));
  std::vector<tw::TempString> texts(rows, tw::TempString(f));
  EachRow(f, rows, [&](uint64_t i) { texts[i] = decode(SplitAt(splits.v, i), SplitAt(splits.v, i + 1)); });
  for (uint64_t i = 0; i < rows; ++i) output.set(i, texts[i]);
}

}  // namespace thalweg::text

#endif  // THALWEG_PLUGINS_TEXT_VOCABULARY_KERNELS_H_
