import numpy as np

from declare import expect, op, refuses, slope


def drawn(d):
    """Draws positions in any order, sometimes sorted."""
    rank = d.integer(0, 3)
    shape = tuple(d.integer(1, 200 if d.large else 4) for _ in range(rank))
    n = 5000 if d.large else d.integer(0, 4 if d.smooth else 12)
    places = np.stack([d.rng.integers(0, size, n) for size in shape], 1) if rank else np.zeros((n, 0), int)
    if rank and d.integer(0, 2) == 0:
        places = places[np.lexsort(places.T[::-1])]
    return [d("input_indices", of=places), d("input_values", (n,)), d("input_shape", of=np.array(shape, int))]


def beyond_numbers(d):
    """Draws a tensor with more elements than an int64 can count."""
    inputs = drawn(d)
    n, rank = inputs[0].shape
    return [np.concatenate([inputs[0], np.full((n, 3), 7)], 1), inputs[1], np.concatenate([inputs[2], [1 << 40] * 3])]


def ordered(input_indices, input_values, input_shape):
    order = sorted(range(len(input_values)), key=lambda k: (*input_indices[k], k))
    return [input_indices[order], input_values[order]]


op("SparseReorder", ordered, drawn, also=(beyond_numbers,))
at, values, sizes = np.int64([[1, 2], [0, 1], [1, 0], [0, 1]]), np.array([4.0, 1, 3, 2]), np.int64([2, 3])
expect("SparseReorder", [at, values, sizes], [np.int64([[0, 1], [0, 1], [1, 0], [1, 2]]), np.array([1.0, 2, 3, 4])])
slope("SparseReorder", at, values, sizes)
refuses("SparseReorder", [np.int64([[0, 1], [2, 0]]), values[:2], sizes], "input_indices[1] = [2, 0]", "[2, 3]")
refuses("SparseReorder", [np.int64([[0, -1], [1, 0]]), values[:2], sizes], "input_indices[0] = [0, -1]")
refuses("SparseReorder", [at, values[:2], sizes], "input_values", "4", "2")
refuses("SparseReorder", [at, values, np.int64([2, 3, 4])], "input_shape", "2", "3")
refuses("SparseReorder", [at, values, np.int64([2, -3])], "input_shape", "-3")
refuses("SparseReorder", [at[0], values, sizes], "input_indices", "[2]")
refuses("SparseReorder", [at, values[:, None], sizes], "input_values", "[4, 1]")
refuses("SparseReorder", [at, values, np.int64(2)], "input_shape")
