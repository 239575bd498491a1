import numpy as np

from declare import op, refuses
from domains import normal
from ulps import near


def channels(d, shape):
    return shape[-1] if d.attrs["data_format"] == "NHWC" else shape[1]


def images(d):
    return d.shape(least=2 if d.attrs["data_format"] == "NHWC" else 3, most=5)


def with_bias(d):
    x = d("value", images(d))
    return [x, d("bias", (channels(d, x.shape),))]


def arriving(d):
    return [d("out_backprop", images(d))]


def column(bias, x, data_format):
    return bias if data_format == "NHWC" else bias.reshape(bias.shape + (1,) * (x.ndim - 2))


def per_channel(x, data_format):
    axes = tuple(range(x.ndim - 1)) if data_format == "NHWC" else (0, *range(2, x.ndim))
    sums = x.sum(axes, dtype=x.dtype)
    return near(sums, abs(x).sum(axes)) if x.dtype.kind in "fc" else sums


op("BiasAdd", lambda x, bias, *, data_format: x + column(bias, x, data_format), with_bias)
op("BiasAddGrad", lambda dy, *, data_format: per_channel(dy, data_format), arriving, domain=normal.calm, ulps=16, zero_signs=False)
refuses("BiasAdd", [np.zeros((2, 3), np.float32), np.zeros(2, np.float32)], "[2, 3]", "2 entries")
refuses("BiasAddGrad", [np.zeros(3, np.float32)], "[3]")
