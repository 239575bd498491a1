import numpy as np

from declare import expect, op, refuses
from domains import whole
from gather_nd import gather_nd, places
from ulps import near


def picked(d):
    shape = d.shape(most=5)
    return [d("params", shape), d("indices", of=places(d, shape))]


def scattered(d):
    shape = d.shape(least=1, most=5)
    at = places(d, shape)
    return [d("indices", of=at), d("updates", at.shape[:-1] + shape[at.shape[-1]:]), d("shape", of=shape)]


def scatter_nd(at, updates, shape):
    if updates.dtype.kind == "O":
        result = np.full(shape, b"", object)
    else:
        result = np.zeros(shape, updates.dtype)
    sizes = np.zeros(shape, updates.real.dtype) if updates.dtype.kind in "fc" else None
    for k in np.ndindex(at.shape[:-1]):
        result[tuple(at[k])] = result[tuple(at[k])] + updates[k]
        if sizes is not None:
            sizes[tuple(at[k])] += abs(updates[k])
    return result if sizes is None else near(result, sizes)


op("GatherNd", gather_nd, picked)
op("ScatterNd", scatter_nd, scattered, domain=dict(updates=whole(-9, 9)), ulps=2, zero_signs=False)
texts = np.array([b"a", b"b", b"c", b"d"], object)
expect("ScatterNd", [np.int32([[2], [0], [2], [2]]), texts, np.int32([3])], [np.array([b"b", b"", b"acd"], object)])
m = np.zeros((2, 3), np.float32)
for at in (2, -1):
    refuses("GatherNd", [m, np.int32([[0, 0], [at, 0]])], at, "2")
    refuses("ScatterNd", [np.int32([[0], [at]]), m, np.int32([2, 3])], at, "2")
refuses("GatherNd", [m, np.int32([[0, 0, 0]])], "[1, 3]", "[2, 3]")
