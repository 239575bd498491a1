import numpy as np

from declare import op, refuses


def hot(d):
    shape = d.shape(most=2 if d.large else 5)
    depth = d.integer(0, 4)
    d.set(axis=d.integer(-1, len(shape)))
    return [d("indices", of=d.rng.integers(-1 if d.dtype("TI").kind == "i" else 0, 5, shape)), d("depth", of=depth), d("on_value", ()),
            d("off_value", ())]


def one_hot(ids, depth, on, off, *, axis):
    axis = ids.ndim if axis == -1 else axis
    return np.where(np.expand_dims(ids, axis) == np.arange(depth).reshape((-1,) + (1,) * (ids.ndim - axis)), on, off)


op("OneHot", one_hot, hot)
refuses("OneHot", [np.int32([0]), np.int32(-1), np.float32(1), np.float32(0)], "depth", "-1")
refuses("OneHot", [np.int32([0]), np.int32(3), np.float32(1), np.float32(0)], "axis", "2", axis=2)
