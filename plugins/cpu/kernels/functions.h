// Functions of one float, built once per instruction set (functions_isa.cc), as loops for the table
// of elementwise.h. They compute in double, so a result is nearly always the nearest float. For
// per-set sources only.
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
// Converts to int32, rounding towards zero. A number out of range becomes the nearest int32, and
// NaN becomes 0.
void ToInt32(const void* x, void* y, int64_t n);

}  // namespace thalweg::cpu::THALWEG_ISA::functions

#endif  // THALWEG_PLUGINS_CPU_KERNELS_FUNCTIONS_H_
