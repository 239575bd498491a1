import numpy as np

from declare import expect, op, refuses, slope
from domains import Domain, distinct, normal
from ulps import near

QUANTISED = {"quantised arithmetic needs ranges, which this op does not carry": "qint8 qint16 qint32 quint8 quint16"}
moderate = Domain(lambda rng, shape, smooth: rng.uniform(0.7, 1.4, shape) * rng.choice([-1, 1], shape), lambda x: abs(x) == 1)


def segments(d):
    shape = d.shape(least=1)
    ids = np.sort(d.rng.integers(0, max(1, shape[0]), shape[0]))
    return [d("data", shape), d("segment_ids", of=ids)]


def reduced(f):
    """Returns f(rows) for each segment that has rows, and 0 for the others."""
    def oracle(data, ids):
        result = np.zeros((ids.max(initial=-1) + 1, *data.shape[1:]), data.dtype)
        for s in range(len(result)):
            if (ids == s).any():
                result[s] = f(data[ids == s])
        return result
    return oracle


def total(rows):
    return np.sum(rows, 0, dtype=rows.dtype)


def mean(rows):
    if rows.dtype.kind in "fc":
        return total(rows) / len(rows)
    sums = np.sum(rows, 0)  # of 64 bits
    return (sums - np.fmod(sums, sums.dtype.type(len(rows)))) // sums.dtype.type(len(rows))


def sized(f):
    def oracle(data, ids):
        result = reduced(f)(data, ids)
        return near(result, reduced(f)(abs(data), ids)) if data.dtype.kind in "fc" else result
    return oracle


def product(data, ids):
    result = reduced(lambda rows: np.prod(rows, 0, dtype=rows.dtype))(data, ids)
    result[~np.isin(np.arange(len(result)), ids)] = 1
    return result


op("SegmentSum", sized(total), segments, domain=dict(data=normal.calm), ulps=4, zero_signs=False, no_kernel=QUANTISED)
op("SegmentMean", sized(mean), segments, domain=dict(data=normal.calm), ulps=4, zero_signs=False, no_kernel=QUANTISED)
op("SegmentProd", product, segments, domain=dict(data=moderate), ulps=64, half_ulps=2, no_kernel=QUANTISED)
op("SegmentMax", reduced(lambda rows: rows.max(0)), segments, smooth=dict(data=distinct), zero_signs=False)
op("SegmentMin", reduced(lambda rows: rows.min(0)), segments, smooth=dict(data=distinct), zero_signs=False)
zeros = np.array([2.0, 0, 3, 0, 0, 5, 0, 4, 0, 0, 2])
slope("SegmentProd", zeros, np.int32([0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 3]), wrt=[0])
slope("SegmentProd", zeros * (1 + 2j), np.int32([0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 3]), wrt=[0])
for name, none in (("SegmentSum", 0), ("SegmentMean", 0), ("SegmentProd", 1), ("SegmentMax", 0), ("SegmentMin", 0)):
    expect(name, [np.float32([[1], [2]]), np.int32([0, 2])], [np.float32([[1], [none], [2]])])
    refuses(name, [np.zeros((2, 1)), np.int32([1, 0])], "0", "1")
    refuses(name, [np.zeros((2, 1)), np.int32([-1, 0])], "-1")
    refuses(name, [np.zeros((2, 1)), np.int64([0, 2**63 - 1])], str(2**63 - 1))
    refuses(name, [np.zeros((2, 1)), np.int32([0])], "segment_ids", "1", "2")
    refuses(name, [np.float64(1), np.int32([0])], "data")

# The count of a half segment goes beyond 2048: the gradient of a mean of 3000 rows.
expect("SegmentMean", [np.ones((3000, 1), np.float16), np.zeros(3000, np.int32)], [np.ones((1, 1), np.float16)])
