// TruncateDiv, TruncateMod, Mod: the quotient rounded towards 0, and the remainder, which has the
// sign of x. Mod is the older name of TruncateMod. For integers, x / 0 is an error. The quotient of
// the most negative number and -1 is an error; the remainder is 0.
#include <cmath>
#include <limits>

#include "kernels/common/types.h"
#include "kernels/register.h"
#include "kernels/zip.h"

namespace thalweg::cpu {
namespace {

template <class T>
bool Overflows(T x, T y) {
  return std::is_signed_v<T> && y == T(-1) && x == std::numeric_limits<T>::min();
}
constexpr auto kDiv = [](auto x, auto y, auto* z) {
  if (y == 0 || Overflows(x, y)) return false;
  *z = static_cast<decltype(x)>(x / y);
  return true;
};
constexpr auto kMod = [](auto x, auto y, auto* z) {
  if (y == 0) return false;
  *z = static_cast<decltype(x)>(Overflows(x, y) ? 0 : x % y);
  return true;
};
constexpr auto kRemainder = [](auto x, auto y) { return std::fmod(x, y); };

}  // namespace

void register_truncate(tw::Plugin& p) {
  AddPartialZip<kDiv, 8, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(p, "TruncateDiv");
  AddFloatZip<[](auto x, auto y) { return std::trunc(x / y); }, 4>(p, "TruncateDiv");
  for (const char* op : {"TruncateMod", "Mod"}) {
    AddPartialZip<kMod, 8, int32_t, int64_t>(p, op);
    AddFloatZip<kRemainder, 40>(p, op);
  }
}

}  // namespace thalweg::cpu
