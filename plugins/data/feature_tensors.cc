#include "feature_tensors.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace thalweg::data {

Feature::Kind KindOf(uint32_t dtype) {
  switch (dtype) {
    case TW_STRING: return Feature::kBytes;
    case TW_FLOAT: return Feature::kFloat;
    case TW_INT64: return Feature::kInt64;
    default: Invalid("features are float, int64 or string, not " + tw::dtype_text(dtype));
  }
}

const char* KindText(Feature::Kind kind) { return kind == Feature::kBytes ? "string" : kind == Feature::kFloat ? "float" : "int64"; }

bool FeatureValues::Read(const Feature& f) {
  switch (f.kind) {
    case Feature::kBytes: return ReadBytes(f.list, &texts);
    case Feature::kFloat: return ReadFloats(f.list, &floats);
    case Feature::kInt64: return ReadInt64s(f.list, &ints);
    default: return true;
  }
}

uint64_t FeatureValues::size(Feature::Kind kind) const {
  return kind == Feature::kBytes ? texts.size() : kind == Feature::kFloat ? floats.size() : ints.size();
}

void FeatureValues::CopyTo(Feature::Kind kind, const tw::Out<tw::Any>& out, uint64_t at, uint64_t from, uint64_t n) const {
  if (n == 0) return;
  if (kind == Feature::kBytes) {
    for (uint64_t i = 0; i < n; ++i) out.set(at + i, texts[from + i]);
  } else if (kind == Feature::kFloat) {
    std::memcpy(out.data() + at * sizeof(float), floats.data() + from, n * sizeof(float));
  } else {
    std::memcpy(out.data() + at * sizeof(int64_t), ints.data() + from, n * sizeof(int64_t));
  }
}

void PadFeature(Feature::Kind kind, tw::In<tw::Any> defaults, uint64_t first, const tw::Out<tw::Any>& out, uint64_t at, uint64_t n) {
  const uint64_t have = defaults.v ? defaults.size() : 0;
  const size_t bytes = kind == Feature::kFloat ? sizeof(float) : sizeof(int64_t);
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t from = have > 1 ? first + i : 0;
    if (kind == Feature::kBytes) {
      out.set(at + i, have == 0 ? std::string_view() : View(reinterpret_cast<const tw_string*>(defaults.data())[from]));
    } else if (have == 0) {
      std::memset(out.data() + (at + i) * bytes, 0, bytes);
    } else {
      std::memcpy(out.data() + (at + i) * bytes, defaults.data() + from * bytes, bytes);
    }
  }
}

std::vector<DenseShape> DenseShape::Read(const tw_attr& shapes, const char* name) {
  std::vector<DenseShape> out;
  const auto* s = static_cast<const tw_shape*>(shapes.data);
  for (uint32_t k = 0; k < shapes.count; ++k) {
    const std::string which = std::string(name) + "[" + std::to_string(k) + "]";
    DenseShape& d = out.emplace_back();
    if (s[k].rank < 0) Invalid(which + " has no rank; give the shape of the feature");
    d.dims.assign(s[k].dims, s[k].dims + s[k].rank);
    for (size_t a = 0; a < d.dims.size(); ++a) {
      if (d.dims[a] >= 0) {
        if (a > 0 && __builtin_mul_overflow(d.stride, d.dims[a], &d.stride)) Invalid(which + " is too large");
      } else if (a > 0) {
        Invalid(which + " is " + tw::text(s[k]) + "; only its first size may be unknown");
      }
    }
    d.variable = !d.dims.empty() && d.dims[0] < 0;
    if (!d.variable && !d.dims.empty() && __builtin_mul_overflow(d.stride, d.dims[0], &d.count)) Invalid(which + " is too large");
    if (d.dims.empty()) d.count = 1;
  }
  return out;
}

Examples::Examples(tw::Frame f, tw::In<tw_string> serialized, tw::In<tw_string> names, const char* what)
    : f_(f), serialized_(serialized), names_(names), what_(what), found_(f) {
  if (serialized.rank() > 1) Invalid("'serialized' is " + DimsText(*serialized.v) + "; it must be a scalar or a vector");
  if (names && names.size() != 0 && names.size() != serialized.size())
    Invalid("there are " + std::to_string(names.size()) + " names for " + std::to_string(serialized.size()) +
            " examples; give one for each, or none");
}

size_t Examples::Add(const std::vector<std::string_view>& keys) {
  const size_t first = keys_.size();
  keys_.insert(keys_.end(), keys.begin(), keys.end());
  return first;
}

void Examples::Find() {
  Keys keys;
  for (size_t k = 0; k < keys_.size(); ++k) keys[keys_[k]].push_back(uint32_t(k));
  found_.resize(size() * keys_.size());
  std::atomic<uint64_t> bad{UINT64_MAX};
  f_.parallel(size(), 16, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      if (ReadExample(message(i), keys, found_.data() + i * keys_.size())) continue;
      for (uint64_t was = bad.load(); i < was && !bad.compare_exchange_weak(was, i);) {
      }
    }
  });
  if (bad != UINT64_MAX) Invalid(Which(bad) + " of " + std::to_string(message(bad).size()) + " bytes is no serialized " + what_);
}

std::string Examples::Which(uint64_t i) const {
  const bool named = names_ && names_.size() > i && names_[i].size > 0;
  return "example " + std::to_string(i) + (named ? " ('" + std::string(View(names_[i]).substr(0, 200)) + "')" : "");
}

std::string Examples::FeatureText(uint64_t i, size_t k) const { return "feature '" + keys_[k] + "' of " + Which(i); }

FeatureValues Examples::All(size_t k, Feature::Kind kind, tw::TempVector<int64_t>* ends) const {
  FeatureValues all(f_);
  for (uint64_t i = 0; i < size(); ++i) {
    const Feature& f = At(i, k);
    if (f.kind != Feature::kNone && f.kind != kind)
      Invalid(FeatureText(i, k) + " is " + KindText(f.kind) + "; " + KindText(kind) + " is asked for");
    if (!all.Read(f)) Invalid(FeatureText(i, k) + " is damaged");
    ends->push_back(int64_t(all.size(kind)));
  }
  return all;
}

void Examples::Sparse(size_t k, const tw::Out<int64_t>& indices, const tw::Out<tw::Any>& values, const tw::Out<int64_t>& shape) const {
  const Feature::Kind kind = KindOf(values.v()->dtype);
  tw::TempVector<int64_t> ends(f_);
  const FeatureValues all = All(k, kind, &ends);
  const auto n = int64_t(all.size(kind));
  Allocate(values, {n});
  all.CopyTo(kind, values, 0, 0, uint64_t(n));
  Allocate(indices, {n, one() ? 1 : 2});
  Allocate(shape, {one() ? 1 : 2});
  int64_t most = 0, at = 0, *to = indices.data();
  for (uint64_t i = 0; i < size(); ++i) {
    for (const int64_t first = at; at < ends[i]; ++at) {
      if (!one()) *to++ = int64_t(i);
      *to++ = at - first;
      most = std::max(most, at - first + 1);
    }
  }
  if (!one()) shape[0] = int64_t(size());
  shape[one() ? 0 : 1] = most;
}

void Examples::Dense(size_t k, const DenseShape& d, tw::In<tw::Any> defaults, const tw::Out<tw::Any>& out) const {
  const Feature::Kind kind = KindOf(out.v()->dtype);
  tw::TempVector<int64_t> ends(f_);
  const FeatureValues all = All(k, kind, &ends);
  int64_t most = 0, begin = 0;
  for (uint64_t i = 0; i < size(); begin = ends[i++]) {
    const int64_t n = ends[i] - begin;
    const bool there = At(i, k).kind != Feature::kNone;
    if (d.variable) {
      if (d.stride == 0 ? n != 0 : n % d.stride != 0)
        Invalid(FeatureText(i, k) + " has " + tw::text(n) + " values; they must be rows of " + tw::text(d.stride));
      most = std::max(most, d.stride == 0 ? 0 : n / d.stride);
    } else if (!there && int64_t(defaults.size()) != d.count) {
      Invalid(FeatureText(i, k) + " is missing and has no default; give a default of its shape, or store the feature");
    } else if (there && n != d.count) {
      Invalid(FeatureText(i, k) + " has " + tw::text(n) + " values; its shape " + tw::text(d.dims.data(), int32_t(d.dims.size())) +
              " wants " + tw::text(d.count));
    }
  }
  if (d.variable && defaults.size() > 1)
    Invalid("the default of feature '" + keys_[k] + "', whose first size is unknown, must be one value, for padding");
  std::vector<int64_t> dims = d.dims;
  if (d.variable) dims[0] = most;
  const int64_t each = d.variable ? most * d.stride : d.count;
  if (!one()) dims.insert(dims.begin(), int64_t(size()));
  Allocate(out, dims);
  begin = 0;
  for (uint64_t i = 0; i < size(); begin = ends[i++]) {
    const auto n = uint64_t(ends[i] - begin), to = i * uint64_t(each);
    all.CopyTo(kind, out, to, uint64_t(begin), n);
    if (int64_t(n) < each) PadFeature(kind, defaults, d.variable ? 0 : n, out, to + n, uint64_t(each) - n);
  }
}

void Examples::Ragged(size_t k, const tw::Out<tw::Any>& values, const tw::Out<tw::Any>& splits) const {
  const Feature::Kind kind = KindOf(values.v()->dtype);
  tw::TempVector<int64_t> ends(1, 0, f_);
  const FeatureValues all = All(k, kind, &ends);
  Allocate(values, {int64_t(all.size(kind))});
  all.CopyTo(kind, values, 0, 0, all.size(kind));
  if (one()) ends.clear();
  WriteSplits(ends, keys_[k], splits);
}

void WriteSplits(const tw::TempVector<int64_t>& splits, std::string_view name, const tw::Out<tw::Any>& out) {
  Allocate(out, {int64_t(splits.size())});
  for (size_t i = 0; i < splits.size(); ++i) {
    if (out.v()->dtype == TW_INT32) {
      if (splits[i] > INT32_MAX) Invalid("feature '" + std::string(name) + "' has more than 2^31 - 1 values; use splits of int64");
      reinterpret_cast<int32_t*>(out.data())[i] = int32_t(splits[i]);
    } else {
      reinterpret_cast<int64_t*>(out.data())[i] = splits[i];
    }
  }
}

void WantKeys(const char* what, size_t keys, size_t outputs) {
  if (keys != outputs)
    Invalid("'" + std::string(what) + "' has " + std::to_string(keys) + " keys; it must have " + std::to_string(outputs) +
            ", as the node's types say");
}

std::vector<std::string_view> KeysOf(const tw::In<tw_string>& vector, const char* what) {
  if (vector.rank() != 1) Invalid("'" + std::string(what) + "' is " + DimsText(*vector.v) + "; it must be a vector of keys");
  std::vector<std::string_view> keys;
  for (uint64_t k = 0; k < vector.size(); ++k) keys.push_back(View(vector[k]));
  return keys;
}

std::vector<std::string_view> KeysOf(const tw::Many<tw_string>& texts, const char* what) {
  std::vector<std::string_view> keys;
  for (uint32_t k = 0; k < texts.size(); ++k) {
    if (texts[k].rank() != 0)
      Invalid("'" + std::string(what) + "' " + std::to_string(k) + " is " + DimsText(*texts[k].v) + "; it must be a scalar, one key");
    keys.push_back(View(texts[k][0]));
  }
  return keys;
}

std::vector<std::string> KeysOf(const tw_attr& attr) {
  std::vector<std::string> keys;
  const auto* s = static_cast<const tw_string*>(attr.data);
  for (uint32_t k = 0; k < attr.count; ++k) keys.emplace_back(View(s[k]));
  return keys;
}

}  // namespace thalweg::data
