#include "random_feed.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <new>
#include <random>
#include <set>

#include "words.h"

namespace thalweg::cli {
namespace {

// Returns the unfed placeholders on which the signature's fetches and targets depend, in the
// graph's order. Does not search beyond fed values.
std::vector<const tw_operation*> NeededPlaceholders(const tw::Graph& graph, const Signature& signature) {
  std::set<tw_output> fed;
  for (const Value& feed : signature.feeds) fed.insert(feed.output);
  std::set<const tw_operation*> seen;
  std::vector<const tw_operation*> todo(signature.targets);
  const auto need = [&](tw_output value) {
    if (fed.count(value)) return;
    const tw_operation* producer = nullptr;
    tw::raise(tw_graph_producer(graph.c(), value, &producer, nullptr));
    todo.push_back(producer);
  };
  for (const Value& fetch : signature.fetches) need(fetch.output);
  while (!todo.empty()) {
    const tw_operation* op = todo.back();
    todo.pop_back();
    if (!seen.insert(op).second) continue;
    for (uint32_t i = 0; i < tw_operation_input_count(op); ++i) need(tw_operation_input(op, i));
    for (uint32_t i = 0; i < tw_operation_control_count(op); ++i) todo.push_back(tw_operation_control(op, i));
  }
  std::vector<const tw_operation*> found;
  for (uint32_t i = 0; i < tw_graph_count(graph.c()); ++i) {
    const tw_operation* op = tw_graph_operation(graph.c(), i);
    if (seen.count(op) && std::strcmp(tw_operation_type(op), "Placeholder") == 0) found.push_back(op);
  }
  return found;
}

}  // namespace

tw::Tensor RandomTensor(const tw::Runtime& runtime, uint32_t dtype, const std::vector<int64_t>& dims, std::mt19937_64* random) {
  uint64_t n = 1;
  for (const int64_t dim : dims) {
    if (__builtin_mul_overflow(n, uint64_t(dim), &n) || n > uint64_t(1) << 40) throw std::runtime_error("the shape has too many elements");
  }
  const bool real = dtype == TW_FLOAT || dtype == TW_DOUBLE || dtype == TW_HALF || dtype == TW_BFLOAT16 || dtype == TW_COMPLEX64 ||
                    dtype == TW_COMPLEX128;
  if (real) {
    std::vector<float> values(n);
    for (float& value : values) value = float((*random)() >> 40) * 0x1p-24f;
    return Cast(runtime, tw::Tensor(dims, values), dtype);
  }
  Words words{dims, {}, dtype == TW_STRING, {}, {}};
  for (uint64_t i = 0; i < n; ++i) words.words.push_back((dtype == TW_STRING ? "word" : "") + std::to_string((*random)() >> 63));
  return ToTensor(runtime, words, dtype);
}

std::pair<std::string, std::vector<int64_t>> ParseFeedShape(const std::string& text) {
  const auto [name, sizes] = SplitAtEquals(text);
  if (name.size() == text.size()) throw UsageError{"--feed-shape takes NAME=SIZES such as x=32,64, not '" + text + "'"};
  std::vector<int64_t> dims;
  const char *at = sizes.data(), *end = at + sizes.size();
  while (at < end) {
    if (std::strchr("[], ", *at)) {
      ++at;
      continue;
    }
    int64_t dim = 0;
    const auto [next, error] = std::from_chars(at, end, dim);
    if (error != std::errc() || dim < 0) throw UsageError{"--feed-shape '" + text + "': sizes are whole numbers, such as x=32,64"};
    dims.push_back(dim);
    at = next;
  }
  return {name, dims};
}

std::vector<int64_t> ChooseDims(const MissingFeed& feed) {
  if (feed.asked) return feed.wanted;
  if (feed.known.rank < 0) {
    throw std::runtime_error("the shape of '" + feed.name + "' is not known; give --feed-shape " + feed.name + "=SIZES");
  }
  std::vector<int64_t> dims(feed.known.dims, feed.known.dims + feed.known.rank);
  for (int64_t& dim : dims) dim = dim < 0 ? 1 : dim;
  return dims;
}

std::vector<MissingFeed> FindMissingFeeds(const tw::Graph& graph, const std::map<std::string, std::vector<int64_t>>& shapes,
                                          const Signature& signature) {
  std::vector<MissingFeed> missing;
  Signature fed = signature;
  const auto add = [&](const std::string& name, const std::vector<int64_t>* wanted) {
    MissingFeed feed{name, graph.output(name), 0, {}, wanted ? *wanted : std::vector<int64_t>(), wanted != nullptr};
    for (const Value& other : fed.feeds) {
      if (other.output == feed.output) throw UsageError{"'" + name + "' is fed twice"};
    }
    tw::raise(tw_graph_describe(graph.c(), feed.output, &feed.dtype, &feed.known));
    fed.feeds.push_back({name, feed.output, {}});
    missing.push_back(std::move(feed));
  };
  for (const auto& [name, dims] : shapes) add(name, &dims);
  for (const tw_operation* op : NeededPlaceholders(graph, fed)) add(tw_operation_name(op), nullptr);
  return missing;
}

void AddRandomFeeds(const tw::Runtime& runtime, const tw::Graph& graph, const std::map<std::string, std::vector<int64_t>>& shapes,
                    uint64_t seed, Signature* signature) {
  std::mt19937_64 random(seed);
  for (const MissingFeed& feed : FindMissingFeeds(graph, shapes, *signature)) {
    try {
      signature->feeds.push_back({feed.name, feed.output, RandomTensor(runtime, feed.dtype, ChooseDims(feed), &random)});
    } catch (const std::bad_alloc&) {
      throw std::runtime_error("feed '" + feed.name + "': there is not enough memory for it");
    } catch (const std::exception& e) {
      throw std::runtime_error("feed '" + feed.name + "': " + e.what());
    }
  }
}

}  // namespace thalweg::cli
