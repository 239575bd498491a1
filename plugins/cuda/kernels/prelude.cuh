// What plugins/common/device is written in, said in CUDA C++ and, for hosts, in C++. First in every file of programs. A host runs a block of
// threads as a loop: `launch_of_host` says which block.
#ifndef THALWEG_PLUGINS_CUDA_KERNELS_PRELUDE_CUH_
#define THALWEG_PLUGINS_CUDA_KERNELS_PRELUDE_CUH_

#ifdef __CUDACC_RTC__  // has no headers, and knows mathematics and memcpy without
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295u
#define LONG_MAX 9223372036854775807l
#define LONG_MIN (-LONG_MAX - 1)
#define LLONG_MAX 9223372036854775807ll
#define LLONG_MIN (-LLONG_MAX - 1)
#define ULLONG_MAX 18446744073709551615ull
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#endif
#else
#include <limits.h>
#include <math.h>
#include <string.h>
#endif

typedef long long Size;
#define JOIN_AGAIN(a, b) a##b
#define JOIN(a, b) JOIN_AGAIN(a, b)
#define GLOBAL
#define INDEPENDENT
#define COLUMNS 1

#ifdef __CUDACC__
#define FUNCTION static __device__ __forceinline__
#define EXPORTED(name) extern "C" __global__ void name
#define HOST_FUNCTION(space, name)
#define SHARED(type, name, n) __shared__ type name[n]
#define PRIVATE(type, name, n, items) type name[n]
#define OWN(name, item, i) name[i]
#define EACH_ITEM(item, items) for (int item = int(threadIdx.y * blockDim.x + threadIdx.x), item##_once = 1; item##_once; item##_once = 0)
#define BARRIER __syncthreads()
#define BLOCK_X Size(blockIdx.x)
#define BLOCK_Y Size(blockIdx.y)
#define BLOCK_Z Size(blockIdx.z)
#define BLOCKS_Y Size(gridDim.y)
#define BLOCKS_Z Size(gridDim.z)
#define FOR_EACH(i, n) for (Size i = Size(blockIdx.x) * blockDim.x + threadIdx.x; i < (n); i += Size(gridDim.x) * blockDim.x)
#define FOR_RUNS(begin, end, n)                                                                                            \
  for (Size begin = Size(blockIdx.x) * blockDim.x + threadIdx.x, end = begin + 1; begin < (n); begin += Size(gridDim.x) * blockDim.x, \
            end = begin + 1)
#else
#include "programs.h"  // of the stub driver
#define FUNCTION static inline
#define EXPORTED(name) static void name
#define SHARED(type, name, n) static thread_local type name[n]
#define PRIVATE(type, name, n, items) static thread_local type name[items][n]
#define OWN(name, item, i) name[item][i]
#define EACH_ITEM(item, items) for (int item = 0; item < (items); ++item)
#define BARRIER
#define BLOCK_X launch_of_host.at[0]
#define BLOCK_Y launch_of_host.at[1]
#define BLOCK_Z launch_of_host.at[2]
#define BLOCKS_Y Size(launch_of_host.grid[1])
#define BLOCKS_Z Size(launch_of_host.grid[2])
#define FOR_EACH(i, n)                                                   \
  for (Size i##_item = 0; i##_item < launch_of_host.block[0]; ++i##_item) \
    for (Size i = BLOCK_X * launch_of_host.block[0] + i##_item; i < (n); i += Size(launch_of_host.grid[0]) * launch_of_host.block[0])
#define FOR_RUNS(begin, end, n)                                                                                     \
  for (Size begin##_item = 0; begin##_item < launch_of_host.block[0]; ++begin##_item)                               \
    for (Size begin = BLOCK_X * launch_of_host.block[0] + begin##_item, end = begin + 1; begin < (n);               \
         begin += Size(launch_of_host.grid[0]) * launch_of_host.block[0], end = begin + 1)
#endif

// Element types by their names: how they are stored, computed in, and wrap around.
#define STORED(kind) JOIN(stored_, kind)
#define COMPUTED(kind) JOIN(computed_, kind)
#define WRAPPING(kind) JOIN(wrapping_, kind)
#define GET(kind, p, i) JOIN(get_, kind)(p, i)
#define PUT(kind, p, i, v) JOIN(put_, kind)(p, i, v)
#define KIND(name, stored, computed, wrapping) \
  typedef stored stored_##name;                \
  typedef computed computed_##name;            \
  typedef wrapping wrapping_##name;
#define PLAIN_KIND(name, type, wrapping)                                               \
  KIND(name, type, type, wrapping)                                                     \
  FUNCTION type get_##name(const type* p, Size i) { return p[i]; }                     \
  template <class V>                                                                   \
  FUNCTION void put_##name(type* p, Size i, V v) {                                     \
    p[i] = static_cast<type>(v);                                                       \
  }
PLAIN_KIND(float, float, float)
PLAIN_KIND(double, double, double)
PLAIN_KIND(int8, signed char, unsigned)
PLAIN_KIND(int16, short, unsigned)
PLAIN_KIND(int32, int, unsigned)
PLAIN_KIND(int64, long long, unsigned long long)
PLAIN_KIND(uint8, unsigned char, unsigned)
PLAIN_KIND(uint16, unsigned short, unsigned)
PLAIN_KIND(uint32, unsigned, unsigned)
PLAIN_KIND(uint64, unsigned long long, unsigned long long)
KIND(half, unsigned short, float, float)
KIND(bfloat16, unsigned short, float, float)
KIND(bool, unsigned char, unsigned char, unsigned char)
struct alignas(16) Pair {
  unsigned long long parts[2];
};
KIND(complex128, Pair, Pair, Pair)

FUNCTION unsigned char get_bool(const unsigned char* p, Size i) { return p[i]; }
template <class V>
FUNCTION void put_bool(unsigned char* p, Size i, V v) {
  p[i] = v != 0;
}

FUNCTION float float_of_bits(unsigned bits) {
  float v;
  memcpy(&v, &bits, sizeof v);
  return v;
}
FUNCTION unsigned bits_of_float(float v) {
  unsigned bits;
  memcpy(&bits, &v, sizeof bits);
  return bits;
}
FUNCTION double double_of_bits(unsigned long long bits) {
  double v;
  memcpy(&v, &bits, sizeof v);
  return v;
}
#define BITS_TO_float(bits) float_of_bits(bits)
FUNCTION unsigned long long bits_of_double(double v) {
  unsigned long long bits;
  memcpy(&bits, &v, sizeof bits);
  return bits;
}
#define BITS_TO_double(bits) double_of_bits(bits)
// Without its last n bits; NaN stays NaN.
#define CUT_float(v, n) ((v) != (v) ? (v) : float_of_bits(bits_of_float(v) >> (n) << (n)))
#define CUT_double(v, n) ((v) != (v) ? (v) : double_of_bits(bits_of_double(v) >> (n) << (n)))
FUNCTION float get_bfloat16(const unsigned short* p, Size i) { return float_of_bits(unsigned(p[i]) << 16); }
// To the nearest, halves to even; NaN stays NaN.
FUNCTION void put_bfloat16(unsigned short* p, Size i, float v) {
  const unsigned bits = bits_of_float(v);
  p[i] = v != v ? 0x7fc0 : static_cast<unsigned short>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
FUNCTION float get_half(const unsigned short* p, Size i) {
#ifdef __CUDACC__
  float v;
  asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(p[i]));
  return v;
#else
  _Float16 v;
  memcpy(&v, p + i, sizeof v);
  return float(v);
#endif
}
FUNCTION void put_half(unsigned short* p, Size i, float v) {
#ifdef __CUDACC__
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(p[i]) : "f"(v));
#else
  const _Float16 h = static_cast<_Float16>(v);
  memcpy(p + i, &h, sizeof h);
#endif
}

// Whole numbers from reals: towards zero, the nearest that there is, 0 for NaN.
template <class T, class V>
FUNCTION T whole(V v, T least, T most) {
  return v != v ? T(0) : v <= V(least) ? least : v >= V(most) ? most : T(v);
}
#define whole_int8(v) whole<signed char>(v, SCHAR_MIN, SCHAR_MAX)
#define whole_int16(v) whole<short>(v, SHRT_MIN, SHRT_MAX)
#define whole_int32(v) whole<int>(v, INT_MIN, INT_MAX)
#define whole_int64(v) whole<long long>(v, LLONG_MIN, LLONG_MAX)
#define whole_uint8(v) whole<unsigned char>(v, 0, UCHAR_MAX)
#define whole_uint16(v) whole<unsigned short>(v, 0, USHRT_MAX)
#define whole_uint32(v) whole<unsigned>(v, 0, UINT_MAX)
#define whole_uint64(v) whole<unsigned long long>(v, 0, ULLONG_MAX)

template <class V>
FUNCTION V floor_mod(V a, V b) {
  const V m = fmod(a, b);
  return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}
FUNCTION Size smaller(Size a, Size b) { return a < b ? a : b; }

// A tensor is two parameters: the address and its first element from there. BEGIN moves to that element.
#define IN(kind, x) const STORED(kind)*x, Size x##_at
#define OUT(kind, x) STORED(kind) * x, Size x##_at
#define BEGIN(x) x += x##_at

#include "walk.h"

#endif  // THALWEG_PLUGINS_CUDA_KERNELS_PRELUDE_CUH_
