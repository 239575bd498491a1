#include "npy.h"

#include <charconv>
#include <cstring>

#include "handles.h"

namespace thalweg::cli {
namespace {

struct Kind {
  const char* descr;
  uint32_t dtype;
};
constexpr Kind kKinds[] = {{"<f4", TW_FLOAT},  {"<f8", TW_DOUBLE}, {"<f2", TW_HALF},      {"|b1", TW_BOOL},       {"|i1", TW_INT8},
                           {"<i2", TW_INT16},  {"<i4", TW_INT32},  {"<i8", TW_INT64},     {"|u1", TW_UINT8},      {"<u2", TW_UINT16},
                           {"<u4", TW_UINT32}, {"<u8", TW_UINT64}, {"<c8", TW_COMPLEX64}, {"<c16", TW_COMPLEX128}};
constexpr char kMagic[] = "\x93NUMPY";

[[noreturn]] void Wrong(const std::string& path, const std::string& why) { throw std::runtime_error("'" + path + "': " + why); }

// What follows 'key': in the header, a Python dictionary as text.
std::string Field(const std::string& header, const std::string& key, const std::string& path) {
  const size_t at = header.find("'" + key + "':");
  if (at == header.npos) Wrong(path, "the header has no '" + key + "'");
  const size_t begin = header.find_first_not_of(' ', at + key.size() + 3);
  return begin == header.npos ? "" : header.substr(begin);
}

std::vector<int64_t> Dims(const std::string& text, const std::string& path) {
  const size_t close = text.find(')');
  if (text.empty() || text[0] != '(' || close == text.npos) Wrong(path, "the header has no shape");
  std::vector<int64_t> dims;
  for (const char* at = text.data() + 1; at < text.data() + close;) {
    if (*at == ' ' || *at == ',') {
      ++at;
      continue;
    }
    int64_t dim = 0;
    const auto [end, error] = std::from_chars(at, text.data() + close, dim);
    if (error != std::errc() || dim < 0) Wrong(path, "the header has a strange shape");
    dims.push_back(dim);
    at = end;
  }
  return dims;
}

}  // namespace

tw::Tensor ReadNpy(const std::string& path) {
  const std::string file = ReadFile(path);
  const size_t magic = sizeof(kMagic) - 1;
  if (file.size() < magic + 4 || file.compare(0, magic, kMagic, magic) != 0) Wrong(path, "not a .npy file");
  const auto byte = [&](size_t i) { return size_t(static_cast<unsigned char>(file[i])); };
  const bool wide = byte(magic) > 1;
  const size_t begin = magic + 2 + (wide ? 4 : 2);
  if (file.size() < begin) Wrong(path, "the file ends early");
  const size_t length = byte(8) | byte(9) << 8 | (wide ? byte(10) << 16 | byte(11) << 24 : 0);
  if (file.size() - begin < length) Wrong(path, "the file ends early");
  const std::string header = file.substr(begin, length), descr = Field(header, "descr", path);
  if (Field(header, "fortran_order", path).compare(0, 4, "True") == 0) {
    Wrong(path, "is in Fortran order; save it with numpy.ascontiguousarray");
  }
  for (const Kind& kind : kKinds) {
    if (descr.compare(0, std::strlen(kind.descr) + 2, "'" + std::string(kind.descr) + "'") != 0) continue;
    const std::vector<int64_t> dims = Dims(Field(header, "shape", path), path);
    tw_tensor* made = nullptr;
    const std::string data = file.substr(begin + length);
    tw::raise(tw_tensor_create_copy(kind.dtype, dims.data(), uint32_t(dims.size()), data.data(), data.size(), &made));
    return tw::Tensor::adopt(made);
  }
  Wrong(path, "element type " + descr.substr(0, descr.find(',')) + " cannot be read");
}

void WriteNpy(const std::string& path, const tw::Tensor& tensor) {
  for (const Kind& kind : kKinds) {
    if (kind.dtype != tensor.dtype()) continue;
    std::string shape;
    for (const int64_t dim : tensor.dims()) shape += std::to_string(dim) + ", ";
    if (tensor.dims().size() > 1) shape.resize(shape.size() - 2);
    std::string header = std::string("{'descr': '") + kind.descr + "', 'fortran_order': False, 'shape': (" + shape + "), }";
    // The data begins at a multiple of 64 bytes; the header ends with a newline.
    header.append(63 - (10 + header.size()) % 64, ' ').append("\n");
    std::string file(kMagic, sizeof(kMagic) - 1);
    file += '\1';
    file += '\0';
    file += char(header.size() & 255);
    file += char(header.size() >> 8);
    WriteFile(path, file + header + std::string(static_cast<const char*>(tw_tensor_data(tensor.c())), tw_tensor_bytes(tensor.c())));
    return;
  }
  Wrong(path, std::string("NumPy has no element type ") + tw_dtype_name(tensor.dtype()));
}

}  // namespace thalweg::cli
