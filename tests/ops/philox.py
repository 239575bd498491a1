"""Random bits and the numbers that TensorFlow makes of them, written out: Philox 4x32-10 (Salmon and others, 2011) and distributions."""
import numpy as np

import tw

MASK = 0xffffffff
LOW, HALF = np.uint64(MASK), np.uint64(32)


def philox(seed, seed2, first, count):
    """Blocks [first, first + count) of the stream as uint32 [count, 4]. The key is seed, the counter (block number, seed2)."""
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
    """Mantissas of random bits under the exponent of [1, 2), less 1."""
    if dtype == np.float64:
        pairs = bits.reshape(-1, 2).astype(np.uint64)
        return ((pairs[:, 0] & np.uint64(0xfffff)) << HALF | pairs[:, 1] | np.uint64(1023 << 52)).view(np.float64) - 1
    if dtype == np.float16:
        return (bits & 0x3ff | 15 << 10).astype(np.uint16).view(np.float16) - np.float16(1)
    if dtype == tw.bfloat16:
        return tw.from_bfloat16((bits & 0x7f | 127 << 7).astype(np.uint16).view(tw.bfloat16)) - np.float32(1)
    return (bits & 0x7fffff | 127 << 23).astype(np.uint32).view(np.float32) - np.float32(1)


def normal(bits, dtype):
    """Box and Muller: pairs (u, v) of uniform numbers to sqrt(-2 log u) (sin 2 pi v, cos 2 pi v), in float for what is shorter."""
    pairs = uniform(bits, np.float64 if dtype == np.float64 else np.float32).astype(np.float64).reshape(-1, 2)
    radius, angle = np.sqrt(-2 * np.log(np.maximum(pairs[:, 0], 1e-7))), 2 * np.pi * pairs[:, 1]
    return np.stack([radius * np.sin(angle), radius * np.cos(angle)], 1).reshape(-1)


def truncated(seed, seed2, n, dtype, first=0):
    """Groups as large as a block makes plain uniform numbers; each draws from 64 blocks an element of its own, until it is full."""
    group = 2 if dtype == np.float64 else 4
    out = []
    for g in range((n + group - 1) // group):
        drawn = normal(philox(seed, seed2, first + g * group * 64, 32).reshape(-1), dtype)
        out.extend(drawn[np.abs(drawn) < 2][:group])
    return np.array(out[:n])
