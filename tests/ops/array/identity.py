import numpy as np

from declare import op, refuses


def several(d):
    return [[d("input") for _ in range(d.integer(1, 3))]]


def partly_known(d):
    x, = d.inputs
    x = d(x)
    d.set(shape=d.pick(None, x.shape, tuple(d.pick(-1, size) for size in x.shape)))
    return [x]


op("Identity", lambda x: x)
op("StopGradient", lambda x: x, no_gradient="what it is for: nothing flows")
op("IdentityN", lambda xs: xs, several, no_gradient="gradient_test.py: it has a list of types")
op("EnsureShape PlaceholderWithDefault", lambda x: x, partly_known, given=dict(shape=None))
refuses("EnsureShape", [np.zeros((2, 3), np.float32)], "[2, 3]", "[2, 4]", shape=(2, 4))
