import numpy as np

import sparse
from arrays import i64
from declare import expect, op, refuses, slope

# ---- SparseConcat ----


def several(d):
    shape = sparse.sizes(d)
    axis = d.axis(len(shape))
    d.set(concat_dim=axis)
    shapes = [tuple(d.integer(1, 4) if k == axis % len(shape) else size for k, size in enumerate(shape)) for _ in range(d.integer(2, 3))]
    at = [sparse.places(d, s, ordered=d.integer(0, 3) > 0, distinct=d.integer(0, 3) > 0) for s in shapes]
    return [[d("indices", of=x) for x in at], values_of_one_type(d, at), [d("shapes", of=np.array(s)) for s in shapes]]


def values_of_one_type(d, at):
    return [d("values", (len(x),)) for x in at]


def joined(indices, values, shapes, *, concat_dim):
    axis, at, out, offset = concat_dim % len(shapes[0]), [], [], 0
    for i, v, s in zip(indices, values, shapes):
        moved = np.array(i)
        moved[:, axis] += offset
        at += moved.tolist()
        out.append(v)
        offset += int(s[axis])
    out, size = np.concatenate(out), np.array(shapes[0])
    order = sorted(range(len(at)), key=lambda k: (at[k], k))
    size[axis] = offset
    return [sparse.matrix([at[k] for k in order], len(size)), out[order], size]


op("SparseConcat", joined, several, given=dict(concat_dim=0))
at, other = i64([0, 2], [1, 0], [1, 1]), i64([0, 1], [0, 2])
letters, more = np.array([b"a", b"b", b"c"], object), np.array([b"d", b"e"], object)
three, four = i64(2, 3), i64(2, 4)
expect("SparseConcat", [at, other, letters, more, three, four],
       [i64([0, 2], [0, 4], [0, 5], [1, 0], [1, 1]), np.array([b"a", b"d", b"e", b"b", b"c"], object), i64(2, 7)], concat_dim=1, N=2)
x, y = np.array([1.0, 2, 3]), np.array([4.0, 5])
slope("SparseConcat", at, other, x, y, three, four, concat_dim=-1, N=2)
huge = 2**62
refuses("SparseConcat", [at, other, x, y, three, four], "shapes", "3", "4", concat_dim=0, N=2)
refuses("SparseConcat", [at, other, x, y, three, four], "concat_dim", "2", concat_dim=2, N=2)
refuses("SparseConcat", [at, other, x, y, three, four], "concat_dim", "-3", concat_dim=-3, N=2)
refuses("SparseConcat", [at, i64([0, 4]), x, y[:1], three, four], "indices 1[0] = [0, 4]", "[2, 4]", concat_dim=1, N=2)
refuses("SparseConcat", [at, i64([-1, 0]), x, y[:1], three, four], "indices 1[0] = [-1, 0]", concat_dim=1, N=2)
refuses("SparseConcat", [at, other, x, y[:1], three, four], "values 1", "2", "1", concat_dim=1, N=2)
refuses("SparseConcat", [at, other[:, :1], x, y, three, four[:1]], "2", "1", concat_dim=0, N=2)
refuses("SparseConcat", [at, other, x, y, i64(2, huge), i64(2, huge)], "axis 1", "2^63-1", concat_dim=1, N=2)
refuses("SparseConcat", [at, other, x, y, i64(2, 3), i64(2, -4)], "shapes 1", "-4", concat_dim=1, N=2)

# ---- SparseSplit ----


def whole(d):
    shape = sparse.sizes(d)
    axis = d.axis(len(shape))
    d.set(num_split=d.integer(1, shape[axis]) if not d.large else d.integer(1, 5))
    return [d("split_dim", of=axis), *sparse.tensor(d, "indices values shape", shape, ordered=d.integer(0, 2) > 0)]


def cut(axis, indices, values, shape, *, num_split):
    axis = int(axis) % len(shape)
    borders = np.cumsum([0] + [len(part) for part in np.array_split(np.arange(shape[axis]), num_split)])
    outputs = [], [], []
    for first, end in zip(borders, borders[1:]):
        inside = (indices[:, axis] >= first) & (indices[:, axis] < end)
        at, size = np.array(indices[inside]), np.array(shape)
        at[:, axis] -= first
        size[axis] = end - first
        for to, part in zip(outputs, (at, values[inside], size)):
            to.append(part)
    return sum(outputs, [])


op("SparseSplit", cut, whole, given=dict(num_split=1))
seven, rows = i64(2, 7), i64([0, 2], [0, 4], [0, 5], [1, 0], [1, 1])
five = np.arange(5.0)
expect("SparseSplit", [np.int64(1), rows, five, seven],
       [i64([0, 2], [1, 0], [1, 1]), i64([0, 0], [0, 1]), five[[0, 3, 4]], five[1:3], i64(2, 4), i64(2, 3)], num_split=2)
slope("SparseSplit", np.int64(1), rows[::-1], five, seven, num_split=3)
refuses("SparseSplit", [np.int64(0), rows, five, seven], "num_split", "3", "2", num_split=3)
refuses("SparseSplit", [np.int64(2), rows, five, seven], "split_dim", "2", num_split=2)
refuses("SparseSplit", [np.int64(-3), rows, five, seven], "split_dim", "-3", num_split=2)
refuses("SparseSplit", [i64(1, 1), rows, five, seven], "split_dim", "[2]", num_split=2)
refuses("SparseSplit", [np.int64(1), rows, five[:4], seven], "values", "5", "4", num_split=2)
refuses("SparseSplit", [np.int64(1), rows, five, i64(2, 5)], "indices[2] = [0, 5]", "[2, 5]", num_split=2)
refuses("SparseSplit", [np.int64(1), rows, five, i64(2, -7)], "shape", "-7", num_split=2)

# ---- SparseSlice ----


def box_in(d, shape):
    """Draws start and size of a box, which may reach beyond the shape."""
    start = [d.integer(0, n if d.integer(0, 3) == 0 else n - 1) for n in shape]
    return np.array(start), np.array([d.integer(0 if d.integer(0, 3) == 0 else 1, n + 1) for n in shape])


def boxed(d):
    shape = sparse.sizes(d)
    inputs = sparse.tensor(d, "indices values shape", shape, ordered=d.integer(0, 2) > 0, distinct=d.integer(0, 2) > 0)
    start, size = box_in(d, shape)
    return [*inputs, d("start", of=start), d("size", of=size)]


def box(indices, values, shape, start, size):
    inside = ((indices >= start) & (indices - start < size)).all(1)
    return [indices[inside] - start, values[inside], np.maximum(0, np.minimum(size, shape - start))]


op("SparseSlice", box, boxed)
expect("SparseSlice", [rows, five, seven, i64(0, 4), i64(2, 3)], [i64([0, 0], [0, 1]), five[1:3], i64(2, 3)])
expect("SparseSlice", [rows, five, seven, i64(1, 0), i64(2**62, 2**63 - 1)], [i64([0, 0], [0, 1]), five[3:], i64(1, 7)])
expect("SparseSlice", [rows, five, seven, i64(9, 0), i64(2, 2)], [np.zeros((0, 2), np.int64), five[:0], i64(0, 2)])
slope("SparseSlice", rows, five, seven, i64(0, 1), i64(2, 4))
refuses("SparseSlice", [rows, five, seven, i64(-1, 4), i64(2, 3)], "start", "-1")
refuses("SparseSlice", [rows, five, seven, i64(0, 4), i64(2, -3)], "size", "-3")
refuses("SparseSlice", [rows, five, seven, i64(0), i64(2, 3)], "start", "2", "1")
refuses("SparseSlice", [rows, five, seven, i64(0, 4), i64(2, 3, 1)], "size", "2", "3")
refuses("SparseSlice", [rows, five, i64(2, 5), i64(0, 4), i64(2, 3)], "indices[2] = [0, 5]", "[2, 5]")
refuses("SparseSlice", [rows, five[:3], seven, i64(0, 4), i64(2, 3)], "values", "5", "3")
refuses("SparseSlice", [rows[0], five, seven, i64(0, 4), i64(2, 3)], "indices", "[2]")


def arriving(d):
    shape = sparse.sizes(d)
    at = sparse.places(d, shape, ordered=d.integer(0, 2) > 0, distinct=d.integer(0, 2) > 0)
    start, size = box_in(d, shape)
    out = box(at, np.zeros(len(at)), np.array(shape), start, size)[0]
    return [d("backprop_val_grad", (len(out),)), d("input_indices", of=at), d("input_start", of=start), d("output_indices", of=out)]


def sent(grads, indices, start, out):
    y, k = np.zeros(len(indices), grads.dtype), 0
    for i, place in enumerate(indices - start):
        if k < len(out) and (place == out[k]).all():
            y[i], k = grads[k], k + 1
    return y


op("SparseSliceGrad", sent, arriving)
expect("SparseSliceGrad", [np.float32([1, 2]), rows, i64(0, 4), i64([0, 0], [0, 1])], [np.float32([0, 1, 2, 0, 0])])
refuses("SparseSliceGrad", [np.float32([1, 2]), rows, i64(0, 4), i64([0, 0], [0, 2])], "output_indices[1] = [0, 2]")
refuses("SparseSliceGrad", [np.float32([1, 2]), rows, i64(0, 4), i64([0, 1], [0, 0])], "output_indices[1] = [0, 0]", "order")
refuses("SparseSliceGrad", [np.float32([1]), rows, i64(0, 4), i64([0, 0], [0, 1])], "backprop_val_grad", "1", "2")
refuses("SparseSliceGrad", [np.float32([1, 2]), rows, i64(0), i64([0, 0], [0, 1])], "input_start", "2", "1")
refuses("SparseSliceGrad", [np.float32([1, 2]), rows, i64(0, -4), i64([0, 0], [0, 1])], "input_start", "-4")
refuses("SparseSliceGrad", [np.float32([1, 2]), rows[:, :1], i64(0), i64([0, 0], [0, 1])], "1", "2")
refuses("SparseSliceGrad", [np.float32([[1, 2]]), rows, i64(0, 4), i64([0, 0], [0, 1])], "backprop_val_grad", "[1, 2]")
