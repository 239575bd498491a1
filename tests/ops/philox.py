"""Random bits, and TensorFlow's random numbers from them, in plain NumPy: Philox 4x32-10 (Salmon and others, 2011) and distributions."""
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
