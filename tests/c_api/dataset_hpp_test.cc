// The C++ sugar of datasets: pipelines against what the test wrote and counted itself.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"

#include "thalweg/cpp/thalweg.hpp"

namespace {

using Numbers = std::vector<int64_t>;

// Returns all elements of the first component, one after the other.
Numbers AllOf(const tw::Graph& graph, const tw::Dataset& dataset) {
  Numbers all;
  tw::Iterator elements(graph, dataset);
  for (const std::vector<tw::Tensor>& element : elements) {
    const Numbers values = element[0].values<int64_t>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST(DatasetHppTest, FunctionsOfElementsAreLambdas) {
  tw::Graph graph;
  tw::Scope s(graph);
  const tw_output three = s.op("Identity", {s.constant(tw::Tensor(int64_t{3}))});
  const tw::Dataset numbers = tw::Dataset::range(s, 0, 8);
  const tw::Dataset tripled = numbers.map([&](tw::Scope& in, const tw::Values& x) { return tw::Values{in.op("Mul", {x[0], three})}; });
  const auto is_small = [&](tw::Scope& in, const tw::Values& x) { return in.op("Less", {x[0], three}); };
  const tw::Dataset small = numbers.filter(is_small), first = numbers.skip(1).take_while(is_small);
  const tw::Dataset windows =
      numbers.window(4, 3, 1, true).flat_map([](tw::Scope& in, const tw::Values& w) { return tw::Dataset(in, w[0]).batch(4); });
  const tw::Dataset turns = numbers.take(2).interleave([](tw::Scope& in, const tw::Values&) { return tw::Dataset::range(in, 7, 9); }, 2, 1);
  const tw::Dataset others =
      tw::Dataset::zip(s, {numbers.shard(4, 1), numbers}).concatenate(tw::Dataset::zip(s, {numbers.take(1), numbers}));
  const tw::Dataset rows = tw::Dataset::rows(s, {s.constant(tw::Tensor({3}, Numbers{4, 5, 6}))}).cache().repeat(2).prefetch();
  const tw::Dataset order = numbers.shuffle(8, 1), batches = numbers.batch(3, true).unbatch();
  s.finish();
  EXPECT_EQ(AllOf(graph, tripled), (Numbers{0, 3, 6, 9, 12, 15, 18, 21}));
  EXPECT_EQ(AllOf(graph, small), (Numbers{0, 1, 2}));
  EXPECT_EQ(AllOf(graph, first), (Numbers{1, 2}));
  EXPECT_EQ(AllOf(graph, windows), (Numbers{0, 1, 2, 3, 3, 4, 5, 6}));
  EXPECT_EQ(AllOf(graph, turns), (Numbers{7, 7, 8, 8}));
  EXPECT_EQ(AllOf(graph, others), (Numbers{1, 5, 0}));
  EXPECT_EQ(AllOf(graph, rows), (Numbers{4, 5, 6, 4, 5, 6}));
  EXPECT_EQ(AllOf(graph, batches), (Numbers{0, 1, 2, 3, 4, 5}));
  Numbers sorted = AllOf(graph, order);
  EXPECT_NE(sorted, (Numbers{0, 1, 2, 3, 4, 5, 6, 7}));
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, (Numbers{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(DatasetHppTest, WindowsAndBucketsTakeFunctions) {
  tw::Graph graph;
  tw::Scope s(graph);
  const tw::Dataset numbers = tw::Dataset::range(s, 0, 6);
  const tw::Dataset grouped = numbers.group_by_window(
      [](tw::Scope& in, const tw::Values& x) { return in.op("FloorMod", {x[0], in.constant(tw::Tensor(int64_t{2}))}); },
      [](tw::Scope&, tw_output, const tw::Dataset& window) { return window.batch(3); }, 3);
  const tw::Dataset vectors = tw::Dataset::range(s, 1, 5).map([](tw::Scope& in, const tw::Values& n) {
    return tw::Values{in.op("Fill", {in.op("ExpandDims", {n[0], in.scalar(TW_INT32, 0)}), n[0]})};
  });
  const tw::Dataset buckets =
      vectors.bucket_by_length([](tw::Scope& in, const tw::Values& v) { return in.op("Size", {v[0]}); }, {3}, {2, 2});
  s.finish();
  EXPECT_EQ(AllOf(graph, grouped), (Numbers{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(AllOf(graph, buckets), (Numbers{1, 0, 2, 2, 3, 3, 3, 0, 4, 4, 4, 4}));
  tw::Scope other(graph);
  tw::Dataset(other, vectors.value()).bucket_by_length([](tw::Scope& in, const tw::Values& v) { return in.op("Size", {v[0]}); }, {3}, {2});
  EXPECT_THROW(other.finish(), tw::StatusError);
}

TEST(DatasetHppTest, FilesHaveColumns) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / ("dataset_hpp_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string csv = folder / "a.csv", json = folder / "a.jsonl", lines = folder / "a.txt";
  std::ofstream(csv) << "name,age\nx,3\ny,\n";
  std::ofstream(json) << "{\"tags\": [1, 2]}\n";
  std::ofstream(lines) << "one\ntwo\n";
  tw::Graph graph;
  tw::Scope s(graph);
  const tw::Dataset people =
      tw::Dataset::csv(s, {csv}, {{"age", TW_INT64, {}, s.constant(tw::Tensor(int64_t{-1}))}, {"name", TW_STRING, {}, 0}});
  const tw::Dataset tags = tw::Dataset::json_lines(s, {json}, {{"tags", TW_INT64, {-1}, 0}});
  const tw::Dataset texts = tw::Dataset::lines(s, {lines, lines});
  s.finish();
  EXPECT_EQ(AllOf(graph, people), (Numbers{3, -1}));
  EXPECT_EQ(AllOf(graph, tags), (Numbers{1, 2}));
  std::string all;
  tw::Iterator elements(graph, texts, 2);
  for (const std::vector<tw::Tensor>& element : elements) all += element[0].string() + ";";
  EXPECT_EQ(all, "one;two;one;two;");
  tw::Graph bad;
  tw::Scope wrong(bad);
  tw::Dataset::csv(wrong, {csv}, {});
  EXPECT_THROW(wrong.finish(), tw::StatusError);
  std::filesystem::remove_all(folder);
}

TEST(DatasetHppTest, IteratorsGoOnFromAPosition) {
  tw::Graph graph;
  tw::Scope s(graph);
  const tw::Dataset d = tw::Dataset::range(s, 0, 20).shuffle(20, 3).batch(4);
  s.finish();
  tw::Iterator first(graph, d), second(graph, d);
  std::vector<tw::Tensor> batch, again;
  ASSERT_TRUE(first.next(&batch));
  const std::string position = first.save();
  second.restore(position);
  while (first.next(&batch)) {
    ASSERT_TRUE(second.next(&again));
    EXPECT_EQ(batch[0].values<int64_t>(), again[0].values<int64_t>());
  }
  EXPECT_FALSE(second.next(&again));
  first.reset(0);
  EXPECT_TRUE(first.next(&batch));
  EXPECT_THROW(second.restore("nonsense"), tw::StatusError);
}

}  // namespace
