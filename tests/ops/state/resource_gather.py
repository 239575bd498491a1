import numpy as np

import tw
from declare import op, refuses


def rows(d):
    shape = d.shape(least=1, most=5)
    batch = d.integer(0, min(len(shape) - 1, 2))
    ids = shape[:batch] + (d.pick((), (1,), (5,), (2, 3), (0, 2)) if shape[batch] else (0,))
    d.set(batch_dims=batch)
    return [d("resource", shape), d("indices", of=d.rng.integers(0, np.clip(shape[batch], 1, 30000), ids))]


def gather(x, ids, *, batch_dims):
    shape = ids.shape + x.shape[batch_dims + 1:]
    if not np.prod(shape):
        return np.zeros(shape, x.dtype)
    return np.stack([x[k][ids[k]] for k in np.ndindex(x.shape[:batch_dims])]).reshape(shape)


op("ResourceGather", gather, rows, types=dict(Tindices="int32 int64"), no_gradient="gradient_test.py: of what a handle leads to")
m = tw.Variable(np.zeros((3, 2), np.float32))
for at in (3, -1, 2**31 - 1):
    refuses("ResourceGather", [m, np.int32([0, at])], at, dtype=np.float32)
refuses("ResourceGather", [m, np.int64([-2**63])], -2**63, dtype=np.float32)
refuses("ResourceGather", [m, np.int64([0])], "-1", batch_dims=-1, dtype=np.float32)
refuses("ResourceGather", [m, np.int64([0])], "2", batch_dims=2, dtype=np.float32)
refuses("ResourceGather", [tw.Variable(np.float32(1)), np.int64(0)], "[]", dtype=np.float32)
