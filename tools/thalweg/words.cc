#include "words.h"

#include <charconv>
#include <complex>
#include <cstdlib>
#include <limits>

#include "handles.h"

namespace thalweg::cli {
namespace {

// Formats the index of entry i along each axis.
std::string Place(const Words& w, size_t i) {
  std::string text;
  for (size_t axis = w.dims.size(); axis-- > 0;) {
    const auto dim = size_t(w.dims[axis]);
    text = std::to_string(i % dim) + (text.empty() ? "" : ", ") + text;
    i /= dim;
  }
  return text.empty() ? "" : " (at [" + text + "])";
}

enum class Reading { kGood, kNoNumber, kTooLarge };

template <class T>
Reading ToReal(const std::string& word, T* out) {
  const char* begin = word.data() + (word[0] == '+' ? 1 : 0);
  const auto [end, error] = std::from_chars(begin, word.data() + word.size(), *out);
  if (error == std::errc::invalid_argument || end != word.data() + word.size()) return Reading::kNoNumber;
  if (error == std::errc()) return Reading::kGood;
  const double value = std::strtod(begin, nullptr);  // outside T's range: too large, or so small that it becomes 0
  *out = T(value);
  return value > -1 && value < 1 ? Reading::kGood : Reading::kTooLarge;
}

struct Bounds {
  int64_t low;
  uint64_t high;
};

template <class T>
Reading ToWhole(const std::string& word, const Bounds& bounds, T* out) {
  if (word == "true" || word == "false") {
    *out = T(word == "true");
    return Reading::kGood;
  }
  const char *begin = word.data() + (word[0] == '+' ? 1 : 0), *end = word.data() + word.size();
  int64_t negative = 0;
  uint64_t positive = 0;
  const bool minus = *begin == '-';
  const auto got = minus ? std::from_chars(begin, end, negative) : std::from_chars(begin, end, positive);
  if (got.ec == std::errc::invalid_argument || got.ptr != end) return Reading::kNoNumber;
  if (got.ec != std::errc() || negative < bounds.low || positive > bounds.high) return Reading::kTooLarge;
  *out = minus ? T(negative) : T(positive);
  return Reading::kGood;
}

// Parses 1+2j, 2j or 1.
Reading ToComplex(const std::string& word, std::complex<double>* out) {
  double re = 0, im = 0;
  Reading first = Reading::kGood, second = Reading::kGood;
  if (word.back() == 'j') {
    // The last sign that does not belong to an exponent separates the real and the imaginary part.
    size_t at = word.size() - 1;
    while (at > 0 && ((word[at] != '+' && word[at] != '-') || word[at - 1] == 'e' || word[at - 1] == 'E')) --at;
    const std::string imaginary = word.substr(at, word.size() - 1 - at);
    if (at > 0) first = ToReal(word.substr(0, at), &re);
    second = imaginary.empty() ? Reading::kNoNumber : ToReal(imaginary, &im);
  } else {
    first = ToReal(word, &re);
  }
  *out = {re, im};
  return first == Reading::kGood ? second : first;
}

// Converts all words with one reader; `range` describes the type's range in messages.
template <class T, class Read>
tw::Tensor Convert(const Words& w, uint32_t dtype, const std::string& range, Read read) {
  std::vector<T> values(w.words.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string& word = w.words[i];
    const Reading reading = word.empty() ? Reading::kNoNumber : read(word, &values[i]);
    if (reading == Reading::kGood) continue;
    std::complex<double> number;
    const bool other = !word.empty() && ToComplex(word, &number) != Reading::kNoNumber;
    const std::string why = other ? " is no " + DTypeText(dtype) + range : " is not a number";
    if (w.file.empty()) throw std::runtime_error("'" + word + "'" + why + Place(w, i));
    throw std::runtime_error(w.file + ":" + std::to_string(w.places[i].first) + ": '" + word + "' in column " +
                             std::to_string(w.places[i].second) + why);
  }
  tw_tensor* made = nullptr;
  tw::raise(tw_tensor_create_copy(dtype, w.dims.data(), uint32_t(w.dims.size()), values.data(), values.size() * sizeof(T), &made));
  return tw::Tensor::adopt(made);
}

template <class T>
tw::Tensor Wholes(const Words& w, uint32_t dtype, Bounds b = {int64_t(std::numeric_limits<T>::min()), std::numeric_limits<T>::max()}) {
  const std::string what = ", which holds whole numbers from " + std::to_string(b.low) + " to " + std::to_string(b.high);
  return Convert<T>(w, dtype, what, [&](const std::string& word, T* out) { return ToWhole(word, b, out); });
}

template <class T>
tw::Tensor Reals(const Words& w, uint32_t dtype) {
  return Convert<T>(w, dtype, "", [](const std::string& word, T* out) {
    if (word != "true" && word != "false") return ToReal(word, out);
    *out = T(word == "true");
    return Reading::kGood;
  });
}

template <class T>
tw::Tensor Complexes(const Words& w, uint32_t dtype) {
  return Convert<std::complex<T>>(w, dtype, "", [](const std::string& word, std::complex<T>* out) {
    std::complex<double> value;
    const Reading reading = ToComplex(word, &value);
    *out = std::complex<T>(value);
    return reading;
  });
}

tw::Tensor Strings(const Words& w) {
  tw_tensor* made = nullptr;
  tw::raise(tw_tensor_create(TW_STRING, w.dims.data(), uint32_t(w.dims.size()), &made));
  tw::Tensor tensor = tw::Tensor::adopt(made);
  for (size_t i = 0; i < w.words.size(); ++i) tw::raise(tw_tensor_set_string(made, i, w.words[i].data(), w.words[i].size()));
  return tensor;
}

}  // namespace

tw::Tensor ToTensor(const tw::Runtime& runtime, const Words& w, uint32_t dtype) {
  if (w.quoted && dtype != TW_STRING) throw std::runtime_error("a text in quotes where the graph wants " + DTypeText(dtype));
  switch (dtype) {
    case TW_STRING: return Strings(w);
    case TW_FLOAT: return Reals<float>(w, dtype);
    case TW_DOUBLE: return Reals<double>(w, dtype);
    case TW_COMPLEX64: return Complexes<float>(w, dtype);
    case TW_COMPLEX128: return Complexes<double>(w, dtype);
    case TW_BOOL: return Wholes<uint8_t>(w, dtype, {0, 1});
    case TW_INT8:
    case TW_QINT8: return Wholes<int8_t>(w, dtype);
    case TW_INT16:
    case TW_QINT16: return Wholes<int16_t>(w, dtype);
    case TW_INT32:
    case TW_QINT32: return Wholes<int32_t>(w, dtype);
    case TW_INT64: return Wholes<int64_t>(w, dtype);
    case TW_UINT8:
    case TW_QUINT8: return Wholes<uint8_t>(w, dtype);
    case TW_UINT16:
    case TW_QUINT16: return Wholes<uint16_t>(w, dtype);
    case TW_UINT32: return Wholes<uint32_t>(w, dtype);
    case TW_UINT64: return Wholes<uint64_t>(w, dtype);
    case TW_INT4: return Wholes<int8_t>(w, dtype, {-8, 7});
    case TW_UINT4: return Wholes<uint8_t>(w, dtype, {0, 15});
    case TW_INT2: return Wholes<int8_t>(w, dtype, {-2, 1});
    case TW_UINT2: return Wholes<uint8_t>(w, dtype, {0, 3});
    case TW_RESOURCE:
    case TW_VARIANT: throw std::runtime_error("a " + DTypeText(dtype) + " cannot be spelled out; feed what it is made of");
    default: return Cast(runtime, Reals<float>(w, TW_FLOAT), dtype);  // half, bfloat16 and the 8-bit floats
  }
}

std::vector<std::string> ElementTexts(const tw::Tensor& tensor) {
  if (tensor.dtype() != TW_STRING) return ParseLiteral(tensor.text()).words;
  std::vector<std::string> texts;
  for (uint64_t i = 0; i < tensor.count(); ++i) texts.push_back(tensor.string(i));
  return texts;
}

tw::Tensor Cast(const tw::Runtime& runtime, const tw::Tensor& tensor, uint32_t dtype) {
  if (tensor.dtype() == dtype) return tensor;
  tw::Graph graph(runtime);
  tw::Scope s(graph);
  const tw_output x = s.placeholder("x", tensor.dtype(), tensor.dims());
  const tw_output y = s.op("Cast", {x}, [&](tw_op* op) { tw_op_set_type(op, "DstT", dtype); });
  s.finish();
  tw::Session session(graph);
  return session.run({{x, tensor}}, {y})[0];
}

}  // namespace thalweg::cli
