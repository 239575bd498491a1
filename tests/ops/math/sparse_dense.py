import numpy as np

import sparse
from arrays import i32, i64
from declare import expect, op, refuses, slope
from domains import nonzero

QUANTISED = {"quantised arithmetic needs ranges, which these ops do not carry": "qint8 qint16 qint32 quint8 quint16"}


def drawn(d):
    shape = sparse.sizes(d)
    inputs = sparse.tensor(d, "sp_indices sp_values sp_shape", shape, ordered=d.integer(0, 2) > 0, distinct=d.integer(0, 2) > 0)
    own = tuple(1 if d.integer(0, 2) == 0 else size for size in shape)
    return [*inputs, d("dense", own[d.integer(0, len(own)):])]


def divided(d):
    indices, values, shape, dense = drawn(d)
    if values.dtype.kind == "i":  # the most negative number has no quotient by -1
        values = np.where(values == np.iinfo(values.dtype).min, 7, values).astype(values.dtype)
    return [indices, values, shape, dense]


def at_places(compute):
    def oracle(indices, values, shape, dense):
        whole = np.broadcast_to(dense, tuple(shape))
        others = whole[tuple(indices.T)] if len(indices) else np.zeros(0, dense.dtype)
        return compute(values, others).astype(values.dtype)

    return oracle


def quotient(x, y):
    """Whole numbers are rounded towards 0."""
    if x.dtype.kind not in "iu":
        return x / y
    return np.array([abs(int(a)) // abs(int(b)) * (1 if (a < 0) == (b < 0) else -1) for a, b in zip(x, y)], x.dtype)


op("SparseDenseCwiseAdd", at_places(np.add), drawn, no_kernel=QUANTISED)
op("SparseDenseCwiseMul", at_places(np.multiply), drawn, ulps=4, half_ulps=1, no_kernel=QUANTISED)
op("SparseDenseCwiseDiv", at_places(quotient), divided, domain=dict(dense=nonzero), ulps=4, half_ulps=1, no_kernel=QUANTISED)
at, x, sizes = i64([0, 2], [1, 0], [1, 1]), np.array([1.0, -2, 4]), i64(2, 3)
row, whole = np.array([10.0, 20, 40]), np.arange(1.0, 7).reshape(2, 3)
expect("SparseDenseCwiseAdd", [at, x, sizes, row], [np.array([41.0, 8, 24])])
expect("SparseDenseCwiseMul", [at, x, sizes, whole], [np.array([3.0, -8, 20])])
expect("SparseDenseCwiseDiv", [at, x, sizes, np.array(2.0)], [np.array([0.5, -1, 2])])
expect("SparseDenseCwiseDiv", [at, np.int32([7, -7, 8]), sizes, np.int32([2])], [np.int32([3, -3, 4])])
expect("SparseDenseCwiseDiv", [at, np.array([1.0, 0, -1]), sizes, np.array(0.0)], [np.array([np.inf, np.nan, -np.inf])])
expect("SparseDenseCwiseAdd", [at[:0], x[:0], sizes, row], [x[:0]])
expect("SparseDenseCwiseMul", [i64([2**62, 5]), x[:1], i64(2**63 - 1, 9), np.arange(9.0)], [np.array([5.0])])
for name in ("SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv"):
    for dense in (whole, row, whole[:, :1], np.array(3.0)):
        slope(name, at, x, sizes, dense)
    slope(name, at[[0, 1, 1]], x, sizes, whole)
    refuses(name, [at, x, sizes, row[:2]], "dense", "[2]", "[2, 3]")
    refuses(name, [at, x, sizes, whole[None]], "dense", "[1, 2, 3]", "2")
    refuses(name, [at[:1], x[:1], i64(1, 3), whole], "[2, 3]", "[1, 3]")
    refuses(name, [at, x, i64(2, 2), row[:2]], "sp_indices[0] = [0, 2]", "[2, 2]")
    refuses(name, [-at, x, sizes, row], "sp_indices[0] = [0, -2]")
    refuses(name, [at, x[:2], sizes, row], "sp_values", "3", "2")
    refuses(name, [at, x, i64(2, -3), np.array(1.0)], "sp_shape", "-3")
    refuses(name, [at[0], x, sizes, row], "sp_indices", "[2]")
refuses("SparseDenseCwiseDiv", [at, np.int32([1, 2, 3]), sizes, np.int32([1, 1, 0])], "sp_values[0]", "[0, 2]", "0")
refuses("SparseDenseCwiseDiv", [at, np.int8([1, -128, 3]), sizes, np.int8(-1)], "sp_values[1]", "-128", "-1")


def sums(d):
    shape = sparse.sizes(d, least=0)
    inputs = sparse.tensor(d, "a_indices a_values a_shape", shape, ordered=d.integer(0, 2) > 0, distinct=True)
    return [*inputs, d("b", shape)]


def total(indices, values, shape, b):
    y = np.array(b)
    for place, value in zip(indices, values):
        y[tuple(place)] += value
    return y


op("SparseTensorDenseAdd", total, sums, no_kernel=QUANTISED)
expect("SparseTensorDenseAdd", [at, x, sizes, whole], [np.array([[1.0, 2, 4], [2, 9, 6]])])
expect("SparseTensorDenseAdd", [i32([1, 1], [1, 1]), x[:2], i32(2, 3), whole], [np.array([[1.0, 2, 3], [4, 4, 6]])])
slope("SparseTensorDenseAdd", i64([1, 1], [1, 1]), x[:2], sizes, whole)
refuses("SparseTensorDenseAdd", [at, x, i64(3, 3), whole], "a_shape", "[3, 3]", "[2, 3]")
refuses("SparseTensorDenseAdd", [at, x, sizes, row], "a_shape", "[3]")
refuses("SparseTensorDenseAdd", [i64([0, 3], [1, 0], [1, 1]), x, sizes, whole], "a_indices[0, 1]", "3")
refuses("SparseTensorDenseAdd", [i64([0, 2], [-1, 0], [1, 1]), x, sizes, whole], "a_indices[1, 0]", "-1")
refuses("SparseTensorDenseAdd", [at, x[:2], sizes, whole], "a_values", "3", "2")
refuses("SparseTensorDenseAdd", [at[0], x, sizes, whole], "a_indices", "[2]")
