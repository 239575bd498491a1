/* The functions of element-wise ops: a line per op and set of element types, with the expression of
 * a, b and c.
 *
 * X(op, types, result, expression): types are REAL (half, bfloat16, float, double), WHOLE (int32,
 * int64) or BOOL; result is SAME or BOOL. In an expression C is the type of the computation (float
 * for half and bfloat16), U a type whose sums and products wrap around (C itself for reals), and P
 * the op's attribute. Functions are those of <math.h>, for the type of their argument. Hosts
 * compile the lines as they are; `#expression` makes them program text for devices. */
#ifndef THALWEG_DEVICE_FUNCTIONS_H
#define THALWEG_DEVICE_FUNCTIONS_H

/* clang-format off */
#define DEVICE_UNARY(X) \
  X(Abs, REAL, SAME, fabs(a)) \
  X(Abs, WHOLE, SAME, a < 0 ? (U)0 - (U)a : (U)a) \
  X(Neg, REAL, SAME, -a) \
  X(Neg, WHOLE, SAME, (U)0 - (U)a) \
  X(Sign, REAL, SAME, a > 0 ? (C)1 : a < 0 ? (C)-1 : a) \
  X(Sign, WHOLE, SAME, (a > 0) - (a < 0)) \
  X(Square, REAL, SAME, a * a) \
  X(Square, WHOLE, SAME, (U)a * (U)a) \
  X(Sqrt, REAL, SAME, sqrt(a)) \
  X(Rsqrt, REAL, SAME, 1 / sqrt(a)) \
  X(Exp, REAL, SAME, exp(a)) \
  X(Expm1, REAL, SAME, expm1(a)) \
  X(Log, REAL, SAME, log(a)) \
  X(Log1p, REAL, SAME, log1p(a)) \
  X(Sin, REAL, SAME, sin(a)) \
  X(Cos, REAL, SAME, cos(a)) \
  X(Tan, REAL, SAME, tan(a)) \
  X(Sinh, REAL, SAME, sinh(a)) \
  X(Cosh, REAL, SAME, cosh(a)) \
  X(Tanh, REAL, SAME, tanh(a)) \
  X(Asin, REAL, SAME, asin(a)) \
  X(Acos, REAL, SAME, acos(a)) \
  X(Atan, REAL, SAME, atan(a)) \
  X(Asinh, REAL, SAME, asinh(a)) \
  X(Acosh, REAL, SAME, acosh(a)) \
  X(Atanh, REAL, SAME, atanh(a)) \
  X(Sigmoid, REAL, SAME, 1 / (1 + exp(-a))) \
  X(Reciprocal, REAL, SAME, 1 / a) \
  X(Inv, REAL, SAME, 1 / a) \
  X(Erf, REAL, SAME, erf(a)) \
  X(Erfc, REAL, SAME, erfc(a)) \
  X(Lgamma, REAL, SAME, lgamma(a)) \
  X(Floor, REAL, SAME, floor(a)) \
  X(Ceil, REAL, SAME, ceil(a)) \
  X(Round, REAL, SAME, rint(a)) \
  X(Round, WHOLE, SAME, a) \
  X(Rint, REAL, SAME, rint(a)) \
  X(IsNan, REAL, BOOL, a != a) \
  X(IsInf, REAL, BOOL, isinf(a) != 0) \
  X(IsFinite, REAL, BOOL, isfinite(a) != 0) \
  X(LogicalNot, BOOL, BOOL, !a) \
  X(Invert, WHOLE, SAME, ~a) \
  X(Relu, REAL, SAME, a < 0 ? 0 : a) \
  X(Relu, WHOLE, SAME, a < 0 ? 0 : a) \
  X(Relu6, REAL, SAME, a < 0 ? 0 : a > 6 ? 6 : a) \
  X(Relu6, WHOLE, SAME, a < 0 ? 0 : a > 6 ? 6 : a) \
  X(Elu, REAL, SAME, a < 0 ? expm1(a) : a) \
  X(Selu, REAL, SAME, a < 0 ? (C)1.7580993408473768599402175208123 * expm1(a) : (C)1.0507009873554804934193349852946 * a) \
  X(Softplus, REAL, SAME, (a < 0 ? 0 : a) + log1p(exp(-fabs(a)))) \
  X(Softsign, REAL, SAME, a / (1 + fabs(a))) \
  X(LeakyRelu, REAL, SAME, a > 0 ? a : a * P)

#define DEVICE_BINARY(X) \
  X(Add, REAL, SAME, a + b) \
  X(Add, WHOLE, SAME, (U)a + (U)b) \
  X(AddV2, REAL, SAME, a + b) \
  X(AddV2, WHOLE, SAME, (U)a + (U)b) \
  X(Sub, REAL, SAME, a - b) \
  X(Sub, WHOLE, SAME, (U)a - (U)b) \
  X(Mul, REAL, SAME, a * b) \
  X(Mul, WHOLE, SAME, (U)a * (U)b) \
  X(Div, REAL, SAME, a / b) \
  X(RealDiv, REAL, SAME, a / b) \
  X(DivNoNan, REAL, SAME, b == 0 ? 0 : a / b) \
  X(MulNoNan, REAL, SAME, b == 0 ? 0 : a * b) \
  X(FloorDiv, REAL, SAME, floor(a / b)) \
  X(FloorMod, REAL, SAME, floor_mod(a, b)) \
  X(TruncateDiv, REAL, SAME, trunc(a / b)) \
  X(TruncateMod, REAL, SAME, fmod(a, b)) \
  X(Mod, REAL, SAME, fmod(a, b)) \
  X(Pow, REAL, SAME, pow(a, b)) \
  X(Atan2, REAL, SAME, atan2(a, b)) \
  X(Maximum, REAL, SAME, b < a || a != a ? a : b) \
  X(Maximum, WHOLE, SAME, b < a ? a : b) \
  X(Minimum, REAL, SAME, a < b || a != a ? a : b) \
  X(Minimum, WHOLE, SAME, a < b ? a : b) \
  X(SquaredDifference, REAL, SAME, (a - b) * (a - b)) \
  X(SquaredDifference, WHOLE, SAME, ((U)a - (U)b) * ((U)a - (U)b)) \
  X(Xdivy, REAL, SAME, a == 0 ? 0 : a / b) \
  X(Xlogy, REAL, SAME, a == 0 ? 0 : a * log(b)) \
  X(Xlog1py, REAL, SAME, a == 0 ? 0 : a * log1p(b)) \
  X(SqrtGrad, REAL, SAME, b * (C)0.5 / a) \
  X(RsqrtGrad, REAL, SAME, b * (C)-0.5 * (a * a * a)) \
  X(ReciprocalGrad, REAL, SAME, -b * (a * a)) \
  X(InvGrad, REAL, SAME, -b * (a * a)) \
  X(TanhGrad, REAL, SAME, b * (1 - a * a)) \
  X(SigmoidGrad, REAL, SAME, b * a * (1 - a)) \
  X(ReluGrad, REAL, SAME, b > 0 ? a : 0) \
  X(ReluGrad, WHOLE, SAME, b > 0 ? a : 0) \
  X(Relu6Grad, REAL, SAME, b > 0 && b < 6 ? a : 0) \
  X(Relu6Grad, WHOLE, SAME, b > 0 && b < 6 ? a : 0) \
  X(EluGrad, REAL, SAME, b < 0 ? a * (b + 1) : a) \
  X(SeluGrad, REAL, SAME, \
    a * (b < 0 ? b + (C)1.7580993408473768599402175208123 : (C)1.0507009873554804934193349852946)) \
  X(SoftplusGrad, REAL, SAME, a / (1 + exp(-b))) \
  X(SoftsignGrad, REAL, SAME, a / ((1 + fabs(b)) * (1 + fabs(b)))) \
  X(LeakyReluGrad, REAL, SAME, b > 0 ? a : a * P) \
  X(Equal, REAL, BOOL, a == b) \
  X(Equal, WHOLE, BOOL, a == b) \
  X(Equal, BOOL, BOOL, a == b) \
  X(NotEqual, REAL, BOOL, a != b) \
  X(NotEqual, WHOLE, BOOL, a != b) \
  X(NotEqual, BOOL, BOOL, a != b) \
  X(Less, REAL, BOOL, a < b) \
  X(Less, WHOLE, BOOL, a < b) \
  X(LessEqual, REAL, BOOL, a <= b) \
  X(LessEqual, WHOLE, BOOL, a <= b) \
  X(Greater, REAL, BOOL, a > b) \
  X(Greater, WHOLE, BOOL, a > b) \
  X(GreaterEqual, REAL, BOOL, a >= b) \
  X(GreaterEqual, WHOLE, BOOL, a >= b) \
  X(LogicalAnd, BOOL, BOOL, a && b) \
  X(LogicalOr, BOOL, BOOL, a || b) \
  X(BitwiseAnd, WHOLE, SAME, a & b) \
  X(BitwiseOr, WHOLE, SAME, a | b) \
  X(BitwiseXor, WHOLE, SAME, a ^ b) \
  X(LeftShift, WHOLE, SAME, (U)a << (b < 0 ? 0 : b < (C)(8 * sizeof(C)) ? b : (C)(8 * sizeof(C) - 1))) \
  X(RightShift, WHOLE, SAME, a >> (b < 0 ? 0 : b < (C)(8 * sizeof(C)) ? b : (C)(8 * sizeof(C) - 1)))

#define DEVICE_TERNARY(X) \
  X(ClipByValue, REAL, SAME, (a > c ? c : a) < b ? b : a > c ? c : a) \
  X(ClipByValue, WHOLE, SAME, (a > c ? c : a) < b ? b : a > c ? c : a)
/* clang-format on */

#endif
