import numpy as np

from declare import op, refuses


def other_shape(d):
    x = d("tensor", d.shape(most=6))
    shape = [x.shape[k] for k in d.rng.permutation(x.ndim)] + [1] * d.integer(0, 1)
    if shape and d.integer(0, 1) and all(size for k, size in enumerate(shape) if k):
        shape[0] = -1
    return [x, d("shape", of=np.array(shape, int))]


def new_axis(d):
    x = d("input")
    return [x, d("dim", of=d.integer(-x.ndim - 1, x.ndim))]


def with_ones(d):
    shape = d.shape(most=5)
    for _ in range(d.integer(0, 2)):
        at = d.integer(0, len(shape))
        shape = shape[:at] + (1,) + shape[at:]
    ones = [k for k, size in enumerate(shape) if size == 1]
    chosen = d.rng.permutation(ones)[:d.integer(0, len(ones))] if ones else []
    d.set(squeeze_dims=[int(d.pick(k, k - len(shape))) for k in chosen])
    return [d("input", shape)]


op("Reshape", lambda x, shape: x.reshape(shape), other_shape)
op("ExpandDims", lambda x, axis: np.expand_dims(x, axis), new_axis)
op("Squeeze", lambda x, *, squeeze_dims: x.squeeze(tuple(squeeze_dims) or None), with_ones)
m = np.zeros((2, 3), np.float32)
refuses("Reshape", [m, np.int32([4, -1])], "[4, -1]", "6")
refuses("ExpandDims", [m, np.int32(3)], "dim", "3")
refuses("Squeeze", [m], "[2, 3]", squeeze_dims=[0])
