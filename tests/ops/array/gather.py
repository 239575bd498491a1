import numpy as np

from declare import op, refuses


def rows(d):
    shape = d.shape(least=1, most=5)
    axis = d.integer(0, len(shape) - 1)
    batch = d.integer(0, min(axis, 2))
    ids = shape[:batch] + (d.pick((), (1,), (5,), (2, 3), (0, 2)) if shape[axis] else (0,))
    d.set(batch_dims=batch - len(ids) if batch < len(ids) and not d.smooth and d.integer(0, 1) else batch)
    return [d("params", shape), d("indices", of=d.rng.integers(0, np.clip(shape[axis], 1, 30000), ids)),
            d("axis", of=d.pick(axis, axis - len(shape)))]


def gather(x, ids, axis, *, batch_dims):
    batch, axis = batch_dims % max(1, ids.ndim) if batch_dims < 0 else batch_dims, axis % x.ndim
    shape = x.shape[:axis] + ids.shape[batch:] + x.shape[axis + 1:]
    if not np.prod(shape):
        return np.zeros(shape, x.dtype)
    parts = [np.take(x[k], ids[k], axis - batch) for k in np.ndindex(x.shape[:batch])]
    return np.stack(parts).reshape(shape) if batch else parts[0]


op("GatherV2", gather, rows)
m = np.zeros((2, 3), np.float32)
for at in (2, -1):
    refuses("GatherV2", [m, np.int32([0, at]), np.int32(0)], at, "2")
refuses("GatherV2", [m, np.int32([0]), np.int32(2)], "axis", "2")
refuses("GatherV2", [m, np.int32([0]), np.int32(0)], "batch_dims", "2", batch_dims=2)
