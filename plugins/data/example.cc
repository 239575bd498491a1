#include "example.h"

#include <cstring>

#include "wire.h"

namespace thalweg::data {
namespace {

bool ReadFeature(std::string_view bytes, Feature* out) {
  Fields f(bytes);
  while (f.Next()) {
    if (f.wire != Fields::kBytes || f.number > Feature::kInt64) continue;
    *out = {Feature::Kind(f.number), f.bytes};
  }
  return f.good();
}

template <class T>
void Append(std::string_view bytes, tw::TempVector<T>* out) {
  const size_t n = bytes.size() / sizeof(T), before = out->size();
  out->resize(before + n);
  if (n > 0) std::memcpy(out->data() + before, bytes.data(), n * sizeof(T));
}

// Calls entry(key, value) for each entry of a map of messages. Returns false for damaged bytes, or if
// entry does.
template <class F>
bool EachEntry(std::string_view map, F&& entry) {
  Fields entries(map);
  while (entries.Next()) {
    if (entries.number != 1 || entries.wire != Fields::kBytes) continue;
    Fields f(entries.bytes);
    std::string_view key, value;
    while (f.Next()) {
      if (f.wire != Fields::kBytes) continue;
      if (f.number == 1) key = f.bytes;
      if (f.number == 2) value = f.bytes;
    }
    if (!f.good() || !entry(key, value)) return false;
  }
  return entries.good();
}

}  // namespace

bool ReadExample(std::string_view bytes, const Keys& keys, Feature* out) {
  Fields example(bytes);
  while (example.Next()) {
    if (example.number != 1 || example.wire != Fields::kBytes) continue;
    const bool good = EachEntry(example.bytes, [&](std::string_view key, std::string_view value) {
      const auto wanted = keys.find(key);
      if (wanted == keys.end()) return true;
      Feature feature;
      if (!ReadFeature(value, &feature)) return false;
      for (const uint32_t k : wanted->second) out[k] = feature;
      return true;
    });
    if (!good) return false;
  }
  return example.good();
}

bool ReadFeatureLists(std::string_view bytes, const Keys& keys, FeatureList* out) {
  Fields example(bytes);
  while (example.Next()) {
    if (example.number != 2 || example.wire != Fields::kBytes) continue;
    const bool good = EachEntry(example.bytes, [&](std::string_view key, std::string_view value) {
      const auto wanted = keys.find(key);
      if (wanted == keys.end()) return true;
      for (const uint32_t k : wanted->second) out[k] = {true, value};
      return true;
    });
    if (!good) return false;
  }
  return example.good();
}

bool ReadFeatures(std::string_view list, tw::TempVector<Feature>* out) {
  Fields f(list);
  while (f.Next()) {
    if (f.number != 1 || f.wire != Fields::kBytes) continue;
    out->emplace_back();
    if (!ReadFeature(f.bytes, &out->back())) return false;
  }
  return f.good();
}

bool ReadBytes(std::string_view list, tw::TempVector<std::string_view>* out) {
  Fields f(list);
  while (f.Next())
    if (f.number == 1 && f.wire == Fields::kBytes) out->push_back(f.bytes);
  return f.good();
}

bool ReadFloats(std::string_view list, tw::TempVector<float>* out) {
  Fields f(list);
  while (f.Next()) {
    if (f.number != 1) continue;
    if (f.wire == Fields::kBytes ? f.bytes.size() % 4 != 0 : f.wire != Fields::kFixed32) return false;
    Append(f.bytes, out);
  }
  return f.good();
}

bool ReadInt64s(std::string_view list, tw::TempVector<int64_t>* out) {
  Fields f(list);
  while (f.Next()) {
    if (f.number != 1) continue;
    if (f.wire == Fields::kVarint) {
      out->push_back(int64_t(f.value));
      continue;
    }
    if (f.wire != Fields::kBytes) return false;
    std::string_view packed = f.bytes;
    for (uint64_t v = 0; !packed.empty();) {
      if (!TakeVarint(&packed, &v)) return false;
      out->push_back(int64_t(v));
    }
  }
  return f.good();
}

}  // namespace thalweg::data
