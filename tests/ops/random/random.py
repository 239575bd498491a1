import numpy as np

import philox
from declare import op
from ulps import near

SEEDS = [(87654321, 42), (1, 0), (0, 1), (2**63 - 1, 2**31 + 5), (-1, -2)]


def seeded(d):
    """Sets the seeds: the key and the upper half of the counter. If both seeds were 0, each run would have another stream."""
    seed, seed2 = d.pick(*SEEDS, (d.integer(1, 2**62), d.integer(0, 2**62)))
    d.set(seed=seed, seed2=seed2)


def shaped(d):
    seeded(d)
    return [d("shape", of=(7, 301) if d.large else d.shape(most=3))]


def limited(d):
    seeded(d)
    about = np.iinfo(d.dtype("Tout"))
    low, limit = d.pick((-5, 17), (about.min, about.max), (0, 1), (10, 2**30), (about.min, about.min + 7))
    return [d("shape", of=(7, 301) if d.large else d.shape(most=3)), d("minval", of=low), d("maxval", of=limit)]


def bits(seed, seed2, n):
    return philox.philox(seed % 2**64, seed2 % 2**64, 0, (n + 1) // 2 + 1).reshape(-1)


def blocks(seed, seed2, n, dtype):
    """Returns as many whole blocks as n elements need."""
    return bits(seed, seed2, n)[:(n * (2 if dtype == np.float64 else 1) + 3) // 4 * 4]


def uniform(shape, *, seed, seed2, dtype):
    n = int(np.prod(shape))
    return philox.uniform(blocks(seed, seed2, n, dtype), dtype)[:n].reshape(shape)


def normal(shape, *, seed, seed2, dtype):
    n = int(np.prod(shape))
    return near(*(v[:n].reshape(shape) for v in philox.normal_of(blocks(seed, seed2, n, dtype), dtype)))


def truncated(shape, *, seed, seed2, dtype):
    found = philox.truncated(seed % 2**64, seed2 % 2**64, int(np.prod(shape)), dtype).reshape(shape)
    return near(found, np.full(found.shape, 4))


def whole(shape, low, limit, *, seed, seed2):
    n = int(np.prod(shape))
    words = [int(a) for a in bits(seed, seed2, n)]
    if low.dtype == np.int64:
        words = [a | b << 32 for a, b in zip(words[::2], words[1::2])]
    return np.array([int(low) + w % (int(limit) - int(low)) for w in words[:n]], low.dtype).reshape(shape)


op("RandomUniform", uniform, shaped)
op("RandomStandardNormal", normal, shaped, ulps=16, zero_signs=False)
op("TruncatedNormal", truncated, shaped, ulps=16, zero_signs=False)
op("RandomUniformInt", whole, limited)
