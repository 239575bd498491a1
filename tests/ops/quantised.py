"""Quantised numbers for declarations of ops: NumPy lacks their types, so arrays of them have structured ones."""
import numpy as np

import tw

WHOLE = {"qint8": np.int8, "quint8": np.uint8, "qint16": np.int16, "quint16": np.uint16, "qint32": np.int32}
F = np.float32


def quantised(values, kind):
    """Returns whole numbers as an array of that quantised type."""
    return np.asarray(values, WHOLE[kind]).view(tw.ABSENT[kind])


def numbers(array):
    """Returns the whole numbers of an array of a quantised type."""
    return np.asarray(array).view(WHOLE[kind_of(array)])


def kind_of(array):
    """Returns the name of the array's quantised type."""
    return array.dtype.names[0]


def away(x):
    """Rounds half away from 0."""
    return np.sign(x) * np.floor(abs(x) + 0.5)


def zero_point(kind, low, high):
    """The number that stands for 0 in the range, which need not contain it."""
    info = np.iinfo(WHOLE[kind])
    values = float(int(info.max) - int(info.min) + 1)
    scale = values / (float(F(high) - F(low)) * (values / (values - 1)))
    return int(info.min) - int(away(float(F(low)) * scale))


def step(kind, low, high):
    """The float from one number to the next."""
    info = np.iinfo(WHOLE[kind])
    return (F(high) - F(low)) / F(int(info.max) - int(info.min))


def scaled_step(kind, low, high):
    """The same if 0 stands for 0: the larger end is the largest number."""
    return np.maximum(abs(np.asarray(low, np.float64)), abs(np.asarray(high, np.float64))) / np.iinfo(WHOLE[kind]).max


def wrapped(sums):
    """Returns whole numbers modulo 2^32, as qint32."""
    return quantised(np.asarray(sums, np.int64).astype(np.int32), "qint32")


def product_range(step_a, step_b):
    """The range of sums of products."""
    whole = step_a * step_b
    return [whole * F(-2.0**31), whole * F(2.0**31)]


def to_steps(real, kind, low=None):
    """Returns real numbers, in steps, as numbers of that type; halves go to the even one. low: the least number, if not the type's."""
    info = np.iinfo(WHOLE[kind])
    return quantised(np.clip(np.rint(real), info.min if low is None else low, info.max), kind)


def exact_range(d, kind, exponent):
    """Draws a SCALED range whose step is 2^exponent, so that results that follow from it are exact."""
    high = np.ldexp(F(np.iinfo(WHOLE[kind]).max), exponent)
    return F(-high if d.integer(0, 1) else -high / 2), F(high)
