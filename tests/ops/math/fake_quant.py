import numpy as np

from arrays import f32, zeros
from declare import op, refuses
from domains import between
from ulps import near

F = np.float32
STEP = "it is constant between steps, and its gradient is 1 by convention; cases of FakeQuant below"


def steps(low, high, num_bits, narrow_range):
    """Returns the range after it was moved so that 0 is a step, and the step, in float as in the op."""
    least, most = F(narrow_range), F(2**num_bits - 1)
    step = (F(high) - F(low)) / (most - least)
    start = least - F(low) / step
    zero = np.clip(np.floor(start + F(0.5)) if start >= 0 else np.ceil(start - F(0.5)), least, most)
    return (least - zero) * step, (most - zero) * step, step


def quantised(x, low, high, num_bits, narrow_range):
    """The nearest step; where two are near, its error counts relative to a step."""
    if low == 0 and high == 0:
        return np.zeros_like(x), np.ones_like(x)
    begin, end, step = (np.longdouble(v) for v in steps(low, high, num_bits, narrow_range))
    return begin + np.floor((np.clip(x, begin, end) - begin) / step + 0.5) * step, np.full_like(x, max(abs(begin), abs(end)))


def backward(dy, x, low, high, num_bits, narrow_range):
    if low == 0 and high == 0:
        return dy, 0, 0, 0
    begin, end, _ = steps(low, high, num_bits, narrow_range)
    return np.where((x >= begin) & (x <= end), dy, 0), dy[x < begin].sum(), dy[x > end].sum(), abs(dy).sum()


def by_channel(f, arrays, low, high, how):
    return [f(*(a[..., k] for a in arrays), low[k], high[k], *how) for k in range(len(low))]


def args(x, *, min, max, num_bits, narrow_range):
    return near(*quantised(x, min, max, num_bits, narrow_range))


def args_grad(dy, x, *, min, max, num_bits, narrow_range):
    return backward(dy, x, min, max, num_bits, narrow_range)[0]


def vars_(x, low, high, *, num_bits, narrow_range):
    return near(*quantised(x, low, high, num_bits, narrow_range))


def vars_grad(dy, x, low, high, *, num_bits, narrow_range):
    dx, to_low, to_high, size = backward(dy, x, low, high, num_bits, narrow_range)
    return [dx, near(np.longdouble(to_low), np.longdouble(size)), near(np.longdouble(to_high), np.longdouble(size))]


def channels(x, low, high, *, num_bits, narrow_range):
    found = by_channel(quantised, [x], low, high, (num_bits, narrow_range))
    return near(*(np.stack([f[k] for f in found], -1) if found else x for k in (0, 1)))


def channels_grad(dy, x, low, high, *, num_bits, narrow_range):
    found = by_channel(backward, [dy, x], low, high, (num_bits, narrow_range))
    if not found:
        return [dy, np.zeros(0), np.zeros(0)]
    ends = [near(*(np.array([f[k] for f in found], np.longdouble) for k in (side, 3))) for side in (1, 2)]
    return [np.stack([f[0] for f in found], -1), *ends]


def bits(d):
    d.set(num_bits=d.pick(2, 4, 8, 8, 16))


def places(d, shape, low, high):
    """Numbers inside and outside the range, away from the middle between two steps, where rounding decides."""
    how = d.attrs["num_bits"], d.attrs["narrow_range"]
    x = np.empty(shape)
    for k in range(max(len(low), 1)):
        at = (..., k) if len(low) > 1 or shape and shape[-1] == len(low) == 1 else ...
        begin, end, step = steps(low[k], high[k], *how) if low[k] != high[k] else (F(-1), F(1), F(1))
        count = int(round(float((end - begin) / step)))
        part = x[at]
        x[at] = begin + step * (d.rng.integers(-3, count + 4, np.shape(part)) + d.rng.uniform(-0.3, 0.3, np.shape(part)))
    return x


def drawn(d):
    bits(d)
    by_args, per_channel = "min" not in d.inputs, "PerChannel" in d.declaration.op
    count = d.integer(1, 4) if per_channel else 1
    low = d.rng.uniform(-4, 0.5, count).astype(F)
    high = np.maximum(low + d.rng.uniform(0.5, 6, count), 0.25).astype(F)
    if not by_args and d.integer(0, 4) == 0:
        low[0] = high[0] = 0
    if by_args:
        d.set(min=float(low[0]), max=float(high[0]))
    shape = (*d.shape(most=3), count) if per_channel else d.shape(most=4)
    x = places(d, shape, low, high) if np.prod(shape) else np.empty(shape)
    values = dict(inputs=x, min=low if per_channel else low[0], max=high if per_channel else high[0])
    return [d(name, shape) if name == "gradients" else d(name, of=values[name]) for name in d.inputs]


plain = dict(domain=between(-3, 3).plain, ulps=16, zero_signs=False)
op("FakeQuantWithMinMaxArgs", args, drawn, no_gradient=STEP, **plain)
op("FakeQuantWithMinMaxArgsGradient", args_grad, drawn, wrt=("gradients",), **plain)
op("FakeQuantWithMinMaxVars", vars_, drawn, no_gradient=STEP, **plain)
op("FakeQuantWithMinMaxVarsPerChannel", channels, drawn, no_gradient=STEP, **plain)
op("FakeQuantWithMinMaxVarsGradient", vars_grad, drawn, **plain)
op("FakeQuantWithMinMaxVarsPerChannelGradient", channels_grad, drawn, **plain)

x, low, high = zeros(2, 3), np.float32(-1), np.float32(1)
refuses("FakeQuantWithMinMaxArgs", [x], "min", "2", min=2.0, max=1.0)
refuses("FakeQuantWithMinMaxArgs", [x], "num_bits", "1", num_bits=1)
refuses("FakeQuantWithMinMaxArgsGradient", [x, x[0]], "[2, 3]", "[3]")
refuses("FakeQuantWithMinMaxVars", [x, f32(-1), high], "min", "[1]")
refuses("FakeQuantWithMinMaxVars", [x, high, low], "min", "max")
refuses("FakeQuantWithMinMaxVars", [x, low, high], "num_bits", "17", num_bits=17)
refuses("FakeQuantWithMinMaxVarsGradient", [x, x[0], low, high], "[2, 3]", "[3]")
refuses("FakeQuantWithMinMaxVarsPerChannel", [x, f32(-1, -1), f32(1, 1)], "3", "2")
refuses("FakeQuantWithMinMaxVarsPerChannel", [np.float32(1), f32(-1), f32(1)], "inputs")
refuses("FakeQuantWithMinMaxVarsPerChannelGradient", [x, x, f32(-1, -1, -1), f32(1, 1)], "3", "2")
