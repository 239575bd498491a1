import numpy as np

from declare import broadcast, op, refuses
from domains import between, nonzero, where


def fits(d):
    """Draws no quotient of the smallest integer and -1, which the type cannot hold."""
    x, y = broadcast(d)
    return [x, np.where(y == -1, np.array(1, y.dtype), y)] if y.dtype.kind == "i" else [x, y]


def quotient(x, y):
    if x.dtype.kind == "f":
        return np.trunc(x / y)
    return ((x - np.fmod(x, y)) // y).astype(x.dtype)


# Numbers whose quotients a type holds: others are 0 or infinite before they are rounded.
quotients = where(nonzero, lambda x: np.isinf(x) | np.isnan(x) | (abs(x) > 0.01) & (abs(x) < 20000))
kinks = dict(x=between(2.1, 2.9), y=between(1, 1.04))
op("TruncateDiv", quotient, fits, domain=dict(x=quotients, y=quotients), smooth=kinks, zero_signs=False,
   no_kernel={"complex numbers have no order": "complex64 complex128"})
op("TruncateMod Mod", np.fmod, broadcast, domain=dict(y=nonzero), smooth=dict(x=between(0.1, 0.9), y=between(1, 1.5)))
for name in ("TruncateDiv", "TruncateMod", "Mod"):
    refuses(name, [np.int32([1, 7]), np.int32([1, 0])], "element 1", "division of 7 by zero")
refuses("TruncateDiv", [np.int32(-2**31), np.int32(-1)], "-2147483648 / -1")
