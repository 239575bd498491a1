// Random tensors for placeholders that a run needs and the user did not feed.
#pragma once
#include <map>
#include <random>
#include <string>
#include <vector>

#include "model.h"

namespace thalweg::cli {

// Parses "x=32,64" or "x=[32, 64]"; "x=" is a scalar. Throws UsageError.
std::pair<std::string, std::vector<int64_t>> ParseFeedShape(const std::string& text);

// A value that a run needs and the user did not feed.
struct MissingFeed {
  std::string name;
  tw_output output = 0;
  uint32_t dtype = 0;
  tw_shape known = {};          // the graph's shape
  std::vector<int64_t> wanted;  // the requested shape, if `asked`
  bool asked = false;
};
// Returns each value in `shapes`, then each unfed placeholder that the fetches and targets need.
// Throws UsageError if a value in `shapes` is fed.
std::vector<MissingFeed> FindMissingFeeds(const tw::Graph& graph, const std::map<std::string, std::vector<int64_t>>& shapes,
                                          const Signature& signature);
// Returns the requested shape, or the graph's with 1 for each unknown size. Throws
// std::runtime_error if not even the rank is known.
std::vector<int64_t> ChooseDims(const MissingFeed& feed);

// Makes a tensor of random values, as AddRandomFeeds does.
tw::Tensor RandomTensor(const tw::Runtime& runtime, uint32_t dtype, const std::vector<int64_t>& dims, std::mt19937_64* random);

// Feeds all missing values. Floats are in [0, 1], integers and bools 0 or 1, strings short words;
// the same seed gives the same values. Throws std::runtime_error for a type that cannot be
// generated.
void AddRandomFeeds(const tw::Runtime& runtime, const tw::Graph& graph, const std::map<std::string, std::vector<int64_t>>& shapes,
                    uint64_t seed, Signature* signature);

}  // namespace thalweg::cli
