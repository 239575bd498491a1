// ParseExampleV2: features of serialized examples become tensors.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>

#include "dataset.h"
#include "example.h"
#include "register.h"

namespace thalweg::data {
namespace {

std::string_view View(const tw_string& s) { return {s.data, s.size}; }

Feature::Kind KindOf(uint32_t dtype) {
  switch (dtype) {
    case TW_STRING: return Feature::kBytes;
    case TW_FLOAT: return Feature::kFloat;
    case TW_INT64: return Feature::kInt64;
    default: Invalid("features are float, int64 or string, not " + tw::dtype_text(dtype));
  }
}
const char* KindText(Feature::Kind kind) { return kind == Feature::kBytes ? "string" : kind == Feature::kFloat ? "float" : "int64"; }

// Values of one type, of one or several examples.
struct Values {
  std::vector<std::string_view> texts;
  std::vector<float> floats;
  std::vector<int64_t> ints;

  bool Read(const Feature& f) {
    switch (f.kind) {
      case Feature::kBytes: return ReadBytes(f.list, &texts);
      case Feature::kFloat: return ReadFloats(f.list, &floats);
      case Feature::kInt64: return ReadInt64s(f.list, &ints);
      default: return true;
    }
  }
  uint64_t size(Feature::Kind kind) const {
    return kind == Feature::kBytes ? texts.size() : kind == Feature::kFloat ? floats.size() : ints.size();
  }
  // Copies all values to those of an output from number `at` on.
  void CopyTo(Feature::Kind kind, const tw::Out<tw::Any>& out, uint64_t at) const {
    if (kind == Feature::kBytes) {
      for (size_t i = 0; i < texts.size(); ++i) out.set(at + i, texts[i]);
    } else if (kind == Feature::kFloat && !floats.empty()) {
      std::memcpy(out.data() + at * sizeof(float), floats.data(), floats.size() * sizeof(float));
    } else if (kind == Feature::kInt64 && !ints.empty()) {
      std::memcpy(out.data() + at * sizeof(int64_t), ints.data(), ints.size() * sizeof(int64_t));
    }
  }
};

template <class T>
void Allocate(const tw::Out<T>& out, const std::vector<int64_t>& dims) {
  if (out.rank() < 0) return out.allocate(dims);
  if (!std::equal(out.dims(), out.dims() + out.rank(), dims.begin(), dims.end()))
    Fail(TW_INTERNAL,
         "the shape rule of ParseExampleV2 gives " + DimsText(*out.v()) + " for " + tw::text(dims.data(), int32_t(dims.size())));
}

class ParseExample {
 public:
  explicit ParseExample(const tw::Node& n) {
    const tw_attr& shapes = n.at("dense_shapes");
    const auto* s = static_cast<const tw_shape*>(shapes.data);
    for (uint32_t k = 0; k < shapes.count; ++k) {
      Dense& d = dense_.emplace_back();
      if (s[k].rank < 0) Invalid("dense_shapes[" + std::to_string(k) + "] has no rank; give the shape of the feature");
      d.dims.assign(s[k].dims, s[k].dims + s[k].rank);
      for (size_t a = 0; a < d.dims.size(); ++a) {
        if (d.dims[a] >= 0) {
          if (a > 0 && __builtin_mul_overflow(d.stride, d.dims[a], &d.stride))
            Invalid("dense_shapes[" + std::to_string(k) + "] is too large");
        } else if (a > 0) {
          Invalid("dense_shapes[" + std::to_string(k) + "] is " + tw::text(s[k]) + "; only its first size may be unknown");
        }
      }
      d.variable = !d.dims.empty() && d.dims[0] < 0;
      if (!d.variable && !d.dims.empty() && __builtin_mul_overflow(d.stride, d.dims[0], &d.count))
        Invalid("dense_shapes[" + std::to_string(k) + "] is too large");
      if (d.dims.empty()) d.count = 1;
    }
  }

  void operator()(tw::Frame f, tw::In<tw_string> serialized, tw::In<tw_string> names, tw::In<tw_string> sparse_keys,
                  tw::In<tw_string> dense_keys, tw::In<tw_string> ragged_keys, tw::Many<tw::Any> defaults, tw::ManyOut<int64_t> indices,
                  tw::ManyOut<tw::Any> sparse, tw::ManyOut<int64_t> shapes, tw::ManyOut<tw::Any> dense, tw::ManyOut<tw::Any> ragged,
                  tw::ManyOut<tw::Any> splits) const {
    if (serialized.rank() > 1) Invalid("'serialized' is " + DimsText(*serialized.v) + "; it must be a scalar or a vector");
    if (names.size() != 0 && names.size() != serialized.size())
      Invalid("there are " + std::to_string(names.size()) + " names for " + std::to_string(serialized.size()) +
              " examples; give one for each, or none");
    Want("sparse_keys", sparse_keys, sparse.size());
    Want("dense_keys", dense_keys, dense.size());
    Want("ragged_keys", ragged_keys, ragged.size());
    if (dense_.size() != dense.size())
      Invalid("there are " + std::to_string(dense_.size()) + " dense_shapes for " + std::to_string(dense.size()) + " dense features");
    Batch b{f, serialized, names, {}, {}, sparse_keys.size() + dense_keys.size() + ragged_keys.size()};
    Add(&b, sparse_keys, 0);
    Add(&b, dense_keys, sparse_keys.size());
    Add(&b, ragged_keys, sparse_keys.size() + dense_keys.size());
    Read(&b);
    for (uint32_t k = 0; k < sparse.size(); ++k) Sparse(b, k, sparse_keys[k], indices[k], sparse[k], shapes[k]);
    for (uint32_t k = 0; k < dense.size(); ++k) Densely(b, k, sparse_keys.size() + k, dense_keys[k], defaults[k], dense[k]);
    for (uint32_t k = 0; k < ragged.size(); ++k)
      Ragged(b, sparse_keys.size() + dense_keys.size() + k, ragged_keys[k], ragged[k], splits[k]);
  }

 private:
  struct Dense {
    std::vector<int64_t> dims;
    int64_t stride = 1, count = 0;  // values of a row; of all, unless variable
    bool variable = false;
  };
  struct Batch {
    tw::Frame f;
    tw::In<tw_string> serialized, names;
    Keys keys;
    std::vector<Feature> found;  // for each example, one for each key
    size_t n_keys;
    uint64_t size() const { return serialized.size(); }
    const Feature& At(uint64_t i, size_t k) const { return found[i * n_keys + k]; }
    // "example 3 ('name')"
    std::string Which(uint64_t i) const {
      return "example " + std::to_string(i) + (names.size() > i ? " ('" + std::string(View(names[i]).substr(0, 200)) + "')" : "");
    }
  };

  static void Want(const char* what, const tw::In<tw_string>& keys, uint32_t n) {
    if (keys.rank() != 1 || keys.size() != n)
      Invalid("'" + std::string(what) + "' is " + DimsText(*keys.v) + "; it must be a vector of " + std::to_string(n) +
              " keys, as the node's types say");
  }
  static void Add(Batch* b, const tw::In<tw_string>& keys, size_t first) {
    for (uint64_t k = 0; k < keys.size(); ++k) b->keys[View(keys[k])].push_back(uint32_t(first + k));
  }

  static void Read(Batch* b) {
    const tw::Charge paid(b->f, b->size() * b->n_keys * sizeof(Feature));
    b->found.resize(b->size() * b->n_keys);
    std::atomic<uint64_t> bad{UINT64_MAX};
    b->f.parallel(b->size(), 16, [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i) {
        if (ReadExample(View(b->serialized[i]), b->keys, b->found.data() + i * b->n_keys)) continue;
        for (uint64_t was = bad.load(); i < was && !bad.compare_exchange_weak(was, i);) {
        }
      }
    });
    if (bad != UINT64_MAX)
      Fail(TW_INVALID_ARGUMENT, b->Which(bad) + " of " + std::to_string(b->serialized[bad].size) + " bytes is no serialized Example");
  }

  // Reads a feature; a missing one has no values.
  static Values Of(const Batch& b, uint64_t i, size_t k, const tw_string& key, Feature::Kind kind) {
    const Feature& f = b.At(i, k);
    Values v;
    if (f.kind != Feature::kNone && f.kind != kind) {
      Invalid("feature '" + std::string(View(key)) + "' of " + b.Which(i) + " is " + KindText(f.kind) + "; " + KindText(kind) +
              " is asked for");
    }
    if (!v.Read(f)) Invalid("feature '" + std::string(View(key)) + "' of " + b.Which(i) + " is damaged");
    return v;
  }

  // Reads the feature of all examples into one list; ends: the number of values up to each example.
  static Values All(const Batch& b, size_t k, const tw_string& key, Feature::Kind kind, std::vector<int64_t>* ends) {
    Values all;
    for (uint64_t i = 0; i < b.size(); ++i) {
      const Feature& f = b.At(i, k);
      if (f.kind != Feature::kNone && (f.kind != kind || !all.Read(f))) (void)Of(b, i, k, key, kind);  // throws
      ends->push_back(int64_t(all.size(kind)));
    }
    return all;
  }

  static void Sparse(const Batch& b, uint32_t k, const tw_string& key, tw::Out<int64_t> indices, tw::Out<tw::Any> values,
                     tw::Out<int64_t> shape) {
    const Feature::Kind kind = KindOf(values.v()->dtype);
    std::vector<int64_t> ends;
    const Values all = All(b, k, key, kind, &ends);
    const bool one = b.serialized.rank() == 0;
    const auto n = int64_t(all.size(kind));
    Allocate(values, {n});
    all.CopyTo(kind, values, 0);
    Allocate(indices, {n, one ? 1 : 2});
    Allocate(shape, {one ? 1 : 2});
    int64_t most = 0, at = 0, *to = indices.data();
    for (uint64_t i = 0; i < b.size(); ++i) {
      for (const int64_t first = at; at < ends[i]; ++at) {
        if (!one) *to++ = int64_t(i);
        *to++ = at - first;
        most = std::max(most, at - first + 1);
      }
    }
    if (!one) shape[0] = int64_t(b.size());
    shape[one ? 0 : 1] = most;
  }

  void Densely(const Batch& b, uint32_t number, size_t k, const tw_string& key, tw::In<tw::Any> otherwise, tw::Out<tw::Any> out) const {
    const Dense& d = dense_[number];
    const Feature::Kind kind = KindOf(out.v()->dtype);
    const bool one = b.serialized.rank() == 0;
    std::vector<Values> rows;
    int64_t most = 0;
    for (uint64_t i = 0; i < b.size(); ++i) {
      Values& v = rows.emplace_back(Of(b, i, k, key, kind));
      const auto n = int64_t(v.size(kind));
      const bool there = b.At(i, k).kind != Feature::kNone;
      const auto which = [&] { return "feature '" + std::string(View(key)) + "' of " + b.Which(i); };
      if (d.variable) {
        if (d.stride == 0 ? n != 0 : n % d.stride != 0)
          Invalid(which() + " has " + tw::text(n) + " values; they must be rows of " + tw::text(d.stride));
        most = std::max(most, d.stride == 0 ? 0 : n / d.stride);
      } else if (!there && int64_t(otherwise.size()) != d.count) {
        Invalid(which() + " is missing and has no default; give a default of its shape, or store the feature");
      } else if (there && n != d.count) {
        Invalid(which() + " has " + tw::text(n) + " values; its shape " + tw::text(d.dims.data(), int32_t(d.dims.size())) + " wants " +
                tw::text(d.count));
      }
    }
    if (d.variable && otherwise.size() > 1)
      Invalid("the default of feature '" + std::string(View(key)) + "', whose first size is unknown, must be one value, for padding");
    std::vector<int64_t> dims = d.dims;
    if (d.variable) dims[0] = most;
    const int64_t each = d.variable ? most * d.stride : d.count;
    if (!one) dims.insert(dims.begin(), int64_t(b.size()));
    Allocate(out, dims);
    for (uint64_t i = 0; i < b.size(); ++i) {
      const auto n = int64_t(rows[i].size(kind));
      rows[i].CopyTo(kind, out, i * uint64_t(each));
      if (n < each) Pad(kind, otherwise, d.variable ? 0 : n, out, i * uint64_t(each) + uint64_t(n), uint64_t(each - n));
    }
  }

  // Fills n values from number `at` on: from a default of one value, or of equally many.
  static void Pad(Feature::Kind kind, tw::In<tw::Any> otherwise, int64_t first, tw::Out<tw::Any> out, uint64_t at, uint64_t n) {
    const uint64_t have = otherwise.size();
    const size_t bytes = kind == Feature::kFloat ? sizeof(float) : sizeof(int64_t);
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t from = have > 1 ? uint64_t(first) + i : 0;
      if (kind == Feature::kBytes) {
        out.set(at + i, have == 0 ? std::string_view() : View(reinterpret_cast<const tw_string*>(otherwise.data())[from]));
      } else if (have == 0) {
        std::memset(out.data() + (at + i) * bytes, 0, bytes);
      } else {
        std::memcpy(out.data() + (at + i) * bytes, otherwise.data() + from * bytes, bytes);
      }
    }
  }

  static void Ragged(const Batch& b, size_t k, const tw_string& key, tw::Out<tw::Any> values, tw::Out<tw::Any> splits) {
    const Feature::Kind kind = KindOf(values.v()->dtype);
    std::vector<int64_t> ends;
    const Values all = All(b, k, key, kind, &ends);
    Allocate(values, {int64_t(all.size(kind))});
    all.CopyTo(kind, values, 0);
    const bool one = b.serialized.rank() == 0;
    Allocate(splits, {one ? 0 : int64_t(b.size()) + 1});
    if (one) return;
    ends.insert(ends.begin(), 0);
    for (size_t i = 0; i < ends.size(); ++i) {
      if (splits.v()->dtype == TW_INT32) {
        if (ends[i] > INT32_MAX) Invalid("feature '" + std::string(View(key)) + "' has more than 2^31 - 1 values; use splits of int64");
        reinterpret_cast<int32_t*>(splits.data())[i] = int32_t(ends[i]);
      } else {
        reinterpret_cast<int64_t*>(splits.data())[i] = ends[i];
      }
    }
  }

  std::vector<Dense> dense_;
};

}  // namespace

void register_example(tw::Plugin& p) { p.kernel<ParseExample>("ParseExampleV2 @CPU"); }

}  // namespace thalweg::data
