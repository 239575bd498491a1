import numpy as np

from arrays import zeros
from declare import expect, op, refuses
from domains import between, everything
from ulps import near

FLOAT_ONLY = "float is its widest type; gradient_of_floats_test.py checks it"


def image(d):
    batch, height, width = (3, 20, 21) if d.large else (d.integer(0, 2), d.integer(1, 3), d.integer(1, 3))
    return batch, height, width, d.integer(60, 70) if d.large else d.integer(0, 13)


def around(v, radius):
    """Returns the sums over `radius` neighbours on either side along the last axis."""
    total, n = np.array(v), v.shape[-1]
    for k in range(1, min(radius, n - 1) + 1):
        total[..., k:] += v[..., :-k]
        total[..., :-k] += v[..., k:]
    return total


def around_ones(channels, radius):
    at = np.arange(channels)
    return np.minimum(channels - 1, at + radius) - np.maximum(0, at - radius) + 1.0


def lrn(x, *, depth_radius, bias, alpha, beta):
    return x / (bias + alpha * around(x * x, depth_radius)) ** beta


def lrn_grad(dy, x, y, *, depth_radius, bias, alpha, beta):
    n = bias + alpha * around(x * x, depth_radius)
    direct, factor = dy / n ** beta, 2 * alpha * beta
    others = factor * x * around(dy * y / n, depth_radius)
    return near(direct - others, abs(direct) + abs(factor * x) * around(abs(dy * y) / n, depth_radius))


domain = everything(between(-3, 3)).calm
attrs = dict(depth_radius=[0, 1, 2, 5, 17, 30, 2**31 - 1], bias=[1.0, 2.0], alpha=[1.0, 0.125], beta=[0.5, 0.75, 1.0])
common = dict(domain=domain, attrs=attrs, ulps=16, half_ulps=2, zero_signs=False, no_gradient=FLOAT_ONLY)
op("LRN", lrn, lambda d: [d("input", image(d))], **common)
op("LRNGrad", lrn_grad, lambda d: [d(name, shape) for shape in [image(d)] for name in d.inputs], **common)


# A window of hundreds of thousands of channels takes no longer than a narrow one.
expect("LRN", [np.ones((1, 1, 1, 1 << 18), np.float32)], [1 / (1 + around_ones(1 << 18, 1 << 17))[None, None, None]], 1e-6, depth_radius=1 << 17, beta=1.0)


refuses("LRN", [zeros(2, 3, 4)], "input", "[2, 3, 4]")
for radius in (-1, 2**31):
    refuses("LRN", [zeros(1, 2, 2, 3)], "depth_radius", str(radius), depth_radius=radius)
refuses("LRNGrad", [zeros(1, 2, 2, 3), zeros(1, 2, 2, 4), zeros(1, 2, 2, 4)], "[1, 2, 2, 3]", "[1, 2, 2, 4]")
refuses("LRNGrad", [zeros(1, 2, 2, 3), zeros(1, 2, 2, 3), zeros(1, 2, 2, 4)], "[1, 2, 2, 3]", "[1, 2, 2, 4]")
refuses("LRNGrad", [zeros(2, 3), zeros(1, 2, 2, 3), zeros(1, 2, 2, 3)], "input_grads", "[2, 3]")
