"""Quantisation, from the definition of its steps. Inputs are away from the middle between two steps, where rounding decides."""
import numpy as np

from arrays import f32
from declare import expect, op, refuses
from domains import between
from quantised import WHOLE, away, numbers, quantised
from schema import type_of
from ulps import near

L, F = np.longdouble, np.float32


def limits(kind):
    info = np.iinfo(WHOLE[kind])
    return info.min, info.max


def used(low, high, least):
    """The range that contains 0 and is long enough, in float as in the op."""
    start = min(F(0), F(low))
    return start, max(F(0), F(high), start + max(F(1), abs(F(low)), abs(F(high))) * F(least))


class Steps:
    """Steps of a range: numbers to floats, and back. reading: as Dequantize reads it."""

    def __init__(self, kind, mode, low, high, narrow, reading=False):
        self.least, self.most = limits(kind)
        count, distance = self.most - self.least, np.float64(F(high) - F(low))
        self.mode, low, high = mode, L(low), L(high)
        if mode == "SCALED":
            ends = [end / limit for end, limit in ((low, self.least + narrow), (high, self.most)) if limit * end > 0]
            self.step = max(ends) if ends else 1 / L(np.finfo(F).max)
            self.start, self.low, self.high = 0, (self.least + narrow) * self.step, self.most * self.step
        else:
            self.step, self.low, self.high = (high - low) / count, low, high
            # The place of 0 is rounded from a float, as in the op.
            whole = away(F(low) / F(distance / count) if reading else F(low) * F(count / distance))
            first = low / self.step if mode == "MIN_COMBINED" else whole
            self.start = self.least - first

    def of(self, x):
        inside = x if self.mode == "MIN_FIRST" else np.clip(x, self.low, self.high)
        return np.clip(away(inside / self.step + self.start if self.mode == "MIN_COMBINED" else away(inside / self.step) + self.start),
                       self.least, self.most)

    def back(self, n):
        return (n - self.start) * self.step


def by_slice(f, array, axis, low, high):
    """Returns f(part, low, high) of the array, or of each slice along the axis."""
    if axis < 0:
        return f(array, low[()], high[()])
    parts = [f(array.take(k, axis), low[k], high[k]) for k in range(len(low))]
    return np.stack(parts, axis) if parts else array


def quantize(x, low, high, *, T, mode, narrow_range, axis, ensure_minimum_range):
    kind = T.names[0]
    ends = [used(a, b, ensure_minimum_range) for a, b in zip(np.ravel(low), np.ravel(high))]
    low_, high_ = (np.reshape(np.array([end[k] for end in ends], L), np.shape(low)) for k in (0, 1))
    found = by_slice(lambda part, a, b: Steps(kind, mode, a, b, narrow_range).of(part), x, axis, low_, high_)
    steps = [Steps(kind, mode, a, b, narrow_range) for a, b in zip(low_.flat, high_.flat)]
    size = np.maximum(abs(low_), abs(high_))
    shown = [near(np.reshape(np.array([getattr(s, name) for s in steps], L), np.shape(low)), size) for name in ("low", "high")]
    return [quantised(found.astype(np.int64), kind), *shown]


def ranged(d, shape):
    """Draws an axis and ranges for a tensor of this shape."""
    axis = d.integer(-1, len(shape) - 1)
    d.set(axis=axis)
    count = shape[axis] if axis >= 0 else ()
    low = d.rng.uniform(-4, 2, count).astype(F)
    return low, (low + d.rng.uniform(0.5, 6, count)).astype(F)


def floats(d):
    shape, kind, mode = d.shape(most=4), d.types["T"], d.attrs["mode"]
    low, high = ranged(d, shape)
    halves = d.pick("HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN") if mode == "SCALED" else "HALF_AWAY_FROM_ZERO"
    d.set(ensure_minimum_range=d.pick(0.01, 0.25, 0.0), round_mode=halves)

    def places(part, a, b):
        s = Steps(kind, mode, *used(a, b, F(d.attrs["ensure_minimum_range"])), d.attrs["narrow_range"])
        n = d.rng.integers(s.least - 5, s.most + 6, part.shape) + d.rng.uniform(-0.3, 0.3, part.shape)
        return np.asarray(s.back(n), np.float64)

    x = by_slice(places, np.zeros(shape), d.attrs["axis"], low, high)
    return [d("input", of=x), d("min_range", of=low), d("max_range", of=high)]


def dequantize(x, low, high, *, mode, narrow_range, axis):
    kind = x.dtype.names[0]
    x = numbers(x).astype(L)
    sizes = by_slice(lambda part, a, b: np.full(part.shape, max(abs(a), abs(b)) * 2), x, axis, low, high)

    def back(part, a, b):
        least, most = limits(kind)
        if mode == "SCALED":  # ranges are read as they are here, whatever their signs
            return part * (b / most if least == 0 else max(a / (least + narrow_range), b / most))
        return Steps(kind, mode, a, b, narrow_range, reading=True).back(part)

    return near(by_slice(back, x, axis, low, high), sizes)


def steps(d):
    x = d("input", d.shape(most=4))
    low, high = ranged(d, x.shape)
    return [x, d("min_range", of=low), d("max_range", of=high)]


# 32 bits are more than floats can tell apart; they have cases of their own below.
small = dict(T="qint8 quint8 qint16 quint16")
op("QuantizeV2", quantize, floats, domain=between(-4, 4).plain, types=small, ulps=8, zero_signs=False)
op("Dequantize", dequantize, steps, types=small, ulps=8, zero_signs=False)


# ---- Other ranges: TensorFlow's arithmetic in double, or in whole numbers ----


def float_of(n, kind, low, high):
    least, most = limits(kind)
    if low == high:
        return np.full(np.shape(n), low, F)
    values = most - least + 1.0
    step = np.float64(F(high) - F(low)) * (values / (values - 1)) / values
    start = away(np.float64(F(low) / F(step))) * np.float64(F(step))
    return np.asarray(start + (np.asarray(n, np.float64) - least) * step, F)


def to_range(n, kind, low, high, to, new_low, new_high):
    least, most = limits(to)
    if (kind, to) == ("qint32", "quint8"):
        length, new_length, middle = F(high) - F(low), F(new_high) - F(new_low), F((np.float64(low) + np.float64(high)) / 2)
        if new_length == 0:
            return np.zeros(np.shape(n), np.int64)
        scale = int(255.0 * 65536 * np.float64(length) / np.float64(new_length))
        offset = int(np.float64(middle * F(255.0 / np.float64(new_length)) * F(65536)))
        offset -= int(65536 * (np.float64(new_low) * 255) / np.float64(new_length))
        fixed = [min(max(((int(v) * scale >> 32) + offset + 32768) >> 16, 0), 255) for v in np.ravel(n)]
        return np.reshape(np.array(fixed, np.int64), np.shape(n))
    if new_low == new_high:
        return np.full(np.shape(n), least)
    values = most - least + 1.0
    scale = values / (np.float64(F(new_high) - F(new_low)) * (values / (values - 1)))
    moved = away(np.asarray(float_of(n, kind, low, high), np.float64) * scale) - away(np.float64(F(new_low)) * scale) + least
    return np.asarray(np.clip(moved, least, most), np.int64)


def range_of(n, kind, low, high):
    least, most = limits(kind)
    ends = n.min(initial=most), n.max(initial=least)
    return min(F(0), F(float_of(ends[0], kind, low, high))), F(float_of(ends[1], kind, low, high))


def requantize(x, low, high, new_low, new_high, *, out_type):
    kind, to = x.dtype.names[0], out_type.names[0]
    n = numbers(x)
    return [quantised(to_range(n, kind, F(low), F(high), to, F(new_low), F(new_high)), to), new_low, new_high]


def requantization_range(x, low, high):
    kind = x.dtype.names[0]
    return [*range_of(numbers(x), kind, F(low), F(high))]


def shrink(x, low, high, *, out_type):
    return requantize(x, low, high, *requantization_range(x, low, high), out_type=out_type)


def with_range(d):
    low = F(d.rng.uniform(-9, 1))
    inputs = [d("input", d.shape(most=4)), d("input_min", of=low), d("input_max", of=low + F(d.pick(0, d.rng.uniform(0.5, 20))))]
    if "requested_output_min" in d.inputs:
        inputs += [d("requested_output_min", of=-d.rng.uniform(0, 9)), d("requested_output_max", of=d.rng.uniform(0, 9))]
    return inputs


op("Requantize", requantize, with_range)
op("RequantizationRange", requantization_range, with_range, zero_signs=False)
op("QuantizeDownAndShrinkRange", shrink, with_range, zero_signs=False)

# ---- Edges ----

one, minus = F(1), F(-1)
# Halves: away from 0, or to the even step. The scale is 2.
halves = f32(-64, -0.75, -0.25, 0.25, 0.75, 1.25, 63.5)
for mode, wanted in (("HALF_AWAY_FROM_ZERO", [-128, -2, -1, 1, 2, 3, 127]), ("HALF_TO_EVEN", [-128, -2, 0, 0, 2, 2, 127])):
    expect("QuantizeV2", [halves, F(-64), F(63.5)], [quantised(wanted, "qint8"), F(-64), F(63.5)], T=type_of("qint8"), mode="SCALED",
           round_mode=mode)
expect("QuantizeV2", [f32(np.nan, np.inf, -np.inf), minus, one], [quantised([0, 255, 0], "quint8")], T=type_of("quint8"))
for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
    ends = [np.iinfo(np.int32).min, 2147483520 if mode == "MIN_FIRST" else np.iinfo(np.int32).max]
    expect("QuantizeV2", [f32(-9, 9), minus, one], [quantised(ends, "qint32")], T=type_of("qint32"), mode=mode)
expect("QuantizeV2", [f32(3, 3), F(0), F(0)], [quantised([255, 255], "quint8"), F(0), F(0.01)], T=type_of("quint8"))
expect("Dequantize", [quantised([-2**31, 0, 2**31 - 1], "qint32"), minus, one], [f32(-1, 0, 1)], 1e-6)
big = quantised([-(1 << 23), 0, 1 << 23], "qint32")
expect("Requantize", [big, F(-256), F(256), minus, one], [quantised([0, 128, 255], "quint8"), minus, one], out_type=type_of("quint8"))
expect("QuantizeDownAndShrinkRange", [big[:0], F(-256), F(256)], [quantised([], "quint8")], out_type=type_of("quint8"))

x, eight = f32(0.5, 1), type_of("qint8")
matrix, pair = np.zeros((2, 3), F), f32(0, 0)
refuses("QuantizeV2", [x, one, minus], "1.0", "-1.0", T=eight)
refuses("QuantizeV2", [x, minus, F(np.inf)], "inf", T=eight)
refuses("QuantizeV2", [x, F(np.nan), one], "nan", T=eight)
refuses("QuantizeV2", [x, f32(-1), one], "min_range", "[1]", T=eight)
refuses("QuantizeV2", [x, minus, one], "HALF_TO_EVEN", "MIN_FIRST", T=eight, mode="MIN_FIRST", round_mode="HALF_TO_EVEN")
refuses("QuantizeV2", [x, minus, one], "ensure_minimum_range", "-1", T=eight, ensure_minimum_range=-1.0)
refuses("QuantizeV2", [x, minus, one], "axis", "-2", T=eight, axis=-2)
refuses("QuantizeV2", [matrix, pair, pair], "axis", "2", T=eight, axis=2)
refuses("QuantizeV2", [matrix, pair, pair], "3", "2", T=eight, axis=1)
refuses("QuantizeV2", [matrix, pair, f32(1, 1, 1)], "2", "3", T=eight, axis=0)
q = quantised([[1, 2, 3]], "qint8")
refuses("Dequantize", [q, f32(0), f32(1)], "min_range", "[1]")
refuses("Dequantize", [q, pair, pair], "3", "2", axis=1)
refuses("Dequantize", [q, pair, pair], "axis", "2", axis=2)
refuses("Requantize", [q, minus, one, one, one], "1.0", "requested_output_min", out_type=eight)
refuses("Requantize", [q, one, minus, minus, one], "input_min", "-1.0", out_type=eight)
refuses("Requantize", [q, minus, one, pair, one], "requested_output_min", "[2]", out_type=eight)
refuses("RequantizationRange", [q, F(np.nan), one], "nan", "input_min")
refuses("RequantizationRange", [q, pair, one], "input_min", "[2]")
refuses("QuantizeDownAndShrinkRange", [q, one, minus], "input_min", out_type=eight)
refuses("QuantizeDownAndShrinkRange", [q, minus, pair], "input_max", "[2]", out_type=eight)
