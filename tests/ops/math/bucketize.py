import numpy as np

from declare import expect, op, refuses
from domains import everything, normal


def bucketed(d):
    d.set(boundaries=sorted(float(v) for v in np.round(d.rng.normal(0, 8, d.integer(1, 6)), d.integer(0, 2))))
    return [d("input")]


def bucketize(x, *, boundaries):
    return np.searchsorted(np.array(boundaries, np.longdouble), x.astype(np.longdouble), "right")


op("Bucketize", bucketize, bucketed, domain=everything(normal), given=dict(boundaries=[0.0]))
expect("Bucketize", [np.array([np.nan, 2, -5, 10, -0.0])], [np.int32([3, 2, 0, 3, 1])], boundaries=[0.0, 2.0, 10.0])
expect("Bucketize", [np.array([2**53 + 1, 2**63 - 1, -2**63])], [np.int32([1, 1, 0])], boundaries=[float(2**53), float(2**63)])
expect("Bucketize", [np.array([-3, 2**63 - 1])], [np.int32([2, 2])], boundaries=[-np.inf, -1e30, np.inf])
refuses("Bucketize", [np.zeros(2)], "number 2 is 10 after 20", boundaries=[0.0, 20.0, 10.0])
refuses("Bucketize", [np.zeros(2)], "nan", boundaries=[0.0, np.nan])
