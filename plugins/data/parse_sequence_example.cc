// ParseSequenceExampleV2, ParseSequenceExample and ParseSingleSequenceExample. The context is parsed as
// an Example is; feature lists have an axis for steps.
#include <algorithm>

#include "feature_tensors.h"
#include "register.h"

namespace thalweg::data {
namespace {

// The keys of a node, wherever they stand. may_miss: for each dense feature list whether a message
// without it has no steps; else it is an error.
struct SequenceKeys {
  using List = std::vector<std::string_view>;
  List context_sparse, context_dense, context_ragged, list_sparse, list_dense, list_ragged;
  std::vector<char> may_miss;
};

// Returns may_miss of keys that are named one by one.
std::vector<char> Named(const std::vector<std::string_view>& keys, const std::vector<std::string_view>& named) {
  std::vector<char> found;
  for (std::string_view key : keys) found.push_back(std::find(named.begin(), named.end(), key) != named.end() ? 1 : 0);
  return found;
}

struct SequenceShapes {
  std::vector<DenseShape> context, list;
  explicit SequenceShapes(const tw::Node& n)
      : context(DenseShape::Read(n.at("context_dense_shapes"), "context_dense_shapes")),
        list(DenseShape::Read(n.at("feature_list_dense_shapes"), "feature_list_dense_shapes")) {
    for (size_t k = 0; k < list.size(); ++k)
      if (list[k].variable)
        Invalid("feature_list_dense_shapes[" + std::to_string(k) + "] is " + tw::text(list[k].dims.data(), int32_t(list[k].dims.size())) +
                "; the shape of a step must be known, use a ragged feature for steps that differ");
  }
};

// The outputs of all three ops; some have no ragged features and no lengths.
struct SequenceOutputs {
  tw::ManyOut<int64_t> context_indices;
  tw::ManyOut<tw::Any> context_sparse;
  tw::ManyOut<int64_t> context_shapes;
  tw::ManyOut<tw::Any> context_dense, context_ragged, context_splits;
  tw::ManyOut<int64_t> list_indices;
  tw::ManyOut<tw::Any> list_sparse;
  tw::ManyOut<int64_t> list_shapes;
  tw::ManyOut<tw::Any> list_dense;
  tw::ManyOut<int64_t> lengths;
  tw::ManyOut<tw::Any> list_ragged, outer_splits, inner_splits;
};

// The feature lists of the messages of a call.
class FeatureLists {
 public:
  FeatureLists(const Examples& examples, std::vector<std::string> keys) : in_(examples), keys_(std::move(keys)), found_(examples.frame()) {
    Keys numbers;
    for (size_t k = 0; k < keys_.size(); ++k) numbers[keys_[k]].push_back(uint32_t(k));
    found_.resize(in_.size() * keys_.size());
    for (uint64_t i = 0; i < in_.size(); ++i)
      if (!ReadFeatureLists(in_.message(i), numbers, found_.data() + i * keys_.size()))
        Invalid(in_.Which(i) + " of " + std::to_string(in_.message(i).size()) + " bytes is no serialized " + in_.what());
  }

  void Sparse(size_t k, const tw::Out<int64_t>& indices, const tw::Out<tw::Any>& values, const tw::Out<int64_t>& shape) const {
    const Feature::Kind kind = KindOf(values.v()->dtype);
    const Steps steps = Read(k, kind);
    const int64_t n = steps.ends.back(), rank = in_.one() ? 2 : 3;
    Allocate(values, {n});
    steps.values.CopyTo(kind, values, 0, 0, uint64_t(n));
    Allocate(indices, {n, rank});
    Allocate(shape, {rank});
    int64_t most_steps = 0, most = 0, *to = indices.data();
    for (uint64_t i = 0; i < in_.size(); ++i) {
      for (int64_t step = steps.rows[i]; step < steps.rows[i + 1]; ++step) {
        const int64_t first = steps.ends[size_t(step)], end = steps.ends[size_t(step) + 1];
        for (int64_t at = first; at < end; ++at) {
          if (!in_.one()) *to++ = int64_t(i);
          *to++ = step - steps.rows[i];
          *to++ = at - first;
        }
        most = std::max(most, end - first);
      }
      most_steps = std::max(most_steps, steps.rows[i + 1] - steps.rows[i]);
    }
    uint64_t axis = 0;
    if (!in_.one()) shape[axis++] = int64_t(in_.size());
    shape[axis++] = most_steps;
    shape[axis] = most;
  }

  // lengths: NULL if the op does not tell them.
  void Dense(size_t k, const DenseShape& d, bool may_miss, const tw::Out<tw::Any>& out, const tw::Out<int64_t>* lengths) const {
    const Feature::Kind kind = KindOf(out.v()->dtype);
    const Steps steps = Read(k, kind);
    int64_t most = 0;
    for (uint64_t i = 0; i < in_.size(); ++i) {
      if (!may_miss && !At(i, k).found)
        Invalid("feature list '" + keys_[k] + "' of " + in_.Which(i) +
                " is missing; store it, or name it in feature_list_dense_missing_assumed_empty");
      for (int64_t step = steps.rows[i]; step < steps.rows[i + 1]; ++step) {
        const int64_t n = steps.ends[size_t(step) + 1] - steps.ends[size_t(step)];
        if (n != d.count)
          Invalid(StepText(i, k, step - steps.rows[i]) + " has " + tw::text(n) + " values; its shape " +
                  tw::text(d.dims.data(), int32_t(d.dims.size())) + " wants " + tw::text(d.count));
      }
      most = std::max(most, steps.rows[i + 1] - steps.rows[i]);
    }
    std::vector<int64_t> dims;
    if (!in_.one()) dims.push_back(int64_t(in_.size()));
    dims.push_back(most);
    dims.insert(dims.end(), d.dims.begin(), d.dims.end());
    Allocate(out, dims);
    const auto each = uint64_t(d.count);
    for (uint64_t i = 0; i < in_.size(); ++i) {
      const auto first = uint64_t(steps.rows[i]), n = uint64_t(steps.rows[i + 1]) - first, to = i * uint64_t(most) * each;
      steps.values.CopyTo(kind, out, to, first * each, n * each);
      PadFeature(kind, {{nullptr}}, 0, out, to + n * each, (uint64_t(most) - n) * each);
    }
    if (!lengths) return;
    Allocate(*lengths, in_.one() ? std::vector<int64_t>{} : std::vector<int64_t>{int64_t(in_.size())});
    for (uint64_t i = 0; i < in_.size(); ++i) (*lengths)[i] = steps.rows[i + 1] - steps.rows[i];
  }

  void Ragged(size_t k, const tw::Out<tw::Any>& values, const tw::Out<tw::Any>& outer, const tw::Out<tw::Any>& inner) const {
    const Feature::Kind kind = KindOf(values.v()->dtype);
    const Steps steps = Read(k, kind);
    Allocate(values, {steps.ends.back()});
    steps.values.CopyTo(kind, values, 0, 0, uint64_t(steps.ends.back()));
    WriteSplits(in_.one() ? tw::TempVector<int64_t>(in_.frame()) : steps.rows, keys_[k], outer);
    WriteSplits(steps.ends, keys_[k], inner);
  }

 private:
  // The values of all steps of all messages. rows: the steps before each message, and all; ends: the
  // values before each step, and all.
  struct Steps {
    FeatureValues values;
    tw::TempVector<int64_t> rows, ends;
    explicit Steps(tw::Frame f) : values(f), rows(1, 0, f), ends(1, 0, f) {}
  };

  const FeatureList& At(uint64_t i, size_t k) const { return found_[i * keys_.size() + k]; }
  std::string StepText(uint64_t i, size_t k, int64_t step) const {
    return "step " + std::to_string(step) + " of feature list '" + keys_[k] + "' of " + in_.Which(i);
  }

  Steps Read(size_t k, Feature::Kind kind) const {
    Steps steps(in_.frame());
    tw::TempVector<Feature> features(in_.frame());
    for (uint64_t i = 0; i < in_.size(); ++i) {
      features.clear();
      if (!ReadFeatures(At(i, k).features, &features)) Invalid("feature list '" + keys_[k] + "' of " + in_.Which(i) + " is damaged");
      for (size_t step = 0; step < features.size(); ++step) {
        const Feature& f = features[step];
        if (f.kind != Feature::kNone && f.kind != kind)
          Invalid(StepText(i, k, int64_t(step)) + " is " + KindText(f.kind) + "; " + KindText(kind) + " is asked for");
        if (!steps.values.Read(f)) Invalid(StepText(i, k, int64_t(step)) + " is damaged");
        steps.ends.push_back(int64_t(steps.values.size(kind)));
      }
      steps.rows.push_back(int64_t(steps.ends.size()) - 1);
    }
    return steps;
  }

  const Examples& in_;
  const std::vector<std::string> keys_;
  tw::TempVector<FeatureList> found_;  // for each message, one for each key
};

void ParseSequences(Examples* examples, const SequenceKeys& keys, const SequenceShapes& shapes, const tw::Many<tw::Any>& defaults,
                    const SequenceOutputs& out) {
  WantKeys("context_sparse_keys", keys.context_sparse.size(), out.context_sparse.size());
  WantKeys("context_dense_keys", keys.context_dense.size(), out.context_dense.size());
  WantKeys("context_ragged_keys", keys.context_ragged.size(), out.context_ragged.size());
  WantKeys("feature_list_sparse_keys", keys.list_sparse.size(), out.list_sparse.size());
  WantKeys("feature_list_dense_keys", keys.list_dense.size(), out.list_dense.size());
  WantKeys("feature_list_ragged_keys", keys.list_ragged.size(), out.list_ragged.size());
  if (shapes.context.size() != keys.context_dense.size() || shapes.list.size() != keys.list_dense.size())
    Invalid("there are " + std::to_string(shapes.context.size()) + " context_dense_shapes and " + std::to_string(shapes.list.size()) +
            " feature_list_dense_shapes for " + std::to_string(keys.context_dense.size()) + " and " +
            std::to_string(keys.list_dense.size()) + " keys");
  if (keys.may_miss.size() != keys.list_dense.size())
    Invalid("feature_list_dense_missing_assumed_empty has " + std::to_string(keys.may_miss.size()) + " entries for " +
            std::to_string(keys.list_dense.size()) + " feature_list_dense_keys");
  const size_t sparse = examples->Add(keys.context_sparse), dense = examples->Add(keys.context_dense),
               ragged = examples->Add(keys.context_ragged);
  examples->Find();
  for (uint32_t k = 0; k < keys.context_sparse.size(); ++k)
    examples->Sparse(sparse + k, out.context_indices[k], out.context_sparse[k], out.context_shapes[k]);
  for (uint32_t k = 0; k < keys.context_dense.size(); ++k) examples->Dense(dense + k, shapes.context[k], defaults[k], out.context_dense[k]);
  for (uint32_t k = 0; k < keys.context_ragged.size(); ++k) examples->Ragged(ragged + k, out.context_ragged[k], out.context_splits[k]);

  std::vector<std::string> of_lists(keys.list_sparse.begin(), keys.list_sparse.end());
  of_lists.insert(of_lists.end(), keys.list_dense.begin(), keys.list_dense.end());
  of_lists.insert(of_lists.end(), keys.list_ragged.begin(), keys.list_ragged.end());
  const FeatureLists lists(*examples, std::move(of_lists));
  size_t number = 0;
  for (uint32_t k = 0; k < keys.list_sparse.size(); ++k)
    lists.Sparse(number++, out.list_indices[k], out.list_sparse[k], out.list_shapes[k]);
  for (uint32_t k = 0; k < keys.list_dense.size(); ++k) {
    const bool has_lengths = out.lengths.size() > 0;
    const tw::Out<int64_t> lengths = has_lengths ? out.lengths[k] : tw::Out<int64_t>{};
    lists.Dense(number++, shapes.list[k], keys.may_miss[k] != 0, out.list_dense[k], has_lengths ? &lengths : nullptr);
  }
  for (uint32_t k = 0; k < keys.list_ragged.size(); ++k)
    lists.Ragged(number++, out.list_ragged[k], out.outer_splits[k], out.inner_splits[k]);
}

constexpr const char* kSequence = "SequenceExample";

class ParseSequenceExampleV2 {
 public:
  explicit ParseSequenceExampleV2(const tw::Node& n) : shapes_(n) {}
  void operator()(tw::Frame f, tw::In<tw_string> serialized, tw::In<tw_string> names, tw::In<tw_string> context_sparse,
                  tw::In<tw_string> context_dense, tw::In<tw_string> context_ragged, tw::In<tw_string> list_sparse,
                  tw::In<tw_string> list_dense, tw::In<tw_string> list_ragged, tw::In<bool> may_miss, tw::Many<tw::Any> defaults,
                  tw::ManyOut<int64_t> context_indices, tw::ManyOut<tw::Any> context_values, tw::ManyOut<int64_t> context_shapes,
                  tw::ManyOut<tw::Any> context_denses, tw::ManyOut<tw::Any> context_raggeds, tw::ManyOut<tw::Any> context_splits,
                  tw::ManyOut<int64_t> list_indices, tw::ManyOut<tw::Any> list_values, tw::ManyOut<int64_t> list_shapes,
                  tw::ManyOut<tw::Any> list_denses, tw::ManyOut<int64_t> lengths, tw::ManyOut<tw::Any> list_raggeds,
                  tw::ManyOut<tw::Any> outer_splits, tw::ManyOut<tw::Any> inner_splits) const {
    Examples examples(f, serialized, names, kSequence);
    SequenceKeys keys{KeysOf(context_sparse, "context_sparse_keys"),
                      KeysOf(context_dense, "context_dense_keys"),
                      KeysOf(context_ragged, "context_ragged_keys"),
                      KeysOf(list_sparse, "feature_list_sparse_keys"),
                      KeysOf(list_dense, "feature_list_dense_keys"),
                      KeysOf(list_ragged, "feature_list_ragged_keys"),
                      {}};
    if (may_miss.rank() != 1)
      Invalid("'feature_list_dense_missing_assumed_empty' is " + DimsText(*may_miss.v) + "; it must be a vector, an entry for each key");
    for (uint64_t k = 0; k < may_miss.size(); ++k) keys.may_miss.push_back(may_miss[k] ? 1 : 0);
    ParseSequences(&examples, keys, shapes_, defaults,
                   {context_indices, context_values, context_shapes, context_denses, context_raggeds, context_splits, list_indices,
                    list_values, list_shapes, list_denses, lengths, list_raggeds, outer_splits, inner_splits});
  }

 private:
  const SequenceShapes shapes_;
};

class ParseSequenceExample {
 public:
  explicit ParseSequenceExample(const tw::Node& n)
      : shapes_(n),
        context_sparse_(KeysOf(n.at("context_sparse_keys"))),
        context_dense_(KeysOf(n.at("context_dense_keys"))),
        list_sparse_(KeysOf(n.at("feature_list_sparse_keys"))),
        list_dense_(KeysOf(n.at("feature_list_dense_keys"))),
        may_miss_(KeysOf(n.at("feature_list_dense_missing_assumed_empty"))) {}
  void operator()(tw::Frame f, tw::In<tw_string> serialized, tw::In<tw_string> names, tw::Many<tw::Any> defaults,
                  tw::ManyOut<int64_t> context_indices, tw::ManyOut<tw::Any> context_values, tw::ManyOut<int64_t> context_shapes,
                  tw::ManyOut<tw::Any> context_denses, tw::ManyOut<int64_t> list_indices, tw::ManyOut<tw::Any> list_values,
                  tw::ManyOut<int64_t> list_shapes, tw::ManyOut<tw::Any> list_denses, tw::ManyOut<int64_t> lengths) const {
    if (serialized.rank() != 1) Invalid("'serialized' is " + DimsText(*serialized.v) + "; it must be a vector of examples");
    Examples examples(f, serialized, names, kSequence);
    SequenceKeys keys{Views(context_sparse_), Views(context_dense_), {}, Views(list_sparse_), Views(list_dense_), {}, {}};
    keys.may_miss = Named(keys.list_dense, Views(may_miss_));
    const tw::ManyOut<tw::Any> none{f.f, 0, 0};
    ParseSequences(&examples, keys, shapes_, defaults,
                   {context_indices, context_values, context_shapes, context_denses, none, none, list_indices, list_values, list_shapes,
                    list_denses, lengths, none, none, none});
  }

 private:
  static SequenceKeys::List Views(const std::vector<std::string>& keys) { return {keys.begin(), keys.end()}; }

  const SequenceShapes shapes_;
  const std::vector<std::string> context_sparse_, context_dense_, list_sparse_, list_dense_, may_miss_;
};

class ParseSingleSequenceExample {
 public:
  explicit ParseSingleSequenceExample(const tw::Node& n) : shapes_(n) {}
  void operator()(tw::Frame f, tw::In<tw_string> serialized, tw::In<tw_string> may_miss, tw::Many<tw_string> context_sparse,
                  tw::Many<tw_string> context_dense, tw::Many<tw_string> list_sparse, tw::Many<tw_string> list_dense,
                  tw::Many<tw::Any> defaults, tw::In<tw_string> name, tw::ManyOut<int64_t> context_indices,
                  tw::ManyOut<tw::Any> context_values, tw::ManyOut<int64_t> context_shapes, tw::ManyOut<tw::Any> context_denses,
                  tw::ManyOut<int64_t> list_indices, tw::ManyOut<tw::Any> list_values, tw::ManyOut<int64_t> list_shapes,
                  tw::ManyOut<tw::Any> list_denses) const {
    if (serialized.rank() != 0) Invalid("'serialized' is " + DimsText(*serialized.v) + "; it must be a scalar, one example");
    Examples examples(f, serialized, name, kSequence);
    SequenceKeys keys{KeysOf(context_sparse, "context_sparse_keys"),
                      KeysOf(context_dense, "context_dense_keys"),
                      {},
                      KeysOf(list_sparse, "feature_list_sparse_keys"),
                      KeysOf(list_dense, "feature_list_dense_keys"),
                      {},
                      {}};
    keys.may_miss = Named(keys.list_dense, KeysOf(may_miss, "feature_list_dense_missing_assumed_empty"));
    const tw::ManyOut<tw::Any> none{f.f, 0, 0};
    const tw::ManyOut<int64_t> no_lengths{f.f, 0, 0};
    ParseSequences(&examples, keys, shapes_, defaults,
                   {context_indices, context_values, context_shapes, context_denses, none, none, list_indices, list_values, list_shapes,
                    list_denses, no_lengths, none, none, none});
  }

 private:
  const SequenceShapes shapes_;
};

}  // namespace

void register_sequence_example(tw::Plugin& p) {
  p.kernel<ParseSequenceExampleV2>("ParseSequenceExampleV2 @CPU");
  p.kernel<ParseSequenceExample>("ParseSequenceExample @CPU");
  p.kernel<ParseSingleSequenceExample>("ParseSingleSequenceExample @CPU");
}

}  // namespace thalweg::data
