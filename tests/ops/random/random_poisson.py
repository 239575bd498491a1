import numpy as np

import philox
import several
from declare import expect, op, refuses

WHOLE = (np.int32, np.int64)


def rates(d, name, shape):
    """Rates of both algorithms, and none; in half their samples are exact."""
    if d.dtype(name).kind == "i":
        return d(name, of=d.rng.integers(0, 40, shape))
    return d(name, of=np.where(d.rng.random(shape) < 0.1, 0, d.rng.uniform(0, d.pick(3, 12, 60), shape)))


def seeded(d):
    lead, own = several.shapes(d)
    several.seeds(d)
    return [d("shape", of=lead), rates(d, "rate", own)]


def by_seed(d):
    lead, own = several.shapes(d)
    return [d("shape", of=lead + own), several.seed(d), rates(d, "lam", own)]


def samples(seed, seed2, rate, shape, dtype):
    shape = tuple(int(n) for n in shape)
    if not np.prod(shape):
        return np.zeros(shape, dtype)
    found = philox.sampled(philox.poisson, seed, seed2, 0, rate.astype(np.float64).reshape(-1), int(np.prod(shape)) // rate.size)
    return found.reshape(shape).astype(dtype)


op("RandomPoissonV2", lambda shape, rate, *, seed, seed2, dtype: samples(seed % 2**64, seed2 % 2**64, rate, (*shape, *rate.shape), dtype), seeded)
op("StatelessRandomPoisson", lambda shape, seed, lam, *, dtype: samples(*philox.key_of(seed), lam, shape, dtype), by_seed)

# TensorFlow's results.
for kind in (np.float16, np.float32, np.float64):
    for dtype in (kind, *WHOLE):
        expect("StatelessRandomPoisson", [np.int32([2, 4]), np.int64([3, 9]), np.array([0.3, 5, 10, 300], kind)],
               [np.array([[0, 3, 10, 291], [0, 10, 10, 334]], dtype)], dtype=dtype)
expect("RandomPoissonV2", [np.int32([2]), np.float32([0.3, 25])], [np.array([[0, 18], [0, 22]], np.int64)], seed=5, seed2=6)

# Rates at and outside of the ends, and counts that the type does not hold.
seed = np.int32([3, 9])
odd = np.array([np.inf, np.nan, -1])
expect("StatelessRandomPoisson", [np.int32([2, 3]), seed, odd], [np.array([[np.inf, np.nan, np.nan]] * 2)], dtype=np.float64)
expect("StatelessRandomPoisson", [np.int32([2, 2]), seed, np.array([np.inf, 1e30])], [np.full((2, 2), 2**31 - 1, np.int32)], dtype=np.int32)
expect("StatelessRandomPoisson", [np.int32([2]), seed, np.array([1e30, 1e300])], [np.full(2, 2**63 - 1)], dtype=np.int64)
for bad in (-1, np.nan):
    refuses("StatelessRandomPoisson", [np.int32([2]), seed, np.float32(bad)], "negative or NaN", dtype=np.int32)
    refuses("RandomPoissonV2", [np.int32([2]), np.float32(bad)], "negative or NaN")

two = np.float32([1, 2])
refuses("RandomPoissonV2", [np.int32([-2]), two], "-2")
refuses("RandomPoissonV2", [np.int32(2), two], "shape")
refuses("StatelessRandomPoisson", [np.int32([-2]), seed, np.float32(1)], "-2", dtype=np.int64)
refuses("StatelessRandomPoisson", [np.int32(2), seed, two], "shape", dtype=np.int64)
refuses("StatelessRandomPoisson", [np.int32([2, 3]), seed, two], "'shape' is [2, 3]", "shape [2] of 'lam'", dtype=np.int64)
refuses("StatelessRandomPoisson", [np.int32([2]), np.int64([1, 2, 3]), two], "seed", "[3]", dtype=np.int64)
