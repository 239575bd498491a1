"""Tests of random ops: they have TensorFlow's streams bit for bit, computed here from the definition of Philox 4x32-10 (Salmon and others,
2011), and the properties of the distributions."""
import pathlib
import tempfile

import numpy as np

import cases
import samplers
import thalweg
import tw
from philox import drawn, gamma as philox_gamma, philox, poisson as philox_poisson, sampled, shuffled, uniform

# The known answers of the algorithm's authors: key and counter all 0, and all ones.
cases.equal("Philox of zeros", philox(0, 0, 0, 1)[0], [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8])
cases.equal("Philox of ones", philox(2**64 - 1, 2**64 - 1, 2**64 - 1, 1)[0], [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd])


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

# ---- From step to step: 256 blocks are reserved per element ----

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

# ---- Shuffles and draws ----


class Steps:
    """One op on given inputs in a session: each call is a step."""

    def __init__(self, op, *inputs, **attrs):
        graph = tw.Graph()
        self.value, self.session = graph.op(op, *[graph.constant(x) for x in inputs], name="op", **attrs), graph.session()

    def __call__(self):
        return self.session.run([self.value])[0]


for seed, seed2 in SEEDS:
    key, high = seed % 2**64, seed2 % 2**64
    for rows in (2, 3, 4, 5, 11, 300):
        for value in (np.arange(rows, dtype=np.int32), np.arange(rows * 6, dtype=np.uint8).reshape(rows, 2, 3), np.arange(rows) % 2 == 0,
                      np.array([b"%d" % i for i in range(rows)], object), np.zeros((rows, 0), np.float32)):
            steps, taken = Steps("RandomShuffle", value, seed=seed, seed2=seed2), 0
            for step in range(3):
                order, taken = shuffled(key, high, rows, taken) if value.size else (range(rows), 0)
                cases.equal(f"RandomShuffle of {value.dtype}{value.shape}, step {step}", steps(), value[list(order)])
    for batch, classes, samples in ((1, 3, 7), (3, 5, 4), (2, 1, 3), (70, 9, 33), (2, 3, 0), (0, 3, 2)):
        logits = np.random.default_rng(classes).normal(0, 2, (batch, classes))
        logits[:, 1:][logits[:, 1:] > 3] = np.inf
        for dtype in (np.float32, np.float64, np.float16, np.int32, np.uint8):
            with np.errstate(all="ignore"):
                x = logits.astype(dtype) if np.dtype(dtype).kind == "f" else np.where(np.isfinite(logits), abs(logits), 1).astype(dtype)
            steps, taken = Steps("Multinomial", x, np.int32(samples), seed=seed, seed2=seed2), 0
            for step in range(3):
                wanted, taken = drawn(key, high, x, samples, taken)
                cases.equal(f"Multinomial of {x.dtype}{x.shape}, step {step}", steps(), wanted)

for value in (np.int32(7), np.float32([3]), np.zeros((1, 2), bool), np.zeros(0, np.int8), np.array(b"one", object)):
    cases.equal(f"RandomShuffle of {value}", Steps("RandomShuffle", value, seed=1)(), value)

# TensorFlow's results, three steps each.
LOGITS = np.array([[0, 1, 2, -1], [3, 0, 0, -np.inf], [0, 0, 0, 0]], np.float32)
for op, inputs, attrs, golden in (
        ("RandomShuffle", [np.arange(11, dtype=np.int32)], dict(seed=5, seed2=6),
         [[2, 8, 3, 10, 0, 1, 5, 7, 6, 9, 4], [2, 3, 4, 1, 9, 7, 6, 5, 0, 8, 10], [1, 2, 6, 3, 9, 8, 4, 10, 0, 5, 7]]),
        ("RandomShuffle", [np.arange(0, 14, 2, dtype=np.int32)], dict(seed=7),
         [[6, 10, 12, 2, 8, 4, 0], [2, 0, 4, 12, 6, 8, 10], [12, 2, 8, 4, 10, 0, 6]]),
        ("Multinomial", [LOGITS, np.int32(5)], dict(seed=5, seed2=6),
         [[[2, 2, 2, 2, 2], [0, 0, 2, 0, 0], [1, 0, 0, 3, 3]], [[2, 2, 2, 0, 3], [0, 0, 0, 0, 0], [3, 3, 0, 3, 3]],
          [[1, 1, 1, 2, 0], [0, 0, 0, 0, 0], [2, 3, 0, 2, 0]]]),
        ("Multinomial", [LOGITS, np.int32(4)], dict(seed=0, seed2=9, output_dtype=np.int32),
         [[[2, 2, 2, 2], [0, 0, 0, 0], [3, 3, 3, 1]], [[2, 2, 2, 2], [0, 2, 0, 0], [0, 2, 0, 1]],
          [[1, 1, 1, 0], [0, 0, 0, 0], [3, 0, 2, 0]]])):
    steps = Steps(op, *inputs, **attrs)
    for step, wanted in enumerate(golden):
        cases.equal(f"{op} {attrs} as TensorFlow's, step {step}", steps(), wanted)

for op, inputs in (("RandomShuffle", [np.arange(40)]), ("Multinomial", [np.zeros((2, 1000), np.float32), np.int32(40)])):
    cases.holds(f"{op}: no seeds", not np.array_equal(Steps(op, *inputs)(), Steps(op, *inputs)()))

# ---- Gamma and Poisson distributions: from step to step, moments, and the gradient for alpha ----

for op, inputs, attrs, one in (("RandomGamma", [np.int32([2]), np.float64([0.7, 30])], {}, lambda b, x: philox_gamma(b, np.longdouble(x))[0]),
                               ("RandomPoissonV2", [np.int32([2]), np.float64([0.7, 30])], dict(dtype=np.float64), philox_poisson)):
    steps = Steps(op, *inputs, seed=5, seed2=6, **attrs)
    for step in range(3):
        cases.equal(f"{op}, step {step}", steps(), sampled(one, 5, 6, step * 4 * 256, inputs[1], 2).astype(np.float64), 1e-12)
    cases.holds(f"{op}: no seeds", not np.array_equal(*(Steps(op, np.int32([40]), inputs[1], **attrs)() for _ in range(2))))

COUNT = 20000
for op, attrs, variance, fourth in (("StatelessRandomGammaV2", {}, lambda x: x, lambda x: 3 * x * x + 6 * x),
                                    ("StatelessRandomPoisson", dict(dtype=np.float64), lambda x: x, lambda x: 3 * x * x + x)):
    at = np.array([0.2, 1, 3.5, 12, 200])
    drawn_samples = Steps(op, np.int32([COUNT, len(at)]), np.int64([5, 6]), at, **attrs)()
    error = abs(drawn_samples.mean(0) - at) / np.sqrt(variance(at) / COUNT)
    cases.holds(f"{op}: means", (error < 5).all(), error)
    error = abs(((drawn_samples - at) ** 2).mean(0) - variance(at)) / np.sqrt((fourth(at) - variance(at) ** 2) / COUNT)
    cases.holds(f"{op}: variances", (error < 5).all(), error)

for dtype in (np.float16, np.float32, np.float64):
    graph = tw.Graph()
    alpha = graph.placeholder(np.dtype(dtype), None)
    values = np.array([[0.4, 1, 7]], dtype)
    wide = np.float64 if dtype == np.float64 else np.float32
    for op, inputs in (("RandomGamma", [graph.constant(np.int32([4, 2])), alpha]),
                       ("StatelessRandomGammaV2", [graph.constant(np.int32([4, 2, 1, 3])), graph.constant(np.int64([1, 2])), alpha]),
                       ("StatelessRandomGammaV3", [graph.constant(np.int32([4, 2, 1, 3])), graph.constant(np.uint64([1])),
                                                   graph.constant(np.uint64([1, 2])), graph.constant(np.int32(1)), alpha])):
        sample = graph.op(op, *inputs, **(dict(seed=3, seed2=4) if op == "RandomGamma" else {}))
        slope = thalweg.gradients([sample], [alpha])[0]
        got, at = graph.session().run([slope, sample], {alpha: values})
        each = tw.run("RandomGammaGrad", [values.astype(wide), at.astype(wide)])[0].astype(dtype)
        cases.equal(f"the gradient of {op} in {np.dtype(dtype)}", got, each.astype(np.float64).sum((0, 1)), 2e-2 if dtype == np.float16 else 1e-5)

# ---- Candidate samplers ----


class Candidates:
    """A sampler in a session: each call is a step with these true classes."""

    def __init__(self, op, **attrs):
        graph = tw.Graph()
        self.classes = graph.placeholder(np.int64, (-1, attrs["num_true"]))
        self.outputs, self.session = graph.add(op, self.classes, name="op", **attrs).outputs, graph.session()

    def __call__(self, classes):
        return self.session.run(self.outputs, {self.classes: classes})


KINDS = {"UniformCandidateSampler": samplers.Uniform, "LogUniformCandidateSampler": samplers.LogUniform,
         "LearnedUnigramCandidateSampler": samplers.Learned, "ThreadUnsafeUnigramCandidateSampler": samplers.Learned}
rng = np.random.default_rng(3)
for op, make in KINDS.items():
    for unique, range_max, seed, seed2 in ((False, 6, 5, 6), (True, 6, -1, 2), (True, 100, 7, 0), (False, 100, 0, 9)):
        attrs = dict(num_true=2, num_sampled=5, unique=unique, range_max=range_max, seed=seed, seed2=seed2)
        steps, source = Candidates(op, **attrs), make(range_max)
        for step in range(4):
            classes = rng.integers(0, range_max, (3, 2))
            wanted = samplers.sampled(source, classes, 5, unique, seed, seed2, step)
            for k, (got, want) in enumerate(zip(steps(classes), wanted)):
                cases.equal(f"{op} {attrs}, step {step}, output {k}", got, want)

# TensorFlow's results, three steps each: classes, and the expected counts of 3 and 1.
GOLDEN = [
    ("UniformCandidateSampler", dict(num_sampled=6, unique=False, range_max=1000, seed=5, seed2=6),
     [([155, 869, 149, 189, 189, 403], [0.0060000001, 0.0060000001]),
      ([555, 457, 338, 852, 424, 747], [0.0060000001, 0.0060000001]),
      ([681, 620, 717, 796, 606, 943], [0.0060000001, 0.0060000001])]),
    ("UniformCandidateSampler", dict(num_sampled=6, unique=True, range_max=7, seed=7, seed2=0),
     [([2, 5, 3, 0, 1, 6], [0.75026536, 0.75026536]),
      ([3, 1, 6, 0, 4, 2], [0.81652147, 0.81652147]),
      ([5, 4, 6, 2, 1, 3], [0.66008335, 0.66008335])]),
    ("LogUniformCandidateSampler", dict(num_sampled=6, unique=False, range_max=1000, seed=5, seed2=6),
     [([109, 25, 265, 283, 179, 1], [0.19379199, 0.35213158]),
      ([7, 7, 170, 79, 111, 886], [0.19379199, 0.35213158]),
      ([68, 19, 921, 68, 41, 1], [0.19379199, 0.35213158])]),
    ("LogUniformCandidateSampler", dict(num_sampled=6, unique=True, range_max=50, seed=0, seed2=9),
     [([12, 3, 34, 31, 29, 0], [0.33567977, 0.5332039]),
      ([19, 21, 4, 0, 3, 2], [0.33567977, 0.5332039]),
      ([25, 6, 3, 31, 17, 48], [0.34051901, 0.6187433])]),
    ("LearnedUnigramCandidateSampler", dict(num_sampled=6, unique=False, range_max=9, seed=5, seed2=6),
     [([0, 4, 1, 2, 4, 0], [0.66666669, 0.66666669]),
      ([4, 1, 3, 8, 1, 5], [1.0909091, 1.0909091]),
      ([2, 1, 3, 0, 1, 6], [1.3846154, 1.3846154])]),
    ("LearnedUnigramCandidateSampler", dict(num_sampled=6, unique=True, range_max=9, seed=11, seed2=0),
     [([1, 4, 7, 6, 2, 5], [0.56153762, 0.56153762]),
      ([3, 6, 8, 4, 2, 7], [0.86556935, 0.86556935]),
      ([7, 0, 6, 3, 2, 4], [0.87741053, 0.87741053])]),
    ("FixedUnigramCandidateSampler", dict(num_sampled=6, unique=False, range_max=5, seed=5, seed2=6, unigrams=[1.0, 5.0, 2.0, 0.5, 3.0]),
     [([2, 4, 3, 2, 0, 1], [0.26086956, 2.6086955]),
      ([3, 2, 1, 1, 4, 4], [0.26086956, 2.6086955]),
      ([1, 1, 1, 4, 1, 1], [0.26086956, 2.6086955])]),
    ("FixedUnigramCandidateSampler", dict(num_sampled=4, unique=True, range_max=7, seed=5, seed2=7, distortion=0.75, num_reserved_ids=2,
                                          unigrams=[1.0, 5.0, 2.0, 0.5, 3.0]),
     [([2, 6, 4, 3], [1.502854, 0.0]),
      ([2, 4, 3, 6], [0.90517569, 0.0]),
      ([4, 3, 6, 5], [0.97692871, 0.0])]),
    ("FixedUnigramCandidateSampler", dict(num_sampled=4, unique=False, range_max=4, seed=5, seed2=7, num_reserved_ids=2, num_shards=2,
                                          shard=1, unigrams=[1.0, 5.0, 2.0, 0.5, 3.0, 7.0]),
     [([3, 3, 3, 2], [2.0, 0.66666669]),
      ([1, 3, 2, 2], [2.0, 0.66666669]),
      ([2, 3, 3, 1], [2.0, 0.66666669])])]
for op, attrs, golden in GOLDEN:
    steps = Candidates(op, num_true=1, **attrs)
    for step, (drawn_classes, true_count) in enumerate(golden):
        got = steps(np.int64([[3], [1]]))
        cases.equal(f"{op} {attrs} as TensorFlow's, step {step}", got[0], drawn_classes)
        cases.equal(f"{op} {attrs} as TensorFlow's, expected counts of step {step}", got[1].ravel(), np.float32(true_count), 1e-6)

# The learned weights, and expected counts that agree with the draws.
steps = Candidates("LearnedUnigramCandidateSampler", num_true=1, num_sampled=20000, unique=False, range_max=4, seed=8)
for _ in range(50):
    steps(np.int64([[2], [2], [0]]))
drawn_classes, _, counts = steps(np.int64([[1]]))
found = np.bincount(drawn_classes, minlength=4)
wanted = 20000 * np.array([51, 1, 101, 1]) / 154
cases.holds("LearnedUnigramCandidateSampler: what was seen is drawn", (abs(found - wanted) < 5 * np.sqrt(wanted) + 1).all(), found)
cases.holds("LearnedUnigramCandidateSampler: counts", np.allclose(counts, wanted[drawn_classes], rtol=1e-5), counts)
steps = Candidates("LogUniformCandidateSampler", num_true=1, num_sampled=30, unique=True, range_max=200, seed=3)
total = np.zeros(200)
for _ in range(2000):
    total[steps(np.int64([[0]]))[0]] += 1
reached = total[[0, 1, 5, 20]] / 2000
wanted = np.mean([steps(np.int64([[0], [1], [5], [20]]))[1].ravel() for _ in range(300)], 0)
cases.holds("LogUniformCandidateSampler: how often different classes come", (abs(reached - wanted) < 0.05).all(), f"{reached}, {wanted}")
for op in ("UniformCandidateSampler", "LearnedUnigramCandidateSampler"):
    make = lambda: Candidates(op, num_true=1, num_sampled=20, unique=False, range_max=10000)(np.int64([[0]]))[0]
    cases.holds(f"{op}: no seeds", not np.array_equal(make(), make()))

with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "vocabulary"
    path.write_bytes(b"the,7\nof,with commas, 1.5\n2\n and, 4e-1 ")
    listed = dict(num_sampled=40, unique=False, seed=4, range_max=5, num_reserved_ids=1)
    from_file, from_list = (Candidates("FixedUnigramCandidateSampler", num_true=1, **listed, **where)
                            for where in (dict(vocab_file=str(path)), dict(unigrams=[7.0, 1.5, 2.0, 0.4])))
    for step in range(2):
        for k, (got, want) in enumerate(zip(from_file(np.int64([[4], [0]])), from_list(np.int64([[4], [0]])))):
            cases.equal(f"FixedUnigramCandidateSampler of a file, step {step}, output {k}", got, want)
    with tw.thalweg.Graph() as whole:
        tw.thalweg.ops.fixed_unigram_candidate_sampler(np.int64([[4], [0]]), name="op", num_true=1, vocab_file=str(path), **listed)
    imported = tw.thalweg.Graph.from_bytes(whole.to_bytes())
    ask = lambda **how: tw.thalweg.Session(imported, **how).run(imported.operation("op").outputs[0])
    cases.refuses("a vocabulary of an imported graph", ask, "FixedUnigramCandidateSampler 'op'", "touches files")
    cases.refuses("a vocabulary elsewhere", lambda: ask(allow_files="/usr"), "FixedUnigramCandidateSampler 'op'", "/usr")
    cases.equal("a vocabulary that an imported graph may read", ask(allow_files=folder), Candidates(
        "FixedUnigramCandidateSampler", num_true=1, vocab_file=str(path), **listed)(np.int64([[4], [0]]))[0])
    for text, parts in ((b"the,7\nof\n", ("line 2", "'of'")), (b"a,\n", ("line 1",)), (b"\n", ("line 1",)), (b"a,1,x", ("'a,1,x'",)),
                        (b"", ("range_max",))):
        path.write_bytes(text)
        read = lambda: Candidates("FixedUnigramCandidateSampler", num_true=1, vocab_file=str(path), **listed)(np.int64([[0]]))
        cases.refuses(f"a vocabulary {text}", read, "FixedUnigramCandidateSampler 'op'", *parts)

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

# ---- Errors ----

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
