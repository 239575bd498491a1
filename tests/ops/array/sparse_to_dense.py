import numpy as np

from declare import expect, op, refuses, slope


def drawn(d):
    """Draws positions in a shape, sorted and without repetition unless the op does not check this."""
    shape = d.shape(most=4) if not d.smooth else d.pick((3,), (2, 3), ())
    size = int(np.prod(shape))
    n = d.integer(0, min(size, 3000 if d.large else 9))
    if d.attrs["validate_indices"]:
        at = np.sort(d.rng.permutation(size)[:n])
    else:
        at = d.rng.integers(0, max(size, 1), n)
    places = np.stack(np.unravel_index(at, shape), 1) if len(shape) else np.zeros((n, 0), int)
    if len(shape) == 1 and d.integer(0, 1):
        places = places[0, 0] if n == 1 else places[:, 0]
    values = () if d.integer(0, 3) == 0 else (n,)
    return [d("sparse_indices", of=places), d("output_shape", of=np.array(shape, int)), d("sparse_values", values), d("default_value", ())]


def dense(sparse_indices, output_shape, sparse_values, default_value):
    y = np.full(tuple(output_shape), default_value)
    places = sparse_indices.reshape(sparse_indices.shape[0] if sparse_indices.ndim else 1, len(output_shape))
    for place, value in zip(places, np.broadcast_to(sparse_values, len(places))):
        y[tuple(place)] = value
    return y


op("SparseToDense", dense, drawn)
at, sizes, values, other = np.int64([[0, 1], [1, 2]]), np.int64([2, 3]), np.array([7.0, 8.0]), np.float64(-1)
expect("SparseToDense", [at, sizes, values, other], [np.array([[-1.0, 7, -1], [-1, -1, 8]])])
expect("SparseToDense", [np.int32(2), np.int32([4]), np.float64(5), other], [np.array([-1.0, -1, 5, -1])])
twice = np.int64([[1, 2], [0, 1], [1, 2]])
expect("SparseToDense", [twice, sizes, np.array([1.0, 2, 3]), other], [np.array([[-1.0, 2, -1], [-1, -1, 3]])], validate_indices=False)
many = np.zeros((1 << 40, 0), np.int64)
expect("SparseToDense", [many, np.int64([]), np.float64(5), other], [np.float64(5)], validate_indices=False)
slope("SparseToDense", twice, sizes, np.array([1.0, 2, 3]), other, validate_indices=False)
slope("SparseToDense", np.int32([2, 0, 2]), np.int32([4]), np.float64(3), other, validate_indices=False)
slope("SparseToDense", np.int32(2), np.int32([4]), np.float64([3]), other)

refuses("SparseToDense", [np.int64([[0, 1], [1, 3]]), sizes, values, other], "sparse_indices[1] = [1, 3]", "[2, 3]")
refuses("SparseToDense", [np.int64([[0, 1], [-1, 0]]), sizes, values, other], "sparse_indices[1] = [-1, 0]", validate_indices=False)
refuses("SparseToDense", [np.int64([[1, 2], [0, 1]]), sizes, values, other], "sparse_indices[1] = [0, 1]", "[1, 2]", "SparseReorder")
refuses("SparseToDense", [np.int64([[1, 2], [1, 2]]), sizes, values, other], "sparse_indices[1] = [1, 2]", "twice")
refuses("SparseToDense", [many, np.int64([]), np.float64(5), other], "sparse_indices[1] = []", "twice")
refuses("SparseToDense", [at, np.int64([2, 3, 4]), values, other], "output_shape", "2", "3")
refuses("SparseToDense", [at, np.int64([2, -3]), values, other], "output_shape", "-3")
refuses("SparseToDense", [at, sizes, np.array([1.0, 2, 3]), other], "sparse_values", "2", "3")
refuses("SparseToDense", [at[None], sizes, values, other], "sparse_indices", "[1, 2, 2]")
refuses("SparseToDense", [at, sizes, values[None], other], "sparse_values", "[1, 2]")
refuses("SparseToDense", [at, sizes, values, values], "default_value", "[2]")
