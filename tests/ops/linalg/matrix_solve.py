import numpy as np

from declare import op, refuses
from matrices import batch, each, exactly, numbers, regular, size_of, wide

loose = dict(ulps=512, half_ulps=8, zero_signs=False)


def square(d):
    return [d("input", of=regular(d, "input", batch(d), size_of(d)))]


def system(d):
    shape, n, columns = batch(d), size_of(d), d.integer(1 if d.smooth else 0, 3)
    return [d("matrix", of=regular(d, "matrix", shape, n)), d("rhs", of=numbers(d, "rhs", (*shape, n, columns)))]


def triangular(d):
    """Draws triangular matrices with anything in the other triangle, and axes that broadcast."""
    n, columns, (left, right) = size_of(d), d.integer(1 if d.smooth else 0, 3), d.pick(((), ()), ((2,), (2,)), ((2, 3), (3,)), ((), (2,)), ((2, 1), (1, 3)))
    matrix = numbers(d, "matrix", (*left, n, n)) + 3 * np.eye(n)
    return [d("matrix", of=matrix), d("rhs", of=numbers(d, "rhs", (*right, n, columns)))]


def turned(a, adjoint):
    return np.conj(a.T) if adjoint else a


def solve(a, b, *, adjoint):
    return exactly(b, each(lambda x, y: np.linalg.solve(turned(x, adjoint), y), a, b))


def triangular_solve(a, b, *, lower, adjoint):
    a, b = wide(np.tril(a) if lower else np.triu(a)), wide(b)
    shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = np.broadcast_to(a, (*shape, *a.shape[-2:])), np.broadcast_to(b, (*shape, *b.shape[-2:]))
    return exactly(b, each(lambda x, y: np.linalg.solve(turned(x, adjoint), y), a, b))


def log_determinant(x):
    signs, logs = (each(lambda m, k=k: np.asarray(np.linalg.slogdet(m)[k], m.dtype), x) for k in (0, 1))
    return [exactly(x, signs), exactly(x, logs + 0)]


op("MatrixInverse", lambda x, *, adjoint: exactly(x, each(lambda m: np.linalg.inv(turned(m, adjoint)), x)), square, **loose)
op("MatrixDeterminant", lambda x: exactly(x, each(np.linalg.det, x)), square, **loose)
op("LogMatrixDeterminant", log_determinant, square, ulps=4096, half_ulps=32, zero_signs=False)
op("MatrixSolve", solve, system, **loose)
op("MatrixTriangularSolve", triangular_solve, triangular, ulps=4096, half_ulps=32, zero_signs=False)

a, b = np.eye(3, dtype=np.float32), np.ones((3, 2), np.float32)
for name in ("MatrixInverse", "MatrixDeterminant", "LogMatrixDeterminant"):
    refuses(name, [a[0]], "[3]")
    refuses(name, [b], "[3, 2]")
for name in ("MatrixSolve", "MatrixTriangularSolve"):
    refuses(name, [a, b[:2]], "3", "2")
    refuses(name, [b, b], "[3, 2]")
    refuses(name, [a, b[:, 0]], "rhs", "[3]")
refuses("MatrixSolve", [a, b[None]], "matrix", "rhs")
refuses("MatrixTriangularSolve", [np.stack([a, a]), np.stack([b, b, b])], "[2, 3, 3]", "[3, 3, 2]")
singular = np.zeros((2, 3, 3), np.float32)
singular[0] = a
refuses("MatrixInverse", [singular], "matrix 1 of 2", "not invertible")
refuses("MatrixSolve", [singular, np.stack([b, b])], "matrix 1 of 2", "not invertible")
refuses("MatrixTriangularSolve", [singular, b], "matrix 1 of 2", "not invertible")
