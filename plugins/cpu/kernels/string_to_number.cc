// StringToNumber: the nearest number of the type, or infinity if a floating-point number is too
// large. The whole text must be the number.
#include <locale.h>

#include <charconv>
#include <cstdlib>
#include <type_traits>

#include "kernels/common/temp.h"
#include "kernels/common/text.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

float FromText(const char* text, char** end, locale_t c, float) { return strtof_l(text, end, c); }
double FromText(const char* text, char** end, locale_t c, double) { return strtod_l(text, end, c); }

template <class T>
class StringToNumber {
 public:
  explicit StringToNumber(const tw::Node&) {
    // The process's own locale may use another number format.
    if (std::is_floating_point_v<T> && !(c_ = newlocale(LC_ALL_MASK, "C", nullptr)))
      throw tw::Error{TW_RESOURCE_EXHAUSTED, "the system has no memory for a locale"};
  }
  ~StringToNumber() {
    if (c_) freelocale(c_);
  }
  StringToNumber(const StringToNumber&) = delete;
  StringToNumber& operator=(const StringToNumber&) = delete;

  void operator()(tw::Frame f, tw::In<tw_string> string_tensor, tw::Out<T> output) const {
    for (uint64_t i = 0; i < output.size(); ++i)
      if (!Parse(f, Stripped(View(string_tensor[i])), &output[i]))
        Invalid(ElementText("string_tensor", string_tensor.v, i) + ", which is no " + tw::dtype<T>);
  }

 private:
  bool Parse([[maybe_unused]] tw::Frame f, std::string_view text, T* out) const {
    if constexpr (std::is_floating_point_v<T>) {
      const auto [last, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
      if (error == std::errc() && last == text.data() + text.size()) return true;
      // Handles the forms that the fast path rejects: a plus, hexadecimal digits, numbers too large
      // or too small.
      const tw::TempString copy(text, f);  // with a terminating zero
      char* end = nullptr;
      *out = FromText(copy.c_str(), &end, c_, T());
      return !copy.empty() && end == copy.c_str() + copy.size();
    } else {
      const bool plus = !text.empty() && text[0] == '+';
      if (plus) text.remove_prefix(1);
      if (plus && !text.empty() && text[0] == '-') return false;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
      return error == std::errc() && end == text.data() + text.size();
    }
  }

  locale_t c_ = nullptr;
};

}  // namespace

void register_string_to_number(tw::Plugin& p) {
  p.kernel<StringToNumber<float>>("StringToNumber @CPU");
  p.kernel<StringToNumber<double>>("StringToNumber @CPU");
  p.kernel<StringToNumber<int32_t>>("StringToNumber @CPU");
  p.kernel<StringToNumber<int64_t>>("StringToNumber @CPU");
  p.kernel<StringToNumber<uint32_t>>("StringToNumber @CPU");
  p.kernel<StringToNumber<uint64_t>>("StringToNumber @CPU");
}

}  // namespace thalweg::cpu
