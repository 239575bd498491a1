import numpy as np

import philox
import tw
from declare import expect, op, refuses
from domains import whole
from ulps import near

SEEDS = dict(key=whole(0, 2**62), counter=whole(0, 2**62), alg=whole(1, 1))


def drawn(d):
    shape = (7, 301) if d.large else d.shape(most=3)
    counter = [2**64 - d.integer(1, 3) if d.integer(0, 2) == 0 else d.integer(0, 2**62), d.integer(0, 2**62)] + [7] * d.integer(0, 2)
    return [d("shape", of=shape), d("key", (1,)), d("counter", of=np.array(counter, np.uint64)), d("alg", of=d.pick(1, 3))]


def bits(key, counter, n):
    return philox.philox(int(key[0]), int(counter[1]), int(counter[0]), (n + 1) // 2 + 1).reshape(-1)


def plain(distribution):
    def oracle(shape, key, counter, alg, *, dtype):
        n = int(np.prod(shape))
        per_element = 2 if dtype == np.float64 else 1
        return distribution(bits(key, counter, n)[:(n * per_element + 3) // 4 * 4], dtype)[:n].reshape(shape)
    return oracle


def truncated(shape, key, counter, alg, *, dtype):
    found = philox.truncated(int(key[0]), int(counter[1]), int(np.prod(shape)), dtype, first=int(counter[0])).reshape(shape)
    return near(found, np.full(found.shape, 4))


def normal(shape, key, counter, alg, *, dtype):
    n = int(np.prod(shape))
    used = bits(key, counter, n)[:(n * (2 if dtype == np.float64 else 1) + 3) // 4 * 4]
    return near(*(v[:n].reshape(shape) for v in philox.normal_of(used, dtype)))


op("StatelessRandomUniformV2", plain(philox.uniform), drawn, domain=SEEDS)
op("StatelessRandomNormalV2", normal, drawn, domain=SEEDS, ulps=16, zero_signs=False)
op("StatelessTruncatedNormalV2", truncated, drawn, domain=SEEDS, ulps=16, zero_signs=False)

# TensorFlow's results, as numbers; those of bfloat16 as bits.
KEY, COUNTER = np.array([0x123456789abcdef0], np.uint64), np.array([2**64 - 1, 77], np.uint64)
GOLDEN = {
    "StatelessRandomUniformV2": {
        np.float32: "0x1.b9ff04p-1 0x1.af9428p-1 0x1.8e15a8p-2 0x1.faf39cp-1 0x1.92bacp-1 0x1.3f1e64p-1",
        np.float64: "0x1.cff8321d7ca14p-1 0x1.c2b532febce70p-4 0x1.2bac0c93f1e64p-2 0x1.1e4201da435p-8 0x1.39e23cd0fa6cp-3 "
                    "0x1.e10d6eab83264p-1",
        np.float16: "0x1.e08p-1 0x1.0ap-2 0x1.5a8p-1 0x1.cep-3 0x1.58p-1 0x1.cc8p-1",
        tw.bfloat16: "3f02 3da0 3ed4 3f4e 3ec0 3e48"},
    "StatelessRandomNormalV2": {
        np.float32: "-0x1.cf4874p-2 0x1.321a7cp-2 -0x1.5c9ae2p-4 0x1.5f3b14p+0 -0x1.f0432ep-2 -0x1.fb1d46p-2",
        np.float64: "0x1.21cbeaaaa8b42p-2 0x1.5e2465cfb2ff6p-2 0x1.60685d2a100eap-5 0x1.912ba5e3258ddp+0 -0x1.6f9edc70de7a4p-1 "
                    "0x1.cc7db0f0b2f76p+0",
        np.float16: "-0x1.cf4p-2 0x1.32p-2 -0x1.5c8p-4 0x1.5f4p+0 -0x1.f04p-2 -0x1.fbp-2",
        tw.bfloat16: "bee8 3e99 bdae 3fb0 bef8 befe"},
    "StatelessTruncatedNormalV2": {
        np.float32: "-0x1.cf4874p-2 0x1.321a7cp-2 -0x1.5c9ae2p-4 0x1.5f3b14p+0 -0x1.841fe4p-2 -0x1.03b54ap-2",
        np.float64: "0x1.21cbeaaaa8b42p-2 0x1.5e2465cfb2ff6p-2 0x1.fdc39a29a29dap-2 -0x1.fbec81550bb77p-2 -0x1.be71e6d832b8ep+0 "
                    "-0x1.242c9faf08d6cp-2",
        np.float16: "-0x1.cf4p-2 0x1.32p-2 -0x1.5c8p-4 0x1.5f4p+0 -0x1.84p-2 -0x1.03cp-2",
        tw.bfloat16: "bee8 3e99 bdae 3fb0 bec2 be82"}}
NEAR = {np.float32: 3e-7, np.float64: 1e-15, np.float16: 1e-3, tw.bfloat16: 8e-3}

for name, goldens in GOLDEN.items():
    for dtype, text in goldens.items():
        if dtype == tw.bfloat16:
            wanted = tw.from_bfloat16(np.array([int(v, 16) for v in text.split()], np.uint16))
        else:
            wanted = np.array([float.fromhex(v) for v in text.split()], dtype)
        exact = 1e-30 if name == "StatelessRandomUniformV2" else NEAR[dtype]
        expect(name, [np.int32([6]), KEY, COUNTER, np.int32(1)], [wanted], exact, dtype=dtype)

for name in GOLDEN:
    good = [np.int32([2]), np.uint64([1]), np.uint64([1, 2]), np.int32(1)]
    refuses(name, [np.int32([-2]), *good[1:]], "-2")
    refuses(name, [np.int32(2), *good[1:]], "shape")
    refuses(name, [good[0], np.uint64([1, 2]), *good[2:]], "key", "[2]")
    refuses(name, [good[0], np.uint64(1), *good[2:]], "key")
    refuses(name, [*good[:2], np.uint64([1]), good[3]], "counter", "[1]")
    refuses(name, [*good[:2], np.uint64([[1, 2]]), good[3]], "counter")
    refuses(name, [*good[:3], np.int32(2)], "alg", "2")
    refuses(name, [*good[:3], np.int32(7)], "alg", "7")
    refuses(name, [*good[:3], np.int32([1])], "alg")


# ---- Whole numbers ----


def whole_numbers(d):
    inputs = drawn(d)
    if "minval" not in d.inputs:
        return inputs
    kind = d("minval", of=0).dtype
    low, high = (0, 2**31) if kind.kind == "u" else (-2**31, 2**31 - 1)
    ends = sorted({d.pick(low, high, d.integer(low, high)), d.integer(low, high - 1)} | {high})[:2]
    return [*inputs, d("minval", of=ends[0]), d("maxval", of=ends[1])]


def words(key, counter, shape, dtype):
    """Returns random words as wide as the type."""
    n, used = int(np.prod(shape)), bits(key, counter, int(np.prod(shape)))
    return (used.view(np.uint64) if np.dtype(dtype).itemsize == 8 else used)[:n].reshape(shape)


def between_ends(shape, key, counter, alg, low, high, *, dtype):
    drawn_words = words(key, counter, shape, dtype)
    span = drawn_words.dtype.type((int(high) - int(low)) % 2**(8 * np.dtype(dtype).itemsize))
    return (drawn_words % span + np.array(low).astype(drawn_words.dtype)).astype(dtype)


op("StatelessRandomUniformIntV2", between_ends, whole_numbers, domain=SEEDS)
op("StatelessRandomUniformFullIntV2", lambda shape, key, counter, alg, *, dtype: words(key, counter, shape, dtype).astype(dtype), drawn, domain=SEEDS)
ends = [np.int32([2]), np.uint64([1]), np.uint64([1, 2]), np.int32(1)]
refuses("StatelessRandomUniformIntV2", [*ends, np.int32(3), np.int32(3)], "'minval' is 3", "minval must be below maxval")
refuses("StatelessRandomUniformIntV2", [*ends, np.int32([3]), np.int32(4)], "minval")
refuses("StatelessRandomUniformIntV2", [*ends, np.int32(3), np.int32([4])], "maxval")
for name, more in (("StatelessRandomUniformIntV2", [np.int32(3), np.int32(9)]), ("StatelessRandomUniformFullIntV2", [])):
    refuses(name, [np.int32([-2]), *ends[1:], *more], "-2")
    refuses(name, [*ends[:1], np.uint64([1, 2]), *ends[2:], *more], "key")
    refuses(name, [*ends[:2], np.uint64([1]), *ends[3:], *more], "counter")
    refuses(name, [*ends[:3], np.int32(2), *more], "Threefry")
