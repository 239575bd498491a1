import numpy as np

from declare import op, refuses


def permuted(d):
    x = d("x")
    perm = d.rng.permutation(x.ndim)
    return [x, d("perm", of=[p - x.ndim if d.integer(0, 2) == 0 else p for p in perm])]


op("Transpose", lambda x, perm: x.transpose(perm), permuted)
refuses("Transpose", [np.zeros((2, 3), np.float32), np.int32([0, 0])], "[0, 0]")


def permutation(d):
    return [d("x", of=d.rng.permutation(d.integer(0, 9)))]


op("InvertPermutation", lambda x: np.argsort(x).astype(x.dtype), permutation)
refuses("InvertPermutation", [np.int32([0, 0])], "0")
