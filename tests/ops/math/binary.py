import numpy as np

from declare import broadcast, op, refuses
from domains import between, everything, nonzero, positive, where


def towards_zero(x, y):
    if x.dtype.kind not in "iu":
        return x / y
    q = x // y
    return np.where((q < 0) & (q * y != x), q + 1, q).astype(x.dtype)


def fits(d):
    """Draws no quotient of the smallest integer and -1, which the type cannot hold."""
    x, y = broadcast(d)
    return [x, np.where(y == -1, np.array(1, y.dtype), y)] if y.dtype.kind == "i" else [x, y]


# Numbers whose quotients a type holds: others are 0 or infinite before they are rounded down.
quotients = where(nonzero, lambda x: np.isinf(x) | np.isnan(x) | (abs(x) > 0.01) & (abs(x) < 20000))


def powers(d):
    """Draws powers: integers have small non-negative exponents; no complex 0 is raised to 0."""
    x, y = broadcast(d)
    if x.dtype.kind == "c":
        return [np.where(x == 0, 2, x).astype(x.dtype), y]
    return [x, abs(y % 7).astype(y.dtype)] if y.dtype.kind == "i" else [x, y]


op("Add AddV2", np.add, broadcast)
op("Sub", np.subtract, broadcast)
op("Mul", np.multiply, broadcast)
op("Div", towards_zero, fits, domain=dict(y=nonzero), ulps=1)
op("RealDiv", np.divide, broadcast, domain=dict(y=nonzero), ulps=1)
op("DivNoNan", lambda x, y: np.where(y == 0, 0, x / y), broadcast, smooth=dict(y=nonzero), ulps=1, zero_signs=False)
op("FloorDiv", lambda x, y: np.floor(x / y) if x.dtype.kind == "f" else x // y, fits, domain=dict(x=quotients, y=quotients), smooth=dict(x=between(0.1, 0.9), y=between(1, 1.5)))
op("FloorMod", np.mod, fits, domain=dict(y=nonzero), smooth=dict(x=between(0.1, 0.9), y=between(1, 1.5)), zero_signs=False)
op("Pow", np.power, powers, domain=dict(x=everything(positive), y=everything(between(-4, 4))), smooth=positive, ulps=8)
op("Maximum", np.maximum, broadcast, smooth=dict(x=between(0, 2), y=between(-1, 3)), zero_signs=False)
op("Minimum", np.minimum, broadcast, smooth=dict(x=between(0, 2), y=between(-1, 3)), zero_signs=False)
op("SquaredDifference", lambda x, y: abs(x - y) ** 2 if x.dtype.kind == "c" else (x - y) * (x - y), broadcast, ulps=2)
refuses("FloorDiv", [np.int32([1]), np.int32([0])], "zero")
