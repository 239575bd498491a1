"""Windows over images and volumes in plain NumPy, shared by convolutions and poolings of any number of spatial axes. Channels are last
here; `last` and `back` convert other formats."""
import itertools

import numpy as np


def last(x, data_format):
    return np.moveaxis(x, 1, -1) if data_format[1] == "C" else x


def back(x, data_format):
    return np.moveaxis(x, -1, 1) if data_format[1] == "C" else x


def spaces(values, data_format):
    """Returns the entries for the spatial axes of a list with one entry per axis."""
    return values[2:] if data_format[1] == "C" else values[1:-1]


def paddings(sizes, windows, strides, dilations, padding, explicit, data_format):
    """Returns the padding before and after each spatial axis."""
    if padding == "EXPLICIT":
        pairs = list(zip(explicit[::2], explicit[1::2]))
        return spaces(pairs, data_format)
    if padding == "VALID":
        return [(0, 0)] * len(sizes)
    short = [max(0, (-(-n // s) - 1) * s + (w - 1) * d + 1 - n) for n, w, s, d in zip(sizes, windows, strides, dilations)]
    return [(p // 2, p - p // 2) for p in short]


def taps(image, windows, strides, dilations, pads):
    """Yields, for each tap, its position in the window and a view of the padded image [batch, ..., channels] with the elements that it
    reads."""
    padded = np.pad(image, [(0, 0), *pads, (0, 0)])
    for tap in itertools.product(*map(range, windows)):
        view = padded
        for axis, (t, w, s, d) in enumerate(zip(tap, windows, strides, dilations), 1):
            reach = (w - 1) * d
            view = np.take(view, np.arange(t * d, padded.shape[axis] - reach + t * d, s), axis)
        yield tap, view


def draw_windows(d, rank, paddings_of, most=6):
    """Draws valid attributes of a convolution over `rank` spatial axes. Returns (format, spatial sizes of the image, windows). Sets
    strides, padding, explicit_paddings and dilations."""
    data_format = d.attrs["data_format"]
    first = data_format[1] == "C"

    def listed(values):
        return [1, 1, *values] if first else [1, *values, 1]

    sizes = [d.integer(2, 4 if d.smooth else most) for _ in range(rank)]
    windows = [d.integer(1, min(3, n)) for n in sizes]
    strides = [d.integer(1, 3) for _ in range(rank)]
    dilations = [d.integer(1, 1 + (n - 1) // max(w - 1, 1)) if w > 1 else d.integer(1, 3) for n, w in zip(sizes, windows)]
    dilations = [k if (w - 1) * k + 1 <= n else 1 for k, n, w in zip(dilations, sizes, windows)]
    d.set(strides=listed(strides), dilations=listed(dilations), padding=d.pick(*paddings_of))
    if d.attrs["padding"] == "EXPLICIT":
        around = [d.integer(0, 2) for _ in range(2 * rank)]
        d.set(explicit_paddings=[0] * 4 + around if first else [0, 0, *around, 0, 0])
    elif d.attrs["padding"] == "VALID":
        beyond(d, sizes, windows, strides, dilations)
    return data_format, sizes, windows, strides, dilations


def beyond(d, sizes, windows, strides, dilations):
    """Sometimes makes the image so small (by less than two strides) that a window has no position along one axis."""
    if d.smooth or d.large or d.integer(0, 5):
        return
    k = d.integer(0, len(sizes) - 1)
    sizes[k] = max(0, (windows[k] - 1) * dilations[k] + 1 - d.integer(1, 2 * strides[k] - 1))


def out_sizes(d, sizes, windows, strides, dilations):
    pads = paddings(sizes, windows, strides, dilations, d.attrs["padding"], d.attrs.get("explicit_paddings", []), d.attrs["data_format"])
    return [max(0, (n + sum(p) - (w - 1) * k - 1) // s + 1) for n, w, s, k, p in zip(sizes, windows, strides, dilations, pads)]


def with_channels(data_format, batch, sizes, channels):
    return (batch, channels, *sizes) if data_format[1] == "C" else (batch, *sizes, channels)


def convolutions(shapes):
    """Returns the draws of a convolution, of its gradient for the image and of that for the filter. shapes(d): those of image, filter and
    result."""
    def forward(d):
        image, kernel, _ = shapes(d)
        return [d("input", image), d("filter", kernel)]

    def back_input(d):
        image, kernel, result = shapes(d)
        return [d("input_sizes", of=image), d("filter", kernel), d("out_backprop", result)]

    def back_filter(d):
        image, kernel, result = shapes(d)
        return [d("input", image), d("filter_sizes", of=kernel), d("out_backprop", result)]

    return forward, back_input, back_filter
