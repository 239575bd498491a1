import numpy as np

from declare import op, refuses


def moved(d):
    x = d("input", d.shape(least=1))
    count = d.integer(0, min(x.ndim, 3))
    low, high = np.iinfo(d.dtype("shift")).min, np.iinfo(d.dtype("shift")).max
    shifts = [d.integer(-2, 2) if d.smooth else d.pick(d.integer(-9, 9), low, high) for _ in range(count)]
    axes = [d.axis(x.ndim) for _ in range(count)]
    if count == 1 and d.integer(0, 1):
        return [x, d("shift", of=shifts[0]), d("axis", of=axes[0])]
    return [x, d("shift", of=shifts), d("axis", of=axes)]


def roll(x, shift, axis):
    for by, k in zip(np.atleast_1d(shift), np.atleast_1d(axis)):
        x = np.roll(x, int(by) % max(x.shape[k], 1), k)
    return x


op("Roll", roll, moved)

m = np.zeros((2, 3), np.float32)
for axis in (2, -3, 2**31 - 1, -2**31):
    refuses("Roll", [m, np.int32(1), np.int32(axis)], "axis", axis)
refuses("Roll", [np.float32(1), np.int32(1), np.int32(0)], "input")
refuses("Roll", [m, np.int32([1, 2]), np.int32([0])], "shift", "axis", "2", "1")
refuses("Roll", [m, np.int32(1), np.int32([0])], "shift", "axis")
refuses("Roll", [m, np.int32([[1]]), np.int32([[0]])], "shift", "[1, 1]")
