// Feeds that nobody gave: random tensors for the placeholders that a run needs.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "model.h"

namespace thalweg::cli {

// "x=32,64" or "x=[32, 64]"; "x=" is a scalar. Throws UsageError.
std::pair<std::string, std::vector<int64_t>> ParseFeedShape(const std::string& text);

// A value that a run needs and nobody feeds.
struct MissingFeed {
  std::string name;
  tw_output output = 0;
  uint32_t dtype = 0;
  tw_shape known = {};          // as the graph has it
  std::vector<int64_t> wanted;  // as asked for, where `asked`
  bool asked = false;
};
// Each value in `shapes`, then each placeholder that the fetches and targets need and the signature does not feed. Throws UsageError for
// a value in `shapes` that is fed.
std::vector<MissingFeed> FindMissingFeeds(const tw::Graph& graph, const std::map<std::string, std::vector<int64_t>>& shapes,
                                          const Signature& signature);
// The shape asked for or the graph's, sizes that it leaves open being 1. Throws std::runtime_error if not even the rank is known.
std::vector<int64_t> ChooseDims(const MissingFeed& feed);

// Feeds all that is missing. Numbers are from 0 to 1, whole ones and bools 0 or 1, strings short words; the same for the same seed. Throws
// std::runtime_error for a type that cannot be made up.
void AddRandomFeeds(const tw::Runtime& runtime, const tw::Graph& graph, const std::map<std::string, std::vector<int64_t>>& shapes,
                    uint64_t seed, Signature* signature);

}  // namespace thalweg::cli
