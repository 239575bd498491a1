import numpy as np

from declare import op, refuses


def whole(d):
    shape = d.shape(least=1)
    axis, n = d.axis(len(shape)), d.integer(1, 4)
    at = axis % len(shape)
    d.set(num_split=n)
    return [d("split_dim", of=axis), d("value", shape[:at] + (shape[at] * n,) + shape[at + 1:])]


op("Split", lambda axis, x, *, num_split: np.split(x, num_split, axis), whole)
m = np.zeros((2, 3), np.float32)
refuses("Split", [np.int32(2), m], "split_dim", "2", num_split=1)
refuses("Split", [np.int32(1), m], "[2, 3]", "2", num_split=2)
