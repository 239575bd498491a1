import numpy as np

from declare import expect, op, refuses, slope
from domains import normal
from ulps import near

OTHERS = ("string bool int8 int16 uint8 uint16 uint32 uint64 qint8 qint16 qint32 quint8 quint16 float8_e5m2 float8_e4m3fn float8_e4m3fnuz "
          "float8_e4m3b11fnuz float8_e5m2fnuz int4 uint4 int2 uint2")


def factors(rows, inner, columns, stored, sort):
    """Returns a function that draws the inputs of a product. Positions may repeat, and are sorted by row or in any order."""
    def draw(d):
        m, k, n, nnz = (d.integer(*size) if isinstance(size, tuple) else size for size in (rows, inner, columns, stored))
        a_shape = (k, m) if d.attrs["adjoint_a"] else (m, k)
        nnz = nnz if m and k else 0
        at = np.stack([d.rng.integers(0, max(size, 1), nnz) for size in a_shape], 1)
        if sort == "sorted" or sort == "either" and d.integer(0, 1):
            at = at[np.lexsort(at.T[::-1])]
        return [d("a_indices", of=at), d("a_values", (nnz,)), d("a_shape", of=a_shape), d("b", (n, k) if d.attrs["adjoint_b"] else (k, n))]
    return draw


small, large = factors((0, 9), (0, 9), (0, 9), (0, 40), "either"), factors(300, 200, 137, 3000, "either")


def drawn(d):
    if d.smooth:
        return factors((1, 3), (1, 3), (0, 3), (0, 4), "either")(d)
    return (large if d.large else small)(d)


# A vector; more columns than a task takes; few elements of very many rows, sorted and unsorted; one long row.
others = [factors(70, 60, 1, 900, "any"), factors(5, 9, 700, 40, "sorted"), factors(70001, 5, 2, 60, "sorted"), factors(70001, 5, 2, 60, "any"),
          factors(1, 50, 19, 500, "any"), factors(70001, 5, 3, 0, "any")]


def adjoint(x):
    return np.conj(x.T)


def product(a_indices, a_values, a_shape, b, *, adjoint_a, adjoint_b):
    def times(values, b):
        b = adjoint(b) if adjoint_b else b
        values = np.conj(values) if adjoint_a else values
        rows, columns = (a_indices[:, 1], a_indices[:, 0]) if adjoint_a else (a_indices[:, 0], a_indices[:, 1])
        y = np.zeros((a_shape[1] if adjoint_a else a_shape[0], b.shape[1]), b.dtype)
        with np.errstate(all="ignore"):
            np.add.at(y, rows, values[:, None] * b[columns])
        return y
    return near(times(a_values, b), times(abs(a_values), abs(b))) if b.dtype.kind in "fc" else times(a_values, b)


op("SparseTensorDenseMatMul", product, drawn, domain=normal.calm, ulps=16, zero_signs=False, also=others,
   types=dict(T="half bfloat16 float double int32 int64 complex64 complex128"), no_kernel={"as TensorFlow's, and int64": OTHERS})

at, values, sizes = np.int64([[1, 0], [0, 2], [1, 0]]), np.array([2.0, 3.0, 0.5]), np.int64([2, 3])
b = np.arange(6.0).reshape(3, 2) + 1
expect("SparseTensorDenseMatMul", [at, values, sizes, b], [np.array([[15.0, 18.0], [2.5, 5.0]])])
expect("SparseTensorDenseMatMul", [at, values, sizes, b.T.copy()], [np.array([[15.0, 18.0], [2.5, 5.0]])], adjoint_b=True)
expect("SparseTensorDenseMatMul", [at, values, sizes, b[:2]], [np.array([[7.5, 10.0], [0.0, 0.0], [3.0, 6.0]])], adjoint_a=True)
expect("SparseTensorDenseMatMul", [np.int32([[0, 1]]), np.array([2j]), np.int64([1, 2]), np.array([[1j], [3j]])], [np.array([[-6 + 0j]])])
expect("SparseTensorDenseMatMul", [np.int32([[0, 1]]), np.array([2j]), np.int64([1, 2]), np.array([[3j]])], [np.array([[0j], [6 + 0j]])],
       adjoint_a=True)
# Rows of the dense matrix that no stored element uses do not count.
expect("SparseTensorDenseMatMul", [at[:1], values[:1], sizes, np.array([[1.0], [np.nan], [np.inf]])], [np.array([[0.0], [2.0]])])
# Very many rows without an element.
none = np.zeros((0, 2), np.int64), np.zeros(0)
expect("SparseTensorDenseMatMul", [*none, np.int64([1 << 40, 4]), np.zeros((4, 0))], [np.zeros((1 << 40, 0))])
# 2049 is no half, and the sum of 2048 and eight times 0.5, each rounded to half, would be 2048.
many = np.array([2048.0] + [0.5] * 8, np.float16)
expect("SparseTensorDenseMatMul", [np.int64([[0, 0]] * 9), many, np.int64([1, 1]), np.ones((1, 1), np.float16)], [np.float16([[2052]])])
slope("SparseTensorDenseMatMul", at.astype(np.int32), values, sizes, b)
slope("SparseTensorDenseMatMul", at, values, sizes, b[:2], adjoint_a=True)
slope("SparseTensorDenseMatMul", at, values + 1j, sizes, b[:2].T + 2j * b[1:].T, adjoint_a=True, adjoint_b=True)

refuses("SparseTensorDenseMatMul", [np.int64([[1, 0], [2, 2], [1, 0]]), values, sizes, b], "a_indices[1, 0] = 2", "[2, 3]")
refuses("SparseTensorDenseMatMul", [np.int32([[1, 0], [0, 2], [1, -1]]), values, sizes, b], "a_indices[2, 1] = -1", "[2, 3]")
refuses("SparseTensorDenseMatMul", [np.int32([[1, 0], [0, 3], [1, 0]]), values, sizes, b[:2, :0]], "a_indices[1, 1] = 3", adjoint_a=True)
refuses("SparseTensorDenseMatMul", [at[:, :1], values, sizes, b], "a_indices", "1", "2")
refuses("SparseTensorDenseMatMul", [at[0], values, sizes, b], "a_indices", "[2]")
refuses("SparseTensorDenseMatMul", [at, values[:2], sizes, b], "a_indices", "3", "2")
refuses("SparseTensorDenseMatMul", [at, values[:, None], sizes, b], "a_values", "[3, 1]")
refuses("SparseTensorDenseMatMul", [at, values, np.int64([2, 3, 4]), b], "a_shape", "3", "2")
refuses("SparseTensorDenseMatMul", [at, values, np.int64([2, -3]), b], "a_shape", "-3")
refuses("SparseTensorDenseMatMul", [at, values, np.int64(2), b], "a_shape")
refuses("SparseTensorDenseMatMul", [at, values, sizes, b[0]], "b", "[2]")
refuses("SparseTensorDenseMatMul", [at, values, sizes, b.T.copy()], "inner dimensions differ", "[2, 3]")
refuses("SparseTensorDenseMatMul", [at, values, sizes, b], "inner dimensions differ", "[3, 2]", adjoint_a=True)
