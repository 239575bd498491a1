#include "npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "handles.h"
#include "utf8.h"

namespace thalweg::cli {
namespace {

struct Kind {
  const char* descr;
  uint32_t dtype;
};
constexpr Kind kKinds[] = {{"f4", TW_FLOAT},  {"f8", TW_DOUBLE}, {"f2", TW_HALF},      {"b1", TW_BOOL},       {"i1", TW_INT8},
                           {"i2", TW_INT16},  {"i4", TW_INT32},  {"i8", TW_INT64},     {"u1", TW_UINT8},      {"u2", TW_UINT16},
                           {"u4", TW_UINT32}, {"u8", TW_UINT64}, {"c8", TW_COMPLEX64}, {"c16", TW_COMPLEX128}};
constexpr char kMagic[] = "\x93NUMPY";

[[noreturn]] void Wrong(const std::string& why) { throw std::runtime_error(why); }

// The header, a Python dictionary as text, and the offset of the elements.
struct Header {
  std::string descr;  // such as "<f4"
  bool fortran = false;
  std::vector<int64_t> dims;
  size_t data = 0;
};

// Returns the text after 'key':
std::string Field(const std::string& header, const std::string& key) {
  const size_t at = header.find("'" + key + "':");
  if (at == header.npos) Wrong("the header has no '" + key + "'");
  const size_t begin = header.find_first_not_of(' ', at + key.size() + 3);
  return begin == header.npos ? "" : header.substr(begin);
}

std::vector<int64_t> Dims(const std::string& text) {
  const size_t close = text.find(')');
  if (text.empty() || text[0] != '(' || close == text.npos) Wrong("the header has no shape");
  std::vector<int64_t> dims;
  for (const char* at = text.data() + 1; at < text.data() + close;) {
    if (*at == ' ' || *at == ',') {
      ++at;
      continue;
    }
    int64_t dim = 0;
    const auto [end, error] = std::from_chars(at, text.data() + close, dim);
    if (error != std::errc() || dim < 0) Wrong("the header has a strange shape");
    dims.push_back(dim);
    at = end;
  }
  return dims;
}

Header ParseHeader(const std::string& file) {
  const size_t magic = sizeof(kMagic) - 1;
  if (file.size() < magic + 4 || file.compare(0, magic, kMagic, magic) != 0) Wrong("not a .npy file");
  const auto byte = [&](size_t i) { return size_t(static_cast<unsigned char>(file[i])); };
  const bool wide = byte(magic) > 1;
  const size_t begin = magic + 2 + (wide ? 4 : 2);
  if (file.size() < begin) Wrong("the file ends early");
  const size_t length = byte(8) | byte(9) << 8 | (wide ? byte(10) << 16 | byte(11) << 24 : 0);
  if (file.size() - begin < length) Wrong("the file ends early");
  const std::string text = file.substr(begin, length), descr = Field(text, "descr");
  const size_t quote = descr.find('\'', 1);
  if (descr.empty() || descr[0] != '\'' || quote == descr.npos || quote < 3) {
    Wrong("elements of several fields cannot be read; save one field of them");
  }
  return {descr.substr(1, quote - 1), Field(text, "fortran_order").compare(0, 4, "True") == 0, Dims(Field(text, "shape")), begin + length};
}

// Converts elements of `size` bytes from Fortran order (the first axis varies fastest) to C order.
std::string FromFortran(const std::string& data, const std::vector<int64_t>& dims, size_t size) {
  std::string out(data.size(), '\0');
  std::vector<size_t> strides(dims.size()), index(dims.size());
  size_t stride = size;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    strides[axis] = stride;
    stride *= size_t(dims[axis]);
  }
  for (size_t to = 0, from = 0; to < out.size(); to += size) {
    std::memcpy(out.data() + to, data.data() + from, size);
    for (size_t axis = dims.size(); axis-- > 0;) {
      from += strides[axis];
      if (++index[axis] < size_t(dims[axis])) break;
      from -= strides[axis] * index[axis];
      index[axis] = 0;
    }
  }
  return out;
}

// Appends a character as UTF-8; surrogates and values beyond Unicode become U+FFFD.
void PutCharacter(uint32_t c, std::string* to) {
  if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) c = 0xfffd;
  const int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr uint32_t kFirst[] = {0, 0xc0, 0xe0, 0xf0};
  to->push_back(char(kFirst[more] | c >> (6 * more)));
  for (int i = more - 1; i >= 0; --i) to->push_back(char(0x80 | ((c >> (6 * i)) & 0x3f)));
}

// Converts UTF-8 text to UCS-4, 4 bytes per character.
std::string Characters(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t n = Utf8Length(text);
    const auto first = static_cast<unsigned char>(text[0]);
    uint32_t c = n == 1 ? first : first & (0x7fu >> n);
    for (size_t i = 1; i < n; ++i) c = c << 6 | (static_cast<unsigned char>(text[i]) & 0x3f);
    out.append(reinterpret_cast<const char*>(&c), 4);
    text.remove_prefix(n);
  }
  return out;
}

// Reads strings from fields of one width, padded with zeros.
tw::Tensor Texts(const std::string& data, const std::vector<int64_t>& dims, size_t width, bool wide) {
  tw_tensor* made = nullptr;
  tw::raise(tw_tensor_create(TW_STRING, dims.data(), uint32_t(dims.size()), &made));
  tw::Tensor tensor = tw::Tensor::adopt(made);
  for (uint64_t i = 0; i < tensor.count(); ++i) {
    std::string text = data.substr(i * width, width);
    if (wide) {
      const std::string characters = std::move(text);
      text.clear();
      for (size_t at = 0; at < width; at += 4) {
        uint32_t c = 0;
        std::memcpy(&c, characters.data() + at, 4);
        c ? PutCharacter(c, &text) : text.push_back('\0');
      }
    }
    text.erase(text.find_last_not_of('\0') + 1);
    tw::raise(tw_tensor_set_string(made, i, text.data(), text.size()));
  }
  return tensor;
}

// Throws if the file's data does not have the number of bytes that its dims require.
void CheckBytes(const Header& h, size_t size, size_t have) {
  uint64_t bytes = size;
  for (const int64_t dim : h.dims) {
    if (__builtin_mul_overflow(bytes, uint64_t(dim), &bytes)) Wrong("the header has a strange shape");
  }
  // Fields of no bytes take no space in the file, but each makes a string; the number of such
  // fields is limited.
  constexpr int64_t kMostEmpty = 1 << 20;
  int64_t elements = 1;
  for (const int64_t dim : h.dims) {
    if (size == 0 && (__builtin_mul_overflow(elements, dim, &elements) || elements > kMostEmpty)) Wrong("it claims too many empty texts");
  }
  if (bytes != have) Wrong("the file holds " + std::to_string(have) + " bytes of elements, its header says " + std::to_string(bytes));
}

std::string MakeHeader(const std::string& descr, const std::vector<int64_t>& dims) {
  std::string shape;
  for (const int64_t dim : dims) shape += std::to_string(dim) + ", ";
  if (dims.size() > 1) shape.resize(shape.size() - 2);
  std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  // Pads the header so that the data begins at a multiple of 64 bytes; the header ends with a
  // newline.
  header.append(63 - (10 + header.size()) % 64, ' ').append("\n");
  std::string file(kMagic, sizeof(kMagic) - 1);
  file += '\1';
  file += '\0';
  file += char(header.size() & 255);
  file += char(header.size() >> 8);
  return file + header;
}

std::string MakeTexts(const tw::Tensor& tensor) {
  std::vector<std::string> texts;
  bool utf8 = true;
  for (uint64_t i = 0; i < tensor.count(); ++i) {
    texts.push_back(tensor.string(i));
    if (!texts.back().empty() && texts.back().back() == '\0') Wrong("NumPy cannot hold a string that ends in a zero byte");
    for (std::string_view rest = texts.back(); utf8 && !rest.empty(); rest.remove_prefix(Utf8Length(rest))) utf8 = Utf8Length(rest) > 0;
  }
  size_t width = utf8 ? 4 : 1;
  for (std::string& text : texts) {
    if (utf8) text = Characters(text);
    width = std::max(width, text.size());
  }
  std::string file = MakeHeader(utf8 ? "<U" + std::to_string(width / 4) : "|S" + std::to_string(width), tensor.dims());
  for (std::string& text : texts) file += text + std::string(width - text.size(), '\0');
  return file;
}

}  // namespace

tw::Tensor ParseNpy(const std::string& file) {
  const Header h = ParseHeader(file);
  const char order = h.descr[0];
  const std::string descr = h.descr.substr(1);
  const bool text = descr[0] == 'S' || descr[0] == 'U';
  const Kind* kind = std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& k) { return descr == k.descr; });
  if (!text && kind == std::end(kKinds)) {
    Wrong("elements of kind '" + h.descr + "' cannot be read" + (descr[0] == 'O' ? "; these are pickled Python objects" : ""));
  }
  size_t number = 0;
  std::from_chars(descr.data() + 1, descr.data() + descr.size(), number);
  if (number > 1u << 30) Wrong("elements of kind '" + h.descr + "' are too large");
  const size_t size = descr[0] == 'U' ? 4 * number : number;
  std::string data = file.substr(h.data);
  CheckBytes(h, size, data.size());
  if (h.fortran && h.dims.size() > 1) data = FromFortran(data, h.dims, size);
  const size_t word = descr[0] == 'U' ? 4 : descr[0] == 'c' ? size / 2 : descr[0] == 'S' ? 1 : size;
  if (order == '>') {
    for (size_t at = 0; at + word <= data.size(); at += word)
      std::reverse(data.begin() + ptrdiff_t(at), data.begin() + ptrdiff_t(at + word));
  }
  if (text) return Texts(data, h.dims, size, descr[0] == 'U');
  if (kind->dtype == TW_BOOL && std::any_of(data.begin(), data.end(), [](char c) { return c != 0 && c != 1; })) {
    Wrong("a bool is neither 0 nor 1");
  }
  tw_tensor* made = nullptr;
  tw::raise(tw_tensor_create_copy(kind->dtype, h.dims.data(), uint32_t(h.dims.size()), data.data(), data.size(), &made));
  return tw::Tensor::adopt(made);
}

std::string MakeNpy(const tw::Tensor& tensor) {
  if (tensor.dtype() == TW_STRING) return MakeTexts(tensor);
  for (const Kind& kind : kKinds) {
    if (kind.dtype != tensor.dtype()) continue;
    const std::string order = tw_dtype_bytes(kind.dtype) == 1 ? "|" : "<";
    return MakeHeader(order + kind.descr, tensor.dims()) +
           std::string(static_cast<const char*>(tw_tensor_data(tensor.c())), tw_tensor_bytes(tensor.c()));
  }
  Wrong("NumPy has no element type " + DTypeText(tensor.dtype()) + "; add a Cast to the graph, or print it");
}

}  // namespace thalweg::cli
