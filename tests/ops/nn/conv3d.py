import numpy as np

from arrays import zeros
from declare import op, refuses
from domains import normal
from ulps import near
from windows import back, convolutions, draw_windows, last, out_sizes, paddings, spaces, taps, with_channels


def drawn(d):
    """Draws the shapes of volume, filter and result."""
    data_format, sizes, windows, strides, dilations = draw_windows(d, 3, ("SAME", "VALID"), most=5)
    batch, channels, results = (d.integer(1, 2) if d.smooth else d.integer(low, 4) for low in (0, 1, 0))
    if d.large:
        batch, channels, results = 3, 20, 24
    out = out_sizes(d, sizes, windows, strides, dilations)
    volume, result = (with_channels(data_format, batch, s, c) for s, c in ((sizes, channels), (out, results)))
    return volume, (*windows, channels, results), result


def sized(batch, sizes, windows, channels, results):
    """Returns the three draws of `convolutions` for the given shapes, with strides of 1 and without padding."""
    def shapes(d):
        data_format = d.attrs["data_format"]
        d.set(strides=[1] * 5, dilations=[1] * 5, padding="VALID")
        out = [n - w + 1 for n, w in zip(sizes, windows)]
        volume, result = (with_channels(data_format, batch, s, c) for s, c in ((sizes, channels), (out, results)))
        return volume, (*windows, channels, results), result
    return convolutions(shapes)


forward, back_input, back_filter = convolutions(drawn)
_, side_by_side, many_volumes = sized(9, (3, 4, 3), (2, 1, 2), 3, 5)  # windows without steps; sums in chunks
_, _, large_filter = sized(9, (2, 3, 3), (2, 2, 2), 91, 93)  # too large for a product with all of its taps


def views(volume, windows, strides, padding, data_format, dilations):
    strides, dilations = spaces(strides, data_format), spaces(dilations, data_format)
    return taps(volume, windows, strides, dilations, paddings(volume.shape[1:4], windows, strides, dilations, padding, [], data_format))


def both(f, *inputs, data_format):
    """The value with the channels where they belong, and the same of the magnitudes."""
    return near(back(f(*inputs), data_format), back(f(*map(abs, inputs)), data_format))


def oracle(volume, kernel, *, strides, padding, data_format, dilations):
    def convolve(x, w):
        return sum(view @ w[tap] for tap, view in views(x, w.shape[:3], strides, padding, data_format, dilations))
    return both(convolve, last(volume, data_format), kernel, data_format=data_format)


def input_oracle(sizes, kernel, dy, *, strides, padding, data_format, dilations):
    shape = last(np.empty(sizes), data_format).shape

    def gradient(w, v):
        n = int(np.prod(shape))
        places, sums = np.arange(1, n + 1).reshape(shape), np.zeros(n + 1, v.dtype)
        for tap, view in views(places, w.shape[:3], strides, padding, data_format, dilations):
            np.add.at(sums, view, v @ w[tap].T)
        return sums[1:].reshape(shape)
    return both(gradient, kernel, last(dy, data_format), data_format=data_format)


def filter_oracle(volume, sizes, dy, *, strides, padding, data_format, dilations):
    def gradient(x, v):
        out = np.zeros(tuple(sizes), v.dtype)
        for tap, view in views(x, tuple(sizes[:3]), strides, padding, data_format, dilations):
            out[tap] = np.tensordot(view, v, ([0, 1, 2, 3], [0, 1, 2, 3]))
        return out
    return both(gradient, last(volume, data_format), last(dy, data_format), data_format="NDHWC")


# It depends on the algorithm whether a NaN of the filter, or of out_backprop, is multiplied by the padding.
kernel, arriving = (dict(input=normal.calm, filter=normal.plain, out_backprop=domain) for domain in (normal.calm, normal.plain))
plain, given = dict(ulps=8, half_ulps=2, zero_signs=False), dict(strides=[1, 1, 1, 1, 1], padding="VALID")
op("Conv3D", oracle, forward, domain=kernel, given=given, **plain)
op("Conv3DBackpropInputV2", input_oracle, back_input, domain=kernel, given=given, also=(side_by_side,), **plain)
op("Conv3DBackpropFilterV2", filter_oracle, back_filter, domain=arriving, given=given, also=(many_volumes, large_filter), **plain)


volume, kernel = zeros(1, 4, 4, 4, 2), zeros(2, 2, 2, 2, 3)
refuses("Conv3D", [zeros(4, 4, 4, 2), kernel], "input", "[4, 4, 4, 2]", **given)
refuses("Conv3D", [volume, zeros(2, 2, 2, 2)], "filter", "[2, 2, 2, 2]", **given)
refuses("Conv3D", [volume, zeros(2, 2, 2, 1, 3)], "2", "1", **given)
refuses("Conv3D", [volume, zeros(6, 2, 2, 2, 3)], "6", "4", **given)
refuses("Conv3D", [volume, zeros(0, 2, 2, 2, 3)], "0", **given)
for strides in ([1, 1, 1, 1], [2, 1, 1, 1, 1], [1, 1, 0, 1, 1], [1, 1, 1, -1, 1]):
    refuses("Conv3D", [volume, kernel], "strides", strides=strides, padding="SAME")
refuses("Conv3D", [volume, kernel], "dilations", dilations=[1, 1, 0, 1, 1], **given)
for wrong in (np.int32([1, 4, 4, 2]), np.int32([1, 5, 4, 4, 2]), np.int64([1, 4, 4, -4, 2])):
    refuses("Conv3DBackpropInputV2", [wrong, kernel, zeros(1, 3, 3, 3, 3)], **given)
for wrong in (np.int32([2, 2, 2, 3]), np.int32([3, 2, 2, 2, 3]), np.int32([2, 2, 2, 2, 4])):
    refuses("Conv3DBackpropFilterV2", [volume, wrong, zeros(1, 3, 3, 3, 3)], **given)
