// Cast among floating-point types, complex numbers, integers and bool. To integers: rounds towards
// zero; a number out of range becomes the nearest integer, and NaN becomes 0 (TensorFlow leaves
// both undefined). To bool: true if not zero. From complex to real numbers: the real part. Between
// integers: modulo 2^bits. Half, bfloat16 and the 8-bit floating-point types go through float, which
// holds them exactly; integers of 4 and 2 bits go through bytes.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "kernels/common/element.h"
#include "kernels/common/kernel.h"
#include "kernels/common/parallel.h"
#include "kernels/common/types.h"
#include "kernels/elementwise.h"
#include "kernels/narrow.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

constexpr int64_t kChunk = 512;  // elements that pass through stack buffers at a time

template <class From, class To>
To Convert(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (kIsComplex<From> && !kIsComplex<To>) {
    return Convert<typename From::value_type, To>(x.real());
  } else if constexpr (kIsComplex<To> && !kIsComplex<From>) {
    return To(static_cast<typename To::value_type>(x));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // The bounds are 0 or powers of two, so From holds them exactly. `top` is the last number
    // before `end`. The code has no branches, for the vectoriser.
    constexpr From low = From(std::numeric_limits<To>::min()), end = From(uint64_t(1) << (std::numeric_limits<To>::digits - 1)) * 2;
    constexpr From top = end - end * (std::numeric_limits<From>::epsilon() / 2);
    const From number = x != x ? From(0) : x, high = number < low ? low : number, inside = high > top ? top : high;
    const To result = To(inside);
    return high >= end ? std::numeric_limits<To>::max() : result;
  } else {
    return static_cast<To>(x);
  }
}

using Loop = void (*)(const void* x, void* y, int64_t n);

template <class From, class To>
void ConvertLoop(const void* x, void* y, int64_t n) {
  auto* from = static_cast<const From*>(x);
  auto* to = static_cast<To*>(y);
  for (int64_t i = 0; i < n; ++i) to[i] = Convert<From, To>(from[i]);
}

template <class From>
Loop LoopTo(uint32_t to) {
  switch (to) {
    case TW_HALF:
    case TW_BFLOAT16:
    case TW_FLOAT: return ConvertLoop<From, float>;
    case TW_DOUBLE: return ConvertLoop<From, double>;
    case TW_INT8: return ConvertLoop<From, int8_t>;
    case TW_INT16: return ConvertLoop<From, int16_t>;
    case TW_INT32: return ConvertLoop<From, int32_t>;
    case TW_INT64: return ConvertLoop<From, int64_t>;
    case TW_UINT8: return ConvertLoop<From, uint8_t>;
    case TW_UINT16: return ConvertLoop<From, uint16_t>;
    case TW_UINT32: return ConvertLoop<From, uint32_t>;
    case TW_UINT64: return ConvertLoop<From, uint64_t>;
    case TW_BOOL: return ConvertLoop<From, bool>;
    case TW_COMPLEX64: return ConvertLoop<From, complex64>;
    case TW_COMPLEX128: return ConvertLoop<From, complex128>;
    default: return nullptr;
  }
}

Loop FindLoop(uint32_t from, uint32_t to) {
  switch (from) {
    case TW_HALF:
    case TW_BFLOAT16:
    case TW_FLOAT: return LoopTo<float>(to);
    case TW_DOUBLE: return LoopTo<double>(to);
    case TW_INT8: return LoopTo<int8_t>(to);
    case TW_INT16: return LoopTo<int16_t>(to);
    case TW_INT32: return LoopTo<int32_t>(to);
    case TW_INT64: return LoopTo<int64_t>(to);
    case TW_UINT8: return LoopTo<uint8_t>(to);
    case TW_UINT16: return LoopTo<uint16_t>(to);
    case TW_UINT32: return LoopTo<uint32_t>(to);
    case TW_UINT64: return LoopTo<uint64_t>(to);
    case TW_BOOL: return LoopTo<uint8_t>(to);  // 0 or 1
    case TW_COMPLEX64: return LoopTo<complex64>(to);
    case TW_COMPLEX128: return LoopTo<complex128>(to);
    default: return nullptr;
  }
}

// Returns the bits of a mantissa without the leading one, or 0 for types without a mantissa.
int MantissaBits(uint32_t dtype) {
  switch (dtype) {
    case TW_DOUBLE: return 52;
    case TW_FLOAT: return 23;
    case TW_HALF: return 10;
    case TW_BFLOAT16: return 7;
    default: return 0;
  }
}

// Clears the low bits of the mantissas, so that rounding to a shorter type changes nothing. NaN
// stays NaN.
template <class T, class Bits>
void CutMantissas(char* values, int bits, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    T x;
    std::memcpy(&x, values + i * int64_t(sizeof x), sizeof x);
    if (x != x) continue;
    Bits b;
    std::memcpy(&b, &x, sizeof b);
    b &= ~Bits(0) << bits;
    std::memcpy(values + i * int64_t(sizeof x), &b, sizeof b);
  }
}

// Returns the type that elements have between their conversions from and to memory.
uint32_t StageType(uint32_t dtype) {
  if (FindFloat8(dtype)) return TW_FLOAT;
  const NarrowInteger narrow = FindNarrowInteger(dtype);
  if (narrow.bits > 0) return narrow.is_signed ? TW_INT8 : TW_UINT8;
  return dtype;
}

bool IsReal(uint32_t dtype) {
  return dtype == TW_HALF || dtype == TW_BFLOAT16 || dtype == TW_FLOAT || dtype == TW_DOUBLE || dtype == TW_COMPLEX64 ||
         dtype == TW_COMPLEX128 || FindFloat8(dtype);
}

// Numbers on their way to 8 bits, which are rounded once more.
template <class From>
void OddLoop(const void* x, void* y, int64_t n) {
  auto* from = static_cast<const From*>(x);
  auto* to = static_cast<float*>(y);
  for (int64_t i = 0; i < n; ++i) to[i] = RoundedToOdd(Convert<From, double>(from[i]));
}

class Cast {
 public:
  Cast(const tw::Node& n, const Elementwise& t)
      : from_(n.type_in(0)),
        to_(n.type_out(0)),
        loop_(FindLoop(StageType(from_), StageType(to_))),
        from_float8_(FindFloat8(from_)),
        to_float8_(FindFloat8(to_)),
        from_integer_(FindNarrowInteger(from_)),
        to_integer_(FindNarrowInteger(to_)),
        saturates_(IsReal(from_)) {
    if (!loop_) {
      throw tw::Error{TW_UNIMPLEMENTED, "no cast from " + TypeText(from_) + " to " + TypeText(to_) +
                                            "; there are casts among real and complex numbers and bool"};
    }
    if (from_ == TW_FLOAT && to_ == TW_INT32) loop_ = t.unary_float.to_int32.loop;
    if (from_ == TW_HALF) load_ = t.unary_half.abs.load;
    if (from_ == TW_BFLOAT16) load_ = t.unary_bfloat16.abs.load;
    if (to_ == TW_HALF) store_ = t.unary_half.abs.store;
    if (to_ == TW_BFLOAT16) store_ = t.unary_bfloat16.abs.store;
    if (from_float8_) numbers_ = Float8Numbers(*from_float8_);
    if (to_float8_ && from_ == TW_DOUBLE) loop_ = OddLoop<double>;
    if (to_float8_ && from_ == TW_COMPLEX128) loop_ = OddLoop<complex128>;
    staged_ = load_ || store_ || from_float8_ || to_float8_ || from_integer_.bits > 0 || to_integer_.bits > 0;
    if (n.b("Truncate") && (from_ == TW_FLOAT || from_ == TW_DOUBLE) && MantissaBits(to_) > 0)
      cut_ = std::max(0, MantissaBits(from_) - MantissaBits(to_));
  }

  void operator()(tw::Frame f, tw::In<tw::Any> x, tw::Out<tw::Any> y) const {
    const int64_t from_bytes = ElementBytes(from_), to_bytes = ElementBytes(to_);
    const char* from = Bytes(x.v);
    char* to = Bytes(y.v());
    ParallelFor(f.f, int64_t(x.size()), 2, [&](int64_t begin, int64_t end) {
      if (!staged_ && cut_ == 0) return loop_(from + begin * from_bytes, to + begin * to_bytes, end - begin);
      for (; begin < end; begin += kChunk) RunChunk(from + begin * from_bytes, to + begin * to_bytes, std::min(kChunk, end - begin));
    });
  }

 private:
  void RunChunk(const char* x, char* y, int64_t n) const {
    alignas(64) char wide[kChunk * 8];
    alignas(64) char rounded[kChunk * 4];
    if (Load(x, wide, n)) x = wide;
    const bool stores = store_ || to_float8_ || to_integer_.bits > 0;
    loop_(x, stores ? rounded : y, n);
    if (stores) Store(rounded, y, n);
  }

  // Brings elements from memory into the form that the loop reads. Returns false if they have it.
  bool Load(const char* x, char* wide, int64_t n) const {
    if (load_) {
      load_(reinterpret_cast<const uint16_t*>(x), reinterpret_cast<float*>(wide), n);
    } else if (from_float8_) {
      for (int64_t i = 0; i < n; ++i) reinterpret_cast<float*>(wide)[i] = numbers_[uint8_t(x[i])];
    } else if (from_integer_.bits > 0) {
      for (int64_t i = 0; i < n; ++i) wide[i] = char(LowBits(from_integer_, uint8_t(x[i])));
    } else if (cut_ > 0) {
      std::memcpy(wide, x, size_t(n) * ElementBytes(from_));
      if (from_ == TW_FLOAT)
        CutMantissas<float, uint32_t>(wide, cut_, n);
      else
        CutMantissas<double, uint64_t>(wide, cut_, n);
    } else {
      return false;
    }
    return true;
  }

  void Store(const char* staged, char* y, int64_t n) const {
    if (store_) {
      store_(reinterpret_cast<const float*>(staged), reinterpret_cast<uint16_t*>(y), n);
    } else if (to_float8_) {
      for (int64_t i = 0; i < n; ++i) y[i] = char(Float8Code(*to_float8_, reinterpret_cast<const float*>(staged)[i]));
    } else if (saturates_) {
      for (int64_t i = 0; i < n; ++i) y[i] = char(Nearest(to_integer_, uint8_t(staged[i])));
    } else {
      for (int64_t i = 0; i < n; ++i) y[i] = char(LowBits(to_integer_, uint8_t(staged[i])));
    }
  }

  uint32_t from_, to_;
  Loop loop_;
  const Float8 *from_float8_, *to_float8_;
  NarrowInteger from_integer_, to_integer_;
  bool saturates_;  // towards whole numbers
  bool staged_ = false;
  Load16 load_ = nullptr;
  Store16 store_ = nullptr;
  std::array<float, 256> numbers_{};  // of the codes of an 8-bit type
  int cut_ = 0;                       // the low mantissa bits to clear first
};

}  // namespace

void register_cast(tw::Plugin& p) { AddKernelClass<Cast>(p, "Cast(_ -> _) @CPU", TW_CPU_FOR_ISA(DetectIsa(p.h), ElementwiseTable)); }

}  // namespace thalweg::cpu
