import numpy as np

import special
from declare import broadcast, expect, op
from domains import between, everything, positive, whole
from ulps import near

L = np.longdouble
# B(2j) / (2j)!
BERNOULLI = [L(a) / L(b) for a, b in ((1, 12), (-1, 720), (1, 30240), (-1, 1209600), (1, 47900160), (-691, 1307674368000),
                                      (1, 74724249600))]


def zeta_above_0(x, q, terms=40):
    """Returns zeta(x, q) for x > 1 and q > 0, by the Euler-Maclaurin formula."""
    a = q + terms
    total = sum((q + k) ** -x for k in range(terms)) + a ** (1 - x) / (x - 1) + a ** -x / 2
    factor = x * a ** (-x - 1)
    for j, b in enumerate(BERNOULLI):
        total = total + b * factor
        factor = factor * (x + 2 * j + 1) * (x + 2 * j + 2) / (a * a)
    return total


def zeta(x, q):
    x, q = np.broadcast_arrays(x, q)
    up = np.where(q > 0, 0, np.ceil(-np.maximum(q, -60)))  # number of terms with q below 0
    direct = np.zeros(q.shape, L)
    for k in range(61):
        direct = direct + np.where(k < up, (q + k) ** -np.where(k < up, x, 1), 0)
    fits = (x > 1) & (q + up > 0)
    found = direct + zeta_above_0(np.where(fits, x, 2), np.where(fits, q + up, 1))
    pole = (q <= 0) & (q == np.floor(q))
    found = np.where(pole, np.where(np.fmod(x, 2) == 0, np.inf, np.nan), found)
    found = np.where((q < 0) & ~pole & (x != np.floor(x)), np.nan, found)
    return np.where(x == 1, np.inf, np.where((x < 1) | np.isnan(x) | np.isnan(q), np.nan, found))


def factorial(n):
    return np.array([np.prod(np.arange(1, k + 1, dtype=L)) for k in np.ravel(n).astype(int)]).reshape(np.shape(n))


def polygamma(n, x):
    n, x = np.broadcast_arrays(n, x)
    order = np.where((n >= 1) & (n == np.floor(n)), n, 1)
    found = np.where(np.fmod(order, 2) == 0, -1, 1) * factorial(order) * zeta(order + 1, x)
    return np.where(n == 0, special.digamma(x), np.where(n == order, found, np.nan))


def polygamma_far(n, x):
    """Returns polygamma for large n and x, by the logarithm of the factorial; half way between poles below 0 the terms above 0 cancel."""
    q = np.where(x > 0, x, 1 - x)
    scaled = sum((1 + k / q) ** -(n + 1) for k in range(2000))
    power = special.lgamma(n + 1) - (n + 1) * np.log(q)
    return np.where(np.fmod(n, 2) == 0, -1, 1) * np.exp(power) * scaled


def digamma(x):
    """Returns digamma. Near a zero the error is that of the terms that cancel: two below 0, logarithm and quotients above."""
    found = special.digamma(x)
    below = np.where((x < 0) & np.isfinite(found), special.digamma(np.where(x < 0, 1 - x, 1)), 0)
    return near(found, np.where(np.isfinite(found), np.maximum(np.maximum(abs(found), abs(below)), np.where(abs(x - 0.5) < 2.5, 0.25, 0)), found))


orders = whole(0, 5)
op("Lgamma", special.lgamma, smooth=positive, ulps=8, zero_signs=False)
op("Digamma", digamma, smooth=positive, ulps=6)
op("Polygamma", polygamma, broadcast, domain=dict(a=orders, x=between(0.1, 60).calm), smooth=dict(a=orders, x=between(0.5, 2)), wrt=("x",),
   ulps=8)
op("Zeta", zeta, broadcast, domain=dict(x=between(1, 12), q=between(0.1, 60).calm), smooth=dict(x=between(1.5, 2), q=between(0.5, 2)),
   wrt=("q",), ulps=8)
op("Erfinv", special.erfinv, domain=everything(between(-1, 1)), smooth=between(-0.8, 0.8), ulps=4)
op("Ndtri", special.ndtri, domain=everything(between(0, 1)), smooth=between(0.1, 0.9), ulps=5, zero_signs=False)

# Points below 0, at poles and of extreme size.
x = np.array([-0.5, -1.5, -7.25, -40.125, 0.0, -1.0, -2.0, 1e300, np.inf, np.nan, 1e-300])
for order in (1.0, 2.0, 3.0):
    below = x[:4]
    expect("Polygamma", [np.float64(order), below], [polygamma(L(order), below.astype(L))], 1e-13)
expect("Polygamma", [np.float64(1), x[4:9]], [np.array([np.inf, np.inf, np.inf, 0, 0])], 1e-300)
expect("Polygamma", [np.float64(2), x[4:7]], [np.full(3, np.nan)])
expect("Polygamma", [np.array([-1.0, 0.5, np.nan, np.inf]), np.ones(4)], [np.full(4, np.nan)])
expect("Polygamma", [np.float64(1), np.float64(-1e15 - 0.5)], [np.float64(np.pi ** 2)], 1e-13)
# Orders at which the factorial, or the sum of the powers, exceeds the range of double.
for order, far in ((101, 2e3), (120, 1e3), (150, 500), (170, 700), (171, 60), (300, 110.5), (1000, 400), (120, -46.5), (150, -89.5)):
    wanted = np.float64(polygamma_far(L(order), L(far)))
    expect("Polygamma", [np.float64(order), np.float64(far)], [wanted], 1e-12 * abs(wanted))
expect("Zeta", [np.array([2.0, 5001, 5000, 5001]), np.array([1e16, -0.3, -0.3, -0.5])], [np.array([1e-16, -np.inf, np.inf, 0])], 1e-30)
expect("Zeta", [np.array([1, 0.5, 2.5, np.nan, 2, 3]), np.array([2, 2, -0.5, 1, -3, -3])],
       [np.array([np.inf, np.nan, np.nan, np.nan, np.inf, np.nan])])
tiny = np.array([1e-300, 5e-324, 1e-30, 0.25, 0.75, 1 - 2**-53])
expect("Ndtri", [tiny], [special.ndtri(tiny.astype(L)).astype(np.float64)], 1e-15)
