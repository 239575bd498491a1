import numpy as np

from arrays import i32, zeros
from declare import op, refuses
from domains import distinct, normal
from ulps import near, widened
from windows import back, beyond, last, out_sizes, paddings, spaces, taps, with_channels


def sizes(d):
    """Draws the shapes of image and result, ksize and strides; sets padding. NCHW_VECT_C exists only on GPUs."""
    data_format = d.attrs["data_format"] = d.pick("NHWC", "NCHW")
    space = [d.integer(1, 4 if d.smooth else 40 if d.large else 7) for _ in range(2)]
    window, stride = [d.integer(1, min(3, n)) for n in space], [d.integer(1, 3) for _ in range(2)]
    if d.smooth and d.attrs["padding"] == "EXPLICIT":  # its gradient has no explicit padding
        d.set(padding="VALID")
    if d.attrs["padding"] == "EXPLICIT":
        around = [d.integer(0, w - 1) for w in window for _ in range(2)]
        d.set(explicit_paddings=[0] * 4 + around if data_format == "NCHW" else [0, 0, *around, 0, 0])
    elif d.attrs["padding"] == "VALID":
        beyond(d, space, window, stride, [1, 1])
    out = out_sizes(d, space, window, stride, [1, 1])
    batch, channels = (1, 2) if d.smooth else (2, 70) if d.large else (d.integer(0, 3), d.integer(0, 5))
    listed = [[1, 1, *v] if data_format == "NCHW" else [1, *v, 1] for v in (window, stride)]
    return [with_channels(data_format, batch, s, channels) for s in (space, out)], listed


def told(d, ksize, strides):
    """Gives sizes and strides as inputs or as attributes."""
    if "ksize" in d.inputs:
        return [d("ksize", of=ksize), d("strides", of=strides)]
    d.set(ksize=ksize, strides=strides)
    return []


def forward(d):
    (image, _), how = sizes(d)
    return [d(next(iter(d.inputs)), image), *told(d, *how)]


def backward(d):
    (image, result), how = sizes(d)
    x = d("orig_input", image)
    return [x, pooled_of(d, x, *how), d("grad", result), *told(d, *how)]


def forward_again(d):
    (image, _), how = sizes(d)
    x = d("orig_input", image)
    return [x, pooled_of(d, x, *how), d("grad", image), *told(d, *how)]


def mean_backward(d):
    (image, result), how = sizes(d)
    told(d, *how)
    return [d("orig_input_shape", of=image), d("grad", result)]


def pooled_of(d, x, ksize, strides):
    attrs = {a: d.attrs.get(a, []) for a in ("padding", "explicit_paddings", "data_format")}
    return d("orig_output", of=pool(widened(x), ksize=ksize, strides=strides, **attrs))


class Windows:
    """The attributes, applied to an image of that shape with the channels last."""

    def __init__(self, shape, ksize, strides, padding, data_format, explicit_paddings=()):
        self.window, self.stride = spaces(list(ksize), data_format), spaces(list(strides), data_format)
        self.pads = paddings(shape[1:3], self.window, self.stride, [1, 1], padding, list(explicit_paddings), data_format)

    def places(self, shape):
        """Yields, tap by tap, the numbers of the image's elements, counted from 1; 0 for padding."""
        for _, at in taps(np.arange(1, int(np.prod(shape)) + 1).reshape(shape), self.window, self.stride, [1, 1], self.pads):
            yield at


def winners(x, how):
    """Returns the largest elements and their positions in x, with channels last. NaN is the largest; of equal elements the first counts."""
    best = where = None
    for at in Windows(x.shape, **how).places(x.shape):
        value = np.concatenate([x.reshape(-1)[:1], x.reshape(-1)])[at] if x.size else np.empty(at.shape, x.dtype)
        if best is None:
            best, where = value, at
            continue
        beats = (at > 0) & ((where == 0) | (value > best) | ((value != value) & (best == best)))
        best, where = np.where(beats, value, best), np.where(beats, at, where)
    return best, where


def pool(x, **how):
    return back(winners(last(x, how["data_format"]), how)[0], how["data_format"])


def pool_grad(x, _, dy, **how):
    x, dy = last(x, how["data_format"]), last(dy, how["data_format"])
    sums, where = np.zeros((2, x.size + 1), dy.dtype), winners(x, how)[1]
    np.add.at(sums[0], where, dy)
    np.add.at(sums[1], where, abs(dy))
    value, size = (back(s[1:].reshape(x.shape), how["data_format"]) for s in sums)
    return near(value, size) if dy.dtype.kind == "f" else value


def pool_grad_grad(x, _, dy, **how):
    x, dy = last(x, how["data_format"]), last(dy, how["data_format"])
    return back(np.concatenate([np.zeros(1, dy.dtype), dy.reshape(-1)])[winners(x, how)[1]], how["data_format"])


def mean(x, **how):
    """Returns the mean of the elements inside the image."""
    x, total, size, count = last(x, how["data_format"]), 0, 0, 0
    for at in Windows(x.shape, **how).places(x.shape):
        value = np.concatenate([np.zeros(1, x.dtype), x.reshape(-1)])[at]
        total, size, count = total + value, size + abs(value), count + (at > 0)
    return near(*(back(v / count, how["data_format"]) for v in (total, size)))


def mean_grad(shape, dy, **how):
    shape, dy = last(np.empty(shape), how["data_format"]).shape, last(dy, how["data_format"])
    count, sums = 0, np.zeros((2, int(np.prod(shape)) + 1), dy.dtype)
    for at in Windows(shape, **how).places(shape):
        count = count + (at > 0)
    for at in Windows(shape, **how).places(shape):
        np.add.at(sums[0], at, dy / count)
        np.add.at(sums[1], at, abs(dy) / count)
    return near(*(back(s[1:].reshape(shape), how["data_format"]) for s in sums))


def by_inputs(f):
    """Returns f with sizes and strides as the last inputs."""
    return lambda *inputs, **how: f(*inputs[:-2], ksize=inputs[-2], strides=inputs[-1], **how)


ATTRS = ["ksize", "strides", "padding", "data_format"]
op("MaxPool", pool, forward, asks=[*ATTRS, "explicit_paddings"], smooth=distinct)
op("MaxPoolGrad", pool_grad, backward, asks=[*ATTRS, "explicit_paddings"], domain=dict(grad=normal.calm),
   smooth=dict(orig_input=distinct, grad=normal), wrt=("grad",), ulps=2, zero_signs=False)
op("MaxPoolGradGrad", pool_grad_grad, forward_again, asks=ATTRS, domain=dict(grad=normal.calm),
   smooth=dict(orig_input=distinct, grad=normal), wrt=("grad",))
op("AvgPool", mean, forward, asks=ATTRS, domain=normal.calm, ulps=8, half_ulps=2, zero_signs=False)
op("AvgPoolGrad", mean_grad, mean_backward, asks=ATTRS, domain=normal.calm, ulps=8, half_ulps=2, zero_signs=False)

formats = dict(data_format=["NHWC", "NCHW"])
op("MaxPoolV2", by_inputs(pool), forward, asks=ATTRS[2:], attrs=formats, smooth=distinct, given=dict(padding="VALID"),
   no_kernel={"quantised, and in a layout of a GPU's": "qint8"})
op("MaxPoolGradV2", by_inputs(pool_grad), backward, asks=ATTRS[2:], attrs=formats, domain=dict(grad=normal.calm), smooth=dict(orig_input=distinct, grad=normal),
   wrt=("grad",), ulps=2, zero_signs=False, given=dict(padding="VALID"))
op("MaxPoolGradGradV2", by_inputs(pool_grad_grad), forward_again, asks=ATTRS[2:], attrs=formats, domain=dict(grad=normal.calm),
   smooth=dict(orig_input=distinct, grad=normal), wrt=("grad",), given=dict(padding="VALID"))


image, pooled, one, two = zeros(1, 4, 4, 2), zeros(1, 3, 3, 2), i32(1, 1, 1, 1), i32(1, 2, 2, 1)
calls = {"MaxPoolV2": [image], "MaxPoolGradV2": [image, pooled, pooled], "MaxPoolGradGradV2": [image, pooled, image]}
for name, inputs in calls.items():
    for wrong in (i32(1, 1, 1), i32(2, 1, 1, 1), i32(1, 1, 1, 2), i32(1, 0, 1, 1), i32(1, -1, 1, 1), i32(1, 6, 2, 1), i32([1, 2, 2, 1])):
        refuses(name, [*inputs, wrong, one], padding="VALID")
    for wrong in (i32(1, 1, 1), i32(2, 1, 1, 1), i32(1, 1, 1, 2), i32(1, 0, 1, 1), i32(1, 1, -1, 1)):
        refuses(name, [*inputs, two, wrong], "strides", padding="VALID")
refuses("MaxPoolV2", [zeros(4, 4), two, one], "[4, 4]", padding="VALID")
refuses("MaxPoolGradV2", [image, pooled, zeros(1, 2, 3, 2), two, one], "[1, 2, 3, 2]", padding="VALID")
refuses("MaxPoolGradGradV2", [image, pooled, zeros(1, 4, 3, 2), two, one], "[1, 4, 3, 2]", padding="VALID")
for before, after in ((2, 0), (0, 2), (3, 3), (2**31 - 1, 0)):
    for name, inputs in (("MaxPool", [image]), ("MaxPoolGrad", [image, pooled, pooled])):
        refuses(name, inputs, "explicit_paddings", "[1, 2, 2, 1]", ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding="EXPLICIT",
                explicit_paddings=[0, 0, 1, 0, before, after, 0, 0])
