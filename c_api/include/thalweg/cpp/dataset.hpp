/* tw::Dataset adds the operations of a pipeline (dataset.h); tw::Iterator gives its elements (iterator.h). Threads: as the C objects.
 * Since 0.1.
 *
 *   tw::Graph graph;
 *   tw::Scope s(graph);
 *   tw::Dataset d = tw::Dataset::csv(s, {"people.csv"}, {{"age", TW_INT32}, {"height", TW_FLOAT}})
 *                       .shuffle(10'000, 1)
 *                       .map([](tw::Scope& in, const tw::Values& row) { return tw::Values{in.op("Cast", ...), row[1]}; })
 *                       .batch(64)
 *                       .prefetch();
 *   s.finish();
 *   for (const std::vector<tw::Tensor>& batch : tw::Iterator(graph, d)) ... */
#ifndef THALWEG_CPP_DATASET_HPP
#define THALWEG_CPP_DATASET_HPP
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "thalweg/cpp/graph.hpp"
#include "thalweg/cpp/handle.hpp"
#include "thalweg/cpp/scope.hpp"
#include "thalweg/cpp/tensor.hpp"
#include "thalweg/dataset.h"

namespace tw {

/* A column of a file, a member of JSON objects, or an array of an archive, as tw_dataset_column. dims: -1 is any size. missing: what
 * stands for a missing value; 0: a missing value is an error. */
struct Column {
  std::string name; /* "": the columns of a CSV file in order */
  uint32_t dtype = TW_FLOAT;
  std::vector<int64_t> dims;
  tw_output missing = 0;
};
using CsvOptions = Record<tw_dataset_csv_options, tw_dataset_csv_options_init>;
using BucketOptions = Record<tw_dataset_bucket_options, tw_dataset_bucket_options_init>;

/* A pipeline of a scope, which must outlive it; a value that can be copied. Each function adds an operation; failures are those of the
 * scope, so Scope::finish throws them. Functions of elements get a scope of their own and the components, and return components. */
class Dataset {
 public:
  using Files = std::vector<std::string>;
  Dataset(Scope& scope, tw_output value) : s_(scope.c()), d_(value) {}
  tw_output value() const { return d_; }

  /* ---- Sources ---- */
  static Dataset rows(Scope& s, const Values& components) { return {s, tw_dataset_rows(s.c(), components.data(), size(components))}; }
  static Dataset range(Scope& s, int64_t start, int64_t stop, int64_t step = 1) { return {s, tw_dataset_range(s.c(), start, stop, step)}; }
  /* compression, here and below: "", "gzip" or "zlib". */
  static Dataset records(Scope& s, const Files& files, const std::string& compression = "") {
    return {s, tw_dataset_records_packed(s.c(), names(s, files), compression.c_str())};
  }
  static Dataset lines(Scope& s, const Files& files, const std::string& compression = "") {
    return {s, tw_dataset_lines_packed(s.c(), names(s, files), compression.c_str())};
  }
  static Dataset csv(Scope& s, const Files& files, const std::vector<Column>& columns, const CsvOptions& options = {}) {
    const Columns all(columns);
    return {s, tw_dataset_csv(s.c(), names(s, files), all.list.data(), size(columns), &options)};
  }
  static Dataset json_lines(Scope& s, const Files& files, const std::vector<Column>& columns, const std::string& compression = "") {
    const Columns all(columns);
    return {s, tw_dataset_json_lines(s.c(), names(s, files), all.list.data(), size(columns), compression.c_str())};
  }
  static Dataset npy(Scope& s, const Files& files, uint32_t dtype, const std::vector<int64_t>& row, const std::string& compression = "") {
    return {s, tw_dataset_npy(s.c(), names(s, files), dtype, row.data(), int32_t(row.size()), compression.c_str())};
  }
  static Dataset idx(Scope& s, const Files& files, uint32_t dtype, const std::vector<int64_t>& row, const std::string& compression = "") {
    return {s, tw_dataset_idx(s.c(), names(s, files), dtype, row.data(), int32_t(row.size()), compression.c_str())};
  }
  static Dataset npz(Scope& s, const Files& files, const std::vector<Column>& arrays) {
    const Columns all(arrays);
    return {s, tw_dataset_npz(s.c(), names(s, files), all.list.data(), size(arrays))};
  }
  static Dataset zip(Scope& s, const std::vector<Dataset>& datasets) {
    Values all;
    for (const Dataset& d : datasets) all.push_back(d.d_);
    return {s, tw_dataset_zip(s.c(), all.data(), size(all))};
  }

  /* ---- The same elements, fewer, or in another order ---- */
  Dataset take(int64_t count) const { return as(tw_dataset_take(s_, d_, count)); }
  Dataset skip(int64_t count) const { return as(tw_dataset_skip(s_, d_, count)); }
  Dataset shard(int64_t shards, int64_t index) const { return as(tw_dataset_shard(s_, d_, shards, index)); }
  Dataset repeat(int64_t count = TW_DATASET_ALL) const { return as(tw_dataset_repeat(s_, d_, count)); }
  Dataset concatenate(const Dataset& next) const { return as(tw_dataset_concatenate(s_, d_, next.d_)); }
  Dataset shuffle(int64_t buffer, int64_t seed, bool each_pass = true) const {
    return as(tw_dataset_shuffle(s_, d_, buffer, seed, each_pass));
  }
  Dataset cache() const { return as(tw_dataset_cache(s_, d_)); }
  /* Leaves out elements that fail. */
  Dataset ignore_errors(bool log = true) const { return as(tw_dataset_ignore_errors(s_, d_, log)); }
  Dataset prefetch(int64_t count = TW_DATASET_AUTO) const { return as(tw_dataset_prefetch(s_, d_, count)); }

  /* ---- Several elements become one, or one several. whole: leaves out a last batch that is not full ---- */
  Dataset batch(int64_t size, bool whole = false) const { return as(tw_dataset_batch(s_, d_, size, whole)); }
  /* padding: one scalar for each component; none: 0 and "". */
  Dataset padded_batch(int64_t size, const Values& padding = {}, bool whole = false) const {
    const tw_graph* graph = tw_scope_graph(s_);
    if (!padding.empty() && graph && padding.size() != tw_dataset_component_count(graph, d_))
      tw_scope_fail(s_, tw_status_create(TW_INVALID_ARGUMENT, "padded_batch: there must be one padding for each component"));
    return as(tw_dataset_padded_batch(s_, d_, size, nullptr, padding.empty() ? nullptr : padding.data(), whole));
  }
  Dataset unbatch() const { return as(tw_dataset_unbatch(s_, d_)); }
  /* Elements whose components are datasets, for flat_map. shift: 0 means size. */
  Dataset window(int64_t size, int64_t shift = 0, int64_t stride = 1, bool whole = false) const {
    return as(tw_dataset_window(s_, d_, size, shift ? shift : size, stride, whole));
  }

  /* ---- Functions of elements ---- */
  /* f(scope, components) returns components. */
  template <class F>
  Dataset map(F&& f, int64_t parallel = TW_DATASET_AUTO) const {
    return as(tw_dataset_map(s_, d_, block(f), parallel));
  }
  /* f(scope, components) returns one bool scalar. */
  template <class F>
  Dataset filter(F&& f) const {
    return as(tw_dataset_filter(s_, d_, block(one(f))));
  }
  template <class F>
  Dataset take_while(F&& f) const {
    return as(tw_dataset_take_while(s_, d_, block(one(f))));
  }
  /* f(scope, components) returns a Dataset of that scope. */
  template <class F>
  Dataset flat_map(F&& f) const {
    return as(tw_dataset_flat_map(s_, d_, block(dataset(f))));
  }
  template <class F>
  Dataset interleave(F&& f, int64_t cycle = 16, int64_t block_length = 1) const {
    return as(tw_dataset_interleave(s_, d_, block(dataset(f)), cycle, block_length));
  }
  /* key(scope, components) returns one int64 scalar; reduce(scope, key, window) returns a Dataset of that scope. */
  template <class Key, class Reduce>
  Dataset group_by_window(Key&& key, Reduce&& reduce, int64_t size) const {
    Block of_key(block(one(key)));
    tw_output which = 0, window = 0;
    Block made(tw_dataset_window_block(s_, d_, &which, &window));
    if (made.c()) {
      Scope in(tw_block_scope(made.c()));
      const tw_output result = reduce(in, which, Dataset(in, window)).d_;
      tw_block_give(made.c(), &result, 1);
    }
    return as(tw_dataset_group_by_window(s_, d_, of_key.take(), made.take(), size));
  }
  /* length(scope, components) returns one whole number. sizes: one more than boundaries. */
  template <class Length>
  Dataset bucket_by_length(Length&& length, const std::vector<int64_t>& boundaries, const std::vector<int64_t>& sizes,
                           const BucketOptions& options = {}) const {
    if (sizes.size() != boundaries.size() + 1)
      tw_scope_fail(s_, tw_status_create(TW_INVALID_ARGUMENT, "bucket_by_length: there must be one size more than boundaries"));
    return as(tw_dataset_bucket_by_length(s_, d_, block(one(length)), boundaries.data(), sizes.data(), size(boundaries), &options));
  }

 private:
  class Block : public Owned<tw_block, tw_block_destroy> {
   public:
    explicit Block(tw_block* begun) { own(begun); }
    tw_block* take() { return disown(); }
  };
  /* Columns as the C functions take them. */
  struct Columns {
    explicit Columns(const std::vector<Column>& columns) : all(columns.size()) {
      for (size_t k = 0; k < columns.size(); ++k) {
        tw_dataset_column_init(&all[k]);
        all[k].name = columns[k].name.empty() ? nullptr : columns[k].name.c_str();
        all[k].dtype = columns[k].dtype;
        all[k].rank = int32_t(columns[k].dims.size());
        all[k].dims = columns[k].dims.data();
        all[k].missing = columns[k].missing;
        list.push_back(&all[k]);
      }
    }
    std::vector<tw_dataset_column> all;
    std::vector<const tw_dataset_column*> list;
  };

  Dataset(tw_scope* scope, tw_output value) : s_(scope), d_(value) {}
  Dataset as(tw_output value) const { return {s_, value}; }
  template <class T>
  static uint32_t size(const std::vector<T>& list) {
    return uint32_t(list.size());
  }
  static tw_output names(Scope& s, const Files& files) {
    const int64_t n = int64_t(files.size());
    tw_tensor* made = nullptr;
    raise(tw_tensor_create(TW_STRING, &n, 1, &made));
    const Tensor all = Tensor::adopt(made);
    for (size_t i = 0; i < files.size(); ++i) raise(tw_tensor_set_string(made, i, files[i].data(), files[i].size()));
    return s.constant(all);
  }
  template <class F>
  static auto one(F& f) {
    return [&f](Scope& in, const Values& element) { return Values{f(in, element)}; };
  }
  template <class F>
  static auto dataset(F& f) {
    return [&f](Scope& in, const Values& element) { return Values{f(in, element).value()}; };
  }
  /* The block of a function of an element, for a function of the C API that takes it; NULL after a failure of the scope. */
  template <class F>
  tw_block* block(F&& f) const {
    const tw_graph* graph = tw_scope_graph(s_);
    Values element(graph ? tw_dataset_component_count(graph, d_) : 0);
    tw_output none = 0;
    Block made(tw_dataset_block(s_, d_, element.empty() ? &none : element.data()));
    if (!made.c()) return nullptr;
    Scope in(tw_block_scope(made.c()));
    const Values results = f(in, static_cast<const Values&>(element));
    tw_block_give(made.c(), results.data(), size(results));
    return made.take();
  }

  tw_scope* s_;
  tw_output d_;
};

/* Gives the elements of a pipeline, or of another source of batches, one after the other. */
class Iterator : public Owned<tw_iterator, tw_iterator_destroy> {
 public:
  /* prefetch: as in tw_dataset_iterator_options. session: options of the session. */
  Iterator(const Graph& graph, const Dataset& dataset, int64_t prefetch = TW_DATASET_AUTO, const std::vector<const char*>& session = {}) {
    tw_dataset_iterator_options options;
    tw_dataset_iterator_options_init(&options);
    options.prefetch = prefetch;
    options.session = session.data();
    options.n_session = uint32_t(session.size());
    tw_iterator* made = nullptr;
    raise(tw_dataset_iterator_create(graph.c(), dataset.value(), &options, &made));
    own(made);
  }
  /* Takes an iterator over. */
  explicit Iterator(tw_iterator* made) { own(made); }

  /* Takes the next element; returns false at the end of the epoch. */
  bool next(std::vector<Tensor>* element) {
    std::vector<tw_tensor*> got(c()->n_tensors);
    uint32_t end = 0;
    raise(tw_iterator_next(c(), got.data(), &end));
    element->clear();
    for (tw_tensor* t : got)
      if (t) element->push_back(Tensor::adopt(t));
    return end == 0;
  }
  void reset(int64_t epoch) { raise(tw_iterator_reset(c(), epoch)); }
  std::string save() {
    tw_buffer* position = nullptr;
    raise(tw_iterator_save(c(), &position));
    return take_text(position);
  }
  void restore(const std::string& position) { raise(tw_iterator_restore(c(), position.data(), position.size())); }

  /* The elements that are left of the epoch, for a loop. */
  struct End {};
  class Left {
   public:
    explicit Left(Iterator* of) : of_(of) { ++*this; }
    const std::vector<Tensor>& operator*() const { return element_; }
    Left& operator++() {
      more_ = of_->next(&element_);
      return *this;
    }
    bool operator!=(End) const { return more_; }

   private:
    Iterator* of_;
    std::vector<Tensor> element_;
    bool more_ = false;
  };
  Left begin() { return Left(this); }
  End end() const { return {}; }
};

}  // namespace tw
#endif
