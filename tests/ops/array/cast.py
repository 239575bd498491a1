import numpy as np

import tw
from declare import op

CAST = "float double half bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool complex64 complex128"


def cast(x, *, DstT):
    """To whole numbers towards 0 and to the nearest that fits, NaN to 0; among whole numbers modulo 2^bits; of complex numbers the real
    part, but as a truth value whether any part is not 0."""
    if DstT == np.bool_:
        return x != 0
    if x.dtype.kind == "c" and DstT.kind != "c":
        x = x.real
    if x.dtype.kind == "f" and DstT.kind in "iu":
        low, high = np.iinfo(DstT).min, np.iinfo(DstT).max
        return np.array([0 if v != v else high if v >= float(high) else low if v <= float(low) else int(v) for v in x.flat], DstT).reshape(x.shape)
    if DstT == tw.bfloat16 or DstT.kind == "f":
        return x.astype(np.longdouble)
    return x.astype(np.clongdouble if DstT.kind == "c" else DstT)


op("Cast", cast, attrs=dict(Truncate=[False]), types=dict(SrcT=CAST, DstT=CAST), no_gradient="gradient_test.py: between all floating-point types")
