import numpy as np

from declare import op, refuses, same
from ulps import near


def total(arrays):
    sizes = sum(abs(x) for x in arrays) if arrays[0].dtype.kind in "fc" else 0
    return near(sum(arrays[1:], arrays[0]), sizes)


op("AddN", total, ulps=4, zero_signs=False)


def shaped(d):
    """Draws a shape that the attribute knows fully, partly or not at all."""
    arrays = same(d)
    shape = arrays[0][0].shape
    d.set(shape=d.pick(None, shape, tuple(-1 for _ in shape)))
    return arrays


op("AccumulateNV2", total, shaped, ulps=4, zero_signs=False,
   no_kernel={"quantised arithmetic needs ranges, which this op does not carry": "qint8 qint16 qint32 quint8 quint16"})
refuses("AccumulateNV2", [np.zeros(2), np.zeros(3)], "[2]", "[3]", shape=None, N=2)
refuses("AccumulateNV2", [np.zeros(2), np.zeros(2)], "[2]", "[4]", shape=(4,), N=2)
