import numpy as np

from declare import op, refuses
from domains import normal
from matrices import batch, definite, each, exactly, size_of

op("Cholesky", lambda x: exactly(x, each(np.linalg.cholesky, x)), lambda d: [d("input", of=definite(d, batch(d), size_of(d)))], ulps=64,
   half_ulps=2, zero_signs=False, no_gradient="it is the gradient of a symmetric input, which linalg_test.py checks")


def factors(d):
    shape, n = batch(d), size_of(d, 1)
    lower = np.tril(d.rng.normal(size=(*shape, n, n)), -1) / n + (1 + d.rng.random((*shape, n, n))) * np.eye(n)
    return [d("l", of=lower), d("grad", (*shape, n, n))]


def grad(factor, dl):
    def one(ll, d):
        inverse, middle = np.linalg.inv(ll), np.tril(ll.T @ np.tril(d))
        middle -= np.diag(np.diag(middle)) / 2
        whole = inverse.T @ middle @ inverse
        return (whole + whole.T) / 2
    return exactly(dl, each(one, factor, dl))


op("CholeskyGrad", grad, factors, domain=dict(grad=normal.plain), ulps=4096, half_ulps=16, zero_signs=False)
one = np.eye(3, dtype=np.float32)
refuses("Cholesky", [one[0]], "[3]")
refuses("Cholesky", [one[:2]], "[2, 3]")
refuses("CholeskyGrad", [one, one[:2, :2]], "[3, 3]", "[2, 2]")
refuses("CholeskyGrad", [one[:2], one[:2]], "[2, 3]")
