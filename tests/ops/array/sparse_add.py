import numpy as np

import sparse
from arrays import i64
from declare import expect, op, refuses, slope

QUANTISED = {"quantised arithmetic needs ranges, which these ops do not carry": "qint8 qint16 qint32 quint8 quint16"}
COMPLEX = {"complex numbers have no order": "complex64 complex128"}
A, B = "a_indices a_values a_shape", "b_indices b_values b_shape"


def operands(d):
    shape = sparse.sizes(d, least=0)
    return [*sparse.tensor(d, A, shape), *sparse.tensor(d, B, shape)]


def with_threshold(d):
    inputs = operands(d)
    least = 0 if d.smooth else d.pick(0, 0, 1, 3)
    if least:  # whole numbers, so that rounding does not decide
        for k, name in ((1, "a_values"), (4, "b_values")):
            inputs[k] = d(name, of=d.rng.integers(0, 4, len(inputs[k])))
    return [*inputs, d("thresh", of=np.array(least))]


def joined(a, x, b, y):
    """Returns the places of either, and for each the numbers of the elements of both, or -1."""
    first, second = ({tuple(p): k for k, p in enumerate(at.tolist())} for at in (a, b))
    keys = sorted(first.keys() | second.keys())
    return sparse.matrix(keys, a.shape[1]), *(np.array([numbers.get(k, -1) for k in keys], int) for numbers in (first, second))


def taken(values, at):
    return np.where(at >= 0, values[at], 0) if len(values) else np.zeros(len(at), values.dtype)


def added(a, x, shape, b, y, _, thresh):
    at, i, j = joined(a, x, b, y)
    u, v = taken(x, i), taken(y, j)
    sums = np.where(i < 0, v, np.where(j < 0, u, u + v)).astype(x.dtype)
    kept = ~(abs(sums) < thresh) if thresh > 0 else np.ones(len(sums), bool)
    return [at[kept], sums[kept], shape]


op("SparseAdd", added, with_threshold, wrt=("a_values", "b_values"), no_kernel=QUANTISED)
at, other, two = i64([0, 1], [1, 0]), i64([0, 0], [0, 1]), i64(2, 2)
x, y = np.float32([1, 2]), np.float32([4, 0.5])
zero = np.float32(0)
expect("SparseAdd", [at, x, two, other, y, two, zero], [i64([0, 0], [0, 1], [1, 0]), np.float32([4, 1.5, 2]), two])
expect("SparseAdd", [at, x, two, other, -x, two, np.float32(2)], [i64([1, 0]), np.float32([2]), two])
expect("SparseAdd", [at, np.float32([np.nan, np.inf]), two, other, y, two, np.float32(4)],
       [i64([0, 0], [0, 1], [1, 0]), np.float32([4, np.nan, np.inf]), two])
# Operands out of order and with repeated places are merged element by element.
expect("SparseAdd", [at[::-1], x, two, other, y, two, zero],
       [i64([0, 0], [0, 1], [1, 0], [0, 1]), np.float32([4, 0.5, 1, 2]), two])
expect("SparseAdd", [i64([0, 1], [0, 1]), x, two, other, y, two, zero],
       [i64([0, 0], [0, 1], [0, 1]), np.float32([4, 1.5, 2]), two])
none = np.zeros((0, 2), np.int64)
expect("SparseAdd", [none, x[:0], two, none, x[:0], two, zero], [none, x[:0], two])
expect("SparseAdd", [np.zeros((1, 0), np.int64), x[:1], i64(), np.zeros((1, 0), np.int64), y[:1], i64(), zero],
       [np.zeros((1, 0), np.int64), np.float32([5]), i64()])
expect("SparseAdd", [i64([2**62, 5]), x[:1], i64(2**63 - 1, 9), i64([2**62, 5]), y[:1], i64(2**63 - 1, 9), zero],
       [i64([2**62, 5]), np.float32([5]), i64(2**63 - 1, 9)])  # sizes whose product overflows
expect("SparseAdd", [at, np.int8([100, -128]), two, other, np.int8([1, 100]), two, np.uint64(128)], [i64([1, 0]), np.int8([-128]), two])
slope("SparseAdd", at, np.array([1.0, 2]), two, other, np.array([4.0, -1.5]), two, np.array(0.75), wrt=[1, 4])


def refuse(name, *last):
    refuses(name, [at, x, two, other, y, i64(2, 3), *last], "a_shape", "[2, 2]", "b_shape", "[2, 3]")
    refuses(name, [at, x, two, np.zeros((0, 3), np.int64), y[:0], i64(2, 2, 1), *last], "a_shape", "b_shape")
    refuses(name, [i64([0, 1], [2, 0]), x, two, other, y, two, *last], "a_indices[1] = [2, 0]", "[2, 2]")
    refuses(name, [at, x, two, i64([0, 1], [0, -1]), y, two, *last], "b_indices[1] = [0, -1]")
    refuses(name, [at, x[:1], two, other, y, two, *last], "a_values", "2", "1")
    refuses(name, [at, x, i64(2, -2), other, y, i64(2, -2), *last], "a_shape", "-2")
    refuses(name, [at[0], x, two, other, y, two, *last], "a_indices", "[2]")
    refuses(name, [at, x, two, other, y[:, None], two, *last], "b_values", "[2, 1]")
    refuses(name, [at, x, two[:1], other, y, two, *last], "a_shape", "2", "1")


refuse("SparseAdd", zero)
refuses("SparseAdd", [at, x, two, other, y, two, x], "thresh", "[2]")

# ---- The gradient ----


def arriving(d):
    inputs = operands(d)
    at, *_ = joined(inputs[0], None, inputs[3], None)
    at = at[d.rng.random(len(at)) < 0.7]  # the others were below the threshold
    return [d("backprop_val_grad", (len(at),)), inputs[0], inputs[3], d("sum_indices", of=at)]


def sent(grads, a, b, sums):
    found = {tuple(p): k for k, p in enumerate(sums.tolist())}
    zero = np.zeros(1, grads.dtype)
    both = np.concatenate([grads, zero])
    return [both[[found.get(tuple(p), -1) for p in at.tolist()]] if len(at) else both[:0] for at in (a, b)]


op("SparseAddGrad", sent, arriving)
expect("SparseAddGrad", [np.float32([1, 2, 4]), at, other, i64([0, 0], [0, 1], [1, 0])], [np.float32([2, 4]), np.float32([1, 2])])
expect("SparseAddGrad", [np.float32([1, 2, 4]), i64([0, 1], [0, 1]), other, i64([0, 0], [0, 1], [0, 1])], [np.float32([2, 4]), np.float32([1, 2])])
refuses("SparseAddGrad", [np.float32([1, 2]), at, other, i64([0, 0], [1, 1])], "sum_indices[1] = [1, 1]")
refuses("SparseAddGrad", [np.float32([1, 2]), at, other, i64([1, 0], [0, 0])], "sum_indices[1] = [0, 0]", "order")
refuses("SparseAddGrad", [np.float32([1]), at, other, i64([0, 0], [0, 1])], "backprop_val_grad", "1", "2")
refuses("SparseAddGrad", [np.float32([1, 2]), at, other[:, :1], i64([0, 0], [0, 1])], "b_indices", "2", "1")
refuses("SparseAddGrad", [np.float32([1, 2]), at, other, i64([0, 0, 0], [0, 1, 0])], "sum_indices", "2", "3")
refuses("SparseAddGrad", [np.float32([[1], [2]]), at, other, i64([0, 0], [0, 1])], "backprop_val_grad", "[2, 1]")
refuses("SparseAddGrad", [np.float32([1, 2]), at[0], other, i64([0, 0], [0, 1])], "a_indices", "[2]")

# ---- The larger and the smaller element ----


def chosen(choose):
    def oracle(a, x, shape, b, y, _):
        at, i, j = joined(a, x, b, y)
        return [at, choose(taken(x, i), taken(y, j)).astype(x.dtype)]

    return oracle


op("SparseSparseMaximum", chosen(np.maximum), operands, zero_signs=False)
op("SparseSparseMinimum", chosen(np.minimum), operands, zero_signs=False, no_kernel=QUANTISED | COMPLEX)
expect("SparseSparseMaximum", [at, np.float32([-1, 2]), two, other, y, two], [i64([0, 0], [0, 1], [1, 0]), np.float32([4, 0.5, 2])])
expect("SparseSparseMinimum", [at, np.float32([-1, 2]), two, other, y, two], [i64([0, 0], [0, 1], [1, 0]), np.float32([0, -1, 0])])
expect("SparseSparseMaximum", [at, np.float32([np.nan, -1]), two, at, y, two], [at, np.float32([np.nan, 0.5])])
expect("SparseSparseMinimum", [at, y, two, at, np.float32([np.nan, -1]), two], [at, np.float32([np.nan, -1])])
for name in ("SparseSparseMaximum", "SparseSparseMinimum"):
    refuse(name)
