import numpy as np

from declare import op, refuses


def turned(d):
    x = d("tensor")
    axes = d.rng.permutation(x.ndim)[:d.integer(0, x.ndim)]
    return [x, d("axis", of=[a - x.ndim if d.integer(0, 1) else a for a in axes])]


op("ReverseV2", lambda x, axes: np.flip(x, tuple(axes)), turned)

m = np.zeros((2, 3), np.float32)
for axis in (2, -3, 2**31 - 1, -2**31):
    refuses("ReverseV2", [m, np.int32([axis])], "axis", axis)
refuses("ReverseV2", [m, np.int64([-2**63])], "axis", -2**63)
refuses("ReverseV2", [m, np.int32([0, -2])], "0", "twice")
refuses("ReverseV2", [m, np.int32(0)], "axis")
