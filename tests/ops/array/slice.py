import numpy as np

from declare import op, refuses


def block(d):
    x = d("input")
    begin = np.array([d.integer(0, size) for size in x.shape], int)
    size = np.array([d.pick(-1, d.integer(0, n - b)) for n, b in zip(x.shape, begin)], int)
    return [x, d("begin", of=begin), d("size", of=size)]


op("Slice", lambda x, begin, size: x[tuple(slice(b, None if n < 0 else b + n) for b, n in zip(begin, size))], block)
m = np.zeros((2, 3), np.float32)
refuses("Slice", [m, np.int32([-1, 0]), np.int32([1, 1])], "begin", "-1")
refuses("Slice", [m, np.int32([1, 0]), np.int32([2, 1])], "1", "2")
