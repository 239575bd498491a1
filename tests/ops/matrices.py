"""Batches of matrices for the ops of linear algebra, and NumPy's float64 functions applied to each of them."""
import numpy as np

from ulps import near


def batch(d):
    """Draws the axes before the last two."""
    return d.pick((), (), (1,), (2,), (0,), (2, 3)) if not d.smooth else d.pick((), (2,))


def size_of(d, least=0):
    return d.integer(max(least, 1), 3) if d.smooth else d.pick(17, 40) if d.large else d.integer(least, 6)


def numbers(d, name, shape):
    """Draws plain numbers for an input, complex ones if its type is."""
    x = d.rng.normal(size=shape)
    return x + 1j * d.rng.normal(size=shape) if d.dtype(name).kind == "c" else x


def definite(d, shape, n, name="input"):
    """Draws Hermitian positive definite matrices that are far from singular."""
    x = numbers(d, name, (*shape, n, n))
    return x @ np.conj(np.swapaxes(x, -1, -2)) / max(n, 1) + np.eye(n)


def regular(d, name, shape, n):
    """Draws matrices that are far from singular."""
    return numbers(d, name, (*shape, n, n)) / max(n, 1) ** 0.5 + 2 * np.eye(n)


def wide(x):
    """Returns an oracle's input in the type that NumPy's linear algebra computes in."""
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def each(f, *stacks):
    """Applies f to each matrix. The stacks share the axes before the last two; results may be scalars, vectors or matrices."""
    stacks = [wide(x) for x in stacks]
    shape = stacks[0].shape[:-2]
    found = [f(*(x[at] for x in stacks)) for at in np.ndindex(shape)]
    if not found:
        one = f(*(np.eye(*x.shape[-2:]) + 0 * x.sum() for x in stacks))
        return np.zeros((*shape, *np.shape(one)), np.asarray(one).dtype)
    return np.stack(found).reshape((*shape, *np.shape(found[0])))


def exactly(like, result):
    """Returns a result whose error counts relative to its largest element."""
    magnitude = np.abs(result)
    largest = max(magnitude.max(initial=0), np.finfo(np.float32).tiny)
    return near(result, np.full(result.shape, largest))
