import numpy as np

from declare import op, refuses


def parts(d):
    shape = d.shape()
    d.set(axis=d.integer(-len(shape) - 1, len(shape)))
    return [[d("values", shape) for _ in range(d.integer(1, 4))]]


def taken_apart(d):
    x = d("value", d.shape(least=2, most=4, sizes=(0, 1, 2, 3)) if d.large else d.shape(least=1))
    axes = [a for a in range(-x.ndim, x.ndim) if 0 < x.shape[a] < 400]
    if not axes:
        return taken_apart(d)
    axis = d.pick(*axes)
    d.set(axis=axis, num=x.shape[axis])
    return [x]


op("Pack", lambda values, *, axis: np.stack(values, axis), parts)
op("Unpack", lambda x, *, axis: list(np.moveaxis(x, axis, 0)), taken_apart)
m = np.zeros((2, 3), np.float32)
refuses("Pack", [m, np.zeros((3, 2), np.float32)], "[2, 3]", "[3, 2]", N=2)
refuses("Pack", [m, m], "axis", "3", axis=3, N=2)
refuses("Unpack", [m], "num", "3", num=3)
