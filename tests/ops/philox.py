"""Random bits, and TensorFlow's random numbers from them, in plain NumPy: Philox 4x32-10 (Salmon and others, 2011) and distributions."""
import math

import numpy as np

import tw

MASK = 0xffffffff
LOW, HALF = np.uint64(MASK), np.uint64(32)


def philox(seed, seed2, first, count):
    """Returns blocks [first, first + count) of the stream as uint32 [count, 4]. The key is seed, the counter (block number, seed2)."""
    blocks = np.uint64(first % 2**64) + np.arange(count, dtype=np.uint64)
    high = np.uint64((seed2 + (first >> 64)) % 2**64) + (blocks < np.uint64(first % 2**64)).astype(np.uint64)
    c = [blocks & LOW, blocks >> HALF, high & LOW, high >> HALF]
    key = [seed & MASK, seed >> 32]
    for _ in range(10):
        x, y = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [y >> HALF ^ c[1] ^ np.uint64(key[0]), y & LOW, x >> HALF ^ c[3] ^ np.uint64(key[1]), x & LOW]
        key = [key[0] + 0x9E3779B9 & MASK, key[1] + 0xBB67AE85 & MASK]
    return np.stack(c, 1).astype(np.uint32)


def uniform(bits, dtype):
    """Returns uniform numbers: random bits as mantissa, with the exponent of [1, 2), less 1."""
    if dtype == np.float64:
        pairs = bits.reshape(-1, 2).astype(np.uint64)
        return ((pairs[:, 0] & np.uint64(0xfffff)) << HALF | pairs[:, 1] | np.uint64(1023 << 52)).view(np.float64) - 1
    if dtype == np.float16:
        return (bits & 0x3ff | 15 << 10).astype(np.uint16).view(np.float16) - np.float16(1)
    if dtype == tw.bfloat16:
        return tw.from_bfloat16((bits & 0x7f | 127 << 7).astype(np.uint16).view(tw.bfloat16)) - np.float32(1)
    return (bits & 0x7fffff | 127 << 23).astype(np.uint32).view(np.float32) - np.float32(1)


def normal(bits, dtype):
    return normal_of(bits, dtype)[0]


def normal_of(bits, dtype):
    """Returns normal numbers by Box and Muller, from pairs (u, v) of uniform numbers to sqrt(-2 log u) (sin 2 pi v, cos 2 pi v), in float
    for shorter types; and the radii, to which errors are relative."""
    wide = np.float64 if dtype == np.float64 else np.float32
    pairs = uniform(bits, wide).astype(np.longdouble).reshape(-1, 2)
    radius, angle = np.sqrt(-2 * np.log(np.maximum(pairs[:, 0], wide(1e-7)))), 2 * np.longdouble("3.14159265358979323846264338327950288") * pairs[:, 1]
    return np.stack([radius * np.sin(angle), radius * np.cos(angle)], 1).reshape(-1), np.repeat(radius, 2)


def truncated(seed, seed2, n, dtype, first=0):
    """Returns truncated normal numbers in groups of as many elements as a block has uniform numbers. Each group draws from 64 blocks per
    element until it is full."""
    group = 2 if dtype == np.float64 else 4
    out = []
    for g in range((n + group - 1) // group):
        drawn = normal(philox(seed, seed2, first + g * group * 64, 32).reshape(-1), dtype)
        out.extend(drawn[np.abs(drawn) < 2][:group])
    return np.array(out[:n])


def shuffled(seed, seed2, n, taken):
    """Returns the order of shuffled rows, from one number for each position but the last, from block `taken` on; and the next block."""
    bits, order = philox(seed, seed2, taken, (n + 2) // 4 + 1).reshape(-1), list(range(n))
    for i in range(n - 1):
        j = i + int(bits[i]) % (n - i)
        order[i], order[j] = order[j], order[i]
    return order, taken + (n + 2) // 4


def drawn(seed, seed2, logits, samples, taken):
    """Returns classes by running sums of weights, from numbers of 53 bits, row by row; and the next block."""
    batch = len(logits)
    places = uniform(philox(seed, seed2, taken, batch * samples // 2 + 1).reshape(-1), np.float64)
    classes = np.zeros((batch, samples), np.int64)
    for row, x in enumerate(logits.astype(np.float64)):
        weights = np.cumsum(np.where(np.isfinite(x), np.exp(x - x[np.isfinite(x)].max()), 0))
        classes[row] = np.searchsorted(weights, places[row * samples:(row + 1) * samples] * weights[-1], "right")
    return classes, taken + batch * ((samples + 3) // 4 * 4) * 2 * 256


# ---- Samples that take a varying number of random numbers ----


class Blocks:
    """Blocks of a stream one by one, from a given one on."""

    def __init__(self, seed, seed2, first):
        self._where, self._left = (seed, seed2, first), []

    def __call__(self):
        if not self._left:
            seed, seed2, first = self._where
            self._left, self._where = list(philox(seed, seed2, first, 16)), (seed, seed2, first + 16)
        return self._left.pop(0)


class LastFirst:
    """The numbers that make(block) returns, each group from its end."""

    def __init__(self, blocks, make):
        self._blocks, self._make, self._left = blocks, make, []

    def __call__(self):
        if not self._left:
            self._left = list(self._make(self._blocks()))
        return self._left.pop()


def sampled(one, seed, seed2, first, parameters, samples):
    """Returns samples [samples, parameters] of one(blocks, parameter); the streams are 256 blocks apart, by parameters."""
    return np.array([[one(Blocks(seed, seed2, first + 256 * (p * samples + s)), x) for p, x in enumerate(parameters)] for s in range(samples)])


def gamma(blocks, alpha):
    """Returns a sample of a gamma distribution (Marsaglia and Tsang, 2000), and the size to which its error is relative."""
    draw, bell = LastFirst(blocks, lambda b: uniform(b, np.float64)), LastFirst(blocks, lambda b: normal(b, np.float64))
    if not alpha >= 0:
        return np.nan, np.nan
    if alpha == 1:
        found = -np.log1p(-np.longdouble(draw()))
        return found, found
    below = alpha < 1
    d = alpha + (2 if below else -1) / np.longdouble(3)
    while True:
        x = bell()
        root = 1 + x / (3 * np.sqrt(d))
        if root <= 0:
            continue
        v, u = root**3, np.longdouble(draw())
        if u < 1 - 0.0331 * x**4 or np.log(u) < x * x / 2 + d * (1 - v + np.log(v)):
            found = d * v * (np.longdouble(draw()) ** (1 / alpha) if below else 1)
            return found, found * (1 + abs(x / (3 * np.sqrt(d))) / root)


def poisson(blocks, rate):
    """Returns a sample of a Poisson distribution, by products of uniform numbers (Knuth), or by transformed rejection (Hormann, 1993)."""
    draw = LastFirst(blocks, lambda b: uniform(b, np.float64))
    if not 0 <= rate < np.inf:
        return rate if rate > 0 else np.nan
    if rate < 10:
        count, product = 0, draw()
        while product > np.exp(-rate):
            count, product = count + 1, product * draw()
        return count
    b = 0.931 + 2.53 * np.sqrt(rate)
    a = -0.059 + 0.02483 * b
    while True:
        u = draw() - 0.5
        v, end = draw(), 0.5 - abs(u)
        k = np.floor((2 * a / end + b) * u + rate + 0.43)
        if end >= 0.07 and v <= 0.9277 - 3.6224 / (b - 2):
            return k
        if k < 0 or end < 0.013 and v > end:
            continue
        s = np.log(v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (end * end) + b))
        if s <= -rate + k * np.log(rate) - math.lgamma(k + 1):
            return k


def key_of(seed):
    """Returns the key and the upper half of the counter that a seed of two numbers stands for."""
    a, b, c, d = (int(word) for word in philox(0x02461e293ec8f720, int(seed[1]) % 2**64, int(seed[0]) % 2**64, 1)[0])
    return b << 32 | a, d << 32 | c
