import itertools

import numpy as np

from arrays import i32, i64
from declare import expect, op, refuses, slope
from domains import normal
from text import text
from ulps import near

# ---- Rows without elements ----


def places(d, name, sizes, n):
    return d(name, of=np.stack([d.rng.integers(0, size, n) for size in sizes], 1) if min(sizes) else np.zeros((0, len(sizes)), int))


def holes(d):
    sizes = [d.integer(0, 200 if d.large else 5), *(d.integer(1, 3) for _ in range(d.integer(0, 2)))]
    at = places(d, "indices", sizes, 3000 if d.large else d.integer(0, 6))
    return [at, d("values", (len(at),)), d("dense_shape", of=sizes), d("default_value", ())]


def filled(indices, values, sizes, default):
    rows = [[k for k in range(len(values)) if indices[k, 0] == r] for r in range(sizes[0])]
    at, out, back = [], [], np.zeros(len(values), np.int64)
    for r, row in enumerate(rows):
        for k in row:
            back[k] = len(at)
            at.append(indices[k])
            out.append(values[k])
        if not row:
            at.append([r] + [0] * (len(sizes) - 1))
            out.append(default.item() if default.dtype == object else default)
    made = np.empty(len(out), values.dtype)
    for k, v in enumerate(out):
        made[k] = v
    return [np.array(at, np.int64).reshape(-1, len(sizes)), made, np.array([not row for row in rows], bool), back]


op("SparseFillEmptyRows", filled, holes, types=dict(T="float int32 string bool double"))
at, values, sizes = i64([2, 1], [0, 2]), np.float32([1, 2]), i64(4, 3)
expect("SparseFillEmptyRows", [at, values, sizes, np.float32(9)],
       [i64([0, 2], [1, 0], [2, 1], [3, 0]), np.float32([2, 9, 1, 9]), np.array([False, True, False, True]), i64(2, 0)])
slope("SparseFillEmptyRows", at, np.array([1.0, 2]), sizes, np.array(9.0))
refuses("SparseFillEmptyRows", [i64([2, 1], [4, 2]), values, sizes, np.float32(9)], "indices[1, 0]", "4")
refuses("SparseFillEmptyRows", [i64([2, 1], [-1, 2]), values, sizes, np.float32(9)], "indices[1, 0]", "-1")
refuses("SparseFillEmptyRows", [at, values[:1], sizes, np.float32(9)], "2", "1")
refuses("SparseFillEmptyRows", [at, values, i64(4, 3, 2), np.float32(9)], "2", "3")
refuses("SparseFillEmptyRows", [at, values, i64(4, -3), np.float32(9)], "-3")
refuses("SparseFillEmptyRows", [at[0], values, sizes, np.float32(9)], "indices", "[2]")
refuses("SparseFillEmptyRows", [at, values, sizes, np.float32([9])], "default_value")
refuses("SparseFillEmptyRows", [np.zeros((1, 0), np.int64), values[:1], i64(), np.float32(9)], "dense_shape")


def backward(d):
    n = d.integer(1, 2000 if d.large else 6)
    return [d("reverse_index_map", of=d.rng.permutation(n)[:d.integer(0, n)]), d("grad_values", (n,))]


def taken(back, grads):
    rest = np.delete(grads, back)
    total = rest.sum(dtype=grads.dtype)
    return [grads[back], near(total, abs(rest).sum(dtype=grads.dtype)) if grads.dtype.kind == "f" else total]


op("SparseFillEmptyRowsGrad", taken, backward, types=dict(T="float double int32 int64 half bfloat16"), domain=dict(grad_values=normal.calm), ulps=32,
   half_ulps=4, zero_signs=False)
refuses("SparseFillEmptyRowsGrad", [i64(0, 3), np.float32([1, 2, 3])], "reverse_index_map[1]", "3")
refuses("SparseFillEmptyRowsGrad", [i64(0, -3), np.float32([1, 2, 3])], "reverse_index_map[1]", "-3")
refuses("SparseFillEmptyRowsGrad", [i64([0]), np.float32([1, 2, 3])], "reverse_index_map")
refuses("SparseFillEmptyRowsGrad", [i64(0), np.float32(1)], "grad_values")

# ---- Other shapes ----


def reshaped(d):
    shape = d.pick((6, 4), (24,), (2, 3, 4), (1, 24), (0, 3), (4, 6, 1))
    other = d.pick((6, 4), (24,), (2, 3, 4), (-1, 3), (8, -1), (2, 2, 2, 3)) if 0 not in shape else d.pick((3, 0), (0,), (2, 0, 5))
    return [places(d, "input_indices", shape, 2000 if d.large else d.integer(0, 7)), d("input_shape", of=shape), d("new_shape", of=other)]


def renumbered(indices, shape, wanted):
    sizes = np.array(wanted)
    if -1 in sizes:
        sizes[sizes == -1] = np.prod(shape) // -np.prod(sizes)
    flat = np.ravel_multi_index(indices.T, shape) if len(indices) else np.zeros(0, int)
    return [np.stack(np.unravel_index(flat, sizes), 1).astype(np.int64) if len(flat) else np.zeros((0, len(sizes)), np.int64), sizes.astype(np.int64)]


op("SparseReshape", renumbered, reshaped)
expect("SparseReshape", [i64([0, 1], [1, 2]), i64(2, 3), i64(3, -1)], [i64([0, 1], [2, 1]), i64(3, 2)])
refuses("SparseReshape", [i64([0, 1]), i64(2, 3), i64(4, -1)], "6", "4")
refuses("SparseReshape", [i64([0, 1]), i64(2, 3), i64(7)], "6", "7")
refuses("SparseReshape", [i64([0, 1]), i64(2, 3), i64(-1, -1)], "-1")
refuses("SparseReshape", [i64([0, 1]), i64(2, 3), i64(-2, 3)], "-2")
refuses("SparseReshape", [i64([0, 3]), i64(2, 3), i64(6)], "input_indices[0, 1]", "3")
refuses("SparseReshape", [i64([0, 1]), i64(2**40, 2**40), i64(6)], "overflow")
refuses("SparseReshape", [i64([0, 1]), i64(2, 3), i64([6])], "new_shape")

# ---- Crosses ----

WORDS = [b"x", b"y", b"", b"zz"]


def columns(d):
    if "hash_key" in {a["name"] for a in d.about["attrs"]}:
        d.set(num_buckets=0, hash_key=0)
    rows = d.integer(1, 50 if d.large else 4)
    n, m = d.pick((1, 1), (2, 1), (1, 2))

    def feature(count):
        kind = d.pick(np.int64, object)
        return np.array(WORDS, object)[d.rng.integers(0, 4, count)] if kind is object else d.rng.integers(0, 9, count)

    sparse = [np.sort(d.rng.choice(rows * 3, d.integer(0, rows * 3), replace=False)) for _ in range(n)]
    return [[d("indices", of=np.stack([s // 3, s % 3], 1)) for s in sparse], [feature(len(s)) for s in sparse],
            [d("shapes", of=[rows, 3]) for _ in range(n)], [feature((rows, d.integer(1, 3))) for _ in range(m)]]


def crossed(indices, values, shapes, dense, make):
    rows = int(shapes[0][0])
    at, out, most = [], [], 0
    for r in range(rows):
        features = [v[i[:, 0] == r] for i, v in zip(indices, values)] + [v[r] for v in dense]
        found = [make(c) for c in itertools.product(*features)]
        at += [(r, k) for k in range(len(found))]
        out += found
        most = max(most, len(found))
    return [np.array(at, np.int64).reshape(-1, 2), np.array([*out, b""], object)[:-1], np.array([rows, most], np.int64)]


def word(v):
    return v if isinstance(v, bytes) else str(v).encode()


def joined(indices, values, shapes, dense, sep=np.array(b"_X_", object)):
    return crossed(indices, values, shapes, dense, lambda c: sep.item().join(map(word, c)))


def with_separator(d):
    return [*columns(d), d("sep", of=np.array(d.pick(b"_X_", b"", b","), object))]


EXPLICIT = dict(sparse_types=[np.dtype(object)], dense_types=[np.dtype(object)])
op("SparseCrossV2", joined, with_separator, given=EXPLICIT)
op("SparseCross", joined, columns, types=dict(
    out_type="string", internal_type="string"), attrs=dict(hashed_output=[False]), given=dict(EXPLICIT, num_buckets=0, hash_key=0, hashed_output=False))
names = np.array([[b"x"], [b"y"], [b"z"]], object), np.array([[b"u"], [b"v"], [b"u"]], object)
words = np.dtype(object)
hashed = dict(N=1, hashed_output=True, num_buckets=10, hash_key=0xDECAFCAFFE, out_type=np.int64, internal_type=np.int64, sparse_types=[words],
              dense_types=[words])
column, three = i64([0, 0], [1, 0], [2, 0]), i64(3, 1)
# TensorFlow 2.21's answer.
expect("SparseCross", [column, names[0][:, 0], three, names[1]], [column, i64(9, 4, 4), three], **hashed)
refuses("SparseCross", [column, names[0][:, 0], three, names[1]], "hashed_output", "string", **{**hashed, "out_type": object})
refuses("SparseCross", [column, names[0][:, 0], three, names[1][:2]], "3", "2", **hashed)
refuses("SparseCross", [column, names[0][:, 0], three, names[1][0]], "dense_inputs", **hashed)
refuses("SparseCross", [column[::-1], names[0][:, 0], three, names[1]], "indices 0[1, 0]", "sorted", **hashed)
refuses("SparseCross", [column + i64([1, 0]), names[0][:, 0], three, names[1]], "indices 0[2, 0]", "3", **hashed)
refuses("SparseCross", [column, names[0][:2, 0], three, names[1]], "3", "2", **hashed)
refuses("SparseCross", [i64([0, 0, 0]), names[0][:1, 0], i64(3, 1, 1), names[1]], "3", **hashed)
joining = dict(N=1, sparse_types=[words], dense_types=[words])
refuses("SparseCrossV2", [column, names[0][:, 0], three, names[1][:2], text(b"_")], "3", "2", **joining)
refuses("SparseCrossV2", [column, names[0][:, 0], three, names[1], text(b"_", b"-")], "sep", **joining)
refuses("SparseCrossV2", [column + i64([1, 0]), names[0][:, 0], three, names[1], text(b"_")], "indices 0[2, 0]", "3", **joining)
