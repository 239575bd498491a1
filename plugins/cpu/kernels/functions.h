// Functions of one float, once per instruction set (functions_isa.cc): loops as elementwise.h has them, for its table. They compute in
// double, so that a result is nearly always the float that is nearest. For per-set sources only.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_FUNCTIONS_H_
#define THALWEG_PLUGINS_CPU_KERNELS_FUNCTIONS_H_

#include <stdint.h>

namespace thalweg::cpu::THALWEG_ISA::functions {

void Sin(const void* x, void* y, int64_t n);
void Cos(const void* x, void* y, int64_t n);
void Tan(const void* x, void* y, int64_t n);
void Expm1(const void* x, void* y, int64_t n);
void Sinh(const void* x, void* y, int64_t n);
void Cosh(const void* x, void* y, int64_t n);
void Log1p(const void* x, void* y, int64_t n);
void Asinh(const void* x, void* y, int64_t n);
void Acosh(const void* x, void* y, int64_t n);
void Erf(const void* x, void* y, int64_t n);
void Erfc(const void* x, void* y, int64_t n);
void Erfinv(const void* x, void* y, int64_t n);
void Ndtri(const void* x, void* y, int64_t n);
// To int32: towards zero; what does not fit becomes the nearest number that does, and NaN 0.
void ToInt32(const void* x, void* y, int64_t n);

}  // namespace thalweg::cpu::THALWEG_ISA::functions

#endif  // THALWEG_PLUGINS_CPU_KERNELS_FUNCTIONS_H_
