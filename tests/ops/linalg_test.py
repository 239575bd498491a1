"""Tests of factors that are unique only up to signs: their product is the matrix, their columns are orthonormal; of all shapes, of
rank-deficient matrices and of matrices with equal, tiny and huge values. Gradients of Cholesky for symmetric matrices."""
import numpy as np

import cases
import tw
from thalweg import gradients

rng = np.random.default_rng(5)
EPS = {np.float32: 1e-5, np.float64: 1e-12, np.complex64: 1e-5, np.complex128: 1e-12}


def drawn(shape, dtype):
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def near(where, got, wanted, eps, scale=1.0):
    cases.holds(where, got.shape == wanted.shape and np.all(abs(got - wanted) <= eps * max(scale, 1e-300)), f"{got} is not {wanted}")


def orthonormal(where, x, eps):
    near(f"{where} has orthonormal columns", adjoint(x) @ x, np.broadcast_to(np.eye(x.shape[-1]), (*x.shape[:-2], x.shape[-1], x.shape[-1])), 4 * eps)


def matrices(dtype):
    """Yields matrices that try different paths: shapes, ranks, equal and zero singular values, scales."""
    for m, n in ((1, 1), (5, 3), (3, 5), (4, 4), (1, 6), (6, 1), (33, 20), (20, 33)):
        yield f"{m} x {n}", drawn((m, n), dtype)
        yield f"{m} x {n} of rank 1", drawn((m, 1), dtype) @ drawn((1, n), dtype)
    yield "zeros", np.zeros((4, 3), dtype)
    yield "a unit matrix", np.eye(5, dtype=dtype)
    yield "two batches", drawn((2, 2, 4, 3), dtype)
    yield "no rows", np.zeros((0, 3), dtype)
    yield "no columns", np.zeros((3, 0), dtype)
    if dtype in (np.float64, np.complex128):
        yield "huge numbers", drawn((4, 3), dtype) * 1e200
        yield "tiny numbers", drawn((4, 3), dtype) * 1e-200


def spread(s, m, n):
    """Returns the matrix with these values on its diagonal."""
    whole = np.zeros((*s.shape[:-1], m, n), s.dtype)
    k = np.arange(s.shape[-1])
    whole[..., k, k] = s
    return whole


for dtype, eps in EPS.items():
    for name, x in matrices(dtype):
        m, n = x.shape[-2:]
        scale = abs(x).max(initial=0)
        for full in (False, True):
            where = f"{np.dtype(dtype)} {name}, full_matrices={full}"
            s, u, v = tw.run("Svd", [x], 3, full_matrices=full)
            near(f"Svd of {where}", u @ spread(s, u.shape[-1], v.shape[-1]) @ adjoint(v), x, 16 * eps, scale)
            orthonormal(f"u of {where}", u, eps)
            orthonormal(f"v of {where}", v, eps)
            cases.holds(f"s of {where} falls", np.all(np.diff(s.real) <= 0) and np.all(s.real >= 0), s)
            q, r = tw.run("Qr", [x], 2, full_matrices=full)
            near(f"Qr of {where}", q @ r, x, 16 * eps, scale)
            orthonormal(f"q of {where}", q, eps)
            cases.holds(f"r of {where} is upper triangular", not np.tril(r, -1).any(), r)
        if m == n:
            x = x + adjoint(x)
            e, v = tw.run("SelfAdjointEigV2", [x], 2)
            near(f"SelfAdjointEigV2 of {np.dtype(dtype)} {name}", v @ spread(e, n, n) @ adjoint(v), x, 16 * eps, scale)
            orthonormal(f"vectors of {np.dtype(dtype)} {name}", v, eps)
            cases.holds(f"values of {np.dtype(dtype)} {name} rise", np.all(np.diff(e.real) >= 0), e)

for x in (np.array([[1, 2], [2, 1]], np.float32), np.full((2, 2), np.nan), np.array([[1, 0], [0, -1]], np.complex64)):
    (y,) = tw.run("Cholesky", [x], 1)
    cases.holds(f"a matrix without a Cholesky factor {x}", np.isnan(np.tril(y)).sum() >= 3 and not np.triu(y, 1).any(), y)
for x in (np.full((3, 2), np.nan), np.array([[np.inf, 1], [1, 1]], np.float32)):
    s, u, v = tw.run("Svd", [x], 3)
    cases.holds(f"Svd of {x} is not finite", not np.isfinite(s).all(), s)
logs = tw.run("LogMatrixDeterminant", [np.zeros((2, 2), np.float32)], 2)
cases.holds("the determinant of a singular matrix", logs[0] == 0 and logs[1] == -np.inf, logs)

# The gradient of Cholesky for a symmetric matrix, X X' + 1, and its second derivative, against central differences.
for n in (1, 3):
    x, weights = rng.normal(size=(n, n)), [np.tril(rng.normal(size=(n, n))), rng.normal(size=(n, n))]
    graph = tw.Graph()
    feed = graph.placeholder(np.float64, (n, n))
    definite = graph.op("AddV2", graph.op("MatMul", feed, feed, transpose_b=True), graph.constant(np.eye(n)))
    y = graph.op("Cholesky", definite)
    (dx,) = gradients([y], [feed], [graph.constant(weights[0])])
    (ddx,) = gradients([dx], [feed], [graph.constant(weights[1])])
    session = graph.session()
    for value, slope, weight, what in ((y, dx, weights[0], "first"), (dx, ddx, weights[1], "second")):
        wanted = np.zeros((n, n))
        for at in np.ndindex(n, n):
            ends = []
            for side in (1e-5, -1e-5):
                moved = x.copy()
                moved[at] += side
                ends.append((session.run([value], {feed: moved})[0] * weight).sum())
            wanted[at] = (ends[0] - ends[1]) / 2e-5
        near(f"the {what} derivative of Cholesky of {n} x {n}", session.run([slope], {feed: x})[0], wanted, 1e-6, abs(wanted).max())
    direct = tw.run("CholeskyGrad", [np.linalg.cholesky(x @ x.T + np.eye(n)), weights[0]], 1)[0]
    (symmetric,) = gradients([y], [definite], [graph.constant(weights[0])])
    near(f"CholeskyGrad of {n} x {n}", direct, graph.session().run([symmetric], {feed: x})[0], 1e-12, abs(direct).max())
cases.finish()
