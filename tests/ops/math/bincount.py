import numpy as np

from declare import expect, op, refuses, slope
from domains import normal, whole
from ulps import near


def counted(d):
    arr = d("arr")
    weighted = d.smooth or d.integer(0, 1)
    return [arr, d("size", of=d.integer(0, 9)), d("weights", arr.shape if weighted else (0,))]


def bincount(arr, size, weights):
    bins = np.zeros((2, size), weights.dtype)
    kept = arr.ravel() < size
    given = weights.ravel()[kept] if weights.size else np.ones(kept.sum(), weights.dtype)
    for row, values in zip(bins, (given, abs(given))):
        np.add.at(row, arr.ravel()[kept], values)
    return near(*bins) if weights.dtype.kind == "f" else bins[0]


op("Bincount", bincount, counted, domain=dict(arr=whole(0, 12), weights=normal.calm), ulps=2, zero_signs=False)
expect("Bincount", [np.int32([[1, 2], [1, 7]]), np.int32(3), np.float32([[1, 2], [3, 4]])], [np.float32([0, 4, 2])])
refuses("Bincount", [np.int32([1, -1]), np.int32(3), np.zeros(0)], "arr[1] = -1")
refuses("Bincount", [np.int32([1]), np.int32(-3), np.zeros(0)], "-3")
refuses("Bincount", [np.int32([1, 2]), np.int32(3), np.zeros(3)], "[3]", "[2]")
refuses("Bincount", [np.int32([1, 2]), np.int32([3]), np.zeros(0)], "size")
slope("Bincount", np.int32([1, 9, 1]), np.int32(3), np.array([1.0, 2, 3]), wrt=[2])
