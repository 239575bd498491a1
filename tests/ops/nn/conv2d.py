import numpy as np

from declare import op, slope
from domains import normal
from ulps import near
from windows import back, convolutions, draw_windows, last, out_sizes, paddings, spaces, taps, with_channels


def drawn(d):
    """Draws the shapes of image, filter and result; a filter with fewer channels than the image has groups."""
    data_format, sizes, windows, strides, dilations = draw_windows(d, 2, ("SAME", "VALID", "EXPLICIT"), most=16 if d.large else 7)
    batch, groups = d.integer(int(d.smooth), 3), d.pick(1, 1, 1, 2, 3)
    channels, results = (d.integer(1, 2 if d.smooth else 5) for _ in range(2))
    if d.large:
        batch, channels, results = 3, d.pick(3, 24, 40), d.pick(32, 17)
    out = out_sizes(d, sizes, windows, strides, dilations)
    image, result = (with_channels(data_format, batch, s, groups * c) for s, c in ((sizes, channels), (out, results)))
    return image, (*windows, channels, groups * results), result


def sized(data_format, batch, sizes, windows, channels, results, stride=1):
    """Returns the three draws of `convolutions` for the given shapes, without padding."""
    def shapes(d):
        strides = [1, 1, stride, stride] if data_format == "NCHW" else [1, stride, stride, 1]
        d.set(data_format=data_format, strides=strides, dilations=[1] * 4, padding="VALID", explicit_paddings=[])
        out = [(n - w) // stride + 1 for n, w in zip(sizes, windows)]
        image, result = (with_channels(data_format, batch, s, c) for s, c in ((sizes, channels), (out, results)))
        return image, (*windows, channels, results), result
    return convolutions(shapes)


forward, back_input, back_filter = convolutions(drawn)
others = [sized(*sizes) for sizes in (
    ("NHWC", 1, (3, 3), (1, 1), 512, 5),      # pixels of a source that is read as it lies, or, here, had better not be
    ("NCHW", 1, (33, 32), (1, 1), 3, 5),
    ("NCHW", 3, (16, 16), (1, 1), 3, 7),      # more points than a tile has, two images in a chunk
    ("NCHW", 9, (16, 16), (1, 1), 3, 7),
    ("NHWC", 1, (5, 5), (3, 3), 3, 257),      # weights whose rows are badly aligned
    ("NCHW", 1, (5, 5), (3, 3), 3, 256),
    ("NHWC", 1, (5, 5), (3, 3), 3, 256),
    ("NHWC", 1, (45, 45), (2, 2), 2, 5),      # points in chunks
    ("NCHW", 9, (16, 16), (2, 2), 2, 5),
    ("NCHW", 2, (30, 31), (2, 2), 2, 5, 2))]


def grouped(x, groups):
    """Splits the channels, which are last, into groups."""
    return np.split(x, groups, -1)


def both(f, *inputs, data_format):
    """The value with the channels where they belong, and the same of the magnitudes."""
    return near(back(f(*inputs), data_format), back(f(*map(abs, inputs)), data_format))


def views(image, windows, strides, padding, explicit_paddings, data_format, dilations):
    strides, dilations = spaces(strides, data_format), spaces(dilations, data_format)
    pads = paddings(image.shape[1:3], windows, strides, dilations, padding, explicit_paddings, data_format)
    return taps(image, windows, strides, dilations, pads)


def product(view, w, groups):
    """Multiplies the channels of each group by the group's part of the filter's tap [channels in, channels out]."""
    return np.concatenate([v @ part for v, part in zip(grouped(view, groups), grouped(w, groups))], -1)


def oracle(image, kernel, *, strides, padding, explicit_paddings, data_format, dilations):
    image = last(image, data_format)
    groups = image.shape[-1] // kernel.shape[2]

    def convolve(x, w):
        return sum(product(v, w[tap], groups) for tap, v in views(x, w.shape[:2], strides, padding, explicit_paddings, data_format, dilations))
    return both(convolve, image, kernel, data_format=data_format)


def input_oracle(sizes, kernel, dy, *, strides, padding, explicit_paddings, data_format, dilations):
    shape = last(np.empty(sizes), data_format).shape
    groups = shape[-1] // kernel.shape[2]

    def gradient(w, v):
        n = int(np.prod(shape))
        places, sums = np.arange(1, n + 1).reshape(shape), np.zeros(n + 1, v.dtype)
        for tap, at in views(places, w.shape[:2], strides, padding, explicit_paddings, data_format, dilations):
            parts = zip(grouped(v, groups), grouped(w[tap], groups))
            np.add.at(sums, at, np.concatenate([dy @ part.T for dy, part in parts], -1))
        return sums[1:].reshape(shape)
    return both(gradient, kernel, last(dy, data_format), data_format=data_format)


def filter_oracle(image, sizes, dy, *, strides, padding, explicit_paddings, data_format, dilations):
    image = last(image, data_format)
    groups = image.shape[-1] // sizes[2]

    def gradient(x, v):
        out = np.zeros(tuple(sizes), v.dtype)
        for tap, view in views(x, tuple(sizes[:2]), strides, padding, explicit_paddings, data_format, dilations):
            parts = zip(grouped(view, groups), grouped(v, groups))
            out[tap] = np.concatenate([np.tensordot(a, b, ([0, 1, 2], [0, 1, 2])) for a, b in parts], -1)
        return out
    return both(gradient, image, last(dy, data_format), data_format="NHWC")


# It depends on the algorithm whether a NaN of the filter, or of out_backprop, is multiplied by the padding.
kernel, arriving = (dict(input=normal.calm, filter=normal.plain, out_backprop=domain) for domain in (normal.calm, normal.plain))
more = dict(ulps=16, half_ulps=2, zero_signs=False, given=dict(strides=[1, 1, 1, 1], padding="VALID"))
op("Conv2D", oracle, forward, domain=kernel, also=[o[0] for o in others], **more)
op("Conv2DBackpropInput", input_oracle, back_input, domain=kernel, also=[o[1] for o in others], **more)
op("Conv2DBackpropFilter", filter_oracle, back_filter, domain=arriving, also=[o[2] for o in others], **more)
rng = np.random.default_rng(5)
slope("Conv2D", rng.normal(size=(1, 4, 4, 4)), rng.normal(size=(2, 3, 2, 4)), strides=[1, 2, 1, 1], padding="SAME")
