#include "binary_tensor.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "datatype.h"
#include "http_error.h"

namespace thalweg::cli::serve {
namespace {

static_assert(std::endian::native == std::endian::little, "the protocol's elements are little-endian");
constexpr uint64_t kLength = 4;  // bytes of a string's length

[[noreturn]] void Wrong(const std::string& where, const std::string& what) { throw HttpError(400, where + ": " + what); }

// Splits the bytes into `count` strings. Takes no memory of a size that only a header claims.
std::vector<std::string_view> Split(std::string_view bytes, uint64_t count, const std::string& where) {
  std::vector<std::string_view> strings;
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
    strings.push_back(bytes.substr(0, n));
    bytes.remove_prefix(n);
  }
  if (strings.size() != count)
    Wrong(where, "the binary data has " + std::to_string(strings.size()) + " strings; the shape needs " + std::to_string(count));
  return strings;
}

}  // namespace

tw::Tensor ReadBinary(std::string_view bytes, uint32_t dtype, const std::vector<int64_t>& dims, const std::string& where) {
  uint64_t count = 1, needed = 0;
  bool over = false;
  for (const int64_t dim : dims) over |= __builtin_mul_overflow(count, uint64_t(dim), &count);
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) count = 0, over = false;
  tw_tensor* made = nullptr;
  if (dtype == TW_STRING) {
    if (over) Wrong(where, "shape " + DimsText(dims) + " has more values than there can be");
    const auto strings = Split(bytes, count, where);
    tw::raise(tw_tensor_create(dtype, dims.data(), uint32_t(dims.size()), &made));
    tw::Tensor tensor = tw::Tensor::adopt(made);
    for (size_t i = 0; i < strings.size(); ++i) tw::raise(tw_tensor_set_string(made, i, strings[i].data(), strings[i].size()));
    return tensor;
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
  tw::raise(tw_tensor_create_copy(dtype, dims.data(), uint32_t(dims.size()), bytes.data(), bytes.size(), &made));
  return tw::Tensor::adopt(made);
}

uint64_t WriteBinary(const Part& part, std::string* out) {
  const size_t begin = out->size();
  if (part.tensor.dtype() != TW_STRING) {
    out->append(part.data(), part.count * part.element_bytes());
    return out->size() - begin;
  }
  for (uint64_t i = 0; i < part.count; ++i) {
    const char* data = nullptr;
    uint64_t bytes = 0;
    tw::raise(tw_tensor_get_string(part.tensor.c(), part.first + i, &data, &bytes));
    if (bytes > UINT32_MAX)
      throw HttpError(500, "a string of the result has " + std::to_string(bytes) + " bytes; the protocol has room for 2^32 - 1");
    const auto n = uint32_t(bytes);
    out->append(reinterpret_cast<const char*>(&n), kLength);
    out->append(data, bytes);
  }
  return out->size() - begin;
}

}  // namespace thalweg::cli::serve
