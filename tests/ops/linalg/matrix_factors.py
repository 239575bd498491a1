import numpy as np

from declare import op, refuses
from matrices import batch, definite, each, exactly, numbers, size_of

loose = dict(ulps=4096, half_ulps=64, zero_signs=False)


def any_matrix(d):
    shape = batch(d), (size_of(d), size_of(d))
    if d.smooth:
        d.set(full_matrices=False)
    return [d("input", of=numbers(d, "input", (*shape[0], *shape[1])))]


def hermitian(d):
    x = definite(d, batch(d), size_of(d))
    n = x.shape[-1]
    return [d("input", of=np.tril(x) + np.triu(numbers(d, "input", x.shape), 1) + np.diag(np.arange(n)))]


def qr(x, *, full_matrices):
    mode = "complete" if full_matrices else "reduced"
    return [exactly(x, each(lambda m, k=k: np.linalg.qr(m, mode)[k], x)) for k in (0, 1)]


def singular_values(x, *, compute_uv):
    values = each(lambda m: np.linalg.svd(m, compute_uv=False).astype(m.dtype), x)
    return [exactly(x, values), None, None] if compute_uv else [exactly(x, values), np.zeros(0, x.dtype), np.zeros(0, x.dtype)]


def eigenvalues(x, *, compute_v):
    values = each(lambda m: np.linalg.eigvalsh(m).astype(m.dtype), x)
    return [exactly(x, values), None] if compute_v else [exactly(x, values), np.zeros(0, x.dtype)]


op("Qr", qr, any_matrix, **loose)
# linalg_test.py checks the vectors, which are unique up to their signs only.
op("Svd", singular_values, any_matrix, smooth_types="double", **loose)
op("SelfAdjointEigV2", eigenvalues, hermitian, smooth_types="double", **loose)

x = np.ones((2, 3), np.float32)
for name in ("Qr", "Svd"):
    refuses(name, [x[0]], "[3]")
refuses("SelfAdjointEigV2", [x[0]], "[3]")
refuses("SelfAdjointEigV2", [x], "[2, 3]")
refuses("SelfAdjointEigV2", [np.float32([[1, 2], [np.nan, 1]])], "matrix 0", "not finite")
