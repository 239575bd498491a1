"""The incomplete gamma and beta functions in extended precision: series of positive terms, and continued fractions from a fixed depth."""
import numpy as np

import special
from declare import broadcast, expect, op, refuses
from domains import between
from ulps import near

L = np.longdouble
STIRLING = [1 / L(12), -1 / L(360), 1 / L(1260), -1 / L(1680), 1 / L(1188), -691 / L(360360), 1 / L(156)]


def lgamma(a):
    """Returns log(gamma(a)) for a > 0. The C library's is available in double precision only."""
    a, product = np.array(a, L), L(1)
    for _ in range(30):
        product, a = np.where(a < 30, product * a, product), np.where(a < 30, a + 1, a)
    rest = sum(c / a ** (2 * k + 1) for k, c in enumerate(STIRLING))
    return (a - L(0.5)) * np.log(a) - a + np.log(2 * special.PI) / 2 + rest - np.log(product)


def lower(a, x):
    """Returns P by its series. It is for x < a + 1, where P is not near 1 by cancellation."""
    term = total = np.ones_like(x)
    for k in range(1, 500):
        term = term * x / (a + k)
        total = total + term
    return np.exp(a * np.log(x) - x - lgamma(a + 1)) * total


def upper(a, x):
    """Returns Q for x >= a + 1: 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - ...)))."""
    rest = x + 1 - a + 2 * 400
    for k in range(400, 0, -1):
        rest = x + 1 - a + 2 * (k - 1) - k * (k - a) / rest
    return np.exp(a * np.log(x) - x - lgamma(a)) / rest


def both(a, x):
    """Returns P and Q."""
    a, x = np.broadcast_arrays(a, x)
    inside = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    below = inside & (x < a + 1)
    p = lower(np.where(below, a, 1), np.where(below, x, 1))
    q = upper(np.where(inside & ~below, a, 1), np.where(inside & ~below, x, 3))
    p, q = np.where(below, p, 1 - q), np.where(below, 1 - p, q)
    none, all_ = (x == 0) | np.isinf(a), np.isinf(x)
    p, q = np.where(none, 0, np.where(all_, 1, p)), np.where(none, 1, np.where(all_, 0, q))
    return p, q


def grad_a(a, x):
    """Returns the sum of the derivatives of x^(a + k) exp(-x) / gamma(a + k + 1) for a. Terms of both signs cancel for large x."""
    a, x = np.broadcast_arrays(a, x)
    safe = np.where(x > 0, x, 1)
    term, total, size = np.exp(a * np.log(safe) - safe - lgamma(a + 1)), 0, 0
    for k in range(500):
        part = term * (np.log(safe) - special.digamma(a + k + 1))
        total, size, term = total + part, size + abs(part), term * safe / (a + k + 1)
    return near(np.where(x > 0, total, 0), np.where(x > 0, size, 0))


def at_most(rows, columns):
    """Draws shapes that broadcast, in a large use to that matrix: each element takes long."""
    return lambda d: broadcast(d) if not d.large else [d("a", (rows, 1)), d("x", (1, columns))]


shapes = dict(a=between(0.05, 60).calm, x=between(0, 150).calm)
smooth = dict(a=between(0.5, 2), x=between(0.5, 2))
once = dict(second=False, why="IgammaGradA, the gradient for `a`, has none itself")
op("Igamma", lambda a, x: both(a, x)[0], at_most(41, 53), domain=shapes, smooth=smooth, ulps=1, **once)
op("Igammac", lambda a, x: both(a, x)[1], at_most(41, 53), domain=shapes, smooth=smooth, ulps=1, **once)
op("IgammaGradA", grad_a, at_most(7, 11), domain=dict(a=between(0.05, 60).plain, x=between(0, 100).plain), ulps=2, zero_signs=False)


def beta(a, b, x):
    """Returns I(a, b, x) as x^a (1 - x)^b / (a B(a, b)) times a series of positive terms, for the smaller tail."""
    a, b, x = np.broadcast_arrays(a, b, x)
    turned = x * (a + b) > a
    p, q = np.where(turned, b, a), np.where(turned, a, b)
    inside = (x > 0) & (x < 1)
    u = np.where(inside, np.where(turned, 1 - x, x), L(0.5))
    term = total = np.ones_like(u)
    for k in range(4000):
        term = term * (p + q + k) / (p + 1 + k) * u
        total = total + term
        if np.all(term < total * L(1e-20)):
            break
    found = np.exp(p * np.log(u) + q * np.log1p(-u) + lgamma(p + q) - lgamma(p + 1) - lgamma(q)) * total
    return np.where(inside, np.where(turned, 1 - found, found), x)


def same_or_scalar(d):
    shape = (3001,) if d.large else d.shape(most=3)
    return [d(name, shape if d.integer(0, 2) else ()) for name in ("a", "b", "x")]


op("Betainc", beta, same_or_scalar, domain=dict(a=between(0.3, 20).calm, b=between(0.3, 20).calm, x=between(0, 1).calm),
   smooth=dict(a=between(0.5, 2), b=between(0.5, 2), x=between(0.1, 0.9)), wrt=("x",), ulps=1)

# Values with 25 digits, from series in decimal arithmetic with 80: small and large parameters, tails, the middle.
GAMMA = [  # a, x, P, Q, dP/da
    (1e-06, 1e-09, 0.9999798541519348, 2.0145848065188903e-05, -20.145645958678703),
    (1e-06, 0.3, 0.9999990943231863, 9.056768136855656e-07, -0.9056769756947107),
    (1e-06, 5.0, 0.9999999988517018, 1.1482982748235766e-09, -0.001148300958374029),
    (0.01, 1e-30, 0.5040472728599954, 0.49595272714000455, -34.5356393141263),
    (0.01, 0.9, 0.9973736567479489, 0.0026263432520511505, -0.2650766525599411),
    (0.3, 1.05, 0.9215703360548394, 0.07842966394516059, -0.31552530263396283),
    (1.0, 1.0, 0.6321205588285577, 0.36787944117144233, -0.4317297106348987),
    (2.5, 0.01, 2.987601531906594e-06, 0.999997012398468, -1.7056647497778207e-05),
    (3.7, 30.0, 0.9999999997608394, 2.3916053483180656e-10, -5.427038913330365e-10),
    (40.0, 170.0, 1.0, 9.12161160304666e-34, -1.338153470539079e-33),
    (150.0, 151.0, 0.5432697634436877, 0.4567302365563123, -0.03237582729030996),
    (199.0, 120.0, 2.749186955463816e-11, 0.9999999999725081, -1.4172555666204006e-11),
    (201.0, 201.0, 0.5093799959861766, 0.49062000401382344, -0.028150889515535786),
    (250.0, 180.0, 4.718944298054762e-07, 0.9999995281055702, -1.6039999430233627e-07),
    (1000.0, 1003.5, 0.548189714523061, 0.45181028547693897, -0.012517957875011632),
    (1500.0, 1700.0, 0.9999996463165703, 3.5368342970516777e-07, -4.602813371308994e-08),
]
for a, x, p, q, slope in GAMMA:
    for name, wanted in (("Igamma", p), ("Igammac", q), ("IgammaGradA", slope)):
        expect(name, [np.float64(a), np.float64(x)], [np.float64(wanted)], 4e-16 * abs(wanted))
BETA = [  # a, b, x, I
    (0.0001, 2.0, 0.3, 0.9999496015397268),
    (2.0, 0.0001, 0.7, 5.039846027319492e-05),
    (0.5, 0.5, 1e-10, 6.366197723781917e-06),
    (0.5, 0.5, 0.97, 0.8891753133955406),
    (30.0, 2.0, 0.6, 2.8739609563695306e-06),
    (3.0, 40.0, 0.5, 0.9999999997944542),
    (400.0, 300.0, 0.5, 7.581269960249226e-05),
    (700.0, 900.0, 0.44, 0.5806534187626161),
    (0.001, 5000.0, 0.0001, 0.999439903080559),
    (2000.0, 0.01, 0.95, 2.9218281172705163e-49),
    (5000.0, 5000.0, 0.51, 0.9772579676754255),
]
for a, b, x, wanted in BETA:
    expect("Betainc", [np.float64(a), np.float64(b), np.float64(x)], [np.float64(wanted)], 4e-16 * abs(wanted))

inf, nan = np.inf, np.nan
a, x = np.array([0.0, -1, 0, -1, 1, 2, inf, inf, 2, nan, 2]), np.array([0.0, 0, 1, 1, -1, inf, 3, inf, 0, 1, nan])
expect("Igamma", [a, x], [np.array([0, 0, nan, nan, nan, 1, 0, nan, 0, nan, nan])])
expect("Igammac", [a, x], [np.array([nan, nan, nan, nan, nan, 0, 1, nan, 1, nan, nan])])
expect("IgammaGradA", [a, x], [np.array([0, 0, nan, nan, nan, 0, 0, nan, 0, nan, nan])])
middle = 0.5 + 1 / (3 * np.sqrt(2 * np.pi * 1e15))
large = np.array([1e300, 1e300, 1e15, 1e15, 5e-324])
expect("Igamma", [large, np.array([1e299, 2e300, 1e15, 9.9e14, 1.0])], [np.array([0, 1, middle, 0, 1])], 1e-15)
a, b = np.array([0.0, 1, -1, nan, inf, 1, inf, 2, 2, 1, 1]), np.array([1.0, 0, 1, 1, 1, inf, inf, 3, 3, 1, 1])
x = np.array([0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0, 1, -0.5, 1.5])
expect("Betainc", [a, b, x], [np.array([nan, nan, nan, nan, 0, 1, nan, 0, 1, nan, nan])])

two, three = np.ones(2), np.ones(3)
for name in ("Igamma", "Igammac", "IgammaGradA"):
    refuses(name, [two, three], "[2]", "[3]")
refuses("Betainc", [two, np.float64(1), three], "[2]", "[3]")
refuses("Betainc", [two, three, np.float64(1)], "[2]", "[3]")
