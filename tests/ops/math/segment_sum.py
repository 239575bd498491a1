import numpy as np

from declare import expect, op, refuses, slope
from domains import Domain, distinct, whole
from ulps import near


def segments(d):
    """Draws rows, the segment of each (some rows have none), and the number of segments."""
    shape = d.shape(least=1)
    n = d.integer(1 if d.smooth else 0, 5)
    ids = d.rng.integers(-1, max(n, 1), shape[:d.integer(0, len(shape))]) if n else np.full(shape[:1], -1)
    return [d("data", shape), d("segment_ids", of=ids), d("num_segments", of=n)]


def segment_sum(data, ids, n):
    sums = np.zeros((2, n, *data.shape[ids.ndim:]), data.dtype)
    np.add.at(sums[0], ids[ids >= 0], data[ids >= 0])
    np.add.at(sums[1], ids[ids >= 0], abs(data[ids >= 0]))
    return near(*sums) if data.dtype.kind in "fc" else sums[0]


op("UnsortedSegmentSum", segment_sum, segments, domain=dict(data=whole(-9, 9)), ulps=4)
refuses("UnsortedSegmentSum", [np.zeros((2, 3), np.float32), np.int32([0, 3]), np.int32(3)], "segment_ids", "3")


def combined(f, empty):
    def oracle(data, ids, n):
        result = np.full((n, *data.shape[ids.ndim:]), 1 if empty is None else 0, data.dtype)
        for s in range(n):
            if empty is None or (ids == s).any():
                result[s] = f(data[ids == s])
        return result
    return oracle


def product(rows):
    return np.prod(rows, 0, dtype=rows.dtype)


def filled(d):
    """Draws segments that each have a row; a case below covers segments without one."""
    data, ids, n = segments(d)
    if set(range(int(n))) <= set(ids.ravel().tolist()):
        return [data, ids, n]
    return [data, np.zeros_like(ids), d("num_segments", of=min(ids.size, 1))]


moderate = Domain(lambda rng, shape, smooth: rng.uniform(0.7, 1.4, shape) * rng.choice([-1, 1], shape), lambda x: abs(x) == 1)
op("UnsortedSegmentProd", combined(product, None), segments, domain=dict(data=moderate), ulps=64, half_ulps=2,
   no_kernel={"quantised arithmetic needs ranges, which this op does not carry": "qint8 qint16 qint32 quint8 quint16"})
op("UnsortedSegmentMax", combined(lambda rows: rows.max(0), 0), filled, smooth=dict(data=distinct), zero_signs=False)
op("UnsortedSegmentMin", combined(lambda rows: rows.min(0), 0), filled, smooth=dict(data=distinct), zero_signs=False)
highest = float(np.finfo(np.float32).max)
for name, none in (("UnsortedSegmentProd", 1), ("UnsortedSegmentMax", -highest), ("UnsortedSegmentMin", highest)):
    expect(name, [np.float32([[1], [2]]), np.int32([0, -2]), np.int32(2)], [np.float32([[1], [none]])])
    refuses(name, [np.zeros((2, 3), np.float32), np.int32([0, 3]), np.int32(3)], "segment_ids", "3")
expect("UnsortedSegmentMax", [np.float64([-np.inf, np.nan]), np.int32([0, 1]), np.int32(2)], [np.float64([-np.inf, np.nan])])
slope("UnsortedSegmentProd", np.array([2.0, 0, 3, 4]), np.int32([0, 1, 1, 0]), np.int32(2), wrt=[0])
slope("UnsortedSegmentProd", np.array([[2.0, 0], [0, 3], [0, 0], [5, 0]]), np.int32([1, 1, 1, 0]), np.int32(3), wrt=[0])
for name in ("UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMax", "UnsortedSegmentMin"):
    slope(name, np.array([[1.0, 2], [3, 4], [5, 6]]), np.int32([-1, -3, -1]), np.int32(0), wrt=[0])  # no segments
    slope(name, np.array([[1.0, 2], [3, 4], [5, 6]]), np.int64([-1, 1, 0]), np.int32(2), wrt=[0])
slope("UnsortedSegmentMax", np.array([2.0, 2, 3, 4]), np.int32([0, 1, 1, -1]), np.int32(2), wrt=[0])
