"""The domains of drawn inputs. A Domain draws an array of a shape and type. Inputs also get the special numbers of their type (EDGES and
the limits), of which a domain keeps those that it `takes`. While gradients are checked, the numbers are `smooth`: neither special nor very
large or small."""
import dataclasses
import typing

import numpy as np

import tw

EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.inf, -np.inf, np.nan]
OWN = {np.dtype(np.float64): np.float64, np.dtype(np.float32): np.float32, np.dtype(np.float16): np.float16}


def rounded(values, dtype):
    """Returns floating-point or complex values, rounded to the type."""
    with np.errstate(all="ignore"):
        return tw.to_bfloat16(values) if dtype == tw.bfloat16 else np.asarray(values, dtype)


def edges(dtype):
    """Returns the special numbers of the type: zeros, infinities, NaN, the largest, the smallest, denormals; limits of integers, and beyond
    2^53 integers that a double cannot distinguish."""
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return np.array([False, True])
    if dtype.kind in "iu":
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        return np.array([v for v in (0, 1, -1, 2, 3, 7, 2**53 + 1, -2**53 - 1) if low <= v <= high] + [low, low + 1, high - 1, high], dtype)
    if dtype == tw.bfloat16:
        info = np.array([0x7f7f, 0xff7f, 0x0080, 0x0001, 0x8001, 0x0055], np.uint16).view(tw.bfloat16)
        return np.concatenate([tw.to_bfloat16(np.array(EDGES)), info])
    if dtype.kind == "f":
        f = np.finfo(dtype)
        own = [f.max, -f.max, f.tiny, f.smallest_subnormal, -f.smallest_subnormal, f.smallest_subnormal * dtype.type(85)]
        return np.concatenate([np.array(EDGES, dtype), np.array(own, dtype)])
    if dtype.kind == "c":
        return np.array([0, 1, -1, 1j, -1j, 0.5 + 2j], dtype)
    return None


@dataclasses.dataclass(frozen=True)
class Domain:
    """draw(rng, shape, smooth): numbers in float64, for any type of real numbers. takes(x): a mask of the special numbers that belong to
    the domain; x is in float64, for complex numbers the real part. None: no special numbers. complex(rng, shape): for complex types."""
    draw: typing.Callable
    takes: typing.Callable | None = lambda x: np.ones(x.shape, bool)
    complex: typing.Callable = lambda rng, shape: rng.uniform(0.5, 2, shape) * np.exp(1j * rng.uniform(-np.pi, np.pi, shape))

    @property
    def plain(self):
        """The same domain without special numbers."""
        return dataclasses.replace(self, takes=None)

    @property
    def calm(self):
        """The same domain without the largest and smallest special numbers: whether their sums and products fit depends on the order."""
        takes = self.takes
        return dataclasses.replace(self, takes=lambda x: takes(x) & (~np.isfinite(x) | (x == 0) | (abs(x) > 0.01) & (abs(x) < 1000)))

    def special(self, dtype):
        """Returns the special numbers of the type that belong to the domain, or None."""
        found = edges(dtype) if self.takes else None
        if found is None:
            return None
        with np.errstate(all="ignore"):
            wide = tw.from_bfloat16(found) if found.dtype == tw.bfloat16 else found.real
            found = found[self.takes(wide.astype(np.float64))]
        return found if found.size else None

    def array(self, rng, shape, dtype, smooth=False):
        dtype = np.dtype(dtype)
        if dtype == tw.string:
            texts = [b""] + [bytes(rng.integers(32, 127, rng.integers(0, 12), np.uint8)) for _ in range(20)]
            return np.asarray(np.array(texts, object).take(rng.integers(0, len(texts), shape)), object)
        if dtype.kind == "V" and dtype != tw.bfloat16:
            return rng.integers(0, 256, (*shape, dtype.itemsize), np.uint8).view(dtype).reshape(shape)
        if dtype.kind == "c":
            x = rounded(self.complex(rng, shape), dtype)
        elif dtype == np.bool_:
            x = np.asarray(rng.integers(0, 2, shape), bool)
        elif dtype.kind in "iu":
            x = self.whole(rng, shape, np.iinfo(dtype), smooth).astype(dtype)
        else:
            x = rounded(self.draw(rng, shape, smooth), dtype)
        return x if smooth or not x.size else self.sprinkled(rng, x)

    def whole(self, rng, shape, info, smooth):
        values = self.draw(rng, shape, smooth)
        values = np.where(abs(values) < 1, np.sign(values) + (values == 0), np.trunc(values)) if self.rounds else values
        values = np.where(values < info.min, -values, values)
        return np.clip(values, info.min, min(info.max, 2**53))

    rounds: bool = True  # numbers between integers are rounded away from 0

    def sprinkled(self, rng, x):
        """Puts special numbers into a third of the arrays."""
        special = self.special(x.dtype) if rng.integers(3) == 0 else None
        if special is not None:
            x = np.array(x)
            at = rng.random(x.shape) < 0.2
            x[at] = special[rng.integers(0, special.size, int(at.sum()))]
        return x


def log_uniform(rng, shape, smooth):
    return rng.uniform(0.5, 2, shape) if smooth else np.exp2(rng.uniform(-10, 10, shape))


def sign(rng, shape):
    return rng.choice([-1.0, 1.0], shape)


# Any number, with magnitudes from 2^-10 to 2^10.
normal = Domain(lambda rng, shape, smooth: rng.normal(0, 1, shape) if smooth else log_uniform(rng, shape, False) * sign(rng, shape))
# Numbers above 0; complex numbers away from the negative axis.
positive = Domain(log_uniform, lambda x: x > 0, lambda rng, shape: rng.uniform(0.5, 2, shape) * np.exp(1j * rng.uniform(-1, 1, shape)))
# Numbers other than 0.
nonzero = Domain(lambda rng, shape, smooth: log_uniform(rng, shape, smooth) * sign(rng, shape), lambda x: x != 0)
# Numbers away from integers and halves.
fractions = Domain(lambda rng, shape, smooth: rng.integers(-3, 3, shape) + rng.uniform(0.1, 0.4, shape))


def spread(rng, shape, smooth):
    n = int(np.prod(shape))
    return (rng.permutation(n).reshape(shape) - n / 3 + 0.37) / 2


# No two elements of one array are near each other, or near 0 or 6.
distinct = Domain(spread)


def between(low, high):
    """Returns the domain (low, high), with the special numbers inside [low, high]. Smooth numbers are away from both ends, and inside
    (-2, 2) if possible."""
    near = max(low, -2), min(high, 2)
    a, b = near if near[0] < near[1] else (low, high)

    def draw(rng, shape, smooth):
        return rng.uniform(a + (b - a) / 20, b - (b - a) / 20, shape) if smooth else rng.uniform(low, high, shape)

    return Domain(draw, lambda x: (x >= low) & (x <= high), rounds=False)


def whole(low, high):
    """Returns the domain of integers from low to high, both included, in any type."""
    def draw(rng, shape, smooth=False):
        return np.asarray(rng.integers(low, high, shape, endpoint=True))

    return Domain(draw, None, lambda rng, shape: draw(rng, shape) + 1j * draw(rng, shape), rounds=False)


def everything(domain):
    """Returns the same domain with all special numbers, also those outside it; the oracle defines their results."""
    return dataclasses.replace(domain, takes=lambda x: np.ones(x.shape, bool))


def where(domain, takes):
    """Returns the same domain with the special numbers for which takes(x) holds."""
    return dataclasses.replace(domain, takes=takes)
