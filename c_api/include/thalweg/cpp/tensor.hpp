/* tw::Tensor: a shared reference to a tensor (tensor.h). Threads: as the C objects. Since 0.1. */
#ifndef THALWEG_CPP_TENSOR_HPP
#define THALWEG_CPP_TENSOR_HPP
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "thalweg/cpp/handle.hpp"
#include "thalweg/tensor.h"

namespace tw {

/* The element type of a C++ type. */
template <class T>
inline constexpr uint32_t type_of = TW_INVALID_TYPE;
template <>
inline constexpr uint32_t type_of<float> = TW_FLOAT;
template <>
inline constexpr uint32_t type_of<double> = TW_DOUBLE;
template <>
inline constexpr uint32_t type_of<int8_t> = TW_INT8;
template <>
inline constexpr uint32_t type_of<int16_t> = TW_INT16;
template <>
inline constexpr uint32_t type_of<int32_t> = TW_INT32;
template <>
inline constexpr uint32_t type_of<int64_t> = TW_INT64;
template <>
inline constexpr uint32_t type_of<uint8_t> = TW_UINT8;
template <>
inline constexpr uint32_t type_of<uint16_t> = TW_UINT16;
template <>
inline constexpr uint32_t type_of<uint32_t> = TW_UINT32;
template <>
inline constexpr uint32_t type_of<uint64_t> = TW_UINT64;
template <>
inline constexpr uint32_t type_of<bool> = TW_BOOL;

/* A shared reference to a tensor; copying shares. */
class Tensor {
 public:
  Tensor() = default;
  /* Takes over a reference. */
  static Tensor adopt(tw_tensor* t) {
    Tensor made;
    made.t_ = t;
    return made;
  }
  explicit Tensor(float value) { raise(tw_tensor_create_float(value, &t_)); }
  explicit Tensor(double value) { raise(tw_tensor_create_double(value, &t_)); }
  explicit Tensor(int32_t value) { raise(tw_tensor_create_int32(value, &t_)); }
  explicit Tensor(int64_t value) { raise(tw_tensor_create_int64(value, &t_)); }
  explicit Tensor(const std::string& value) { raise(tw_tensor_create_string(value.data(), value.size(), &t_)); }
  template <class T>
  Tensor(const std::vector<int64_t>& dims, const std::vector<T>& values) {
    static_assert(type_of<T> != TW_INVALID_TYPE && !std::is_same_v<T, bool>, "no element type of this C++ type");
    raise(tw_tensor_create_copy(type_of<T>, dims.data(), uint32_t(dims.size()), values.data(), values.size() * sizeof(T), &t_));
  }
  Tensor(const Tensor& o) : t_(o.t_) { tw_tensor_retain(t_); }
  Tensor(Tensor&& o) noexcept : t_(std::exchange(o.t_, nullptr)) {}
  Tensor& operator=(Tensor o) noexcept {
    std::swap(t_, o.t_);
    return *this;
  }
  ~Tensor() { tw_tensor_release(t_); }

  tw_tensor* c() const { return t_; }
  explicit operator bool() const { return t_ != nullptr; }
  uint32_t dtype() const { return tw_tensor_dtype(t_); }
  std::vector<int64_t> dims() const { return {tw_tensor_dims(t_), tw_tensor_dims(t_) + tw_tensor_rank(t_)}; }
  uint64_t count() const { return tw_tensor_count(t_); }
  /* The device whose memory holds the tensor; "": host memory. */
  std::string device() const { return tw_tensor_device(t_) ? tw_tensor_device(t_) : ""; }
  Tensor to_host() const {
    tw_tensor* made = nullptr;
    raise(tw_tensor_to_host(t_, &made));
    return adopt(made);
  }
  /* runtime: the owner of the device; NULL is the default one. */
  Tensor to_device(const std::string& device, tw_runtime* runtime = nullptr) const {
    tw_tensor* made = nullptr;
    raise(tw_tensor_to_device(t_, runtime, device.c_str(), &made));
    return adopt(made);
  }
  /* Returns the elements. Throws if T is not their type, or the tensor is in the memory of a
   * device. */
  template <class T>
  const T* data() const {
    if (!device().empty()) throw StatusError(TW_FAILED_PRECONDITION, "the tensor is on " + device() + "; take to_host() first");
    if (dtype() != type_of<T>) throw StatusError(TW_INVALID_ARGUMENT, std::string("the tensor holds ") + name(dtype()));
    return static_cast<const T*>(tw_tensor_data(t_));
  }
  template <class T>
  std::vector<T> values() const {
    return {data<T>(), data<T>() + count()};
  }
  std::string string(uint64_t i = 0) const {
    const char* data = nullptr;
    uint64_t bytes = 0;
    raise(tw_tensor_get_string(t_, i, &data, &bytes));
    return {data, bytes};
  }
  std::string text(uint64_t max_elements = 0) const {
    tw_buffer* text = nullptr;
    raise(tw_tensor_text(t_, max_elements, &text));
    return take_text(text);
  }

 private:
  static const char* name(uint32_t dtype) { return tw_dtype_name(dtype) ? tw_dtype_name(dtype) : "nothing"; }
  tw_tensor* t_ = nullptr;
};

}  // namespace tw
#endif
