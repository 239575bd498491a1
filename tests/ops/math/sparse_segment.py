import numpy as np

from declare import expect, op, refuses, slope
from domains import normal
from ulps import near


def chosen(d, segments=True):
    shape = d.shape(least=1, most=4) if not d.large else (977, 73)
    shape = (max(1, shape[0]), *shape[1:])
    n = d.integer(0, 9) if not d.large else 1500
    used = d.integer(1, 5)
    return shape, [d("indices", of=d.rng.integers(0, shape[0], n)), d("segment_ids", of=np.sort(d.rng.integers(0, used, n)))], used


def rows(d):
    shape, inputs, _ = chosen(d)
    return [d("data", shape), *inputs]


def numbered(d):
    shape, inputs, used = chosen(d)
    return [d("data", shape), *inputs, d("num_segments", of=used + d.integer(0, 2))]


def backward(d):
    shape, inputs, used = chosen(d)
    return [d("grad", (used, *shape[1:])), *inputs, d("output_dim0", of=shape[0])]


def few_of_many(n):
    def draw(d):
        """Draws gradients of a few rows among very many."""
        rows = 70001
        indices, ids = d.rng.integers(rows - 9, rows, n), np.sort(d.rng.integers(0, 5, n))
        return [d("grad", (5, 3)), d("indices", of=indices), d("segment_ids", of=ids), d("output_dim0", of=rows)]
    return draw


def scales(root, ids, n, kind):
    counts = np.maximum(np.bincount(ids, minlength=n), 1).astype(np.longdouble)
    return 1 / (np.ones(n, np.longdouble) if root is None else np.sqrt(counts) if root else counts)


def reduced(root):
    def oracle(data, indices, ids, n=None):
        n = ids.max(initial=-1) + 1 if n is None else n
        sums = np.zeros((2, int(n), *data.shape[1:]), data.dtype)
        for total, x in zip(sums, (data, abs(data))):
            np.add.at(total, ids, x[indices])
        if data.dtype.kind != "f":
            return sums[0]
        return near(*(sums * scales(root, ids, int(n), data.dtype).reshape(-1, *[1] * (data.ndim - 1))))
    return oracle


def gradient(root):
    def oracle(grad, indices, ids, n):
        scale = scales(root, ids, len(grad), grad.dtype).reshape(-1, *[1] * (grad.ndim - 1))
        sums = np.zeros((2, int(n), *grad.shape[1:]), grad.dtype)
        for total, x in zip(sums, (grad, abs(grad))):
            np.add.at(total, indices, (x * scale)[ids])
        return near(*sums)
    return oracle


more = dict(ulps=16, zero_signs=False)
for name, root in (("SparseSegmentSum", None), ("SparseSegmentMean", False), ("SparseSegmentSqrtN", True)):
    op(name, reduced(root), rows, domain=dict(data=normal.calm), **more)
    op(name + "WithNumSegments", reduced(root), numbered, domain=dict(data=normal.calm), **more)
    op(name + "Grad", gradient(root), backward, domain=dict(grad=normal.calm), also=(few_of_many(40), few_of_many(0)), **more)
    data, indices, ids = np.arange(6.0).reshape(3, 2), np.int32([2, 0, 2]), np.int32([0, 1, 1])
    slope(name, data, indices, ids, wrt=[0], sparse_gradient=True)
    slope(name + "WithNumSegments", data, indices, ids, np.int32(3), wrt=[0], sparse_gradient=True)
    refuses(name, [data, np.int32([2, 3, 0]), ids], "indices[1] = 3")
    refuses(name, [data, np.int32([2, -1, 0]), ids], "indices[1] = -1")
    refuses(name, [data, indices, np.int32([0, 2, 1])], "segment_ids[2] = 1")
    refuses(name, [data, indices, np.int32([-2, 0, 1])], "segment_ids[0] = -2")
    refuses(name, [data, indices, np.int32([0, 1])], "3", "2")
    refuses(name, [np.float64(1), indices, ids], "data")
    refuses(name + "WithNumSegments", [data, indices, ids, np.int32(1)], "segment_ids[1] = 1")
    refuses(name + "WithNumSegments", [data, indices, ids, np.int32(-1)], "-1")
    refuses(name + "Grad", [data, np.int32([0, 5, 0]), ids, np.int32(3)], "indices[1] = 5")
    refuses(name + "Grad", [data, indices, np.int32([0, 1, 3]), np.int32(3)], "segment_ids[2] = 3")
    refuses(name + "Grad", [data, indices, ids, np.int32(-3)], "-3")
expect("SparseSegmentSum", [np.float32([[1], [2]]), np.int32([1, 0, 1]), np.int32([0, 2, 2])], [np.float32([[2], [0], [3]])])
