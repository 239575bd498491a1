import numpy as np

from arrays import i32, i64, zeros
from declare import expect, op, refuses
from domains import normal, whole
from ulps import near


def weights_for(d, numbers):
    return d("weights", numbers.shape if d.smooth or d.integer(0, 1) else (0,))


def dense(d):
    numbers = d("input", [d.integer(0 if not d.smooth else 1, 400 if d.large else 6) for _ in range(d.integer(1, 2))])
    return [numbers, d("size", of=d.integer(0, 9)), weights_for(d, numbers)]


def ragged(d):
    lengths = [d.integer(0, 300 if d.large else 4) for _ in range(d.integer(1 if d.smooth else 0, 4))]
    values = d("values", (sum(lengths),))
    return [d("splits", of=np.cumsum([0, *lengths])), values, d("size", of=d.integer(0, 9)), weights_for(d, values)]


def counts(rows, weights, size, binary, dtype):
    sums = np.zeros((2, len(rows), size), dtype)
    for k, row in enumerate(rows):
        kept = row < size
        given = weights[k][kept] if weights is not None else np.ones(kept.sum(), dtype)
        for total, values in zip(sums[:, k], (given, abs(given))):
            np.add.at(total, row[kept], values)
        if binary:
            sums[:, k, :] = np.isin(np.arange(size), row[kept])
    return sums


def result(sums):
    return near(*sums) if sums.dtype.kind == "f" else sums[0]


def dense_oracle(x, size, weights, *, binary_output):
    rows, given = np.atleast_2d(x), np.atleast_2d(weights) if weights.size else None
    if given is not None:
        given = given.reshape(rows.shape)
    sums = counts(rows, given, int(size), binary_output, weights.dtype)
    return result(sums if x.ndim == 2 else sums[:, 0])


def ragged_oracle(splits, values, size, weights, *, binary_output):
    ends = splits[1:-1]
    rows = np.split(values, ends) if len(splits) > 1 else []
    given = (np.split(weights, ends) if len(splits) > 1 else []) if weights.size else None
    return result(counts(rows, given, int(size), binary_output, weights.dtype))


plain = dict(domain=dict(input=whole(0, 12), values=whole(0, 12), weights=normal.calm), ulps=2, zero_signs=False)
op("DenseBincount", dense_oracle, dense, **plain)
op("RaggedBincount", ragged_oracle, ragged, **plain)
expect("DenseBincount", [i32([1, 2], [1, 7]), np.int32(3), np.float32([[1, 2], [3, 4]])], [np.float32([[0, 1, 2], [0, 3, 0]])])
refuses("DenseBincount", [i32(1, -1), np.int32(3), zeros(0)], "[1] = -1")
refuses("DenseBincount", [i32(1), np.int32(-3), zeros(0)], "-3")
refuses("DenseBincount", [i32(1, 2), np.int32(3), zeros(3)], "[3]", "[2]")
refuses("DenseBincount", [i32(1, 2), i32(3), zeros(0)], "size")
refuses("DenseBincount", [np.int32(1), np.int32(3), zeros(0)], "input")
refuses("DenseBincount", [i32([[1]]), np.int32(3), zeros(0)], "[1, 1, 1]")
refuses("RaggedBincount", [i64(1, 2), i32(1, 2), np.int32(3), zeros(0)], "splits[0]", "1")
refuses("RaggedBincount", [i64(0, 2, 1), i32(1, 2), np.int32(3), zeros(0)], "splits[2]", "1")
refuses("RaggedBincount", [i64(0, 1), i32(1, 2), np.int32(3), zeros(0)], "1", "2")
refuses("RaggedBincount", [i64(), i32(1, 2), np.int32(3), zeros(0)], "splits")
refuses("RaggedBincount", [i64(0, 2), i32(1, -2), np.int32(3), zeros(0)], "-2")
refuses("RaggedBincount", [i64(0, 2), i32(1, 2), np.int32(-3), zeros(0)], "-3")
refuses("RaggedBincount", [i64(0, 2), i32(1, 2), np.int32(3), zeros(3)], "[3]", "[2]")
