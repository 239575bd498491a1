import numpy as np

from declare import op, refuses


def joined(d):
    shape = list(d.shape(least=1))
    axis = d.axis(len(shape))
    sizes = [shape[axis], *(d.integer(0, 4) for _ in range(d.integer(1, 3)))]
    values = []
    for shape[axis] in sizes:
        values.append(d("values", shape))
    return [d("concat_dim", of=axis), values]


def shapes(d):
    rank = d.integer(1, 5)
    axis, shape = d.axis(rank), d.rng.integers(0, 9, rank)
    values = []
    for shape[axis] in d.rng.integers(0, 9, d.integer(2, 4)):
        values.append(d("shape", of=shape.copy()))
    return [d("concat_dim", of=axis), values]


def offsets(axis, shapes):
    begin, found = np.zeros_like(shapes[0]), []
    for shape in shapes:
        found.append(begin.copy())
        begin[axis] += shape[axis]
    return found


op("Concat", lambda axis, values: np.concatenate(values, axis), joined)
op("ConcatOffset", offsets, shapes)

m = np.zeros((2, 3), np.float32)
refuses("Concat", [np.int32(2), m, m], "concat_dim", "2", N=2)
refuses("Concat", [np.int32(-3), m, m], "concat_dim", "-3", N=2)
refuses("Concat", [np.int32(0), m, np.zeros((2, 2), np.float32)], "[?, 3]", "[?, 2]", N=2)
refuses("Concat", [np.int32(0), m, np.zeros(2, np.float32)], "[2, 3]", "[2]", N=2)
refuses("Concat", [np.int32([0]), m, m], "concat_dim", N=2)
refuses("Concat", [np.int32(0), np.float32(1), np.float32(1)], "rank 1", N=2)
refuses("ConcatOffset", [np.int32(2), np.int32([1, 2]), np.int32([1, 2])], "concat_dim", "2", N=2)
refuses("ConcatOffset", [np.int32(0), np.int32([1, 2]), np.int32([1, 3])], "2", "3", "0", N=2)
refuses("ConcatOffset", [np.int32(0), np.int32([1, 2]), np.int32([1])], "[2]", "[1]", N=2)
refuses("ConcatOffset", [np.int32(0), np.int32([2**31 - 1]), np.int32([1]), np.int32([1])], "0", N=3)
refuses("ConcatOffset", [np.int32([0]), np.int32([1]), np.int32([1])], "concat_dim", N=2)
