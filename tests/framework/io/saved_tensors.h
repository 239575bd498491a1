// Tensors to save, and checks of a checkpoint against them.
#pragma once
#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "framework/files/file_system.h"
#include "framework/io/checkpoint.h"
#include "framework/tensor/tensor.h"

namespace thalweg::test {

using Tensors = std::map<std::string, Tensor>;

inline Tensor Floats(std::vector<int64_t> dims, float first) {
  Tensor t = *Tensor::Make(TW_FLOAT, Shape(std::move(dims)));
  for (uint64_t i = 0; i < t.count(); ++i) t.as<float>()[i] = first + float(i);
  return t;
}

inline Tensor Strings(const std::vector<std::string>& values) {
  const int64_t n = int64_t(values.size());
  Tensor t = *Tensor::Make(TW_STRING, &n, 1);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_TRUE(t.SetString(i, values[i]).ok());
  return t;
}

inline bool Same(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  if (a.dtype() != TW_STRING) return a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0;
  for (uint64_t i = 0; i < a.count(); ++i) {
    if (a.str(i) != b.str(i)) return false;
  }
  return true;
}

inline bool Same(const Tensors& a, const Tensors& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](auto& x, auto& y) { return x.first == y.first && Same(x.second, y.second); });
}

inline Status Save(const std::string& prefix, const Tensors& tensors, FileSystem& files = LocalFiles(), int32_t shards = 1) {
  ASSIGN_OR_RETURN(auto writer, CheckpointWriter::Create(prefix, files, shards));
  for (auto& [name, t] : tensors) RETURN_IF_ERROR(writer->Add(name, t.view()));
  return writer->Commit();
}

// Loads every tensor, or returns the first error.
inline Status Load(const std::string& prefix, Tensors* out, FileSystem& files = LocalFiles()) {
  ASSIGN_OR_RETURN(auto reader, CheckpointReader::Open(prefix, files));
  RETURN_IF_ERROR(reader->VerifyAll());
  out->clear();
  for (const CheckpointEntry* e : reader->entries()) {
    ASSIGN_OR_RETURN((*out)[e->name], reader->Read(e->name));
  }
  return Status();
}

inline bool Holds(const std::string& prefix, const Tensors& want, FileSystem& files = LocalFiles()) {
  Tensors got;
  Status s = Load(prefix, &got, files);
  return s.ok() && Same(got, want);
}

// Returns tensors whose names and sizes do not depend on v, so that the shapes would not reveal a
// mix of checkpoints.
inline Tensors Version(float v) {
  return {{"model/dense/kernel", Floats({7, 5}, v)},
          {"model/dense/bias", Floats({5}, v + 100)},
          {"step", Floats({}, v)},
          {"names", Strings({v > 1 ? "new" : "old", "", std::string(300, 'x')})},
          {"empty", Floats({0, 3}, v)}};
}

}  // namespace thalweg::test
