// Encoding of numbers, texts and tensors in messages: little-endian, each length before its data. A
// reader never goes beyond its bytes and never trusts a number in an allocation. Lists take more
// memory than bytes (4 bytes are an empty text, which takes 32), so a reader with a meter charges
// it before it allocates them. Threads: values, no sharing.
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

// Writes into itself until a message is larger than that: most messages cost one allocation, made by
// Take.
class WireWriter {
 public:
  template <class T>
  void Number(T v) {
    static_assert(std::is_integral_v<T>);
    if (is_large_ || sizeof v > sizeof small_ - size_) return Raw(&v, sizeof v);
    std::memcpy(small_ + size_, &v, sizeof v);
    size_ = uint8_t(size_ + sizeof v);
  }
  void Text(std::string_view s) {
    Number(uint32_t(s.size()));
    Raw(s.data(), s.size());
  }
  void Texts(const std::vector<std::string>& all) {
    Number(uint32_t(all.size()));
    for (const std::string& s : all) Text(s);
  }
  // Reserves space for `bytes` bytes in all, so that later writes do not move the data.
  void Reserve(uint64_t bytes) {
    if (bytes <= sizeof small_) return;
    large_.reserve(size_t(bytes));
    Leave();
  }
  void Raw(const void* bytes, size_t n) {
    if (n > sizeof small_ - size_) Leave();
    if (is_large_) {
      large_.append(static_cast<const char*>(bytes), n);
    } else if (n > 0) {
      std::memcpy(small_ + size_, bytes, n);
      size_ = uint8_t(size_ + n);
    }
  }
  // Writes what WireReader::Fields reads: numbers, texts and lists of texts, one after another.
  template <class... T>
  void Fields(const T&... all) {
    (Field(all), ...);
  }
  std::string_view bytes() const { return is_large_ ? std::string_view(large_) : std::string_view(small_, size_); }
  std::string Take() { return is_large_ ? std::move(large_) : std::string(small_, size_); }  // the last call

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
  // Moves the bytes to the heap.
  void Leave() {
    if (is_large_) return;
    large_.append(small_, size_);
    is_large_ = true;
  }
  char small_[120] = {};
  uint8_t size_ = 0;  // of small_; unused once the bytes are in large_
  bool is_large_ = false;
  std::string large_;
};

class WireReader {
 public:
  // meter: pays for lists and their elements; NULL for no charge.
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
  // Reads a text and copies it.
  std::string KeptText() {
    constexpr size_t kInside = 15, kBlock = 24;  // characters that a string holds without the heap; bytes that the heap adds
    const std::string_view text = Text();
    if (text.size() > kInside && !Take(text.size() + kBlock)) return {};
    return std::string(text);
  }
  // Charges memory for an object that is about to be made.
  bool Take(uint64_t bytes) {
    if (meter_ && !meter_->Take(bytes)) ok_ = false;
    return ok_;
  }
  // Reads a count and reserves that many elements in the list. least: the fewest bytes of an
  // element.
  template <class T>
  uint32_t Room(std::vector<T>* list, size_t least) {
    const uint32_t n = Count(least);
    if (!Take(n * sizeof(T))) return 0;
    list->reserve(n);
    return n;
  }
  // Reads a count of elements of at least `least` bytes each; fails if so many cannot follow.
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
  // Returns true if nothing was missing so far, memory included.
  bool ok() const { return ok_; }
  // Returns why ok() is false: RESOURCE_EXHAUSTED, or INVALID_ARGUMENT with this text.
  Status Bad(std::string_view text) const { return meter_ && !meter_->status().ok() ? meter_->status() : InvalidArgument(text); }
  // Returns ok if nothing was missing and no bytes are left; else INVALID_ARGUMENT. what: names the
  // bytes.
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

// Bytes with the object that owns them.
struct Payload {
  const void* data = nullptr;
  uint64_t bytes = 0;
  std::shared_ptr<const void> owner;
  bool charged = false;  // an account already pays for them
  static Payload Of(std::string text);
  // Returns the same bytes, for which the meter pays until they are released.
  Payload PaidBy(Meter paid) &&;
};

// The description of a tensor without its elements, in a head.
struct TensorHead {
  uint32_t dtype = 0;
  std::vector<int64_t> dims;
};
void PutTensorHead(const Tensor& t, WireWriter* to);
TensorHead GetTensorHead(WireReader* from);
// Returns the elements as a body: the tensor's own memory, or, for strings, the lengths followed by
// the bytes. UNIMPLEMENTED for types that cannot leave their process (resource, variant).
StatusOr<Payload> TensorBody(const Tensor& t);
// Checks, before memory is allocated, that the head fits a body of so many bytes. INVALID_ARGUMENT.
Status CheckTensorHead(const TensorHead& head, uint64_t bytes);
// budget: pays for the tensor; NULL for no charge. REQUIRES: CheckTensorHead was ok.
StatusOr<Tensor> MakeTensor(const TensorHead& head, MemoryBudget* budget = nullptr);
// Copies the body into a new tensor.
StatusOr<Tensor> TensorFrom(const TensorHead& head, std::string_view body, MemoryBudget* budget = nullptr);

// A whole tensor among other data; INVALID_ARGUMENT if it is cut short.
Status PutTensor(const Tensor& t, WireWriter* to);
StatusOr<Tensor> GetTensor(WireReader* from, MemoryBudget* budget = nullptr);
// Many tensors in one body.
Status PutTensors(const Tensor* tensors, size_t n, WireWriter* to);
StatusOr<std::vector<Tensor>> GetTensors(std::string_view body, MemoryBudget* budget = nullptr);
// The number of bytes that PutTensor writes.
uint64_t WireBytes(const Tensor& t);

}  // namespace thalweg::distributed
