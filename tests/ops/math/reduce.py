import math

import numpy as np

from declare import expect, op, reduced, refuses, slope
from domains import Domain, distinct, nonzero, normal, where
from ulps import near


def over(f, magnitude=None):
    def oracle(x, axes, *, keep_dims):
        how = dict(axis=tuple(axes), keepdims=keep_dims)
        return near(f(x, **how), magnitude(abs(x), **how)) if magnitude and x.dtype.kind in "fc" else f(x, **how)
    return oracle


def total(x, **how):
    return np.sum(x, dtype=x.dtype, **how)


def mean(x, **how):
    count = x.size // max(1, np.sum(x, **how).size) if x.size else int(np.prod([x.shape[a] for a in how["axis"]]))
    if x.dtype.kind in "fc":
        return total(x, **how) / count
    sums = np.sum(x, **how)  # of 64 bits
    return ((sums - np.fmod(sums, count or 1)) // (count or 1)).astype(x.dtype)


def product(x, **how):
    return np.prod(x, dtype=x.dtype, **how)


def least(x):
    return -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min


def largest(x):
    return np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).max


# Numbers near 1, or special numbers whose product is the same in any order.
moderate = Domain(lambda rng, shape, smooth: rng.uniform(0.7, 1.4, shape) * rng.choice([-1, 1], shape),
                  lambda x: (x == 0) | (abs(x) == 1) | np.isinf(x) | np.isnan(x))

op("Sum", over(total, np.sum), reduced, ulps=4, zero_signs=False)
op("Mean", over(mean, mean), reduced, domain=where(normal, lambda x: abs(x) < 1e4), ulps=4, zero_signs=False)
op("Prod", over(product), reduced, domain=moderate, ulps=64, half_ulps=2)
op("Max", over(lambda x, **how: np.max(x, initial=least(x), **how)), reduced, smooth=distinct, zero_signs=False)
op("Min", over(lambda x, **how: np.min(x, initial=largest(x), **how)), reduced, smooth=distinct, zero_signs=False)
def norm(x, **how):
    squares = [x.real ** 2, x.imag ** 2] if x.dtype.kind == "c" else [x.astype(object) ** 2 if x.dtype.kind in "iu" else x ** 2]
    total = sum(np.asarray(np.sum(v, **how)) for v in squares)
    if x.dtype.kind not in "iu":
        return np.sqrt(total) + x.dtype.type(0)
    roots = np.array([math.isqrt(int(v)) for v in np.ravel(total)], object).reshape(np.shape(total))
    return np.array([int(v) % 2**64 for v in np.ravel(roots)], np.uint64).reshape(roots.shape).astype(x.dtype)


op("EuclideanNorm", over(norm), reduced, domain=normal.calm, ulps=2, smooth=nonzero,
   no_kernel={"quantised arithmetic needs ranges, which this op does not carry": "qint8 qint16 qint32 quint8 quint16"})
huge = np.array([3e200, 4e200, 0])
expect("EuclideanNorm", [huge, np.int32([0])], [np.float64(5e200)])
expect("EuclideanNorm", [np.array([3e-200, 4e-200]), np.int32([0])], [np.float64(5e-200)], 1e-215)
expect("EuclideanNorm", [np.array([np.inf, 1, -np.inf]), np.int32([0])], [np.float64(np.inf)])
expect("EuclideanNorm", [np.array([2**53 + 1, 0]), np.int32([0])], [np.int64(2**53 + 1)])
zeros = np.array([[2.0, 0, 3, 4], [0, 0, 5, 2], [0, 4, 0, 0], [0, 0, 0, 0]])
slope("Prod", zeros, np.int32(1))
slope("Prod", zeros * (1 + 2j), np.int32([1, -2]), keep_dims=True)
slope("Prod", zeros[:2] * (1 + 2j) - 3j * (zeros[:2] > 0), np.int32(-1))
op("All", over(np.all), reduced)
op("Any", over(np.any), reduced)

for name in ("Sum", "Mean", "Prod", "Max", "Min", "EuclideanNorm"):
    refuses(name, [np.zeros((2, 3), np.float32), np.int32([2])], "reduction_indices", "2")
    refuses(name, [np.zeros((2, 3), np.float32), np.int32([0, -2])], "axis 0 twice")
