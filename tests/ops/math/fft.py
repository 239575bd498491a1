import numpy as np

from declare import op, refuses
from domains import normal
from ulps import near

# Lengths with small factors, primes, a prime square, and 0; for Bluestein's way 17, 23 and 289.
LENGTHS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 15, 16, 17, 23, 30, 64]
LARGE = [289, 1000, 1021]


def sizes(d, rank):
    if d.smooth:
        return [d.integer(1, 5 if rank == 1 else 3) for _ in range(rank)]
    if d.large:
        return [d.pick(*LARGE)] if rank == 1 else [d.pick(9, 17, 32) for _ in range(rank)]
    return [d.pick(*LENGTHS) if rank == 1 else d.pick(0, 1, 2, 3, 4, 5, 8, 11, 17) for _ in range(rank)]


def batch(d):
    return d.pick((), (1,), (2,), (3, 2)) if d.smooth else d.pick((), (1,), (0,), (2, 3), (9,))


def complexes(rank):
    return lambda d: [d("input", (*batch(d), *sizes(d, rank)))]


def lengthened(d, lengths):
    """Returns the sizes of an input: some are larger than what is transformed."""
    return [n + d.pick(0, 0, 1, 2) for n in lengths]


def from_reals(rank):
    def draw(d):
        lengths = sizes(d, rank)
        return [d("input", (*batch(d), *lengthened(d, lengths))), d("fft_length", of=lengths)]
    return draw


def to_reals(rank):
    def draw(d):
        lengths = sizes(d, rank)
        needed = [*lengths[:-1], lengths[-1] // 2 + 1 if lengths[-1] else 0]
        return [d("input", (*batch(d), *lengthened(d, needed))), d("fft_length", of=lengths)]
    return draw


def transform(x, axis, sign):
    """The definition: a product with the matrix of roots of unity, in extended precision."""
    n = x.shape[axis]
    angle = 2 * np.longdouble("3.14159265358979323846264338327950288") * (np.outer(np.arange(n), np.arange(n)) % max(n, 1)) / max(n, 1)
    return np.moveaxis(np.moveaxis(x, axis, -1) @ (np.cos(angle) + sign * 1j * np.sin(angle)), -1, axis)


def relative(y, x, rank):
    """Counts errors relative to the root of the sum of squares, which a transform multiplies by a constant."""
    axes = tuple(range(-rank, 0))
    norm = np.sqrt((abs(y) ** 2).mean(axes, keepdims=True)) if y.size else np.zeros(y.shape)
    return near(y, np.broadcast_to(np.maximum(norm, np.finfo(np.float32).tiny), y.shape))


def forward(rank):
    def oracle(x):
        y = x
        for axis in range(-rank, 0):
            y = transform(y, axis, -1)
        return relative(y, x, rank)
    return oracle


def backward(rank):
    def oracle(x):
        y = x
        for axis in range(-rank, 0):
            y = transform(y, axis, 1) / max(x.shape[axis], 1)
        return relative(y, x, rank)
    return oracle


def cut(x, lengths):
    return x[(..., *(slice(n) for n in lengths))]


def real_forward(rank):
    def oracle(x, lengths):
        y = cut(x, lengths).astype(np.clongdouble)
        for axis in range(-rank, 0):
            y = transform(y, axis, -1)
        half = lengths[-1] // 2 + 1 if lengths[-1] else 0
        return relative(y[..., :half], x, rank)
    return oracle


def real_backward(rank):
    def oracle(x, lengths):
        n = int(lengths[-1])
        y = cut(x, [*lengths[:-1], n // 2 + 1 if n else 0])
        for axis in range(-rank, -1):
            y = transform(y, axis, 1) / max(y.shape[axis], 1)
        whole = np.zeros((*y.shape[:-1], n), np.clongdouble)
        for k in range(y.shape[-1]):
            if k == 0 or 2 * k == n:
                whole[..., k] = y[..., k].real
            else:
                whole[..., k], whole[..., n - k] = y[..., k], np.conj(y[..., k])
        return relative(transform(whole, -1, 1).real / max(n, 1), x, rank)
    return oracle


plain = dict(domain=normal.plain, ulps=16, zero_signs=False)
for rank in (1, 2, 3):
    name = "FFT" + ("" if rank == 1 else f"{rank}D")
    op(name, forward(rank), complexes(rank), **plain)
    op("I" + name, backward(rank), complexes(rank), **plain)
    mixed = dict(domain=normal.plain, ulps=64, zero_signs=False, types=dict(Treal="float double", Tcomplex="complex64 complex128"))
    op("R" + name, real_forward(rank), from_reals(rank), **mixed)
    op("IR" + name, real_backward(rank), to_reals(rank), **mixed)
    z, x, n = np.zeros((2,) * (rank + 1), np.complex64), np.zeros((2,) * (rank + 1), np.float32), np.full(rank, 2, np.int32)
    for op_name in (name, "I" + name):
        refuses(op_name, [z[(0,) * 2]], f"{[2] * (rank - 1)}")
    for op_name, given in (("R" + name, x), ("IR" + name, z)):
        refuses(op_name, [given[(0,) * 2], n], f"{[2] * (rank - 1)}")
        refuses(op_name, [given, n[None]], "fft_length")
        refuses(op_name, [given, np.full(rank + 1, 2, np.int32)], "fft_length", f"{rank + 1}")
        refuses(op_name, [given, np.full(rank, -1, np.int32)], "-1")
        refuses(op_name, [given, np.full(rank, 9, np.int32)], "9", "pad")
