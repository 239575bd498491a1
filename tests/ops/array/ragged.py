import numpy as np

from arrays import i32, i64
from declare import expect, op, refuses, slope

TEXTS = dict(T="float int32 string bool", Tvalues="float int32 string bool")


def splits_of(lengths):
    return np.cumsum([0, *lengths])


def nested(d, name, levels, rows=None):
    """Draws splits for `levels` levels; returns them and the number of values below."""
    rows, found = d.integer(0 if not d.smooth else 1, 40 if d.large else 4) if rows is None else rows, []
    for _ in range(levels):
        lengths = [d.integer(0, 30 if d.large else 3) for _ in range(rows)]
        found.append(d(name, of=splits_of(lengths)))
        rows = sum(lengths)
    return found, rows


def values(d, name, n):
    return d(name, (n, *d.pick((), (), (2,), (2, 3), (0,) if not d.smooth else (1,))))


# ---- Ranges ----


def steps(d):
    n = d.integer(0, 50 if d.large else 4)
    numbers = [d.rng.integers(low, 9, n if d.integer(0, 2) else ()) for low in (-9, -9, 1)]
    return [d("starts", of=numbers[0]), d("limits", of=numbers[1]), d("deltas", of=numbers[2] * d.pick(1, -1))]


def ranges(starts, limits, deltas, *, Tsplits):
    rows = [np.arange(a, b, c) for a, b, c in zip(*np.broadcast_arrays(*map(np.atleast_1d, (starts, limits, deltas))))]
    kind = starts.dtype
    return [splits_of(map(len, rows)).astype(Tsplits), np.concatenate([np.zeros(0, kind), *rows]).astype(kind)]


op("RaggedRange", ranges, steps)
expect("RaggedRange", [i32(2, 5), i32(3, 9), np.int32(2)], [i64(0, 1, 3), i32(2, 5, 7)])
expect("RaggedRange", [np.float32(0), np.float32(1), np.float32(0.25)], [i64(0, 4), np.float32([0, 0.25, 0.5, 0.75])])
expect("RaggedRange", [i64(2**63 - 2), i64(2**63 - 1), i64(2)], [i64(0, 1), i64(2**63 - 2)])
refuses("RaggedRange", [i32(1, 2), i32(5, 5), i32(1, 0)], "deltas[1]", "0")
refuses("RaggedRange", [i32(1, 2), i32(5, 5, 5), np.int32(1)], "2", "3")
refuses("RaggedRange", [i32([1]), i32(5), np.int32(1)], "starts", "[1, 1]")
refuses("RaggedRange", [np.float32([np.nan]), np.float32([1]), np.float32([1])], "no number")
refuses("RaggedRange", [i64(-2**63), i64(2**63 - 1), i64(1)])

# ---- Gathers ----


def rows_of(splits, x):
    """Returns nested lists of the values."""
    rows = list(x)
    for s in reversed(splits):
        rows = [rows[a:b] for a, b in zip(s[:-1], s[1:])]
    return rows


def unnested(rows, levels):
    """Returns the splits of nested lists and the values below."""
    found = []
    for _ in range(levels):
        found.append(splits_of(map(len, rows)))
        rows = [x for row in rows for x in row]
    return found, rows


def some_rows(d):
    levels = d.integer(1, 3)
    splits, n = nested(d, "params_nested_splits", levels, d.integer(1, 40 if d.large else 4))
    shape = d.pick((), (3,), (0,) if not d.smooth else (1,), (2, 2))
    d.set(OUTPUT_RAGGED_RANK=levels + len(shape) - 1)
    return [splits, values(d, "params_dense_values", n), d("indices", of=d.rng.integers(0, len(splits[0]) - 1, shape))]


def gathered(splits, x, indices, *, OUTPUT_RAGGED_RANK):
    rows = rows_of(splits, x)

    def pick(i):
        return rows[i] if np.ndim(i) == 0 else [pick(k) for k in i]

    found, below = unnested(pick(indices), OUTPUT_RAGGED_RANK)
    out = np.empty((len(below), *x.shape[1:]), x.dtype)
    for k, row in enumerate(below):
        out[k] = row
    return [f.astype(splits[0].dtype) for f in found] + [out]


op("RaggedGather", gathered, some_rows, types=TEXTS, given=dict(OUTPUT_RAGGED_RANK=1))
expect("RaggedGather", [i64(0, 2, 3), np.float32([1, 2, 3]), i32(1, 0, 1)], [i64(0, 1, 3, 4), np.float32([3, 1, 2, 3])],
       PARAMS_RAGGED_RANK=1, OUTPUT_RAGGED_RANK=1)
refuses("RaggedGather", [i64(0, 2, 3), np.float32([1, 2, 3]), i32(2)], "2", "indices", PARAMS_RAGGED_RANK=1, OUTPUT_RAGGED_RANK=1)
refuses("RaggedGather", [i64(0, 2, 4), np.float32([1, 2, 3]), i32(0)], "4", "3", PARAMS_RAGGED_RANK=1, OUTPUT_RAGGED_RANK=1)
refuses("RaggedGather", [i64(1, 2, 3), np.float32([1, 2, 3]), i32(0)], "[0] is 1", PARAMS_RAGGED_RANK=1, OUTPUT_RAGGED_RANK=1)
refuses("RaggedGather", [i64(0, 2, 1), np.float32([1]), i32(0)], "[2] is 1", PARAMS_RAGGED_RANK=1, OUTPUT_RAGGED_RANK=1)
refuses("RaggedGather", [i64(0, 3), np.float32([1, 2, 3]), i32([0])], "OUTPUT_RAGGED_RANK", PARAMS_RAGGED_RANK=1, OUTPUT_RAGGED_RANK=1)
refuses("RaggedGather", [i64(), np.float32([]), i32(0)], "params_nested_splits", PARAMS_RAGGED_RANK=1, OUTPUT_RAGGED_RANK=1)
refuses("RaggedGather", [i64(0), np.float32(1), i32(0)], "params_dense_values", PARAMS_RAGGED_RANK=1, OUTPUT_RAGGED_RANK=1)

# ---- Sparse ----


def any_rows(d):
    splits, n = nested(d, "rt_nested_splits", d.integer(1, 3))
    return [splits, values(d, "rt_dense_values", n)]


def sparse(splits, x):
    at = []

    def walk(level, first, end, place):
        for k in range(first, end):
            if level < len(splits):
                walk(level + 1, splits[level][k], splits[level][k + 1], (*place, k - first))
            else:
                at.extend((*place, k - first, *inner) for inner in np.ndindex(x.shape[1:]))

    walk(0, 0, len(splits[0]) - 1, ())
    longest = [max(np.diff(s), default=0) for s in splits]
    return [np.array(at, np.int64).reshape(-1, len(splits) + x.ndim), x.reshape(-1), np.array([len(splits[0]) - 1, *longest, *x.shape[1:]], np.int64)]


op("RaggedTensorToSparse", sparse, any_rows, types=TEXTS)
expect("RaggedTensorToSparse", [i64(0, 2, 2, 3), np.float32([1, 2, 3])], [i64([0, 0], [0, 1], [2, 0]), np.float32([1, 2, 3]), i64(3, 2)],
       RAGGED_RANK=1)
refuses("RaggedTensorToSparse", [i64(0, 2), np.float32([1, 2, 3])], "2", "3", RAGGED_RANK=1)
refuses("RaggedTensorToSparse", [i64(), np.float32([])], "rt_nested_splits", RAGGED_RANK=1)
refuses("RaggedTensorToSparse", [i64(0), np.float32(1)], "rt_dense_values", RAGGED_RANK=1)

# ---- Dense ----


def kinds(d, levels):
    """Draws the row partitions and their types."""
    splits, n = nested(d, "row_partition_tensors", levels)
    ids = [np.repeat(np.arange(len(s) - 1), np.diff(s)) for s in splits]
    if d.integer(0, 1):
        d.set(row_partition_types=["ROW_SPLITS"] * levels)
        return splits, n
    d.set(row_partition_types=["FIRST_DIM_SIZE"] + ["VALUE_ROWIDS"] * levels)
    return [d("row_partition_tensors", of=len(splits[0]) - 1), *(d("row_partition_tensors", of=i) for i in ids)], n


def filled(d):
    levels = d.integer(1, 3)
    partitions, n = kinds(d, levels)
    x = values(d, "values", n)
    shape = [d.pick(-1, -1, d.integer(0, 4)) for _ in range(levels + 1)] + [d.pick(-1, s) for s in x.shape[1:]]
    inner = x.shape[1:]
    default = d("default_value", d.pick((), inner[d.integer(0, len(inner)):]))
    return [d("shape", of=d.pick(shape, -1)), x, default, partitions]


def dense(shape, x, default, partitions, *, row_partition_types):
    types = row_partition_types
    sized = types[0] == "FIRST_DIM_SIZE"
    rows = int(partitions[0]) if sized else len(partitions[0]) - 1
    splits, below = [], rows
    for kind, part in list(zip(types, partitions))[sized:]:
        splits.append(part if kind == "ROW_SPLITS" else splits_of(np.bincount(part, minlength=below)[:below]))
        below = len(part) if kind != "ROW_SPLITS" else int(part[-1])
    sizes = [rows, *(max(np.diff(s), default=0) for s in splits), *x.shape[1:]]
    wanted = [-1] * len(sizes) if np.ndim(shape) == 0 else list(shape)
    sizes = [int(s if w < 0 else w) for s, w in zip(sizes, wanted)]
    out = np.empty(sizes, x.dtype)
    out[...] = default

    def walk(level, first, end, place):
        for k in range(first, min(end, first + sizes[level])):
            if level < len(splits):
                walk(level + 1, int(splits[level][k]), int(splits[level][k + 1]), (*place, k - first))
            else:
                out[(*place, k - first)] = x[k]

    walk(0, 0, rows, ())
    return out


op("RaggedTensorToTensor", dense, filled, types=dict(T="float int32 string bool double"), given=dict(row_partition_types=["ROW_SPLITS"]))
use = dict(num_row_partition_tensors=1, row_partition_types=["ROW_SPLITS"])
x = np.float32([1, 2, 3])
expect("RaggedTensorToTensor", [i64(-1, -1), x, np.float32(9), i64(0, 1, 3)], [np.float32([[1, 9], [2, 3]])], **use)
expect("RaggedTensorToTensor", [i64(3, 1), x, np.float32(9), i64(0, 1, 3)], [np.float32([[1], [2], [9]])], **use)
by_rows = dict(num_row_partition_tensors=2, row_partition_types=["FIRST_DIM_SIZE", "VALUE_ROWIDS"])
expect("RaggedTensorToTensor", [i64(-1, -1), x, np.float32(0), np.int64(3), i64(0, 2, 2)], [np.float32([[1, 0], [0, 0], [2, 3]])], **by_rows)
slope("RaggedTensorToTensor", i64(-1, -1), np.array([1.0, 2, 3]), np.array(9.0), i64(0, 1, 3), **use)
refuses("RaggedTensorToTensor", [i64(-1, -1), x, np.float32(0), i64(0, 2)], "2", "3", **use)
refuses("RaggedTensorToTensor", [i64(-1, -1), x, np.float32(0), i64(0, 4, 3)], "[2] is 3", **use)
refuses("RaggedTensorToTensor", [i64(-1), x, np.float32(0), i64(0, 3)], "1", "2", **use)
refuses("RaggedTensorToTensor", [i64(-2, 1), x, np.float32(0), i64(0, 3)], "-2", **use)
refuses("RaggedTensorToTensor", [i64(-1, -1, 2), np.zeros((3, 4), np.float32), np.float32(0), i64(0, 3)], "2", "4", **use)
refuses("RaggedTensorToTensor", [np.int64(4), x, np.float32(0), i64(0, 3)], "4", **use)
refuses("RaggedTensorToTensor", [i64(-1, -1, -1), np.zeros((3, 4), np.float32), np.zeros(3, np.float32), i64(0, 3)], "default_value", **use)
refuses("RaggedTensorToTensor", [i64(-1, -1), np.float32(1), np.float32(0), i64(0, 3)], "values", **use)
refuses("RaggedTensorToTensor", [i64(-1, -1), x, np.float32(0), np.int64(3), i64(0, 3, 3)], "row id 1 is 3", **by_rows)
refuses("RaggedTensorToTensor", [i64(-1, -1), x, np.float32(0), np.int64(3), i64(1, 0, 2)], "row id 1 is 0", **by_rows)
refuses("RaggedTensorToTensor", [i64(-1, -1), x, np.float32(0), np.int64(3), i64(0, 1)], "2", "3", **by_rows)
refuses("RaggedTensorToTensor", [i64(-1, -1), x, np.float32(0), np.int64(-3), i64(0, 1, 1)], "-3", **by_rows)
refuses("RaggedTensorToTensor", [i64(-1, -1), x, np.float32(0), i64(0, 3)], "ROW_LENGTHS", num_row_partition_tensors=1,
        row_partition_types=["ROW_LENGTHS"])
refuses("RaggedTensorToTensor", [i64(2**40, 2**40), x, np.float32(0), i64(0, 3)], **use)
