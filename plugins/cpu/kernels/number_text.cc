#include "kernels/number_text.h"

#include <locale.h>

#include <charconv>
#include <cinttypes>
#include <cmath>
#include <cstdio>

#include "kernels/common/element.h"
#include "kernels/common/types.h"

namespace thalweg::cpu {
namespace {

// While it exists, the calling thread prints numbers as in the C locale, whatever the program's
// locale.
class PlainNumbers {
 public:
  PlainNumbers() {
    static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
    before_ = uselocale(plain);
  }
  PlainNumbers(const PlainNumbers&) = delete;
  PlainNumbers& operator=(const PlainNumbers&) = delete;
  ~PlainNumbers() { uselocale(before_); }

 private:
  locale_t before_;
};

// Writes with <charconv> what printf would write without flags and width, but much faster. Returns
// false if it wrote nothing and printf must be used.
template <class... How>
bool Write(const NumberFormat& format, std::string* text, How... how) {
  if (!format.flags.empty() || format.width >= 0) return false;
  char buffer[400];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, how...);
  if (error != std::errc()) return false;
  text->assign(buffer, end);
  return true;
}

// Prints with the format "%" flags width precision conversion. The parts are ours, so the format is
// valid.
template <class T>
std::string Print(const NumberFormat& format, const char* conversion, T value) {
  std::string spec = "%" + format.flags;
  if (format.width >= 0) spec += std::to_string(format.width);
  if (format.precision >= 0) spec += "." + std::to_string(format.precision);
  spec += conversion;
  const PlainNumbers plain;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  char usual[64];
  const int size = std::snprintf(usual, sizeof usual, spec.c_str(), value);
  if (size < 0) throw tw::Error{TW_INVALID_ARGUMENT, "a number cannot be printed with width " + std::to_string(format.width)};
  if (size_t(size) < sizeof usual) return std::string(usual, size_t(size));
  std::string text(size_t(size) + 1, '\0');
  std::snprintf(text.data(), text.size(), spec.c_str(), value);
#pragma GCC diagnostic pop
  text.pop_back();
  return text;
}

std::string Real(const NumberFormat& format, double value) {
  const auto style = format.style == 'e'   ? std::chars_format::scientific
                     : format.style == 'g' ? std::chars_format::general
                                           : std::chars_format::fixed;
  std::string text;
  if (std::isfinite(value) && Write(format, &text, value, style, format.precision < 0 ? 6 : format.precision)) return text;
  const char conversion[] = {format.style, '\0'};
  return Print(format, conversion, value);
}

template <class T>
std::string Whole(const NumberFormat& format, const char* conversion, T value) {
  std::string text;
  return format.precision < 0 && Write(format, &text, value) ? text : Print(format, conversion, value);
}

template <class T>
std::string Complex(const NumberFormat& format, const T& value) {
  return "(" + Real(format, double(value.real())) + "," + Real(format, double(value.imag())) + ")";
}

template <class T>
const T& At(const tw_view* v, uint64_t i) {
  return reinterpret_cast<const T*>(Bytes(v))[i];
}

}  // namespace

std::string NumberText(const tw_view* v, uint64_t i, const NumberFormat& format) {
  switch (v->dtype) {
    case TW_HALF: return Real(format, double(float(At<half>(v, i))));
    case TW_BFLOAT16: return Real(format, double(float(At<bfloat16>(v, i))));
    case TW_FLOAT: return Real(format, double(At<float>(v, i)));
    case TW_DOUBLE: return Real(format, At<double>(v, i));
    case TW_COMPLEX64: return Complex(format, At<complex64>(v, i));
    case TW_COMPLEX128: return Complex(format, At<complex128>(v, i));
    case TW_BOOL: return At<bool>(v, i) ? "true" : "false";
    case TW_STRING: return std::string(StringAt(v, i).data, StringAt(v, i).size);
    case TW_INT8:
    case TW_INT16:
    case TW_INT32:
    case TW_INT64:
    case TW_UINT8: return Whole(format, PRId64, IndexAt(v, i));
    case TW_UINT16: return Whole(format, PRIu64, uint64_t{At<uint16_t>(v, i)});
    case TW_UINT32: return Whole(format, PRIu64, uint64_t{At<uint32_t>(v, i)});
    case TW_UINT64: return Whole(format, PRIu64, At<uint64_t>(v, i));
    default: throw tw::Error{TW_UNIMPLEMENTED, "elements of type " + TypeText(v->dtype) + " have no text"};
  }
}

}  // namespace thalweg::cpu
