import numpy as np

from declare import op, refuses, slope
from domains import Domain, normal
from ulps import near


def running(d):
    x = d("x", d.shape(least=1))
    return [x, d("axis", of=d.axis(x.ndim))]


def shifted(x, axis, first):
    """Shifts each element to the position of the next."""
    if not x.shape[axis]:
        return x
    return np.concatenate([np.full_like(np.take(x, [0], axis), first), np.delete(x, -1, axis)], axis)


def cumsum(x, axis, *, exclusive, reverse):
    x = np.flip(x, axis) if reverse else x
    if exclusive:
        x = shifted(x, axis, 0)
    sums, sizes = (np.cumsum(v, axis, dtype=v.dtype) for v in (x, abs(x)))
    return near(np.flip(sums, axis), np.flip(sizes, axis)) if reverse else near(sums, sizes)


def cumprod(x, axis, *, exclusive, reverse):
    x = np.flip(x, axis) if reverse else x
    if exclusive:
        x = shifted(x, axis, 1)
    products = np.cumprod(x, axis, dtype=x.dtype)
    return np.flip(products, axis) if reverse else products


def factors(rng, shape, smooth):
    """Draws factors whose products over long runs neither vanish nor overflow."""
    return rng.uniform(0.5, 1.5, shape) if smooth else rng.choice([-1, 1, 0.5, 2], shape, p=[0.1, 0.8, 0.05, 0.05])


moderate = Domain(factors, lambda x: abs(x) == 1, lambda rng, shape: np.exp(1j * rng.uniform(-3, 3, shape)))
op("Cumprod", cumprod, running, domain=dict(x=moderate), ulps=64, half_ulps=2,
   no_kernel={"quantised arithmetic needs ranges, which this op does not carry": "qint8 qint16 qint32 quint8 quint16"})
refuses("Cumprod", [np.zeros((2, 3), np.float32), np.int32(2)], "axis", "2")
for run in ([2.0, 0, 3, 4], [0.0, 2, 0, 3], [2.0, 3, 0, 0], [0.0, 2, 0, 3, 0, 4], [2j, 0, 1 + 3j, 0]):  # zeros
    for exclusive in (False, True):
        for reverse in (False, True):
            slope("Cumprod", np.array(run), np.int32(0), exclusive=exclusive, reverse=reverse)
op("Cumsum", cumsum, running, domain=dict(x=normal.calm), ulps=16, zero_signs=False)
refuses("Cumsum", [np.zeros((2, 3), np.float32), np.int32(2)], "axis", "2")
