import numpy as np

from declare import expect, op, refuses
from domains import distinct, everything, normal


def largest(d):
    x = d("input", d.shape(least=1))
    if d.large:  # rows up to 70001
        d.types["index_type"] = d.pick("int32", "int64")
    return [x, d("k", of=d.integer(0, min(x.shape[-1], 120)))]


def top_k(x, k, *, sorted, index_type):
    """Sorts NaN first, then by size; equal elements keep their order."""
    keys = np.where(np.isnan(x), 0, 1) if x.dtype.kind == "f" else np.ones(x.shape, int)
    down = -np.where(np.isnan(x), 0, x) if x.dtype.kind == "f" else x.astype(object) * -1 if x.dtype.itemsize == 8 else -x.astype(np.int64)
    order = np.argsort(down, -1, kind="stable")
    order = np.take_along_axis(order, np.argsort(np.take_along_axis(keys, order, -1), -1, kind="stable"), -1)[..., :k]
    order = order if sorted else np.sort(order, -1)
    return [np.take_along_axis(x, order, -1), order.astype(index_type)]


def ranked(d):
    rows, classes = d.integer(0, 9), d.integer(0, 9)
    return [d("predictions", (rows, classes)), d("targets", of=d.rng.integers(-1, classes + 1, rows)), d("k", of=d.integer(-1, 9))]


def in_top_k(predictions, targets, k):
    told = np.isfinite(predictions).all(1) & (targets >= 0) & (targets < predictions.shape[1])
    own = np.array([row[t] if ok else 0 for row, t, ok in zip(predictions, targets, told)], predictions.dtype)
    return told & ((predictions > own[:, None]).sum(1) < k)


op("TopKV2", top_k, largest, domain=dict(input=everything(normal)), smooth=dict(input=distinct))
op("InTopKV2", in_top_k, ranked, domain=dict(predictions=everything(normal)))
expect("TopKV2", [np.float32([1, np.nan, 3, 3, np.nan]), np.int32(4)], [np.float32([np.nan, np.nan, 3, 3]), np.int32([1, 4, 2, 3])])
expect("TopKV2", [np.float32([1, 5, 3]), np.int16(2)], [np.float32([5, 3]), np.int16([1, 2])], index_type=np.int16)
refuses("TopKV2", [np.zeros((2, 3)), np.int32(4)], "4", "3")
refuses("TopKV2", [np.zeros((2, 3)), np.int32(-1)], "-1")
refuses("TopKV2", [np.float64(3), np.int32(0)], "input")
refuses("TopKV2", [np.zeros(3), np.int32([1])], "k")
refuses("TopKV2", [np.zeros(40000), np.int32(1)], "int64", index_type=np.int16)
refuses("InTopKV2", [np.zeros((2, 3), np.float32), np.int32([0]), np.int32(1)], "2", "1")
refuses("InTopKV2", [np.zeros(3, np.float32), np.int32([0]), np.int32(1)], "predictions")
