import numpy as np

from declare import op, refuses


def pieces(d):
    shape = d.shape(least=1)
    axis = d.axis(len(shape))
    at = axis % len(shape)
    lengths = [d.integer(0, 4) for _ in range(d.integer(2, 4))]
    return [[d("values", shape[:at] + (n,) + shape[at + 1:]) for n in lengths], d("axis", of=axis)]


op("ConcatV2", lambda values, axis: np.concatenate(values, axis), pieces)
m = np.zeros((2, 3), np.float32)
refuses("ConcatV2", [m, m, np.int32(2)], "axis", "2", N=2)
refuses("ConcatV2", [m, np.zeros(2, np.float32), np.int32(0)], "[2, 3]", "[2]", N=2)
