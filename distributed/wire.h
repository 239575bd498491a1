// How numbers, texts and tensors stand in messages: little-endian, lengths before what they measure. A reader never goes beyond its bytes
// and never allocates by what a number says. Lists take more memory than bytes (4 bytes are an empty text, which takes 32): a reader with a
// meter takes from it before it makes them. Threads: values, no sharing.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "distributed/meter.h"
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
  // So many bytes will follow: they are written without being moved about.
  void Reserve(uint64_t bytes) { out_.reserve(size_t(bytes)); }
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
  // meter: pays for lists and what stands in them; NULL: nobody.
  explicit WireReader(std::string_view bytes, Meter* meter = nullptr) : rest_(bytes), meter_(meter) {}
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
    const uint32_t n = Room(&all, sizeof(uint32_t));
    for (uint32_t i = 0; i < n && ok_; ++i) all.push_back(KeptText());
    return all;
  }
  // A text that is copied.
  std::string KeptText() {
    constexpr size_t kInside = 15, kBlock = 24;  // that a string holds without the heap; what the heap adds
    const std::string_view text = Text();
    if (text.size() > kInside && !Take(text.size() + kBlock)) return {};
    return std::string(text);
  }
  // Memory for what is about to be made.
  bool Take(uint64_t bytes) {
    if (meter_ && !meter_->Take(bytes)) ok_ = false;
    return ok_;
  }
  // Makes room in the list for as many things as a number says, which each take so many bytes at least.
  template <class T>
  uint32_t Room(std::vector<T>* list, size_t least) {
    const uint32_t n = Count(least);
    if (!Take(n * sizeof(T))) return 0;
    list->reserve(n);
    return n;
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
  // Nothing was missing so far, memory included.
  bool ok() const { return ok_; }
  // Why it is not: RESOURCE_EXHAUSTED, or INVALID_ARGUMENT with this text.
  Status Bad(std::string_view text) const { return meter_ && !meter_->status().ok() ? meter_->status() : InvalidArgument(text); }
  // Nothing was missing, and nothing is left. INVALID_ARGUMENT naming what the bytes were to be.
  Status End(std::string_view what) const;

 private:
  template <class T>
  void Field(T* field) {
    if constexpr (std::is_integral_v<T>) {
      *field = Number<T>();
    } else if constexpr (std::is_same_v<T, std::string>) {
      *field = KeptText();
    } else {
      *field = Texts();
    }
  }
  std::string_view rest_;
  Meter* const meter_;
  bool ok_ = true;
};

// Bytes with whoever keeps them.
struct Payload {
  const void* data = nullptr;
  uint64_t bytes = 0;
  std::shared_ptr<const void> owner;
  bool charged = false;  // an account pays for them already
  static Payload Of(std::string text);
  // The same bytes, for which this meter pays until they are gone.
  Payload PaidBy(Meter paid) &&;
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
// budget: pays for it; NULL: nobody. REQUIRES: CheckTensorHead was ok.
StatusOr<Tensor> MakeTensor(const TensorHead& head, MemoryBudget* budget = nullptr);
// The tensor that the body holds, which is copied.
StatusOr<Tensor> TensorFrom(const TensorHead& head, std::string_view body, MemoryBudget* budget = nullptr);

// A whole tensor among other things; INVALID_ARGUMENT where it is cut short.
Status PutTensor(const Tensor& t, WireWriter* to);
StatusOr<Tensor> GetTensor(WireReader* from, MemoryBudget* budget = nullptr);
// Many tensors in one body.
Status PutTensors(const Tensor* tensors, size_t n, WireWriter* to);
StatusOr<std::vector<Tensor>> GetTensors(std::string_view body, MemoryBudget* budget = nullptr);
// Bytes that PutTensor writes.
uint64_t WireBytes(const Tensor& t);

}  // namespace thalweg::distributed
