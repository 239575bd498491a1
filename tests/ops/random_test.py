"""Random ops: TensorFlow's streams bit for bit, computed here from the definition of Philox 4x32-10 (Salmon and others, 2011), and what
distributions promise."""
import numpy as np

import cases
import tw

MASK = 0xffffffff
LOW, HALF = np.uint64(MASK), np.uint64(32)


def philox(seed, seed2, first, count):
    """Blocks [first, first + count) of the stream as uint32 [count, 4]. The key is seed, the counter (block number, seed2)."""
    blocks = np.uint64(first) + np.arange(count, dtype=np.uint64)
    c = [blocks & LOW, blocks >> HALF, np.full(count, seed2 & MASK, np.uint64), np.full(count, seed2 >> 32, np.uint64)]
    key = [seed & MASK, seed >> 32]
    for _ in range(10):
        x, y = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [y >> HALF ^ c[1] ^ np.uint64(key[0]), y & LOW, x >> HALF ^ c[3] ^ np.uint64(key[1]), x & LOW]
        key = [key[0] + 0x9E3779B9 & MASK, key[1] + 0xBB67AE85 & MASK]
    return np.stack(c, 1).astype(np.uint32)


# The known answers that come with the algorithm: key and counter all 0, and all ones.
cases.equal("Philox of zeros", philox(0, 0, 0, 1)[0], [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8])
cases.equal("Philox of ones", philox(2**64 - 1, 2**64 - 1, 2**64 - 1, 1)[0], [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd])


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


def truncated(seed, seed2, n, dtype):
    """Groups as large as a block makes plain uniform numbers; each draws from 64 blocks an element of its own, until it is full."""
    group = 2 if dtype == np.float64 else 4
    out = []
    for g in range((n + group - 1) // group):
        drawn = normal(philox(seed, seed2, g * group * 64, 32).reshape(-1), dtype)
        out.extend(drawn[np.abs(drawn) < 2][:group])
    return np.array(out[:n])


class Stream:
    """One random op in a session: each call is a step."""

    def __init__(self, op, shape, *limits, index=np.int32, **attrs):
        self.graph = tw.Graph()
        inputs = [self.graph.constant(np.array(shape, index))] + [self.graph.constant(x) for x in limits]
        self.value, self.session = self.graph.op(op, *inputs, name="op", **attrs), self.graph.session()

    def __call__(self):
        got = self.session.run([self.value])[0]
        return tw.from_bfloat16(got) if got.dtype == tw.bfloat16 else got


FLOATS = [np.float32, np.float64, np.float16, tw.bfloat16]
SEEDS = [(87654321, 42), (1, 0), (0, 1), (2**63 - 1, 2**31 + 5), (-1, -2)]
SIZES = [(), (1,), (5,), (2, 3), (0, 4), (7, 301)]  # not whole groups, and across what threads share

# ---- The streams ----

for seed, seed2 in SEEDS:
    key, high = seed % 2**64, seed2 % 2**64
    for shape in SIZES:
        n = int(np.prod(shape))
        bits = philox(key, high, 0, (n + 1) // 2 + 1)
        for dtype in FLOATS:
            where = f"{np.dtype(dtype).name}{shape} of seeds {seed}, {seed2}"
            per_block = 2 if dtype == np.float64 else 4
            used = bits[:(n + per_block - 1) // per_block].reshape(-1)
            attrs = dict(dtype=dtype, seed=seed, seed2=seed2)
            cases.equal(f"RandomUniform {where}", Stream("RandomUniform", shape, **attrs)(), uniform(used, dtype)[:n].reshape(shape), 1e-30)
            # logf, sincosf and rounding to the shorter types are the library's.
            near = {np.float64: 1e-12, np.float32: 3e-6, np.float16: 2e-3}.get(dtype, 2e-2)
            cases.equal(f"RandomStandardNormal {where}", Stream("RandomStandardNormal", shape, **attrs)(),
                        normal(used, dtype)[:n].reshape(shape), near)
            cases.equal(f"TruncatedNormal {where}", Stream("TruncatedNormal", shape, **attrs)(),
                        truncated(key, high, n, dtype).reshape(shape), near)
        for dtype, low, limit in ((np.int32, -5, 17), (np.int32, -2**31, 2**31 - 1), (np.int64, 10, 2**40), (np.int64, -2**63, 2**63 - 1)):
            if dtype == np.int64:
                pairs = bits[:(n + 1) // 2].reshape(-1, 2)
                drawn = [int(a) | int(b) << 32 for a, b in pairs]
            else:
                drawn = [int(a) for a in bits[:(n + 3) // 4].reshape(-1)]
            wanted = np.array([low + d % (limit - low) for d in drawn[:n]], dtype).reshape(shape)
            got = Stream("RandomUniformInt", shape, dtype(low), dtype(limit), seed=seed, seed2=seed2)()
            cases.equal(f"RandomUniformInt {dtype.__name__} [{low}, {limit}) {shape} of seeds {seed}, {seed2}", got, wanted)

# ---- From step to step: 256 blocks an element are set aside ----

stream = Stream("RandomUniform", (3,), dtype=np.float32, seed=5, seed2=6, index=np.int64)
for step in range(3):
    cases.equal(f"RandomUniform, step {step}", stream(), uniform(philox(5, 6, step * 3 * 256, 1).reshape(-1), np.float32)[:3], 1e-30)

# ---- Seeds and sessions ----

for op, limits, attrs in (("RandomUniform", (), {"dtype": np.float64}), ("RandomStandardNormal", (), {"dtype": np.float32}),
                          ("TruncatedNormal", (), {"dtype": np.float64}), ("RandomUniformInt", (np.int64(0), np.int64(2**60)), {})):
    make = lambda **seeds: Stream(op, (40,), *limits, **attrs, **seeds)
    a, b = make(seed=3, seed2=4), make(seed=3, seed2=4)
    one = [a(), a()]
    cases.equal(f"{op}: one seed, one stream, in every session", [b(), b()], one)
    cases.holds(f"{op}: steps differ", not np.array_equal(*one))
    cases.holds(f"{op}: another seed", not np.array_equal(make(seed=4, seed2=4)(), one[0]))
    cases.holds(f"{op}: another second seed", not np.array_equal(make(seed=3, seed2=5)(), one[0]))
    cases.holds(f"{op}: no seeds", not np.array_equal(make()(), make()()))
    graph = tw.Graph()
    inputs = [graph.constant(np.array([40], np.int32))] + [graph.constant(x) for x in limits]
    two = [graph.op(op, *inputs, seed=3, seed2=4, **attrs) for _ in range(2)]
    got = graph.session().run(two)
    cases.equal(f"{op}: two nodes of one seed", *got)
    loose = graph.session().run([graph.op(op, *inputs, **attrs) for _ in range(2)])
    cases.holds(f"{op}: two nodes without seeds are two", not np.array_equal(*loose))

# ---- Distributions ----

N = 100000
for dtype in FLOATS:
    attrs = dict(dtype=dtype, seed=2024, seed2=7)
    name = np.dtype(dtype).name
    steps = {np.float16: 2**-10, np.float32: 2**-23, np.float64: 2**-52}.get(dtype, 2**-7)
    x = Stream("RandomUniform", (N,), **attrs)().astype(np.float64)
    cases.holds(f"RandomUniform {name}: in [0, 1)", x.min() >= 0 and x.max() < 1)
    cases.holds(f"RandomUniform {name}: mean", abs(x.mean() - (1 - steps) / 2) < 5 * np.sqrt(1 / 12 / N), x.mean())
    cases.holds(f"RandomUniform {name}: variance", abs(x.var() - 1 / 12) < 0.002, x.var())
    counts = np.histogram(x, 8, (0, 1))[0]  # 8 divides the steps of every type
    cases.holds(f"RandomUniform {name}: even", ((counts - N / 8) ** 2 / (N / 8)).sum() < 30, counts)  # chi squared, 7 degrees: p < 1e-4
    x = Stream("RandomStandardNormal", (N,), **attrs)().astype(np.float64)
    cases.holds(f"RandomStandardNormal {name}: mean", abs(x.mean()) < 5 / np.sqrt(N), x.mean())
    cases.holds(f"RandomStandardNormal {name}: variance", abs(x.var() - 1) < 5 * np.sqrt(2 / N), x.var())
    cases.holds(f"RandomStandardNormal {name}: kurtosis", abs((x ** 4).mean() - 3) < 5 * np.sqrt(96 / N), (x ** 4).mean())
    cases.holds(f"RandomStandardNormal {name}: within 2", abs((np.abs(x) < 2).mean() - 0.9545) < 0.005)
    x = Stream("TruncatedNormal", (N,), **attrs)().astype(np.float64)
    cases.holds(f"TruncatedNormal {name}: bounds", np.abs(x).max() <= 2, np.abs(x).max())  # 2 itself only where rounding makes it
    cases.holds(f"TruncatedNormal {name}: mean", abs(x.mean()) < 5 * 0.88 / np.sqrt(N), x.mean())
    cases.holds(f"TruncatedNormal {name}: variance", abs(x.var() - 0.7737) < 0.01, x.var())
x = Stream("RandomUniformInt", (N,), np.int32(-3), np.int32(4), seed=9, seed2=9)()
counts = np.bincount(x + 3, minlength=7)
cases.holds("RandomUniformInt: even", ((counts - N / 7) ** 2 / (N / 7)).sum() < 28, counts)
cases.holds("RandomUniformInt: in [minval, maxval)", x.min() == -3 and x.max() == 3)

# ---- What is refused ----

for low, limit in ((3, 3), (4, 3), (2**31 - 1, -2**31)):
    for how in tw.WAYS:
        cases.refuses(f"RandomUniformInt [{low}, {limit})",
                      lambda: tw.run("RandomUniformInt", [np.array([2], np.int32), np.int32(low), np.int32(limit)], how=how, seed=1),
                      "RandomUniformInt 'op'", "minval", str(low), str(limit))
for op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
    for how in tw.WAYS:
        cases.refuses(f"{op} of a negative size", lambda: tw.run(op, [np.array([2, -1], np.int32)], how=how, dtype=np.float32),
                      f"{op} 'op'", "[2, -1]")
        cases.refuses(f"{op} of too large a size", lambda: tw.run(op, [np.array([2**40, 2**40])], how=how, dtype=np.float32), f"{op} 'op'")
        cases.refuses(f"{op} of a scalar shape", lambda: tw.run(op, [np.int32(3)], how=how, dtype=np.float32), f"{op} 'op'", "vector")

cases.finish()
