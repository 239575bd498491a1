import numpy as np

import tw
from declare import op

CAST = "float double half bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool complex64 complex128"


BITS = {np.dtype(np.float16): 11, np.dtype(np.float32): 24, tw.bfloat16: 8}


def cut_off(x, bits):
    """Truncates x towards 0 to that many bits."""
    fraction, exponent = np.frexp(x)
    return np.ldexp(np.trunc(np.ldexp(fraction, bits)), exponent - bits)


def cast(x, *, DstT, Truncate):
    """Casts floats to integers by truncation and clamping, NaN to 0; integers to integers modulo 2^bits; complex numbers to their real
    part, or to bool by whether any part is not 0."""
    if DstT == np.bool_:
        return x != 0
    if x.dtype.kind == "c" and DstT.kind != "c":
        x = x.real
    if x.dtype.kind == "f" and DstT.kind in "iu":
        low, high = np.iinfo(DstT).min, np.iinfo(DstT).max
        return np.array([0 if v != v else high if v >= float(high) else low if v <= float(low) else int(v) for v in x.flat], DstT).reshape(x.shape)
    if DstT == tw.bfloat16 or DstT.kind == "f":
        return (cut_off(x, BITS[np.dtype(DstT)]) if Truncate else x).astype(np.longdouble)
    return x.astype(np.clongdouble if DstT.kind == "c" else DstT)


def cut(d):
    """Draws a cast to a type with a shorter mantissa, without rounding."""
    d.types["SrcT"] = d.pick("float", "double", "double")
    d.types["DstT"] = d.pick("half", "bfloat16", *["float"] * (d.types["SrcT"] == "double"))
    d.set(Truncate=True)
    return [d("x", of=d.pick(d.rng.normal(size=70001), [np.nan, np.inf, -np.inf, 0, -0.0, 1 / 3, -1 / 3]))]


op("Cast", cast, also=(cut, cut), attrs=dict(Truncate=[False]), types=dict(SrcT=CAST, DstT=CAST),
   no_gradient="gradient_test.py: between all floating-point types")
