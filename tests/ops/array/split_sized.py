import numpy as np

from declare import op, refuses


def sized(d):
    n, shape = d.integer(1, 4), list(d.shape(least=1))
    axis, sizes = d.axis(len(shape)), d.rng.integers(0, 4, n)
    sizes[-1] += shape[axis]
    shape[axis] = int(sizes.sum())
    large = d.types["Tlen"] == "int8" and sizes[-1] > 127
    if large or d.integer(0, 1):
        sizes[-1 if large else d.integer(0, n - 1)] = -1  # -1: the remaining size
    d.set(num_split=n)
    return [d("value", shape), d("size_splits", of=sizes), d("split_dim", of=axis)]


def split(value, sizes, axis):
    sizes = sizes.astype(np.int64)
    sizes[sizes < 0] = value.shape[axis] - sizes[sizes >= 0].sum()
    return np.split(value, np.cumsum(sizes)[:-1], axis)


op("SplitV", split, sized, given=dict(num_split=2))

m = np.zeros((2, 6), np.float32)
refuses("SplitV", [m, np.int64([2, 5]), np.int32(1)], "[2, 5]", "6", num_split=2)
refuses("SplitV", [m, np.int64([2, 3]), np.int32(1)], "[2, 3]", "6", num_split=2)
refuses("SplitV", [m, np.int64([7, -1]), np.int32(1)], "[7, -1]", "6", num_split=2)
refuses("SplitV", [m, np.int64([-1, -1]), np.int32(1)], "[-1, -1]", num_split=2)
refuses("SplitV", [m, np.int64([8, -2]), np.int32(1)], "[8, -2]", num_split=2)
refuses("SplitV", [m, np.int64([2**62, 2**62, 2**62]), np.int32(1)], num_split=3)
refuses("SplitV", [m, np.int64([2, 4]), np.int32(2)], "split_dim", "2", num_split=2)
refuses("SplitV", [m, np.int64([2, 4]), np.int32(1)], "size_splits", "2", "3", num_split=3)
refuses("SplitV", [m, np.int64([[6]]), np.int32(1)], "size_splits", num_split=1)
refuses("SplitV", [np.float32(1), np.int64([1]), np.int32(0)], "value", num_split=1)
refuses("SplitV", [m, np.int64([6]), np.int32([1])], "split_dim", num_split=1)
