#include "binary_tensor.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "call.h"
#include "datatype.h"
#include "http_error.h"

namespace thalweg::cli::serve {
namespace {

static_assert(std::endian::native == std::endian::little, "the protocol's elements are little-endian");
constexpr uint64_t kLength = 4;  // bytes of a string's length
// A tensor with fewer bytes is copied, which takes less time than sharing the storage does. One that is less than this part of the
// storage is copied too: a model that keeps it, in a queue say, would keep all of the request.
constexpr uint64_t kLeastShared = 16 << 10, kLeastPart = 4;

// Splits the bytes into `count` strings. Takes no memory of a size that only a header claims.
std::vector<std::string_view> Split(std::string_view bytes, uint64_t count, const std::string& where, Charge* charge) {
  const uint64_t most = std::min<uint64_t>(count, bytes.size() / kLength);
  charge->Add(most * sizeof(std::string_view));
  std::vector<std::string_view> strings;
  strings.reserve(most);
  while (!bytes.empty()) {
    uint32_t n = 0;
    if (bytes.size() < kLength)
      Wrong(where, "string " + std::to_string(strings.size()) + " ends early: " + std::to_string(bytes.size()) +
                       " bytes where its length takes 4");
    std::memcpy(&n, bytes.data(), kLength);
    bytes.remove_prefix(kLength);
    if (n > bytes.size()) {
      Wrong(where, "string " + std::to_string(strings.size()) + " has a length of " + std::to_string(n) + ", but " +
                       std::to_string(bytes.size()) + " bytes are left");
    }
    if (strings.size() == most) Wrong(where, "the binary data has more strings than the " + std::to_string(count) + " of the shape");
    strings.push_back(bytes.substr(0, n));
    bytes.remove_prefix(n);
  }
  if (strings.size() != count)
    Wrong(where, "the binary data has " + std::to_string(strings.size()) + " strings; the shape needs " + std::to_string(count));
  return strings;
}

std::string_view String(const Part& part, uint64_t i) {
  const char* data = nullptr;
  uint64_t bytes = 0;
  tw::raise(tw_tensor_get_string(part.tensor.c(), part.first + i, &data, &bytes));
  return {data, bytes};
}

tw::Tensor ReadStrings(std::string_view bytes, uint64_t count, const std::vector<int64_t>& dims, const std::string& where, Charge* charge) {
  const auto strings = Split(bytes, count, where, charge);
  charge->Add(TensorBytes(TW_STRING, count) + bytes.size());
  tw_tensor* made = nullptr;
  tw::raise(tw_tensor_create(TW_STRING, dims.data(), uint32_t(dims.size()), &made));
  tw::Tensor tensor = tw::Tensor::adopt(made);
  for (size_t i = 0; i < strings.size(); ++i) tw::raise(tw_tensor_set_string(made, i, strings[i].data(), strings[i].size()));
  return tensor;
}

// REQUIRES: the bytes are as many as type and shape need.
tw::Tensor ReadNumbers(std::string_view bytes, const std::shared_ptr<const std::string>& storage, uint32_t dtype,
                       const std::vector<int64_t>& dims, Charge* charge) {
  tw_tensor* made = nullptr;
  const bool aligned = reinterpret_cast<uintptr_t>(bytes.data()) % kAlignment == 0;
  if (!aligned || bytes.size() < kLeastShared || bytes.size() < storage->size() / kLeastPart) {
    charge->Add(TensorBytes(TW_UINT8, bytes.size()));
    tw::raise(tw_tensor_create_copy(dtype, dims.data(), uint32_t(dims.size()), bytes.data(), bytes.size(), &made));
    return tw::Tensor::adopt(made);
  }
  using Storage = std::shared_ptr<const std::string>;
  const auto release = [](void* user) { delete static_cast<Storage*>(user); };
  tw::raise(tw_tensor_create_from_const(dtype, dims.data(), uint32_t(dims.size()), bytes.data(), bytes.size(), release,
                                        new Storage(storage), &made));
  return tw::Tensor::adopt(made);
}

}  // namespace

tw::Tensor ReadBinary(std::string_view bytes, const std::shared_ptr<const std::string>& storage, uint32_t dtype,
                      const std::vector<int64_t>& dims, const std::string& where, Charge* charge) {
  uint64_t count = 1, needed = 0;
  bool over = false;
  for (const int64_t dim : dims) over |= __builtin_mul_overflow(count, uint64_t(dim), &count);
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) count = 0, over = false;
  if (dtype == TW_STRING) {
    if (over) Wrong(where, "shape " + DimsText(dims) + " has more values than there can be");
    return ReadStrings(bytes, count, dims, where, charge);
  }
  over |= __builtin_mul_overflow(count, uint64_t(tw_dtype_bytes(dtype)), &needed);
  if (over || needed != bytes.size()) {
    Wrong(where, "the binary data has " + std::to_string(bytes.size()) + " bytes; " + DatatypeName(dtype) + " " + DimsText(dims) +
                     " needs " + (over ? "more than there can be" : std::to_string(needed)));
  }
  if (dtype == TW_BOOL) {
    const auto bad = std::find_if(bytes.begin(), bytes.end(), [](char c) { return uint8_t(c) > 1; });
    if (bad != bytes.end())
      Wrong(where, "byte " + std::to_string(bad - bytes.begin()) + " is " + std::to_string(uint8_t(*bad)) + ", which is no BOOL");
  }
  return ReadNumbers(bytes, storage, dtype, dims, charge);
}

uint64_t BinaryBytes(const Part& part) {
  if (part.tensor.dtype() != TW_STRING) return part.count * part.element_bytes();
  uint64_t total = 0;
  for (uint64_t i = 0; i < part.count; ++i) {
    const uint64_t bytes = String(part, i).size();
    if (bytes > UINT32_MAX)
      throw HttpError(500, "a string of the result has " + std::to_string(bytes) + " bytes; the protocol has room for 2^32 - 1");
    total += kLength + bytes;
  }
  return total;
}

void WriteBinary(const Part& part, ChargedText* out) {
  if (part.tensor.dtype() != TW_STRING) {
    if (part.count > 0) out->Append({part.data(), part.count * part.element_bytes()});
    return;
  }
  for (uint64_t i = 0; i < part.count; ++i) {
    const std::string_view text = String(part, i);
    const auto n = uint32_t(text.size());
    out->Append({reinterpret_cast<const char*>(&n), kLength});
    out->Append(text);
  }
}

}  // namespace thalweg::cli::serve
