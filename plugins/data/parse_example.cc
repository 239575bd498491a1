// ParseExampleV2, ParseExample and ParseSingleExample: features of serialized examples become tensors.
// They differ in where the keys stand: in vectors, in scalars, and in attributes.
#include "feature_tensors.h"
#include "register.h"

namespace thalweg::data {
namespace {

using Texts = std::vector<std::string_view>;

// The outputs of all three ops; those without ragged features have none of these.
struct ExampleOutputs {
  tw::ManyOut<int64_t> indices;
  tw::ManyOut<tw::Any> sparse;
  tw::ManyOut<int64_t> shapes;
  tw::ManyOut<tw::Any> dense, ragged, splits;
};

void Parse(Examples* examples, const Texts& sparse, const Texts& dense, const Texts& ragged, const std::vector<DenseShape>& shapes,
           const tw::Many<tw::Any>& defaults, const ExampleOutputs& out) {
  WantKeys("sparse_keys", sparse.size(), out.sparse.size());
  WantKeys("dense_keys", dense.size(), out.dense.size());
  WantKeys("ragged_keys", ragged.size(), out.ragged.size());
  if (shapes.size() != dense.size())
    Invalid("there are " + std::to_string(shapes.size()) + " dense_shapes for " + std::to_string(dense.size()) + " dense features");
  const size_t first_sparse = examples->Add(sparse), first_dense = examples->Add(dense), first_ragged = examples->Add(ragged);
  examples->Find();
  for (uint32_t k = 0; k < sparse.size(); ++k) examples->Sparse(first_sparse + k, out.indices[k], out.sparse[k], out.shapes[k]);
  for (uint32_t k = 0; k < dense.size(); ++k) examples->Dense(first_dense + k, shapes[k], defaults[k], out.dense[k]);
  for (uint32_t k = 0; k < ragged.size(); ++k) examples->Ragged(first_ragged + k, out.ragged[k], out.splits[k]);
}

class ParseExampleV2 {
 public:
  explicit ParseExampleV2(const tw::Node& n) : shapes_(DenseShape::Read(n.at("dense_shapes"), "dense_shapes")) {}
  void operator()(tw::Frame f, tw::In<tw_string> serialized, tw::In<tw_string> names, tw::In<tw_string> sparse_keys,
                  tw::In<tw_string> dense_keys, tw::In<tw_string> ragged_keys, tw::Many<tw::Any> defaults, tw::ManyOut<int64_t> indices,
                  tw::ManyOut<tw::Any> sparse, tw::ManyOut<int64_t> shapes, tw::ManyOut<tw::Any> dense, tw::ManyOut<tw::Any> ragged,
                  tw::ManyOut<tw::Any> splits) const {
    Examples examples(f, serialized, names, "Example");
    Parse(&examples, KeysOf(sparse_keys, "sparse_keys"), KeysOf(dense_keys, "dense_keys"), KeysOf(ragged_keys, "ragged_keys"), shapes_,
          defaults, {indices, sparse, shapes, dense, ragged, splits});
  }

 private:
  const std::vector<DenseShape> shapes_;
};

class ParseExample {
 public:
  explicit ParseExample(const tw::Node& n) : shapes_(DenseShape::Read(n.at("dense_shapes"), "dense_shapes")) {}
  void operator()(tw::Frame f, tw::In<tw_string> serialized, tw::In<tw_string> names, tw::Many<tw_string> sparse_keys,
                  tw::Many<tw_string> dense_keys, tw::Many<tw::Any> defaults, tw::ManyOut<int64_t> indices, tw::ManyOut<tw::Any> sparse,
                  tw::ManyOut<int64_t> shapes, tw::ManyOut<tw::Any> dense) const {
    if (serialized.rank() != 1) Invalid("'serialized' is " + DimsText(*serialized.v) + "; it must be a vector of examples");
    Examples examples(f, serialized, names, "Example");
    const tw::ManyOut<tw::Any> none{f.f, 0, 0};
    Parse(&examples, KeysOf(sparse_keys, "sparse_keys"), KeysOf(dense_keys, "dense_keys"), {}, shapes_, defaults,
          {indices, sparse, shapes, dense, none, none});
  }

 private:
  const std::vector<DenseShape> shapes_;
};

class ParseSingleExample {
 public:
  explicit ParseSingleExample(const tw::Node& n)
      : sparse_keys_(KeysOf(n.at("sparse_keys"))),
        dense_keys_(KeysOf(n.at("dense_keys"))),
        shapes_(DenseShape::Read(n.at("dense_shapes"), "dense_shapes")) {}
  void operator()(tw::Frame f, tw::In<tw_string> serialized, tw::Many<tw::Any> defaults, tw::ManyOut<int64_t> indices,
                  tw::ManyOut<tw::Any> sparse, tw::ManyOut<int64_t> shapes, tw::ManyOut<tw::Any> dense) const {
    if (serialized.rank() != 0) Invalid("'serialized' is " + DimsText(*serialized.v) + "; it must be a scalar, one example");
    Examples examples(f, serialized, {{nullptr}}, "Example");
    const tw::ManyOut<tw::Any> none{f.f, 0, 0};
    Parse(&examples, Texts(sparse_keys_.begin(), sparse_keys_.end()), Texts(dense_keys_.begin(), dense_keys_.end()), {}, shapes_, defaults,
          {indices, sparse, shapes, dense, none, none});
  }

 private:
  const std::vector<std::string> sparse_keys_, dense_keys_;
  const std::vector<DenseShape> shapes_;
};

}  // namespace

void register_example(tw::Plugin& p) {
  p.kernel<ParseExampleV2>("ParseExampleV2 @CPU");
  p.kernel<ParseExample>("ParseExample @CPU");
  p.kernel<ParseSingleExample>("ParseSingleExample @CPU");
}

}  // namespace thalweg::data
