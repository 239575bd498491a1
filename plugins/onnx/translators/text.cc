// Text: StringNormalizer, StringConcat, RegexFullMatch, StringSplit, TfIdfVectorizer.
#include <algorithm>
#include <iterator>

#include "common.h"

namespace thalweg::onnx {
namespace {

Value Cased(Builder& b, const Value& x, const std::string& how) {
  return b.op(how == "UPPER" ? "StringUpper" : "StringLower", {x}, {{"encoding", "utf-8"}});
}

// Removes stop words from [words] or [1, words], then changes the case. If no word is left, the result is one empty text.
void StringNormalizer(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const int rank = RankOf(n, x, "X");
  if (rank != 1 && !(rank == 2 && x.dim(0) == 1)) n.fail("the input must be [words] or [1, words]");
  const std::string how = n.s("case_change_action", "NONE");
  if (how != "NONE" && how != "LOWER" && how != "UPPER") n.fail("'case_change_action' is '" + how + "'; it must be NONE, LOWER or UPPER");
  Value words = b.reshape(x, Dims{-1});
  if (const std::vector<std::string> stop = n.strings("stopwords"); !stop.empty()) {
    const bool exact = n.i("is_case_sensitive", 0) != 0;
    const Value list = b.constant(Tensor::String({static_cast<int64_t>(stop.size())}, stop));
    const Value same = b.op("Equal", {b.unsqueeze(exact ? words : Cased(b, words, "LOWER"), {1}), exact ? list : Cased(b, list, "LOWER")});
    const Value kept = b.op("Where", {b.op("LogicalNot", {b.op("Any", {same, b.scalar(TW_INT32, 1)})})});
    words = b.op("GatherV2", {words, b.reshape(kept, Dims{-1}), b.scalar(TW_INT32, 0)});
  }
  if (how != "NONE") words = Cased(b, words, how);
  const Value count = b.op("Maximum", {b.size(words, 0), Known(b, 1)});
  const Value never_empty = b.concat({words, b.constant(Tensor::String({1}, {""}))}, 0);
  const Value result = b.op("Slice", {never_empty, b.ints({0}), b.unsqueeze(count, {0})});
  n.out(rank == 2 ? b.unsqueeze(result, {0}) : result);
}

void StringConcat(Builder& b, Node& n) {
  const std::vector<Value> both = {n.in(0), n.in(1)};
  const Value shape = b.op("BroadcastArgs", {b.shape(both[0]), b.shape(both[1])});
  n.out(b.op("StringJoin", {b.broadcast(both[0], shape), b.broadcast(both[1], shape)}));
}

void RegexFullMatch(Builder& b, Node& n) { n.out(b.op("StaticRegexFullMatch", {n.in(0)}, {{"pattern", n.s("pattern")}})); }

// Parts of each text along a new last axis, filled up with empty texts, and their numbers. Without a delimiter, blanks separate parts.
void StringSplit(Builder& b, Node& n) {
  const Value& x = n.in(0);
  const Value shape = b.shape(x), flat = b.reshape(x, Dims{-1}), zero = b.scalar(TW_INT32, 0);
  const std::vector<Value> split =
      b.ops("StringSplitV2", {flat, b.constant(Tensor::String({}, {n.s("delimiter", "")}))}, {{"maxsplit", n.i("maxsplit", -1)}}, 3);
  const Value nothing = b.constant(Tensor::String({}, {""}));
  Value table = b.op("SparseToDense", {split[0], split[2], split[1], nothing}), width = b.slice0(split[2], 1, 2);
  const Value rows = b.reshape(b.op("Slice", {split[0], b.ints({0, 0}), b.ints({-1, 1})}), Dims{-1});
  // Between blanks there are no empty parts; ours has one behind the last split if no text follows it.
  const bool blanks = n.s("delimiter", "").empty();
  const Value one = blanks ? b.cast(b.op("NotEqual", {split[1], nothing}), TW_INT64) : b.op("OnesLike", {rows});
  const Value counts = b.op("UnsortedSegmentSum", {one, rows, b.size(flat, 0)});
  if (blanks && n.i("maxsplit", -1) > 0) {
    width = b.op("Maximum", {b.op("Max", {counts, b.ints({0}, TW_INT32)}, {{"keep_dims", true}}), b.ints({0})});
    table = b.op("Slice", {table, b.ints({0, 0}), b.concat({b.ints({-1}), width}, 0)});
  }
  n.out(0, b.reshape(table, b.concat({shape, width}, 0)));
  n.out(1, b.reshape(counts, shape));
}

// ---- TfIdfVectorizer ----

struct Grams {
  int64_t length;                // items of one n-gram
  Value pool;                    // [n-grams, length]
  std::vector<int64_t> columns;  // of the output, one for each n-gram
};

// The n-grams of the pool, by length; `ngram_counts` says where each length begins.
std::vector<Grams> Pool(Builder& b, const Node& n) {
  const std::vector<std::string> texts = n.strings("pool_strings");
  const std::vector<int64_t> numbers = n.ints("pool_int64s"), starts = n.ints("ngram_counts"), columns = n.ints("ngram_indexes");
  const size_t total = texts.empty() ? numbers.size() : texts.size();
  std::vector<Grams> all;
  size_t column = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    const auto begin = static_cast<size_t>(starts[i]), end = i + 1 < starts.size() ? static_cast<size_t>(starts[i + 1]) : total;
    const size_t length = i + 1;
    if (starts[i] < 0 || begin > end || end > total || (end - begin) % length)
      n.fail("'ngram_counts' does not fit the pool of " + std::to_string(total) + " items");
    const size_t count = (end - begin) / length;
    if (column + count > columns.size())
      n.fail("'ngram_indexes' has " + std::to_string(columns.size()) + " elements, fewer than the pool has n-grams");
    if (count == 0) continue;
    const Dims dims{static_cast<int64_t>(count), static_cast<int64_t>(length)};
    Grams g{static_cast<int64_t>(length),
            Value(),
            {columns.begin() + static_cast<std::ptrdiff_t>(column), columns.begin() + static_cast<std::ptrdiff_t>(column + count)}};
    if (texts.empty()) {
      g.pool = b.reshape(b.ints({numbers.begin() + static_cast<std::ptrdiff_t>(begin), numbers.begin() + static_cast<std::ptrdiff_t>(end)}),
                         dims);
    } else {
      g.pool = b.constant(
          Tensor::String(dims, {texts.begin() + static_cast<std::ptrdiff_t>(begin), texts.begin() + static_cast<std::ptrdiff_t>(end)}));
    }
    all.push_back(std::move(g));
    column += count;
  }
  return all;
}

// How often each n-gram of `g` occurs in each row of x [rows, items] with `skip` items left out between its items: [rows, n-grams].
Value Occurrences(Builder& b, const Value& x, const Grams& g, int64_t skip) {
  const int64_t stride = skip + 1;
  const Value items = b.size(x, 1);
  const Value places = b.op("Maximum", {b.op("Sub", {items, Known(b, (g.length - 1) * stride)}), Known(b, 0)});
  std::vector<Value> parts;
  for (int64_t i = 0; i < g.length; ++i) {
    const Value begin = b.op("Minimum", {Known(b, i * stride), items});
    parts.push_back(b.op("Slice", {x, Join(b, {Known(b, 0), begin}), Join(b, {Known(b, -1), places})}));
  }
  const Value windows = b.unsqueeze(b.op("Pack", parts, {{"axis", 2}}), {2});  // [rows, places, 1, length]
  const Value same = b.op("All", {b.op("Equal", {windows, g.pool}), b.scalar(TW_INT32, 3)});
  return b.op("Sum", {b.cast(same, TW_FLOAT), b.scalar(TW_INT32, 1)});
}

// Counts of n-grams (TF), whether there is one, times its weight (IDF), or the count times the weight (TFIDF).
void TfIdfVectorizer(Builder& b, Node& n) {
  const std::string mode = n.s("mode");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") n.fail("'mode' is '" + mode + "'; it must be TF, IDF or TFIDF");
  const int rank = RankOf(n, n.in(0), "X");
  if (rank != 1 && rank != 2) n.fail("the input must have rank 1 or 2 but has rank " + std::to_string(rank));
  Value x = rank == 1 ? b.unsqueeze(n.in(0), {0}) : n.in(0);
  if (x.dtype() != TW_STRING) x = b.cast(x, TW_INT64);
  std::vector<Value> counts;
  std::vector<int64_t> columns;
  for (const Grams& g : Pool(b, n)) {
    if (g.length < n.i("min_gram_length") || g.length > n.i("max_gram_length")) continue;
    Value found = Occurrences(b, x, g, 0);
    for (int64_t skip = 1; g.length > 1 && skip <= n.i("max_skip_count"); ++skip)
      found = b.op("AddV2", {found, Occurrences(b, x, g, skip)});
    counts.push_back(b.transpose(found, {1, 0}));
    columns.insert(columns.end(), g.columns.begin(), g.columns.end());
  }
  if (counts.empty()) n.fail("the pool has no n-gram of the wanted lengths");
  const std::vector<int64_t> all = n.ints("ngram_indexes");
  const int64_t width = *std::max_element(all.begin(), all.end()) + 1;
  Value y = b.transpose(b.op("UnsortedSegmentSum", {b.concat(counts, 0), b.ints(columns), Known(b, width)}), {1, 0});
  if (mode == "IDF") y = b.cast(b.op("Greater", {y, b.like(y, 0)}), TW_FLOAT);
  if (const std::vector<double> weights = n.floats("weights"); mode != "TF" && !weights.empty()) {
    if (static_cast<int64_t>(weights.size()) != width)
      n.fail("'weights' has " + std::to_string(weights.size()) + " elements; the output has " + std::to_string(width) + " columns");
    y = b.op("Mul", {y, b.constant(Tensor::Vector(TW_FLOAT, weights))});
  }
  n.out(rank == 1 ? b.squeeze(y, {0}) : y);
}

constexpr Entry kText[] = {
    {"RegexFullMatch", 20, kLatest, &RegexFullMatch},  {"StringConcat", 20, kLatest, &StringConcat},
    {"StringSplit", 20, kLatest, &StringSplit},        {"StringNormalizer", 10, kLatest, &StringNormalizer},
    {"TfIdfVectorizer", 9, kLatest, &TfIdfVectorizer},
};

}  // namespace

Family TextTranslators() { return {std::begin(kText), std::end(kText)}; }

}  // namespace thalweg::onnx
