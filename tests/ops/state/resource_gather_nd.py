import numpy as np

import tw
from declare import op, refuses


def places(d, shape):
    """Some number of places in such a variable: indices [..., depth]."""
    depth = d.integer(0, len(shape))
    outer = d.pick((), (1,), (5,), (2, 3), (0, 2)) if np.prod(shape[:depth]) else (0,)
    return np.stack([d.rng.integers(0, max(1, size), outer) for size in shape[:depth]], -1) if depth else np.zeros(outer + (0,), int)


def picked(d):
    shape = d.shape(most=5)
    return [d("resource", shape), d("indices", of=places(d, shape))]


def gather_nd(x, at):
    depth = at.shape[-1]
    return x[tuple(at[..., k] for k in range(depth))] if depth else np.broadcast_to(x, at.shape[:-1] + x.shape)


op("ResourceGatherNd", gather_nd, picked, types=dict(Tindices="int32 int64"), no_gradient="gradient_test.py: of what a handle leads to")
m = tw.Variable(np.zeros((2, 3), np.float32))
for at in (2, -1):
    refuses("ResourceGatherNd", [m, np.int32([[0, 0], [at, 0]])], at, dtype=np.float32)
refuses("ResourceGatherNd", [m, np.int32([[0, 0, 0]])], "[1, 3]", "[2, 3]", dtype=np.float32)
