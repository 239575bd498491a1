// Features of a batch of serialized messages as tensors: what the kernels of ParseExample and
// ParseSequenceExample share. Errors are INVALID_ARGUMENT and name the feature and the message.
// Threads: one at a time.
#ifndef THALWEG_PLUGINS_DATA_FEATURE_TENSORS_H_
#define THALWEG_PLUGINS_DATA_FEATURE_TENSORS_H_

#include <string>
#include <string_view>
#include <vector>

#include "dataset.h"
#include "example.h"

namespace thalweg::data {

inline std::string_view View(const tw_string& s) { return {s.data, size_t(s.size)}; }

// Allocates an output whose shape was not known before. Else REQUIRES: the shape rule gave these dims
// (throws INTERNAL).
template <class T>
void Allocate(const tw::Out<T>& out, const std::vector<int64_t>& dims) {
  if (out.rank() < 0) return out.allocate(dims);
  const tw_view& v = *out.v();
  if (DimsOf(v) != dims)
    Fail(TW_INTERNAL, "the shape rule gives " + DimsText(v) + " for output " + std::to_string(out.o) + ", which is " +
                          tw::text(dims.data(), int32_t(dims.size())));
}

// Returns the kind of features that become tensors of a type. Refuses types other than float, int64
// and string.
Feature::Kind KindOf(uint32_t dtype);
// The name of the type.
const char* KindText(Feature::Kind kind);

// FeatureValues of one kind, of one or several features.
struct FeatureValues {
  explicit FeatureValues(tw::Frame f) : texts(f), floats(f), ints(f) {}
  tw::TempVector<std::string_view> texts;
  tw::TempVector<float> floats;
  tw::TempVector<int64_t> ints;

  // Appends the values of a feature. Returns false for damaged bytes.
  bool Read(const Feature& f);
  uint64_t size(Feature::Kind kind) const;
  // Copies values [from, from + n) to those of an output from number `at` on.
  void CopyTo(Feature::Kind kind, const tw::Out<tw::Any>& out, uint64_t at, uint64_t from, uint64_t n) const;
};

// Writes `n` values from number `at` on: those of `defaults`, from number `first` on; or its only one;
// or zeros and empty texts if it has none.
void PadFeature(Feature::Kind kind, tw::In<tw::Any> defaults, uint64_t first, const tw::Out<tw::Any>& out, uint64_t at, uint64_t n);

// The shapes of dense features in one message, from an attribute.
struct DenseShape {
  std::vector<int64_t> dims;
  int64_t stride = 1, count = 0;  // values of a row; of all, unless variable
  bool variable = false;          // the first size is unknown

  static std::vector<DenseShape> Read(const tw_attr& shapes, const char* name);
};

// The messages of a call, and the features that were found in them.
class Examples {
 public:
  // names: of the messages, for errors; may be empty. what: the messages' type, with its article.
  Examples(tw::Frame f, tw::In<tw_string> serialized, tw::In<tw_string> names, const char* what);
  // Adds keys; their features have the numbers from the result on.
  size_t Add(const std::vector<std::string_view>& keys);
  // Finds the features of all keys. Call it once, before the features are used.
  void Find();

  uint64_t size() const { return serialized_.size(); }
  bool one() const { return serialized_.rank() == 0; }  // one message, without a batch axis
  std::string_view message(uint64_t i) const { return View(serialized_[i]); }
  std::string Which(uint64_t i) const;  // "example 3 ('name')"
  tw::Frame frame() const { return f_; }
  const std::string& what() const { return what_; }

  // Write the outputs of feature k.
  void Sparse(size_t k, const tw::Out<int64_t>& indices, const tw::Out<tw::Any>& values, const tw::Out<int64_t>& shape) const;
  void Dense(size_t k, const DenseShape& shape, tw::In<tw::Any> defaults, const tw::Out<tw::Any>& out) const;
  void Ragged(size_t k, const tw::Out<tw::Any>& values, const tw::Out<tw::Any>& splits) const;

 private:
  const Feature& At(uint64_t i, size_t k) const { return found_[i * keys_.size() + k]; }
  std::string FeatureText(uint64_t i, size_t k) const;  // "feature 'key' of example 3"
  // Reads the feature of all messages into one list; ends: the number of values up to each message.
  FeatureValues All(size_t k, Feature::Kind kind, tw::TempVector<int64_t>* ends) const;

  const tw::Frame f_;
  const tw::In<tw_string> serialized_, names_;
  const std::string what_;
  std::vector<std::string> keys_;
  tw::TempVector<Feature> found_;  // for each message, one for each key
};

// Writes row splits of int32 or int64. name: the feature, for errors.
void WriteSplits(const tw::TempVector<int64_t>& splits, std::string_view name, const tw::Out<tw::Any>& out);

// Refuses keys that are not as many as the outputs.
void WantKeys(const char* what, size_t keys, size_t outputs);
// The keys in a vector, in single texts and in an attribute.
std::vector<std::string_view> KeysOf(const tw::In<tw_string>& vector, const char* what);
std::vector<std::string_view> KeysOf(const tw::Many<tw_string>& texts, const char* what);
std::vector<std::string> KeysOf(const tw_attr& attr);

}  // namespace thalweg::data

#endif  // THALWEG_PLUGINS_DATA_FEATURE_TENSORS_H_
