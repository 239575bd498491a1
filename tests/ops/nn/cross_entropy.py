import numpy as np

from declare import op, refuses
from domains import between, everything
from special import log_softmax, softmax
from ulps import near

logits = everything(between(-20, 20)).calm


def classes(d):
    n, c = d.shape(2, 2)
    return d("features", (n, max(c, 1)))


def distributions(d):
    x = classes(d)
    weights = abs(d.rng.normal(size=x.shape)) + 0.1
    return [x, d("labels", of=weights / weights.sum(1, keepdims=True))]


def chosen(d):
    x = classes(d)
    return [x, d("labels", of=d.rng.integers(0, x.shape[1], len(x)))]


def one_for_all(d):
    """Draws inputs of which one has a single row or column, which is broadcast."""
    weights = d.rng.uniform(0.1, 0.2, d.pick((5, 1), (1, 7), (5, 7)))
    return [d("features", (5, 7) if weights.size < 35 else d.pick((5, 1), (1, 7))), d("labels", of=weights)]


def reach(x):
    return 1 + np.where(np.isfinite(x), abs(x), 0).max(1, initial=0)


def cross_entropy(x, labels):
    x, labels = np.broadcast_arrays(x, labels)
    log = near(-(labels * log_softmax(x).value).sum(1), reach(x))
    return [log, near(softmax(x) - labels, softmax(x) + labels)]


def sparse_cross_entropy(x, labels):
    one_hot = np.eye(x.shape[1], dtype=x.dtype)[labels]
    log = np.take_along_axis(log_softmax(x).value, labels[:, None], 1)[:, 0]
    return [near(-log, reach(x)), cross_entropy(x, one_hot)[1]]


op("SoftmaxCrossEntropyWithLogits", cross_entropy, distributions, domain=logits, ulps=64, half_ulps=2, zero_signs=False,
   also=(one_for_all, one_for_all))
op("SparseSoftmaxCrossEntropyWithLogits", sparse_cross_entropy, chosen, domain=logits, ulps=64, half_ulps=2, zero_signs=False)
m = np.zeros((2, 3), np.float32)
refuses("SoftmaxCrossEntropyWithLogits", [m, np.zeros((3, 3), np.float32)], "[2, 3]", "[3, 3]")
refuses("SparseSoftmaxCrossEntropyWithLogits", [m, np.int32([0, 3])], "3")
