"""Draws sparse tensors for the declarations of ops on them."""
import numpy as np


def sizes(d, least=1, most=3):
    """Returns the sizes of a sparse tensor: small, or with room for thousands of elements."""
    rank = d.integer(least, most)
    return tuple(d.integer(5, 60) if d.large else d.integer(1, 4) for _ in range(rank))


def places(d, shape, ordered=True, distinct=True):
    """Returns a matrix of places in the shape."""
    room = int(np.prod(shape))
    n = d.integer(0, min(room, 3000 if d.large else 4 if d.smooth else 9))
    at = d.rng.permutation(room)[:n] if distinct else d.rng.integers(0, room, n)
    if ordered:
        at = np.sort(at)
    return np.stack(np.unravel_index(at, shape), 1).astype(np.int64) if shape else np.zeros((n, 0), np.int64)


def tensor(d, names, shape, **more):
    """Draws the three parts of a sparse tensor, whose inputs have these names."""
    indices, values, sizes_of = names.split()
    at = places(d, shape, **more)
    return [d(indices, of=at), d(values, (len(at),)), d(sizes_of, of=np.array(shape, np.int64))]


def matrix(rows, rank):
    """Returns rows of places as a matrix, also if there are none."""
    rows = [*rows]
    return np.array(rows, np.int64).reshape(len(rows), rank)
