// Range: start, start + delta, ... before limit.
#include <bit>
#include <cmath>

#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// Converts a half-precision number.
double FromHalf(uint16_t h) {
  const int exponent = h >> 10 & 31, mantissa = h & 1023;
  const double sign = h >> 15 ? -1 : 1;
  if (exponent == 31) return mantissa ? std::nan("") : sign * HUGE_VAL;
  return sign * (exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24));
}

template <class T>
T First(const tw_view* v) {
  return *static_cast<const T*>(v->data);
}

// Reads a floating-point scalar as a double; returns false for integers.
bool Real(const tw_view* v, double* out) {
  switch (v->dtype) {
    case TW_FLOAT: *out = static_cast<double>(First<float>(v)); return true;
    case TW_DOUBLE: *out = First<double>(v); return true;
    case TW_HALF: *out = FromHalf(First<uint16_t>(v)); return true;
    case TW_BFLOAT16: *out = static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(First<uint16_t>(v)) << 16)); return true;
    default: return false;
  }
}

// Reads an integer as sign and magnitude, so that every type fits. A range may then cover a
// distance of up to 2^64.
bool Whole(const tw_view* v, bool* negative, uint64_t* size) {
  int64_t x = 0;
  switch (v->dtype) {
    case TW_INT8: x = First<int8_t>(v); break;
    case TW_INT16: x = First<int16_t>(v); break;
    case TW_INT32: x = First<int32_t>(v); break;
    case TW_INT64: x = First<int64_t>(v); break;
    case TW_UINT16: x = First<uint16_t>(v); break;
    case TW_UINT32: x = First<uint32_t>(v); break;
    case TW_UINT64:
      *negative = false;
      *size = First<uint64_t>(v);
      return true;
    default: return false;
  }
  *negative = x < 0;
  *size = x < 0 ? -static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
  return true;
}

[[noreturn]] void Refuse(const std::string& start, const std::string& limit, const std::string& delta) {
  Fail("a range from " + start + " to " + limit + " in steps of " + delta +
       " never ends; delta must not be 0 and must lead from start to limit");
}

int64_t RealCount(double start, double limit, double delta) {
  const double n = std::ceil((limit - start) / delta);
  const bool leads = delta > 0 ? start <= limit : start >= limit;
  if (delta == 0 || !leads || !std::isfinite(n)) Refuse(Text(start), Text(limit), Text(delta));
  if (n >= 0x1p63) Fail("a range of " + Text(n) + " elements is too long");
  return static_cast<int64_t>(n);
}

struct Signed {
  bool negative;
  uint64_t size;
  std::string Text() const { return (negative ? "-" : "") + std::to_string(size); }
};

int64_t WholeCount(Signed start, Signed limit, Signed delta) {
  // In two's complement the distance is exact modulo 2^64, and it is less than 2^64.
  auto bits = [](Signed v) { return v.negative ? -v.size : v.size; };
  auto below = [](Signed a, Signed b) { return a.negative != b.negative ? a.negative : a.negative ? a.size > b.size : a.size < b.size; };
  const bool leads = delta.negative ? !below(start, limit) : !below(limit, start);
  if (delta.size == 0 || !leads) Refuse(start.Text(), limit.Text(), delta.Text());
  const uint64_t distance = delta.negative ? bits(start) - bits(limit) : bits(limit) - bits(start);
  const uint64_t n = distance == 0 ? 0 : (distance - 1) / delta.size + 1;
  if (n > static_cast<uint64_t>(INT64_MAX)) Fail("a range of " + std::to_string(n) + " elements is too long");
  return static_cast<int64_t>(n);
}

int64_t Count(const tw_view* start, const tw_view* limit, const tw_view* delta) {
  double a = 0, b = 0, c = 0;
  if (Real(start, &a) && Real(limit, &b) && Real(delta, &c)) return RealCount(a, b, c);
  Signed x{}, y{}, z{};
  const bool whole = Whole(start, &x.negative, &x.size) && Whole(limit, &y.negative, &y.size) && Whole(delta, &z.negative, &z.size);
  return whole ? WholeCount(x, y, z) : -1;
}

void Rule(const tw::Shape& s) {
  WantScalar(s, 0, "start");
  WantScalar(s, 1, "limit");
  WantScalar(s, 2, "delta");
  const tw_view *start = s.c->value[0], *limit = s.c->value[1], *delta = s.c->value[2];
  s.out(0, Dims{start && limit && delta ? Count(start, limit, delta) : -1});
}

}  // namespace

void register_range(tw::Plugin& p) {
  p.op<nullptr, Rule>(
      "Range(start: Tidx, limit: Tidx, delta: Tidx) -> (output: Tidx); "
      "Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint16, uint32, uint64} = int32; "
      "role range; no_gradient \"how many elements there are jumps with the inputs\"; doc \"start, start + delta, ... up to but without "
      "limit\"");
}

}  // namespace thalweg::ops
