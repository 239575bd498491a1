"""Draws of uses of ops that sample several distributions, one for each element of a tensor."""
import numpy as np


def few(shape, most=30):
    """Returns a shape, or a smaller one, because the oracles compute samples one by one."""
    return shape if np.prod(shape) <= most else (3,)


def shapes(d):
    """Returns the shape of the samples of one distribution, and that of the distributions."""
    return ((5, 2), (3, 101)) if d.large else (few(d.shape(most=2, sizes=(0, 1, 2, 3))), few(d.shape(most=3, sizes=(0, 1, 2, 5))))


def seeds(d):
    """Sets the attributes of a stream."""
    d.set(seed=d.pick(1, -1, 2**63 - 1, d.integer(1, 2**62)), seed2=d.pick(0, 7, d.integer(0, 2**62)))


def seed(d):
    """Returns the input `seed`."""
    return d("seed", of=(d.integer(-9, 9), d.integer(0, 2**31 - 1)))


def key_counter_alg(d):
    """Returns these three inputs; some counters pass 2^64."""
    counter = [2**64 - d.integer(1, 3) if d.integer(0, 2) == 0 else d.integer(0, 2**62), d.integer(0, 2**62)] + [7] * d.integer(0, 2)
    return [d("key", (1,)), d("counter", of=np.array(counter, np.uint64)), d("alg", of=d.pick(1, 3))]
