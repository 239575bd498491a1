// What plugins/common/device is written in, said in OpenCL C. First in every program. Build options: BLOCKED, where an item does elements that
// follow each other (a CPU); otherwise neighbouring items do neighbouring elements.
typedef long Size;
#define JOIN_AGAIN(a, b) a##b
#define JOIN(a, b) JOIN_AGAIN(a, b)
#define FUNCTION static inline
#define KERNEL(name) kernel void name
#define GLOBAL global
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT
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
KIND(float, float, float, float)
KIND(half, half, float, float)
KIND(bfloat16, ushort, float, float)
KIND(int8, char, char, uint)
KIND(int16, short, short, uint)
KIND(int32, int, int, uint)
KIND(int64, long, long, ulong)
KIND(uint8, uchar, uchar, uint)
KIND(uint16, ushort, ushort, uint)
KIND(uint32, uint, uint, uint)
KIND(uint64, ulong, ulong, ulong)
KIND(bool, uchar, uchar, uchar)
KIND(complex128, ulong2, ulong2, ulong2)
#ifdef HAS_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
KIND(double, double, double, double)
#define get_double(p, i) (p)[i]
#define put_double(p, i, v) ((p)[i] = (v))
#endif

#define get_float(p, i) (p)[i]
#define put_float(p, i, v) ((p)[i] = (v))
#define get_half(p, i) vload_half(i, p)
#define put_half(p, i, v) vstore_half_rte((float)(v), i, p)
#define get_bfloat16(p, i) as_float((uint)(p)[i] << 16)
#define put_bfloat16(p, i, v) ((p)[i] = to_bfloat16(v))
#define get_int8(p, i) (p)[i]
#define put_int8(p, i, v) ((p)[i] = (char)(v))
#define get_int16(p, i) (p)[i]
#define put_int16(p, i, v) ((p)[i] = (short)(v))
#define get_int32(p, i) (p)[i]
#define put_int32(p, i, v) ((p)[i] = (v))
#define get_int64(p, i) (p)[i]
#define put_int64(p, i, v) ((p)[i] = (v))
#define get_uint8(p, i) (p)[i]
#define put_uint8(p, i, v) ((p)[i] = (uchar)(v))
#define get_uint16(p, i) (p)[i]
#define put_uint16(p, i, v) ((p)[i] = (ushort)(v))
#define get_uint32(p, i) (p)[i]
#define put_uint32(p, i, v) ((p)[i] = (v))
#define get_uint64(p, i) (p)[i]
#define put_uint64(p, i, v) ((p)[i] = (v))
#define get_complex128(p, i) (p)[i]
#define put_complex128(p, i, v) ((p)[i] = (v))
#define get_bool(p, i) (p)[i]
#define put_bool(p, i, v) ((p)[i] = (v) != 0)

// To the nearest, halves to even; NaN stays NaN.
FUNCTION ushort to_bfloat16(float v) {
  const uint bits = as_uint(v);
  return v != v ? (ushort)0x7fc0 : (ushort)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Whole numbers from reals: towards zero, the nearest that there is, 0 for NaN.
#define whole_int8(v) convert_char_sat(v)
#define whole_int16(v) convert_short_sat(v)
#define whole_int32(v) convert_int_sat(v)
#define whole_int64(v) convert_long_sat(v)
#define whole_uint8(v) convert_uchar_sat(v)
#define whole_uint16(v) convert_ushort_sat(v)
#define whole_uint32(v) convert_uint_sat(v)
#define whole_uint64(v) convert_ulong_sat(v)

#define BITS_TO_float(bits) as_float(bits)
#define BITS_TO_double(bits) as_double(bits)
// Without its last n bits; NaN stays NaN.
#define CUT_float(v, n) ((v) != (v) ? (v) : as_float(as_uint(v) >> (n) << (n)))
#define CUT_double(v, n) ((v) != (v) ? (v) : as_double(as_ulong(v) >> (n) << (n)))

// A tensor is two parameters: the buffer and its first element in it. BEGIN moves to that element.
#define IN(kind, x) global const STORED(kind)* x, Size x##_at
#define OUT(kind, x) global STORED(kind)* x, Size x##_at
#define BEGIN(x) x += x##_at

// Runs [begin, end) of 0 to n - 1 that are this item's; single numbers.
#ifdef BLOCKED
#define COLUMNS 64
#define FOR_RUNS(begin, end, n) for (Size begin = share(n) * get_global_id(0), end = min(begin + share(n), (Size)(n)); begin < end; begin = end)
#define FOR_EACH(i, n) for (Size i = share(n) * get_global_id(0), i##_end = min(i + share(n), (Size)(n)); i < i##_end; ++i)
// Long shares begin at places that vectors of any type may begin at.
FUNCTION Size share(Size n) {
  const Size part = (n + get_global_size(0) - 1) / get_global_size(0);
  return part < 4096 ? part : (part + 63) / 64 * 64;
}
#ifdef __clang__
#if __has_builtin(__builtin_nontemporal_store)
#define STREAM 256
#define STREAM_ROOM(kind, r) STORED(kind) r[STREAM] __attribute__((aligned(64)))
#define STREAM_OUT(kind, p, r) stream_out((global uchar*)(p), (const private uchar*)(r), STREAM * sizeof(STORED(kind)))
FUNCTION void stream_out(global uchar* to, const private uchar* from, uint bytes) {
  if ((size_t)to % 64 == 0) {
    for (uint k = 0; k < bytes / 64; ++k)
      __builtin_nontemporal_store(((const private ulong8*)from)[k], (global ulong8*)to + k);
  } else {
    for (uint k = 0; k < bytes; ++k) to[k] = from[k];
  }
}
#endif
#endif
#else
#define COLUMNS 1
#define FOR_RUNS(begin, end, n) for (Size begin = get_global_id(0), end = begin + 1; begin < n; begin += get_global_size(0), end = begin + 1)
#define FOR_EACH(i, n) for (Size i = get_global_id(0); i < (n); i += get_global_size(0))
#endif

// PoCL's answers 0 for the smallest numbers.
FUNCTION float __attribute__((overloadable)) log1p_of(float v) { return fabs(v) < 1e-30f ? v : log1p(v); }
#ifdef HAS_DOUBLE
FUNCTION double __attribute__((overloadable)) log1p_of(double v) { return fabs(v) < 1e-30f ? v : log1p(v); }
#endif
#undef log1p
#define log1p(v) log1p_of(v)

// Remainders have the sign of b.
#define floor_mod(a, b) floor_mod_of(fmod(a, b), b)
FUNCTION float __attribute__((overloadable)) floor_mod_of(float m, float b) { return m != 0 && (m < 0) != (b < 0) ? m + b : m; }
#ifdef HAS_DOUBLE
FUNCTION double __attribute__((overloadable)) floor_mod_of(double m, double b) { return m != 0 && (m < 0) != (b < 0) ? m + b : m; }
#endif
