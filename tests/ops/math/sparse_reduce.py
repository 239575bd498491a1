import numpy as np

import sparse
from arrays import i32, i64
from declare import expect, op, refuses, slope
from domains import distinct, normal
from ulps import near

QUANTISED = {"quantised arithmetic needs ranges, which these ops do not carry": "qint8 qint16 qint32 quint8 quint16"}


def drawn(d):
    shape = sparse.sizes(d, least=0)
    inputs = sparse.tensor(d, "input_indices input_values input_shape", shape, ordered=d.integer(0, 2) > 0, distinct=d.integer(0, 2) > 0)
    axes = d.rng.permutation(len(shape))[:d.integer(0, len(shape))]
    return [*inputs, d("reduction_axes", of=[a - len(shape) if d.integer(0, 1) else a for a in axes])]


def groups(indices, shape, axes, keep_dims):
    """Returns {cell of the result: numbers of its elements}, and the shape of the result."""
    rank = len(shape)
    reduced = {int(a) % rank for a in axes} if len(axes) else {*range(rank)}
    stays = [k for k in range(rank) if k not in reduced]
    cells = {}
    for k, place in enumerate(indices):
        cell = tuple(0 if a in reduced else int(place[a]) for a in range(rank) if keep_dims or a in stays)
        cells.setdefault(cell, []).append(k)
    return cells, tuple(1 if a in reduced else int(shape[a]) for a in range(rank) if keep_dims or a in stays)


def summed(values):
    return values.sum(dtype=values.dtype), abs(values).sum()


def reduced(combine):
    def oracle(indices, values, shape, axes, *, keep_dims):
        cells, size = groups(indices, shape, axes, keep_dims)
        y, sizes = np.zeros(size, values.dtype), np.zeros(size, np.longdouble)
        for cell, numbers in cells.items():
            y[cell], sizes[cell] = combine(values[numbers])
        return near(y, sizes) if y.dtype.kind in "fc" else y

    return oracle


def reduced_sparse(combine):
    def oracle(indices, values, shape, axes, *, keep_dims):
        cells, size = groups(indices, shape, axes, keep_dims)
        keys = sorted(cells)
        found = [combine(values[cells[key]]) for key in keys]
        y = np.array([v for v, _ in found], values.dtype)
        y = near(y, np.array([s for _, s in found], np.longdouble)) if y.dtype.kind in "fc" else y
        return [sparse.matrix(keys, len(size)), y, np.array(size, np.int64)]

    return oracle


def largest(values):
    return values.max(), abs(values.max())


SUM = dict(domain=dict(input_values=normal.calm), ulps=16, half_ulps=1, zero_signs=False, no_kernel=QUANTISED)
op("SparseReduceSum", reduced(summed), drawn, **SUM)
op("SparseReduceSumSparse", reduced_sparse(summed), drawn, **SUM)
op("SparseReduceMax", reduced(largest), drawn, zero_signs=False, smooth=distinct)
op("SparseReduceMaxSparse", reduced_sparse(largest), drawn, zero_signs=False)

at, x, sizes = i64([0, 2], [1, 0], [1, 1], [1, 0]), np.array([1.0, -2, -4, 8]), i64(3, 3)
expect("SparseReduceSum", [at, x, sizes, i32(1)], [np.array([1.0, 2, 0])])
expect("SparseReduceSum", [at, x, sizes, i32(-1, 1, 1)], [np.array([1.0, 2, 0])])  # an axis may repeat
expect("SparseReduceSum", [at, x, sizes, i32()], [np.array(3.0)])
expect("SparseReduceSum", [at, x, sizes, i32()], [np.array([[3.0]])], keep_dims=True)
expect("SparseReduceSum", [at[:0], x[:0], sizes, i32()], [np.array(0.0)])
expect("SparseReduceSum", [i64([0, 0], [1, 0], [2, 0]), np.float16([65504, 65504, -65504]), sizes, i32(0)], [np.float16([65504, 0, 0])])
expect("SparseReduceMax", [at, x, sizes, i32(0)], [np.array([8.0, -4, 1])])
expect("SparseReduceMax", [at, np.array([1.0, np.nan, -4, 8]), sizes, i32(1)], [np.array([1.0, np.nan, 0])])
expect("SparseReduceMax", [at, -x - 9, sizes, np.int32(1)], [np.array([-10.0, -5, 0])])  # 0 where there is no element
expect("SparseReduceSumSparse", [at, x, sizes, i32(1)], [i64([0], [1]), np.array([1.0, 2]), i64(3)])
expect("SparseReduceSumSparse", [at, x, sizes, i32(1)], [i64([0, 0], [1, 0]), np.array([1.0, 2]), i64(3, 1)], keep_dims=True)
expect("SparseReduceSumSparse", [at, x, sizes, i32()], [np.zeros((1, 0), np.int64), np.array([3.0]), i64()])
expect("SparseReduceSumSparse", [at[:0], x[:0], sizes, i32()], [np.zeros((0, 0), np.int64), x[:0], i64()])
huge = i64(2**62, 2**62, 2)
far = i64([2**61, 2**61, 1], [2**61, 2**61, 0], [0, 5, 1])
expect("SparseReduceSumSparse", [far, x[:3], huge, i32(2)], [i64([0, 5], [2**61, 2**61]), np.array([-4.0, -1]), i64(2**62, 2**62)])
expect("SparseReduceMaxSparse", [far, x[:3], huge, i32(2)], [i64([0, 5], [2**61, 2**61]), np.array([-4.0, 1]), i64(2**62, 2**62)])
slope("SparseReduceSum", at, x, sizes, i32(0))
slope("SparseReduceSum", at, x, sizes, i32(), keep_dims=True)
slope("SparseReduceMax", at, np.array([1.0, 2, 4, 9]), sizes, i32(-1))
for name in ("SparseReduceSum", "SparseReduceMax", "SparseReduceSumSparse", "SparseReduceMaxSparse"):
    refuses(name, [at, x, sizes, i32(2)], "reduction_axes", "2")
    refuses(name, [at, x, sizes, i32(0, -3)], "reduction_axes", "-3")
    refuses(name, [at, x, sizes, i32([0])], "reduction_axes", "[1, 1]")
    refuses(name, [at, x, i64(3, 2), i32(1)], "input_indices[0] = [0, 2]", "[3, 2]")
    refuses(name, [-at, x, sizes, i32(1)], "input_indices[0] = [0, -2]")
    refuses(name, [at, x[:2], sizes, i32(1)], "input_values", "4", "2")
    refuses(name, [at, x, i64(3, 3, 3), i32(1)], "input_shape", "2", "3")
    refuses(name, [at, x, i64(3, -3), i32(1)], "input_shape", "-3")
    refuses(name, [at[0], x, sizes, i32(1)], "input_indices", "[2]")
refuses("SparseReduceSum", [far, x[:3], huge, i32(2)], "2^63-1")
