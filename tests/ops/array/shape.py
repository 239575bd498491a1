import numpy as np

from declare import op


def several(d):
    return [[d("input") for _ in range(d.integer(1, 4))]]


op("Shape", lambda x, *, out_type: np.array(x.shape, out_type))
op("ShapeN", lambda xs, *, out_type: [np.array(x.shape, out_type) for x in xs], several)
op("Size", lambda x, *, out_type: np.asarray(x.size, out_type))
op("Rank", lambda x: np.int32(x.ndim))
