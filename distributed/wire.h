// How numbers, texts and tensors stand in messages: little-endian, lengths before what they measure. A reader never goes beyond its bytes
// and never allocates by what a number says. Threads: values, no sharing.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "framework/base/status.h"
#include "framework/tensor/tensor.h"

namespace thalweg::distributed {

class WireWriter {
 public:
  template <class T>
  void Number(T v) {
    static_assert(std::is_integral_v<T>);
    out_.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  void Text(std::string_view s) {
    Number(uint32_t(s.size()));
    out_.append(s);
  }
  void Texts(const std::vector<std::string>& all) {
    Number(uint32_t(all.size()));
    for (const std::string& s : all) Text(s);
  }
  void Raw(const void* bytes, size_t n) { out_.append(static_cast<const char*>(bytes), n); }
  // What a WireReader's Fields reads: numbers, texts and lists of texts, one after another.
  template <class... T>
  void Fields(const T&... all) {
    (Field(all), ...);
  }
  const std::string& bytes() const { return out_; }
  std::string Take() { return std::move(out_); }

 private:
  template <class T>
  void Field(const T& field) {
    if constexpr (std::is_integral_v<T>) {
      Number(field);
    } else if constexpr (std::is_same_v<T, std::string>) {
      Text(field);
    } else {
      Texts(field);
    }
  }
  std::string out_;
};

class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}
  template <class T>
  T Number() {
    T v{};
    const std::string_view from = Raw(sizeof v);
    if (ok_) std::memcpy(&v, from.data(), sizeof v);
    return v;
  }
  std::string_view Text() { return Raw(Number<uint32_t>()); }
  std::vector<std::string> Texts() {
    std::vector<std::string> all;
    const uint32_t n = Count(sizeof(uint32_t));
    for (uint32_t i = 0; i < n && ok_; ++i) all.emplace_back(Text());
    return all;
  }
  // A number of things that each take so many bytes at least: not more than can still follow.
  uint32_t Count(size_t least) {
    const auto n = Number<uint32_t>();
    if (ok_ && n > rest_.size() / least) ok_ = false;
    return ok_ ? n : 0;
  }
  std::string_view Raw(uint64_t n) {
    if (!ok_ || n > rest_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view out = rest_.substr(0, size_t(n));
    rest_.remove_prefix(size_t(n));
    return out;
  }
  template <class... T>
  void Fields(T&... all) {
    (Field(&all), ...);
  }
  std::string_view rest() const { return rest_; }
  // Nothing was missing so far.
  bool ok() const { return ok_; }
  // Nothing was missing, and nothing is left. INVALID_ARGUMENT naming what the bytes were to be.
  Status End(std::string_view what) const;

 private:
  template <class T>
  void Field(T* field) {
    if constexpr (std::is_integral_v<T>) {
      *field = Number<T>();
    } else if constexpr (std::is_same_v<T, std::string>) {
      *field = Text();
    } else {
      *field = Texts();
    }
  }
  std::string_view rest_;
  bool ok_ = true;
};

// Bytes with whoever keeps them.
struct Payload {
  const void* data = nullptr;
  uint64_t bytes = 0;
  std::shared_ptr<const void> owner;
  static Payload Of(std::string text);
};

// What a tensor is, apart from its elements: stands in a head.
struct TensorHead {
  uint32_t dtype = 0;
  std::vector<int64_t> dims;
};
void PutTensorHead(const Tensor& t, WireWriter* to);
TensorHead GetTensorHead(WireReader* from);
// Elements as a body: the tensor's own memory, or, of strings, their bytes behind their lengths. UNIMPLEMENTED for types that cannot
// leave their process (resource, variant).
StatusOr<Payload> TensorBody(const Tensor& t);
// Whether the head fits to a body of so many bytes, before memory is made. INVALID_ARGUMENT.
Status CheckTensorHead(const TensorHead& head, uint64_t bytes);
// REQUIRES: CheckTensorHead was ok, for a plain type.
StatusOr<Tensor> MakeTensor(const TensorHead& head);
// The tensor that the body holds, which is copied.
StatusOr<Tensor> TensorFrom(const TensorHead& head, std::string_view body);

// A whole tensor among other things; INVALID_ARGUMENT where it is cut short.
Status PutTensor(const Tensor& t, WireWriter* to);
StatusOr<Tensor> GetTensor(WireReader* from);
// Many tensors in one body.
Status PutTensors(const Tensor* tensors, size_t n, WireWriter* to);
StatusOr<std::vector<Tensor>> GetTensors(std::string_view body);

}  // namespace thalweg::distributed
