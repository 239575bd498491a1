import numpy as np

import tw
from declare import op, refuses
from domains import normal, whole

INDICES = dict(Tindices="int32 int64")


def blocks(d):
    """Draws a position for each update; some positions repeat."""
    shape = (300, 77) if d.large else d.shape(least=1, most=5)
    depth = 1 if d.large else d.integer(1, len(shape))
    outer = (500,) if d.large else d.pick((), (1,), (5,), (2, 3), (0, 2)) if np.prod(shape[:depth]) else (0,)
    at = np.stack([d.rng.integers(0, max(1, size), outer) for size in shape[:depth]], -1)
    return [d("ref", shape), d("indices", of=at), d("updates", outer + shape[depth:])]


def scattered(f):
    def oracle(held, at, updates):
        held = np.array(held)
        for k in np.ndindex(at.shape[:-1]):
            held[tuple(at[k])] = f(held[tuple(at[k])], updates[k])
        return [held]
    return oracle


sums = dict(domain=whole(-9, 9), zero_signs=False, types=INDICES)
op("ResourceScatterNdUpdate", scattered(lambda _, new: new), blocks, types=INDICES)
op("ResourceScatterNdAdd", scattered(np.add), blocks, **sums)
op("ResourceScatterNdSub", scattered(np.subtract), blocks, **sums)
op("ResourceScatterNdMax", scattered(np.maximum), blocks, domain=normal, zero_signs=False, types=INDICES)
op("ResourceScatterNdMin", scattered(np.minimum), blocks, domain=normal, zero_signs=False, types=INDICES)
m, two = tw.Variable(np.zeros((3, 2), np.float32)), np.ones((2, 2), np.float32)
for name in ("Update", "Add", "Sub", "Max", "Min"):
    for at in (3, -1):
        refuses("ResourceScatterNd" + name, [m, np.int32([[0], [at]]), two], at)
    refuses("ResourceScatterNd" + name, [m, np.int32([[0, 0, 0]]), np.ones(1, np.float32)], "[1, 3]", "[3, 2]")
    refuses("ResourceScatterNd" + name, [m, np.int32([[0]]), two], "[2, 2]")
