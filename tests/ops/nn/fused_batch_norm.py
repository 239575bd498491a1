import numpy as np

from arrays import zeros
from declare import op, refuses
from domains import between, normal
from ulps import near
from windows import back, last

FLOAT_ONLY = "float is its widest type; gradient_of_floats_test.py checks it"


def drawn(d):
    """Draws the shape of the image and its number of channels."""
    channels, others = d.integer(1, 70 if d.large else 5), [d.integer(1, 4) for _ in d.attrs["data_format"][1:-1]]
    batch = 40 if d.large else d.integer(0, 3)
    if d.large:
        others = [23, 23] if len(others) == 2 else [9, 8, 7]
    elif d.integer(0, 5) == 0:
        others, channels = [130 for _ in others[:-1]] + [1], 3  # longer than a strip
    return ((batch, channels, *others) if d.attrs["data_format"][1] == "C" else (batch, *others, channels)), channels


def forward(d):
    shape, channels = drawn(d)
    given = channels if not d.attrs["is_training"] or d.attrs["exponential_avg_factor"] != 1 or d.integer(0, 1) else 0
    return [d("x", shape), d("scale", (channels,)), d("offset", (channels,)), d("mean", (given,)), d("variance", (given,))]


def backward(d):
    shape, channels = drawn(d)
    inputs = [d("y_backprop", shape), d("x", shape)] + [d(name, (channels,)) for name in ("scale", "reserve_space_1", "reserve_space_2")]
    return inputs + [d("reserve_space_3", (0,))] * ("reserve_space_3" in d.inputs)


def oracle(x, scale, offset, mean, variance, *, epsilon, exponential_avg_factor, data_format, is_training):
    x = last(x, data_format)
    axes, f, n = tuple(range(x.ndim - 1)), exponential_avg_factor, x[..., 0].size
    given, size = mean, mean
    out_mean, out_variance = mean, variance
    if is_training:
        if n == 0:
            nan = np.full(scale.shape, np.nan)
            return [back(x, data_format), nan, nan, np.zeros(scale.shape), np.zeros(scale.shape)]
        old = (mean, variance) if f != 1 else (0, 0)
        given = old[0]
        mean, variance, size = x.mean(axes), x.var(axes), abs(x).mean(axes)
        out_mean, out_variance = (1 - f) * old[0] + f * mean, (1 - f) * old[1] + f * variance * n / max(n - 1, 1)
    rate = scale / np.sqrt(variance + epsilon)
    y, magnitude = (x - mean) * rate + offset, (abs(x) + abs(size)) * abs(rate) + abs(offset)
    spread = variance + out_variance
    return [near(back(y, data_format), back(magnitude, data_format)), near(out_mean, abs(size) + abs(given)), near(out_variance, spread),
            near(mean, abs(size)), near(variance, spread)]


def grad_oracle(dy, x, scale, mean, variance, *_, epsilon, data_format, is_training):
    dy, x = last(dy, data_format), last(x, data_format)
    axes, rate, n = tuple(range(x.ndim - 1)), 1 / np.sqrt(variance + epsilon), max(x[..., 0].size, 1)

    def gradients(dy, u, scale, sign):
        sums, products = dy.sum(axes), (dy * u).sum(axes)
        dx = dy + sign * (sums / n + u * rate ** 2 * products / n) if is_training else dy
        return [back(dx * scale * rate, data_format), products * rate, sums]

    values, sizes = gradients(dy, x - mean, scale, -1), gradients(abs(dy), abs(x) + abs(mean), abs(scale), 1)
    return [near(v, s) for v, s in zip(values, sizes)] + [np.zeros(0), np.zeros(0)]


common = dict(ulps=8, half_ulps=2, zero_signs=False, no_gradient=FLOAT_ONLY)
spread = between(0.1, 4).calm
op("FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3", oracle, forward,
   domain=dict(x=normal.calm, scale=normal.calm, offset=normal.calm, mean=normal.calm, variance=spread),
   attrs=dict(epsilon=[0.0001, 0.25], exponential_avg_factor=[1.0, 1.0, 0.25]), **common)
op("FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3", grad_oracle, backward,
   domain={name: normal.calm for name in ("y_backprop", "x", "scale", "reserve_space_1")} | dict(reserve_space_2=spread),
   attrs=dict(epsilon=[0.0001, 0.25]), **common)


image, two, three, none = zeros(1, 3, 3, 2), zeros(2), zeros(3), zeros(0)
for name in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"):
    refuses(name, [zeros(3, 3, 2), two, two, none, none], "[3, 3, 2]")
    refuses(name, [image, three, two, none, none], "scale", "2", "3")
    refuses(name, [image, two, three, none, none], "offset", "2", "3")
    refuses(name, [image, two, two, zeros(1, 2), none], "mean")
    refuses(name, [image, two, two, none, none], "mean", is_training=False)
    refuses(name, [image, two, two, two, three], "variance", "3", is_training=False)
    refuses(name, [image, two, two, none, none], "mean", exponential_avg_factor=0.5)
    refuses(name, [image, two, two, none, none], data_format="NCHW")
    refuses(name, [image, two, two, none, none], "data_format", "HWNC", data_format="HWNC")
refuses("FusedBatchNormV3", [image, two, two, none, none], "[1, 3, 3, 2]", data_format="NDHWC")
for name, more in (("FusedBatchNormGrad", []), ("FusedBatchNormGradV2", []), ("FusedBatchNormGradV3", [none])):
    refuses(name, [zeros(3, 3, 2), image, two, two, two, *more], "[3, 3, 2]")
    refuses(name, [zeros(1, 3, 2, 2), image, two, two, two, *more], "[1, 3, 2, 2]")
    refuses(name, [image, image, three, two, two, *more], "scale", "2", "3")
    refuses(name, [image, image, two, three, two, *more], "reserve_space_1", "2", "3")
    refuses(name, [image, image, two, two, zeros(2, 1), *more], "reserve_space_2")
