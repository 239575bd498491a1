import numpy as np

import special
from declare import op
from domains import between, everything, fractions, nonzero, positive


def sign(x):
    return np.where(x == 0, 0, x / np.where(x == 0, 1, abs(x))) if x.dtype.kind == "c" else np.sign(x)


op("Abs", np.abs, smooth=nonzero)
op("Neg", np.negative)
op("Sign", sign, ulps=2, zero_signs=False, smooth=nonzero, smooth_types="double")
op("Square", np.square, ulps=2)
op("Conj", np.conj)
op("Sqrt", np.sqrt, domain=everything(positive), ulps=2)
op("Rsqrt", lambda x: 1 / np.sqrt(x), domain=everything(positive), ulps=4)
op("Reciprocal", lambda x: 1 / x, domain=nonzero, ulps=4)
op("Inv", lambda x: 1 / x, domain=nonzero, ulps=4, no_kernel={"a quotient of whole numbers is not whole": "int8 int16 int32 int64"})
op("InvGrad", lambda y, dy: -dy * y.conj() ** 2, ulps=4, denormals=False, zero_signs=False, domain=fractions.calm)
op("Exp", np.exp, domain=everything(between(-20, 20)), ulps=4)
op("Expm1", np.expm1, domain=everything(between(-20, 20)), ulps=4)
op("Log", np.log, domain=everything(positive), ulps=4)
op("Log1p", np.log1p, domain=everything(positive), ulps=4)
op("Sin", np.sin, ulps=4)
op("Cos", np.cos, ulps=4)
op("Tanh", np.tanh, ulps=8)
op("Sigmoid", lambda x: 1 / (1 + np.exp(-x)), ulps=8, denormals=False)
op("Erf", special.erf, ulps=8)
op("Erfc", special.erfc, ulps=8)
op("Rint", np.rint, smooth=fractions)
op("Floor", np.floor, smooth=fractions)
op("Ceil", np.ceil, smooth=fractions)
op("Round", np.rint, smooth=fractions, no_kernel={"complex numbers have no order": "complex64 complex128"})
op("IsNan", np.isnan)
op("IsInf", np.isinf)
op("IsFinite", np.isfinite)
op("LogicalNot", np.logical_not)
