import numpy as np

import tw
from arrays import f32
from declare import expect, op, refuses
from domains import between
from ulps import near

L, F = np.longdouble, np.float32
STEP = "it is constant between steps, and its gradient is 1 by convention; gradient_test.py has cases"


def length(low, high, bits, signed, narrow):
    """Returns the length of a step and the ends of the steps, or None if no step fits the range."""
    least, most = (-(1 << bits - 1) + narrow, (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    lengths = [end / limit for end, limit in ((L(low), L(least)), (L(high), L(most))) if end * limit > 0]
    return (max(lengths), least * max(lengths), most * max(lengths)) if lengths else None


def rounded(x, low, high, bits, how):
    """The nearest steps, and the sizes that their tolerances are parts of."""
    if not how["range_given"] and x.size:
        low, high = x.min(), x.max()
    found = length(low, high, bits, how["signed_input"], how.get("narrow_range", False)) if x.size else None
    if found is None:
        return np.zeros(x.shape, L), np.ones(x.shape, L)
    step, begin, end = found
    x = np.clip(x, begin, end) if how["range_given"] else x
    y = np.floor(x / step + L(0.5)) * step
    size = np.maximum(np.abs(y), max(abs(begin), abs(end)))
    # The ends of the range may lie in the middle between two steps; then either is right.
    middle = np.abs(np.abs(x / step - np.floor(x / step)) - L(0.5)) < 0.02
    return y, np.where(middle, size * L(2) ** 60, size)


def by_slice(f, x, axis, low, high):
    if axis < 0:
        return f(x, low[()], high[()])
    parts = [f(x.take(k, axis), low[k], high[k]) for k in range(x.shape[axis])]
    return [np.stack([part[k] for part in parts], axis) if parts else x for k in (0, 1)]


def by_attrs(x, *, num_bits, input_min, input_max, signed_input, range_given):
    return near(*rounded(x, input_min, input_max, num_bits, dict(signed_input=signed_input, range_given=range_given)))


def by_inputs(x, low, high, num_bits, axis, signed_input, range_given, narrow_range):
    how = dict(signed_input=signed_input, range_given=range_given, narrow_range=narrow_range)
    return near(*by_slice(lambda part, a, b: rounded(part, a, b, num_bits, how), x, axis, low, high))


def v2(x, low, high, *, num_bits, axis, signed_input, range_given, narrow_range):
    return by_inputs(x, low, high, num_bits, axis, signed_input, range_given, narrow_range)


def v3(x, low, high, num_bits, *, axis, signed_input, range_given, narrow_range):
    return by_inputs(x, low, high, int(num_bits), axis, signed_input, range_given, narrow_range)


def grad(dy, x, low, high, *, axis):
    shape = [-1 if k == axis else 1 for k in range(x.ndim)] if axis >= 0 else ()
    inside = (x >= low.reshape(shape)) & (x <= high.reshape(shape))
    return [np.where(inside, dy, 0), np.zeros_like(low), np.zeros_like(high)]


def drawn(d):
    """Draws ranges, and numbers away from the middle between two steps. 16-bit floats tell few steps apart."""
    short = d.types["T"] in ("half", "bfloat16")
    bits = d.pick(2, 3, 4) if short else d.pick(2, 3, 8, 12)
    attrs_only, shape = len(d.inputs) == 1, d.shape(most=4)
    axis = -1 if attrs_only else d.integer(-1, len(shape) - 1)
    count = shape[axis] if axis >= 0 else ()
    low = d.rng.uniform(-5, 0.1, count)
    # Numbers that all types have.
    low, high = (np.asarray(tw.from_bfloat16(tw.to_bfloat16(v)), np.float64) for v in (low, low + d.rng.uniform(0.25, 8, count)))
    how = {a: d.attrs.get(a, False) for a in ("signed_input", "narrow_range", "range_given")}

    def places(part, a, b):
        found = length(a, b, bits, how["signed_input"], how["narrow_range"])
        if found is None or not part.size:
            return [np.zeros(part.shape)]
        step, begin, end = found
        first, last = int(begin / step) - 3, int(end / step) + 3
        x = np.asarray(step * (d.rng.integers(first, last + 1, part.shape) + d.rng.uniform(-0.3, 0.3, part.shape)), np.float64)
        if not how["range_given"]:  # the range must be that of the numbers
            x = np.clip(x, np.ceil(a / step) * step, np.floor(b / step) * step)
            x.flat[0], x.flat[-1] = a, b
        return [x]

    blank = np.zeros(shape)
    if axis < 0:
        x = places(blank, low[()], high[()])[0]
    else:
        x = np.stack([places(blank.take(k, axis), low[k], high[k])[0] for k in range(count)], axis) if count else blank
    d.set(**(dict(input_min=float(low), input_max=float(high)) if attrs_only else dict(axis=axis)))
    if "num_bits" in d.inputs:
        return [d("input", of=x), d("input_min", of=low), d("input_max", of=high), d("num_bits", of=bits)]
    d.set(num_bits=bits)
    return [d("input", of=x)] if attrs_only else [d("input", of=x), d("input_min", of=low), d("input_max", of=high)]


def slopes(d):
    shape = d.shape(most=4)
    axis = d.integer(-1, len(shape) - 1)
    d.set(axis=axis)
    count = shape[axis] if axis >= 0 else ()
    low = np.asarray(d.rng.uniform(-1, 0, count))
    return [d("gradients", shape), d("input", shape), d("input_min", of=low), d("input_max", of=low + 1)]


plain = dict(domain=between(-4, 4).plain, ulps=16, zero_signs=False, no_gradient=STEP)
op("QuantizeAndDequantize", by_attrs, drawn, **plain)
op("QuantizeAndDequantizeV2 QuantizeAndDequantizeV4", v2, drawn, **plain)
op("QuantizeAndDequantizeV3", v3, drawn, **plain)
op("QuantizeAndDequantizeV4Grad", grad, slopes, domain=between(-2, 2).plain, wrt=("gradients",))

# Halves: to the even step, or up. The scale is 2.
halves, low, high = f32(-4, -1.25, -0.75, -0.25, 0.25, 0.75, 1.25, 3.5), F(-4), F(3.5)
for mode, wanted in (("HALF_TO_EVEN", [-8, -2, -2, 0, 0, 2, 2, 7]), ("HALF_UP", [-8, -2, -1, 0, 1, 2, 3, 7])):
    for name in ("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"):
        expect(name, [halves, low, high], [np.float32(wanted) / 2], num_bits=4, range_given=True, round_mode=mode)
nan, zero = np.nan, F(0)
expect("QuantizeAndDequantizeV2", [f32(nan, 3, -9), F(-1), F(1)], [f32(nan, 1, -1)], 1e-6, num_bits=3, range_given=True, narrow_range=True)
expect("QuantizeAndDequantizeV2", [f32(nan, 3, -3), zero, zero], [f32(nan, 3, -3)], 1e-6, num_bits=3, narrow_range=True)
expect("QuantizeAndDequantizeV2", [f32(0, 0), zero, zero], [f32(0, 0)])
expect("QuantizeAndDequantizeV2", [f32(-1, -2), zero, zero], [f32(0, 0)], signed_input=False)
expect("QuantizeAndDequantizeV3", [f32(-1, -0.4), F(-1), zero, np.int32(1)], [f32(-1, 0)])
expect("QuantizeAndDequantizeV4Grad", [f32(1, 2, 3), f32(nan, -1, 1), F(-1), F(1)], [f32(0, 2, 3), zero, zero])

x, one, two = np.zeros((2, 3), F), F(1), f32(0, 0)
refuses("QuantizeAndDequantize", [x], "num_bits", "0", num_bits=0)
refuses("QuantizeAndDequantize", [x], "num_bits", "62", num_bits=62)
refuses("QuantizeAndDequantize", [x], "num_bits", "63", num_bits=63, signed_input=False)
refuses("QuantizeAndDequantize", [x], "input_min", "2", "1", range_given=True, input_min=2.0, input_max=1.0)
refuses("QuantizeAndDequantizeV3", [x, zero, one, np.int32(0)], "num_bits is 0")
refuses("QuantizeAndDequantizeV3", [x, zero, one, np.int32(62)], "num_bits is 62", "61")
refuses("QuantizeAndDequantizeV3", [x, zero, one, np.int32([8])], "num_bits", "[1]")
for name in ("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"):
    refuses(name, [x, zero, one], "num_bits", "62", num_bits=62)
for name, rest in (("QuantizeAndDequantizeV2", []), ("QuantizeAndDequantizeV3", [np.int32(8)]), ("QuantizeAndDequantizeV4", [])):
    refuses(name, [x, one, zero, *rest], "input_min is 1", "input_max 0", range_given=True)
    refuses(name, [x, F(nan), one, *rest], "nan", range_given=True)
    refuses(name, [x, two, one, *rest], "input_min", "[2]")
    refuses(name, [x, zero, one, *rest], "axis", "-2", axis=-2)
    refuses(name, [x, two, two, *rest], "axis", "2", axis=2)
    refuses(name, [x, two, two, *rest], "3", "2", axis=1)
refuses("QuantizeAndDequantizeV4Grad", [x, x[0], zero, one], "[2, 3]", "[3]")
refuses("QuantizeAndDequantizeV4Grad", [x, x, two, two], "3", "2", axis=1)
refuses("QuantizeAndDequantizeV4Grad", [x, x, two, one], "input_min", "[2]")
