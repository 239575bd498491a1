import numpy as np

import samplers
from declare import expect, op, refuses
from ulps import near


def seeded(d, most):
    """Draws true classes and the attributes that all samplers have, for classes below `most`."""
    unique = bool(d.attrs["unique"])
    d.set(seed=d.pick(1, -1, 2**63 - 1, d.integer(1, 2**62)), seed2=d.pick(0, 7, d.integer(0, 2**62)), num_true=d.integer(1, 4),
          num_sampled=d.integer(1, min(most, 12) if unique else 12))
    return [d("true_classes", of=d.rng.integers(0, most, (d.integer(0, 4), d.attrs["num_true"])))]


def ranged(d):
    d.set(range_max=d.pick(1, 2, 7, 8, 100, 5000))
    return seeded(d, d.attrs["range_max"])


def wide(d):
    d.set(range_max=d.pick(1, 3, 64, 5000, 2**31, 2**40, 2**62))
    return seeded(d, d.attrs["range_max"])


def weighted(d):
    classes, shards = d.integer(1, 30), d.pick(1, 1, 2, 3)
    shard, reserved = d.integer(0, shards - 1), d.pick(0, 0, 1, 4)
    weights = [float(np.float32(w)) for w in d.rng.uniform(0.5, 4, max(classes, 3 * shards))]
    if d.integer(0, 2) == 0:
        weights[0] = 0.0
    d.set(unigrams=weights, num_shards=shards, shard=shard, num_reserved_ids=reserved, distortion=d.pick(1.0, 0.75, 2.0))
    own = source(weights, **{a: d.attrs[a] for a in ("distortion", "num_reserved_ids", "num_shards", "shard")}).weights
    d.set(range_max=len(own))
    inputs = seeded(d, len(own))
    if d.attrs["unique"]:
        d.set(num_sampled=d.integer(1, int((own > 0).sum())))
    return inputs


def source(unigrams, **how):
    return samplers.Fixed(unigrams, **how)


def close(outputs):
    drawn, true_count, sampled_count = outputs
    return [drawn, near(true_count, true_count), near(sampled_count, sampled_count)]


def oracle(make):
    def wanted(true_classes, *, num_sampled, unique, range_max, seed, seed2):
        return close(samplers.sampled(make(range_max), true_classes, num_sampled, unique, seed, seed2))
    return wanted


def fixed(true_classes, *, num_sampled, unique, unigrams, distortion, num_reserved_ids, num_shards, shard, seed, seed2):
    weights = source(unigrams, distortion=distortion, num_reserved_ids=num_reserved_ids, num_shards=num_shards, shard=shard)
    return close(samplers.sampled(weights, true_classes, num_sampled, unique, seed, seed2))


def everything(d):
    d.set(seed=d.integer(0, 9), num_true=d.integer(1, 4), num_sampled=d.integer(1, 12))
    return [d("true_classes", of=d.rng.integers(0, d.attrs["num_sampled"], (d.integer(0, 4), d.attrs["num_true"])))]


def every_class(true_classes, *, num_sampled):
    return [np.arange(num_sampled), np.ones(true_classes.shape), np.ones(num_sampled)]


def candidates(d):
    d.set(num_true=d.integer(1, 4))
    return [d("true_classes", of=d.rng.integers(0, 9, (d.integer(0, 5), d.attrs["num_true"]))),
            d("sampled_candidates", of=d.rng.integers(0, 9, d.integer(0, 12)))]


def hits(true_classes, sampled):
    last = {int(k): place for place, k in enumerate(sampled)}
    found = [(row, last[int(k)]) for row, classes in enumerate(true_classes) for k in classes if int(k) in last]
    rows, places = ([f[j] for f in found] for j in range(2))
    return [np.array(rows, np.int32), np.array(places, np.int64), np.full(len(found), -np.finfo(np.float32).max)]


ATTRS = dict(num_true=1, num_sampled=3, unique=False)
# Logarithms and powers of floats may differ in the last bits, which changes one draw in millions.
op("UniformCandidateSampler", oracle(samplers.Uniform), wide, ulps=4, given=ATTRS | dict(range_max=9))
op("LogUniformCandidateSampler", oracle(samplers.LogUniform), ranged, ulps=4, given=ATTRS | dict(range_max=9))
op("LearnedUnigramCandidateSampler ThreadUnsafeUnigramCandidateSampler", oracle(samplers.Learned), ranged, ulps=4,
   given=ATTRS | dict(range_max=9))
op("FixedUnigramCandidateSampler", fixed, weighted, ulps=8, given=ATTRS | dict(range_max=2, unigrams=[1.0, 2.0]))
op("AllCandidateSampler", every_class, everything, given=ATTRS)
op("ComputeAccidentalHits", hits, candidates, given=dict(num_true=1))

classes = np.int64([[1], [2]])
RANGED = ("UniformCandidateSampler", "LogUniformCandidateSampler", "LearnedUnigramCandidateSampler", "ThreadUnsafeUnigramCandidateSampler")
WEIGHTS = dict(range_max=4, unigrams=[1.0, 1.0, 1.0, 1.0])
for name, more in [(name, dict(range_max=4)) for name in RANGED] + [("FixedUnigramCandidateSampler", WEIGHTS), ("AllCandidateSampler", {})]:
    good = ATTRS | more
    refuses(name, [np.int64([1, 2])], "true_classes", **good)
    refuses(name, [classes], "num_true", "2", **good | dict(num_true=2))
    refuses(name, [np.int64([[1], [4]])], "true_classes[1, 0]", "4", **good)
    refuses(name, [np.int64([[-1]])], "-1", **good)
    for attr in ("num_true", "num_sampled"):
        refuses(name, [classes], attr, **good | {attr: 0})
    if more:
        refuses(name, [classes], "num_sampled", "5", "4", **good | dict(unique=True, num_sampled=5))
for name in RANGED[2:]:
    refuses(name, [classes], "range_max", 2**31 - 1, **ATTRS | dict(range_max=2**31 - 1))
fixed_name, good = "FixedUnigramCandidateSampler", ATTRS | WEIGHTS
refuses(fixed_name, [classes], "vocab_file", "unigrams", **ATTRS | dict(range_max=4))
refuses(fixed_name, [classes], "vocab_file", "unigrams", **good | dict(vocab_file="classes"))
refuses(fixed_name, [classes], "range_max", "4", "3", **good | dict(unigrams=[1.0, 2.0, 3.0]))
refuses(fixed_name, [classes], "range_max", "4", "6", **good | dict(num_reserved_ids=6))
refuses(fixed_name, [classes], "num_reserved_ids", "-1", **good | dict(num_reserved_ids=-1))
refuses(fixed_name, [classes], "shard", "2", **good | dict(num_shards=2, shard=2))
refuses(fixed_name, [classes], "weight", "-1", **good | dict(unigrams=[1.0, -1.0, 1.0, 1.0]))
refuses(fixed_name, [classes], "distortion", "add up", **good | dict(unigrams=[0.0] * 4))
refuses(fixed_name, [classes], "distortion", "add up", **good | dict(unigrams=[float("inf")] * 4))
refuses(fixed_name, [classes], "num_sampled", "3", "2", **good | dict(unigrams=[1.0, 0.0, 0.0, 1.0], unique=True))
refuses(fixed_name, [classes], "nowhere", **ATTRS | dict(range_max=4, vocab_file="/nowhere/at/all"))
refuses("ComputeAccidentalHits", [classes, np.int64([[1]])], "sampled_candidates", num_true=1)
refuses("ComputeAccidentalHits", [classes, np.int64([1])], "num_true", "3", num_true=3)
refuses("ComputeAccidentalHits", [np.int64([1]), np.int64([1])], "true_classes", num_true=1)
expect("ComputeAccidentalHits", [np.int64([[4, 4]]), np.int64([4, 1, 4])], [np.int32([0, 0]), np.int64([2, 2])], num_true=2)
