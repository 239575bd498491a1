import numpy as np

from arrays import zeros
from declare import op, refuses, slope
from domains import normal
from ulps import near
from windows import back, convolutions, draw_windows, last, out_sizes, paddings, spaces, taps, with_channels

PADDINGS = ("SAME", "VALID", "EXPLICIT")


def drawn(d):
    """Draws the shapes of image, filter and result."""
    data_format, sizes, windows, strides, dilations = draw_windows(d, 2, PADDINGS)
    batch, channels, multiplier = d.integer(int(d.smooth), 3), d.integer(1, 2 if d.smooth else 5), d.integer(1, 2 if d.smooth else 3)
    if d.large:
        batch, channels = 2, 40 * d.integer(1, 2)
    out = out_sizes(d, sizes, windows, strides, dilations)
    image, result = (with_channels(data_format, batch, s, c) for s, c in ((sizes, channels), (out, channels * multiplier)))
    return image, (*windows, channels, multiplier), result


def wide(channels, stride):
    """Returns the three draws of `convolutions` for channels that are contiguous; large numbers of them fill whole vectors."""
    def shapes(d):
        d.set(data_format="NHWC", strides=[1, stride, stride, 1], dilations=[1] * 4, padding="SAME")
        return (2, 5, 9, channels), (2, 3, channels, 1), (2, -(-5 // stride), -(-9 // stride), channels)
    return convolutions(shapes)


forward, back_input, back_filter = convolutions(drawn)
others = [wide(*sizes) for sizes in ((1, 1), (4, 1), (5, 1), (37, 1), (48, 2), (64, 1), (130, 2))]


class Geometry:
    """The attributes, applied to an image of that shape with the channels last."""

    def __init__(self, shape, windows, strides, padding, explicit_paddings, data_format, dilations):
        self.windows, self.strides, self.dilations = windows, spaces(strides, data_format), spaces(dilations, data_format)
        self.pads = paddings(shape[1:3], windows, self.strides, self.dilations, padding, explicit_paddings, data_format)

    def taps(self, image):
        return taps(image, self.windows, self.strides, self.dilations, self.pads)


def convolve(image, kernel, g):
    total = 0
    for tap, view in g.taps(image):
        total = total + (view[..., None] * kernel[tap]).reshape(*view.shape[:-1], int(np.prod(kernel.shape[2:])))
    return total


def gradient_of_input(shape, kernel, dy, g):
    """Returns the gradient of every element of the image, added tap by tap through a map of the image's elements."""
    n = int(np.prod(shape))
    places, sums = np.arange(1, n + 1).reshape(shape), np.zeros(n + 1, dy.dtype)
    dy = dy.reshape(*dy.shape[:-1], *kernel.shape[2:])
    for tap, view in g.taps(places):
        np.add.at(sums, view, (dy * kernel[tap]).sum(-1))
    return sums[1:].reshape(shape)


def gradient_of_filter(image, shape, dy, g):
    dy = dy.reshape(*dy.shape[:-1], *shape[2:])
    out = np.zeros(shape, dy.dtype)
    for tap, view in g.taps(image):
        out[tap] = (view[..., None] * dy).sum((0, 1, 2))
    return out


def both(f, *inputs, data_format):
    """The value with the channels where they belong, and the same of the magnitudes."""
    return near(back(f(*inputs), data_format), back(f(*map(abs, inputs)), data_format))


def oracle(image, kernel, *, strides, padding, explicit_paddings, data_format, dilations):
    image = last(image, data_format)
    g = Geometry(image.shape, kernel.shape[:2], strides, padding, explicit_paddings, data_format, dilations)
    return both(lambda x, w: convolve(x, w, g), image, kernel, data_format=data_format)


def input_oracle(sizes, kernel, dy, *, strides, padding, explicit_paddings, data_format, dilations):
    shape = last(np.empty(sizes), data_format).shape
    g = Geometry(shape, kernel.shape[:2], strides, padding, explicit_paddings, data_format, dilations)
    return both(lambda w, v: gradient_of_input(shape, w, v, g), kernel, last(dy, data_format), data_format=data_format)


def filter_oracle(image, sizes, dy, *, strides, padding, explicit_paddings, data_format, dilations):
    image = last(image, data_format)
    g = Geometry(image.shape, sizes[:2], strides, padding, explicit_paddings, data_format, dilations)
    return both(lambda x, v: gradient_of_filter(x, tuple(sizes), v, g), image, last(dy, data_format), data_format="NHWC")


# The op does not multiply padding by the filter; in NumPy a NaN there may count.
image_only, result_only = dict(input=normal.calm, filter=normal.plain), dict(input=normal.calm, out_backprop=normal.plain)
plain, given = dict(ulps=8, half_ulps=2, zero_signs=False), dict(strides=[1, 1, 1, 1], padding="VALID")
op("DepthwiseConv2dNative", oracle, forward, domain=image_only, given=given, also=[o[0] for o in others], **plain)
op("DepthwiseConv2dNativeBackpropInput", input_oracle, back_input, domain=normal.calm, given=given, also=[o[1] for o in others], **plain)
op("DepthwiseConv2dNativeBackpropFilter", filter_oracle, back_filter, domain=result_only, given=given, also=[o[2] for o in others], **plain)


image, kernel, sizes, kernel_sizes = zeros(1, 4, 4, 2), zeros(2, 2, 2, 3), np.int32([1, 4, 4, 2]), np.int32([2, 2, 2, 3])
refuses("DepthwiseConv2dNative", [zeros(4, 4, 2), kernel], "input", "[4, 4, 2]", **given)
refuses("DepthwiseConv2dNative", [image, zeros(2, 2, 2)], "filter", "[2, 2, 2]", **given)
refuses("DepthwiseConv2dNative", [image, zeros(2, 2, 3, 1)], "2", "3", **given)
refuses("DepthwiseConv2dNative", [image, zeros(6, 2, 2, 1)], "6", "4", **given)
refuses("DepthwiseConv2dNative", [image, zeros(0, 2, 2, 1)], "0", **given)
for strides in ([1, 1, 1], [2, 1, 1, 1], [1, 0, 1, 1], [1, 1, -1, 1]):
    refuses("DepthwiseConv2dNative", [image, kernel], "strides", strides=strides, padding="SAME")
refuses("DepthwiseConv2dNative", [image, kernel], "dilations", dilations=[1, 0, 1, 1], **given)
refuses("DepthwiseConv2dNative", [image, kernel], "explicit_paddings", strides=[1, 1, 1, 1], padding="EXPLICIT", explicit_paddings=[1, 1])
for wrong in (np.int32([1, 4, 4]), np.int32([1, 5, 4, 2]), np.int32([1, 4, -4, 2])):
    refuses("DepthwiseConv2dNativeBackpropInput", [wrong, kernel, zeros(1, 3, 3, 6)], **given)
for wrong in (np.int32([2, 2, 2]), np.int32([3, 2, 2, 3]), np.int32([2, 2, 2, 4])):
    refuses("DepthwiseConv2dNativeBackpropFilter", [image, wrong, zeros(1, 3, 3, 6)], **given)
rng = np.random.default_rng(3)
slope("DepthwiseConv2dNative", rng.normal(size=(2, 5, 4, 2)), rng.normal(size=(3, 2, 2, 2)), strides=[1, 2, 1, 1], padding="SAME")
