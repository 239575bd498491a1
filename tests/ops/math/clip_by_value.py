import numpy as np

from declare import expect, op, refuses
from domains import between, distinct, normal

LACKS = {"quantised arithmetic needs ranges": "qint8 qint16 qint32 quint8 quint16"}


def bounded(d):
    t = d("t")
    shapes = [d.pick((), t.shape) for _ in range(2)]
    return [t, d("clip_value_min", shapes[0]), d("clip_value_max", shapes[1])]


def clip(t, low, high):
    if t.dtype.kind == "c":
        found = np.empty_like(t)
        found.real, found.imag = clip(t.real, low.real, high.real), clip(t.imag, low.imag, high.imag)
        return found
    below = np.where(high < t, high, t)
    return np.where(below < low, low, below)


far = dict(t=distinct, clip_value_min=between(-1.7, -1.65), clip_value_max=between(1.65, 1.7))
op("ClipByValue", clip, bounded, domain=normal, smooth=far, no_kernel=LACKS)
expect("ClipByValue", [np.array([1.0, 4, 9]), np.array(5.0), np.array(3.0)], [np.array([5.0, 5, 5])])
expect("ClipByValue", [np.array([np.nan, 2, 9]), np.array(5.0), np.array(6.0)], [np.array([np.nan, 5, 6])])
expect("ClipByValue", [np.array([1 + 2j, -3j, 5]), np.array(0j), np.array(2 + 1j)], [np.array([1 + 1j, 0, 2])])
expect("ClipByValue", [np.array([1.0, 2, 9]), np.array(np.nan), np.array(6.0)], [np.array([1.0, 2, 6])])
refuses("ClipByValue", [np.zeros(3), np.zeros(1), np.float64(1)], "[3]", "[1]")
refuses("ClipByValue", [np.zeros(3), np.float64(0), np.zeros((3, 1))], "[3]", "[3, 1]")
