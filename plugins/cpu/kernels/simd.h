// Vectors of one instruction set, as wide as the set has them: compiler extensions for arithmetic,
// intrinsics for partial loads and stores. Only for sources built per set (see cpu_isa_kernels):
// everything has internal linkage, so no two sets can share a function.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_SIMD_H_
#define THALWEG_PLUGINS_CPU_KERNELS_SIMD_H_

#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace thalweg::cpu::THALWEG_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

template <class T>
struct Simd;
template <>
struct Simd<float> {
  typedef float V __attribute__((vector_size(kVectorBytes)));
  typedef float Unaligned __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));
  typedef int32_t Index __attribute__((vector_size(kVectorBytes)));
};
template <>
struct Simd<double> {
  typedef double V __attribute__((vector_size(kVectorBytes)));
  typedef double Unaligned __attribute__((vector_size(kVectorBytes), aligned(8), may_alias));
  typedef int64_t Index __attribute__((vector_size(kVectorBytes)));
};
template <class T>
using Vec = typename Simd<T>::V;
template <class T>
constexpr int kLanes = kVectorBytes / int(sizeof(T));

// Broadcasts x. Subtraction of zero is the one operation with a constant that changes no value, not
// even -0; compilers remove it.
template <class T>
inline Vec<T> Splat(T x) {
  return x - Vec<T>{};
}
template <class T>
inline Vec<T> Load(const T* p) {
  return *reinterpret_cast<const typename Simd<T>::Unaligned*>(p);
}
template <class T>
inline void Store(T* p, Vec<T> v) {
  *reinterpret_cast<typename Simd<T>::Unaligned*>(p) = v;
}

// Loads the first `n` lanes, 0 < n <= kLanes. The other lanes are 0, and their memory is not
// touched.
#if defined(__AVX512F__)
inline Vec<float> LoadFirst(const float* p, int n) { return _mm512_maskz_loadu_ps(__mmask16((1u << n) - 1), p); }
inline Vec<double> LoadFirst(const double* p, int n) { return _mm512_maskz_loadu_pd(__mmask8((1u << n) - 1), p); }
inline void StoreFirst(float* p, Vec<float> v, int n) { _mm512_mask_storeu_ps(p, __mmask16((1u << n) - 1), v); }
inline void StoreFirst(double* p, Vec<double> v, int n) { _mm512_mask_storeu_pd(p, __mmask8((1u << n) - 1), v); }
#elif defined(__AVX2__)
constexpr int32_t kMask32[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
constexpr int64_t kMask64[8] = {-1, -1, -1, -1};
inline __m256i Mask32(int n) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMask32 + 8 - n)); }
inline __m256i Mask64(int n) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMask64 + 4 - n)); }
inline Vec<float> LoadFirst(const float* p, int n) { return _mm256_maskload_ps(p, Mask32(n)); }
inline Vec<double> LoadFirst(const double* p, int n) { return _mm256_maskload_pd(p, Mask64(n)); }
inline void StoreFirst(float* p, Vec<float> v, int n) { _mm256_maskstore_ps(p, Mask32(n), v); }
inline void StoreFirst(double* p, Vec<double> v, int n) { _mm256_maskstore_pd(p, Mask64(n), v); }
#else
template <class T>
inline Vec<T> LoadFirst(const T* p, int n) {
  Vec<T> v{};
  for (int i = 0; i < n; ++i) v[i] = p[i];
  return v;
}
template <class T>
inline void StoreFirst(T* p, Vec<T> v, int n) {
  for (int i = 0; i < n; ++i) p[i] = v[i];
}
#endif

}  // namespace
}  // namespace thalweg::cpu::THALWEG_ISA

#endif  // THALWEG_PLUGINS_CPU_KERNELS_SIMD_H_
