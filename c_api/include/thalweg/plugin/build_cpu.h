/* The CPU that the compiler's options allow in this file: TW_BUILD_CPU, the architecture and its
 * instruction sets beyond the oldest CPU. It is a part of the build record (TW_BUILD in plugin.h), so
 * that a host refuses a plugin whose instructions its CPU lacks, such as one of -march=native from
 * another machine. */
#ifndef THALWEG_PLUGIN_BUILD_CPU_H
#define THALWEG_PLUGIN_BUILD_CPU_H

#if defined(__x86_64__) || defined(_M_X64)
#ifdef __SSE3__
#define TW_CPU_SSE3 " sse3"
#else
#define TW_CPU_SSE3 ""
#endif
#ifdef __SSSE3__
#define TW_CPU_SSSE3 " ssse3"
#else
#define TW_CPU_SSSE3 ""
#endif
#ifdef __SSE4_1__
#define TW_CPU_SSE4_1 " sse4.1"
#else
#define TW_CPU_SSE4_1 ""
#endif
#ifdef __SSE4_2__
#define TW_CPU_SSE4_2 " sse4.2"
#else
#define TW_CPU_SSE4_2 ""
#endif
#ifdef __POPCNT__
#define TW_CPU_POPCNT " popcnt"
#else
#define TW_CPU_POPCNT ""
#endif
#ifdef __AVX__
#define TW_CPU_AVX " avx"
#else
#define TW_CPU_AVX ""
#endif
#ifdef __AVX2__
#define TW_CPU_AVX2 " avx2"
#else
#define TW_CPU_AVX2 ""
#endif
#ifdef __FMA__
#define TW_CPU_FMA " fma"
#else
#define TW_CPU_FMA ""
#endif
#ifdef __BMI__
#define TW_CPU_BMI " bmi"
#else
#define TW_CPU_BMI ""
#endif
#ifdef __BMI2__
#define TW_CPU_BMI2 " bmi2"
#else
#define TW_CPU_BMI2 ""
#endif
#ifdef __AVX512F__
#define TW_CPU_AVX512F " avx512f"
#else
#define TW_CPU_AVX512F ""
#endif
#ifdef __AVX512CD__
#define TW_CPU_AVX512CD " avx512cd"
#else
#define TW_CPU_AVX512CD ""
#endif
#ifdef __AVX512BW__
#define TW_CPU_AVX512BW " avx512bw"
#else
#define TW_CPU_AVX512BW ""
#endif
#ifdef __AVX512DQ__
#define TW_CPU_AVX512DQ " avx512dq"
#else
#define TW_CPU_AVX512DQ ""
#endif
#ifdef __AVX512VL__
#define TW_CPU_AVX512VL " avx512vl"
#else
#define TW_CPU_AVX512VL ""
#endif
#ifdef __AVX512VNNI__
#define TW_CPU_AVX512VNNI " avx512vnni"
#else
#define TW_CPU_AVX512VNNI ""
#endif
#ifdef __AVX512BF16__
#define TW_CPU_AVX512BF16 " avx512bf16"
#else
#define TW_CPU_AVX512BF16 ""
#endif
#ifdef __SSE4A__
#define TW_CPU_SSE4A " sse4a"
#else
#define TW_CPU_SSE4A ""
#endif
#ifdef __FMA4__
#define TW_CPU_FMA4 " fma4"
#else
#define TW_CPU_FMA4 ""
#endif
#ifdef __XOP__
#define TW_CPU_XOP " xop"
#else
#define TW_CPU_XOP ""
#endif
#define TW_BUILD_CPU                                                                                                                   \
  "x86-64" TW_CPU_SSE3 TW_CPU_SSSE3 TW_CPU_SSE4_1 TW_CPU_SSE4_2 TW_CPU_POPCNT TW_CPU_AVX TW_CPU_AVX2 TW_CPU_FMA TW_CPU_BMI TW_CPU_BMI2 \
      TW_CPU_AVX512F TW_CPU_AVX512CD TW_CPU_AVX512BW TW_CPU_AVX512DQ TW_CPU_AVX512VL TW_CPU_AVX512VNNI TW_CPU_AVX512BF16 TW_CPU_SSE4A  \
          TW_CPU_FMA4 TW_CPU_XOP
#elif defined(__aarch64__) || defined(_M_ARM64)
#ifdef __ARM_FEATURE_ATOMICS
#define TW_CPU_LSE " lse"
#else
#define TW_CPU_LSE ""
#endif
#ifdef __ARM_FEATURE_DOTPROD
#define TW_CPU_DOTPROD " dotprod"
#else
#define TW_CPU_DOTPROD ""
#endif
#ifdef __ARM_FEATURE_FP16_VECTOR_ARITHMETIC
#define TW_CPU_FP16 " fp16"
#else
#define TW_CPU_FP16 ""
#endif
#ifdef __ARM_FEATURE_BF16
#define TW_CPU_BF16 " bf16"
#else
#define TW_CPU_BF16 ""
#endif
#ifdef __ARM_FEATURE_MATMUL_INT8
#define TW_CPU_I8MM " i8mm"
#else
#define TW_CPU_I8MM ""
#endif
#ifdef __ARM_FEATURE_SVE
#define TW_CPU_SVE " sve"
#else
#define TW_CPU_SVE ""
#endif
#ifdef __ARM_FEATURE_SVE2
#define TW_CPU_SVE2 " sve2"
#else
#define TW_CPU_SVE2 ""
#endif
#define TW_BUILD_CPU "arm64" TW_CPU_LSE TW_CPU_DOTPROD TW_CPU_FP16 TW_CPU_BF16 TW_CPU_I8MM TW_CPU_SVE TW_CPU_SVE2
#else
#define TW_BUILD_CPU "other"
#endif

#endif
