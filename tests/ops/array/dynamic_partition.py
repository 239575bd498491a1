import numpy as np

from declare import accepts, op, refuses


def nothing(shape, dtype):
    return np.full(shape, b"", object) if dtype == object else np.zeros(shape, dtype)


def dealt(d):
    x, n = d("data"), d.integer(1, 5)
    d.set(num_partitions=n)
    return [x, d("partitions", of=d.rng.integers(0, n, x.shape[:d.integer(0, x.ndim)]))]


def deal(x, partitions, *, num_partitions):
    return [x[partitions == k] for k in range(num_partitions)]


def parts(d, places):
    """Draws data for these positions, which are divided among several inputs."""
    inner = d.shape(most=3)
    cuts = np.sort(d.rng.integers(0, len(places) + 1, d.integer(0, 3)))
    indices = [d("indices", of=part if d.integer(0, 1) else part[:, None]) for part in np.split(places, cuts)]
    return [indices, [d("data", (*at.shape, *inner)) for at in indices]]


def some(d):
    return parts(d, d.rng.integers(0, 9, d.integer(0, 8)))


def all_different(d):
    n = d.integer(0, 9)
    return parts(d, d.rng.permutation(n)[:d.integer(0, n)])


def stitch(indices, data):
    n = max([at.max(initial=-1) + 1 for at in indices])
    merged = nothing((n, *data[0].shape[indices[0].ndim:]), data[0].dtype)
    for at, x in zip(indices, data):
        for k in np.ndindex(at.shape):
            merged[at[k]] = x[k]
    return merged


op("DynamicPartition", deal, dealt, given=dict(num_partitions=2))
op("DynamicStitch", stitch, some)
op("ParallelDynamicStitch", stitch, all_different)

m = np.zeros((2, 3), np.float32)
i32 = lambda *values: np.array(values, np.int32)  # noqa: E731
for at in (2, -1, 2**31 - 1, -2**31):
    refuses("DynamicPartition", [m, i32(0, at)], "partitions", at, num_partitions=2)
refuses("DynamicPartition", [m, i32(0, 1, 0)], "[2, 3]", "[3]", num_partitions=2)
refuses("DynamicPartition", [np.float32(1), i32(0)], "data", num_partitions=2)
refuses("DynamicPartition", [m, i32(0, 0)], "num_partitions", "0", num_partitions=0)
refuses("DynamicPartition", [m, i32(0, 0)], 2**40, num_partitions=2**40)
for name in ("DynamicStitch", "ParallelDynamicStitch"):
    for at in (-1, -2**31):
        refuses(name, [i32(0, at), m], "indices", at, N=1)
    refuses(name, [i32(0, 2**31 - 1), np.zeros((2, 64), np.float64)], N=1)  # 2^40 bytes
    refuses(name, [i32(0, 1, 2), m], "[2, 3]", "[3]", N=1)
    refuses(name, [i32(0, 1), i32(0), m, np.zeros((1, 2), np.float32)], "[3]", "[2]", N=2)
accepts("DynamicStitch", [i32(0, 3, 0), np.float32([1, 2, 5])], np.float32([5, 0, 0, 2]), N=1)
