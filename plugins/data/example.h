// Reads serialized tf.train.Example and SequenceExample messages without making objects of them. The
// bytes may be hostile: nothing is trusted, and memory grows only with the bytes that are there.
//
//     Example  { Features features = 1; }        Feature { oneof { BytesList = 1; FloatList = 2; Int64List = 3; } }
//     Features { map<string, Feature> feature = 1; }          each list: repeated value = 1, numbers packed or not
//     SequenceExample { Features context = 1; FeatureLists feature_lists = 2; }
//     FeatureLists { map<string, FeatureList> feature_list = 1; }    FeatureList { repeated Feature feature = 1; }
#ifndef THALWEG_PLUGINS_DATA_EXAMPLE_H_
#define THALWEG_PLUGINS_DATA_EXAMPLE_H_

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "thalweg/cpp/memory.hpp"

namespace thalweg::data {

// One feature of an example: a view of its serialized list.
struct Feature {
  enum Kind : uint32_t { kNone = 0, kBytes = 1, kFloat = 2, kInt64 = 3 };
  Kind kind = kNone;
  std::string_view list;
};

// The features of all steps of a sequence, serialized.
struct FeatureList {
  bool found = false;
  std::string_view features;
};

// Keys and their numbers.
using Keys = std::unordered_map<std::string_view, std::vector<uint32_t>>;

// Finds the features of an example, or the context of a SequenceExample, whose keys are wanted, and
// writes each to all its numbers; of several features of one key the last counts. Returns false for
// bytes that are no such message.
bool ReadExample(std::string_view bytes, const Keys& keys, Feature* out);

// Does the same for the feature lists of a SequenceExample.
bool ReadFeatureLists(std::string_view bytes, const Keys& keys, FeatureList* out);

// Appends the features of a list. Returns false for bytes that are no FeatureList.
bool ReadFeatures(std::string_view list, tw::TempVector<Feature>* out);

// Append the values of a list. Return false for bytes that are no such list.
bool ReadBytes(std::string_view list, tw::TempVector<std::string_view>* out);
bool ReadFloats(std::string_view list, tw::TempVector<float>* out);
bool ReadInt64s(std::string_view list, tw::TempVector<int64_t>* out);

}  // namespace thalweg::data

#endif  // THALWEG_PLUGINS_DATA_EXAMPLE_H_
