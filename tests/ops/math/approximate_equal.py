import numpy as np

from declare import expect, op, refuses
from domains import whole

QUANTISED = {"quantised arithmetic needs ranges, which this op does not carry": "qint8 qint16 qint32 quint8 quint16"}


def near_one(d):
    d.set(tolerance=d.pick(1e-5, 1.5, 3.0, 0.0))
    shape = d.shape()
    return [d("x", shape), d("y", shape)]


def approximately(x, y, *, tolerance):
    apart = np.where(x < y, y - x, x - y) if x.dtype.kind in "iu" else abs(x - y)
    return apart.astype(np.uint64 if x.dtype.kind in "iu" else np.longdouble) < tolerance


op("ApproximateEqual", approximately, near_one, domain=whole(0, 5), no_kernel=QUANTISED)
expect("ApproximateEqual", [np.array([1, np.nan, np.inf, 2]), np.array([1, np.nan, np.inf, 2.000001])],
       [np.array([True, False, False, True])])
expect("ApproximateEqual", [np.array([-2**63, 2**63 - 1]), np.array([2**63 - 1, 2**63 - 1])], [np.array([False, True])])
refuses("ApproximateEqual", [np.zeros(2), np.zeros(3)], "[2]", "[3]")
refuses("ApproximateEqual", [np.zeros(2), np.float64(1)], "[2]", "[]")
