import numpy as np

import sparse
from arrays import i64
from declare import expect, op, refuses, slope


def rows(d):
    return sparse.tensor(d, "sp_indices sp_values sp_shape", sparse.sizes(d, least=2))


def softmax(indices, values, shape):
    y = np.zeros(len(values), values.dtype)
    for row in {tuple(place[:-1]) for place in indices.tolist()}:
        mine = (indices[:, :-1] == row).all(1)
        x = values[mine].astype(np.longdouble)
        e = np.exp(x - x.max())
        y[mine] = e / e.sum()
    return y


# A difference of d from the largest value is rounded by d * 2^-53 at most, and e^-d by as many parts of itself; d is below 745.
op("SparseSoftmax", softmax, rows, ulps=768, denormals=False)
at, x, sizes = i64([0, 0], [0, 2], [2, 1]), np.array([1.0, 3, 7]), i64(3, 3)
high = 1 / (1 + np.exp(-2.0))
expect("SparseSoftmax", [at, x, sizes], [np.array([1 - high, high, 1])], 1e-14)
expect("SparseSoftmax", [at, np.float32([88, 89, -200]) * 1e3, sizes], [np.float32([0, 1, 1])])
expect("SparseSoftmax", [at, np.array([np.nan, 1, 2]), sizes], [np.array([np.nan, np.nan, 1])])
expect("SparseSoftmax", [at, np.array([-np.inf, 1, -np.inf]), sizes], [np.array([0, 1, np.nan])])
expect("SparseSoftmax", [i64([0, 2], [0, 0], [2, 1]), x, sizes], [np.array([1 - high, high, 1])], 1e-14)  # the order in a row is free
expect("SparseSoftmax", [i64([2**62, 5, 1], [2**62, 5, 0]), x[:2], i64(2**63 - 1, 9, 2)], [np.array([1 - high, high])], 1e-14)
expect("SparseSoftmax", [at[:0], x[:0], sizes], [x[:0]])
slope("SparseSoftmax", at, x, sizes)
slope("SparseSoftmax", i64([0, 0, 1], [0, 0, 2], [0, 0, 2], [1, 0, 0]), np.array([1.0, 2, 0.5, -1]), i64(2, 1, 3))
refuses("SparseSoftmax", [at[::-1], x, sizes], "sp_indices[1] = [0, 2]", "sp_indices[0] = [2, 1]", "SparseReorder")
refuses("SparseSoftmax", [i64([0], [2]), x[:2], i64(3)], "1", "matrix")
refuses("SparseSoftmax", [at, x, i64(2, 3)], "sp_indices[2] = [2, 1]", "[2, 3]")
refuses("SparseSoftmax", [-at, x, sizes], "sp_indices[1] = [0, -2]")
refuses("SparseSoftmax", [at, x[:2], sizes], "sp_values", "3", "2")
refuses("SparseSoftmax", [at, x, i64(3, 3, 3)], "sp_shape", "2", "3")
refuses("SparseSoftmax", [at, x, i64(3, -3)], "sp_shape", "-3")
refuses("SparseSoftmax", [at[0], x, sizes], "sp_indices", "[2]")
