import numpy as np

from declare import accepts, op, refuses, slope
from domains import normal
from missing import COMPLEX, QUANTISED, SMALL
from ulps import near


def sent(d):
    x = d("tensor", d.shape(most=4))
    depth = d.integer(min(1, x.ndim), x.ndim)
    lead = (150,) if d.large else tuple(int(s) for s in d.rng.integers(0, 4, d.integer(0, 2))) if all(x.shape[:depth]) else (0,)
    indices = np.stack([d.rng.integers(0, n, lead) for n in x.shape[:depth]], -1) if depth else np.zeros((*lead, 0), int)
    return [x, d("indices", of=indices), d("updates", (*lead, *x.shape[depth:]))]


def scatter(combine):
    def oracle(x, indices, updates):
        y = np.array(x)
        for k in np.ndindex(indices.shape[:-1]):
            at = tuple(indices[k])
            y[at] = combine(y[at], updates[k])
        return y
    return oracle


def sums(sign):
    def oracle(x, indices, updates):
        value = scatter(lambda a, b: a + sign(b))(x, indices, updates)
        return near(value, scatter(np.add)(abs(x), indices, abs(updates))) if x.dtype.kind in "fc" else value
    return oracle


lacks = {"quantised and small numbers are moved, not computed with": " ".join(QUANTISED + SMALL), "there is nothing to add": "bool string"}
no_order = {"complex numbers have no order": " ".join(COMPLEX)}
op("TensorScatterUpdate", scatter(lambda a, b: b), sent)
op("TensorScatterAdd", sums(lambda b: b), sent, domain=normal.calm, ulps=16, zero_signs=False, no_kernel=lacks)
op("TensorScatterSub", sums(np.negative), sent, domain=normal.calm, ulps=16, zero_signs=False, no_kernel=lacks)
op("TensorScatterMax", scatter(np.maximum), sent, zero_signs=False, no_kernel=lacks | no_order)
op("TensorScatterMin", scatter(np.minimum), sent, zero_signs=False, no_kernel=lacks | no_order)

m = np.zeros((2, 3), np.float32)
i32 = lambda *values: np.array(values, np.int32)  # noqa: E731
for name in ("TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub", "TensorScatterMax", "TensorScatterMin"):
    for at in (2, -1, 2**31 - 1, -2**31):
        refuses(name, [m, i32([0], [at]), m], "indices", at, "2")
    for at in (2**32, -2**63, 2**63 - 1):
        refuses(name, [m, np.array([[at]]), m[:1]], "indices", at)
    refuses(name, [m, i32([0, 0, 0]), m[0, :1]], "[1, 3]", "[2, 3]")
    refuses(name, [m, i32([0]), m], "updates", "[2, 3]", "[1, 3]")
    refuses(name, [m, np.int32(0), m[0]], "indices")
    for policy in ("SHRUG", "IGNORE"):
        refuses(name, [m, i32([0]), m[:1]], "bad_indices_policy", policy, bad_indices_policy=policy)
    for policy in ("DEFAULT", "ERROR"):
        accepts(name, [m, i32([0]), m[:1]], m, bad_indices_policy=policy)
        refuses(name, [m, i32([2]), m[:1]], "indices", 2, bad_indices_policy=policy)
    slope(name, np.random.default_rng(3).normal(size=(4, 2)), i32([1], [3], [1]), np.random.default_rng(4).normal(size=(3, 2)))
nan = np.nan
accepts("TensorScatterMax", [np.float32([nan, 1, 0]), i32([0], [1]), np.float32([5, nan])], np.float32([nan, nan, 0]))
accepts("TensorScatterUpdate", [np.float32([1, 2]), np.uint16([[1], [1]]), np.float32([3, 4])], np.float32([1, 4]))
