import numpy as np

from declare import op, refuses
from domains import distinct, normal
from ulps import near, widened
from windows import back, last, paddings, spaces, taps, with_channels


def sizes(d):
    """Shapes of image and result, ksize and strides; sets padding."""
    data_format = d.attrs["data_format"] = d.pick("NHWC", "NCHW")
    space = [d.integer(1, 4 if d.smooth else 40 if d.large else 7) for _ in range(2)]
    window, stride = [d.integer(1, min(3, n)) for n in space], [d.integer(1, 3) for _ in range(2)]
    pads = paddings(space, window, stride, [1, 1], d.attrs["padding"], [], data_format)
    out = [(n + sum(p) - w) // s + 1 for n, w, s, p in zip(space, window, stride, pads)]
    batch, channels = (1, 2) if d.smooth else (2, 70) if d.large else (d.integer(0, 3), d.integer(0, 5))
    listed = [[1, 1, *v] if data_format == "NCHW" else [1, *v, 1] for v in (window, stride)]
    return [with_channels(data_format, batch, s, channels) for s in (space, out)], listed


def forward(d):
    (image, _), (ksize, strides) = sizes(d)
    return [d("input", image), d("ksize", of=ksize), d("strides", of=strides)]


def backward(d):
    (image, result), (ksize, strides) = sizes(d)
    x = d("orig_input", image)
    return [x, pooled_of(d, x, ksize, strides), d("grad", result), d("ksize", of=ksize), d("strides", of=strides)]


def forward_again(d):
    (image, _), (ksize, strides) = sizes(d)
    x = d("orig_input", image)
    return [x, pooled_of(d, x, ksize, strides), d("grad", image), d("ksize", of=ksize), d("strides", of=strides)]


def pooled_of(d, x, ksize, strides):
    return d("orig_output", of=pool(widened(x), ksize, strides, padding=d.attrs["padding"], data_format=d.attrs["data_format"]))


def winners(x, ksize, strides, padding, data_format):
    """The largest elements, and their places in x, the channels last; NaN is the largest of all, and of equal ones the first counts."""
    window, stride = spaces(list(ksize), data_format), spaces(list(strides), data_format)
    pads = paddings(x.shape[1:3], window, stride, [1, 1], padding, [], data_format)
    places = np.arange(1, x.size + 1).reshape(x.shape)
    best = where = None
    for _, at in taps(places, window, stride, [1, 1], pads):
        value = np.concatenate([x.reshape(-1)[:1], x.reshape(-1)])[at] if x.size else np.empty(at.shape, x.dtype)
        if best is None:
            best, where = value, at
            continue
        beats = (at > 0) & ((where == 0) | (value > best) | ((value != value) & (best == best)))
        best, where = np.where(beats, value, best), np.where(beats, at, where)
    return best, where


def pool(x, ksize, strides, *, padding, data_format):
    return back(winners(last(x, data_format), ksize, strides, padding, data_format)[0], data_format)


def pool_grad(x, _, dy, ksize, strides, *, padding, data_format):
    x, dy = last(x, data_format), last(dy, data_format)
    sums, where = np.zeros((2, x.size + 1), dy.dtype), winners(x, ksize, strides, padding, data_format)[1]
    np.add.at(sums[0], where, dy)
    np.add.at(sums[1], where, abs(dy))
    value, size = (back(s[1:].reshape(x.shape), data_format) for s in sums)
    return near(value, size) if dy.dtype.kind == "f" else value


def pool_grad_grad(x, _, dy, ksize, strides, *, padding, data_format):
    x, dy = last(x, data_format), last(dy, data_format)
    where = winners(x, ksize, strides, padding, data_format)[1]
    return back(np.concatenate([np.zeros(1, dy.dtype), dy.reshape(-1)])[where], data_format)


formats = dict(data_format=["NHWC", "NCHW"])
op("MaxPoolV2", pool, forward, attrs=formats, smooth=distinct, given=dict(padding="VALID"),
   no_kernel={"quantised, and in a layout of a GPU's": "qint8"})
op("MaxPoolGradV2", pool_grad, backward, attrs=formats, domain=dict(grad=normal.plain), smooth=dict(orig_input=distinct, grad=normal),
   wrt=("grad",), ulps=2, zero_signs=False, given=dict(padding="VALID"))
op("MaxPoolGradGradV2", pool_grad_grad, forward_again, attrs=formats, domain=dict(grad=normal.plain),
   smooth=dict(orig_input=distinct, grad=normal), wrt=("grad",), given=dict(padding="VALID"))


def zeros(*shape):
    return np.zeros(shape, np.float32)


def i32(*values):
    return np.array(values, np.int32)


image, pooled, one, two = zeros(1, 4, 4, 2), zeros(1, 3, 3, 2), i32(1, 1, 1, 1), i32(1, 2, 2, 1)
calls = {"MaxPoolV2": [image], "MaxPoolGradV2": [image, pooled, pooled], "MaxPoolGradGradV2": [image, pooled, image]}
for name, inputs in calls.items():
    for wrong in (i32(1, 1, 1), i32(2, 1, 1, 1), i32(1, 1, 1, 2), i32(1, 0, 1, 1), i32(1, -1, 1, 1), i32(1, 5, 2, 1), i32([1, 2, 2, 1])):
        refuses(name, [*inputs, wrong, one], padding="VALID")
    for wrong in (i32(1, 1, 1), i32(2, 1, 1, 1), i32(1, 1, 1, 2), i32(1, 0, 1, 1), i32(1, 1, -1, 1)):
        refuses(name, [*inputs, two, wrong], "strides", padding="VALID")
refuses("MaxPoolV2", [zeros(4, 4), two, one], "[4, 4]", padding="VALID")
refuses("MaxPoolGradV2", [image, pooled, zeros(1, 2, 3, 2), two, one], "[1, 2, 3, 2]", padding="VALID")
refuses("MaxPoolGradGradV2", [image, pooled, zeros(1, 4, 3, 2), two, one], "[1, 4, 3, 2]", padding="VALID")
