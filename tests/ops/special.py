"""Functions that NumPy lacks, for oracles, in extended precision. lgamma is the C library's for long double; its result is a double."""
import ctypes
import ctypes.util

import numpy as np

from ulps import near

L = np.longdouble
PI = L("3.14159265358979323846264338327950288")
SPLIT = 1.25  # below, the series of erf; above, the continued fraction of erfc

_libm = ctypes.CDLL(ctypes.util.find_library("m"))
_libm.lgammal.restype, _libm.lgammal.argtypes = ctypes.c_longdouble, [ctypes.c_longdouble]
lgamma = np.vectorize(_libm.lgammal, otypes=[L])


def _inner(x):
    """erf(x) = 2 / sqrt(pi) exp(-x^2) sum of 2^n x^(2n + 1) / (2n + 1)!!, all of one sign."""
    term = total = x
    for n in range(1, 60):
        term = term * (2 * x * x / (2 * n + 1))
        total = total + term
    return 2 / np.sqrt(PI) * np.exp(-x * x) * total


def _tail(x):
    """erfc(x) of positive x: exp(-x^2) / sqrt(pi) / (x + 1/2 / (x + 1 / (x + 3/2 / (x + ...))))."""
    fraction = x
    for n in range(300, 0, -1):
        fraction = x + n / L(2) / fraction
    return np.exp(-x * x) / (np.sqrt(PI) * fraction)


def _chosen(x, inner, outer):
    """inner(x) near 0, outer(x) elsewhere; NaN stays NaN."""
    x = np.asarray(x, L)
    near = abs(x) < SPLIT
    return np.where(np.isnan(x), x, np.where(near, inner(np.where(near, x, 0)), outer(np.where(near, SPLIT, x))))


def erf(x):
    return _chosen(x, _inner, lambda x: np.sign(x) * (1 - erfc(abs(x))))


def erfc(x):
    return _chosen(x, lambda x: 1 - _inner(x), lambda x: np.where(x > 0, _tail(abs(x)), 2 - _tail(abs(x))))


def _erfc_inverse(z):
    """Returns the inverse of erfc for z in (0, 1], by Newton's method on log erfc, starting from Winitzki's approximation."""
    w = -np.log(z * (2 - z))
    half = 2 / (PI * L("0.147")) - w / 2
    x = np.sqrt(np.sqrt(half * half + w / L("0.147")) - half)
    for _ in range(8):
        e = erfc(x)
        x = np.maximum(x + e * np.log(e / z) / (2 / np.sqrt(PI) * np.exp(-x * x)), 0)
    return x


def erfinv(y):
    """Returns the inverse of erf: NaN outside [-1, 1]."""
    y = np.asarray(y, L)
    a = np.where(abs(y) < 1, abs(y), 0)
    x = np.where(a < 0.5, _erf_inverse(np.minimum(a, 0.5)), _erfc_inverse(np.minimum(1 - a, 0.5)))
    return np.where(abs(y) < 1, np.copysign(x, y), np.where(abs(y) == 1, y * np.inf, np.nan))


def _erf_inverse(y):
    """Returns the inverse of erf for y in [0, 0.5]."""
    x = y * np.sqrt(PI) / 2
    for _ in range(6):
        x = x - (_inner(x) - y) / (2 / np.sqrt(PI) * np.exp(-x * x))
    return x


def ndtri(p):
    """The quantile of the standard normal distribution: NaN outside [0, 1]."""
    p = np.asarray(p, L)
    inside = np.where((p > 0) & (p < 1), p, 0.5)
    low = np.minimum(inside, 1 - inside)
    x = np.sqrt(L(2)) * np.where(low < 0.25, -_erfc_inverse(np.minimum(2 * low, 0.5)), -_erf_inverse(np.clip(1 - 2 * low, 0, 0.5)))
    x = np.where(inside <= 0.5, x, -x)
    return np.where(p == 0, -np.inf, np.where(p == 1, np.inf, np.where((p > 0) & (p < 1), x, np.nan)))


# The coefficients of the asymptotic series of digamma, B(2n) / 2n.
_SERIES = [L(a) / b for a, b in ((1, 12), (-1, 120), (1, 252), (-1, 240), (1, 132), (-691, 32760), (1, 12), (-3617, 8160))]


def digamma(x):
    """Returns digamma: NaN at its poles 0, -1, -2, ..., and at -infinity."""
    x = np.asarray(x, L)
    low = x < 0.5
    z = np.where(low, 1 - x, x)
    total = np.zeros_like(z)
    for _ in range(30):
        small = z < 30
        total, z = total - np.where(small, 1 / np.where(small, z, 1), 0), z + small
    total = total + np.log(z) - 1 / (2 * z) - sum(c / z ** (2 * n + 2) for n, c in enumerate(_SERIES))
    turned = x - np.round(x)
    total = np.where(low, total - PI / np.tan(PI * np.where(low & (turned != 0), turned, 0.25)), total)
    return np.where(low & ((turned == 0) | (x == -np.inf)), np.nan, total)


def shifted(x):
    return x - x.max(-1, keepdims=True, initial=-np.inf)


def softmax(x):
    e = np.exp(shifted(x))
    return e / e.sum(-1, keepdims=True)


def log_softmax(x):
    s = shifted(x)
    log = s - np.log(np.exp(s).sum(-1, keepdims=True))
    return near(log, 1 + abs(log) + abs(x))
