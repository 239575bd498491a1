import numpy as np

from arrays import zeros
from declare import op, refuses
from domains import distinct, normal
from ulps import near, widened
from windows import back, last, out_sizes, paddings, spaces, taps, with_channels


def sizes(d):
    """Draws the shapes of volumes and result; sets the attributes."""
    data_format = d.attrs["data_format"]
    space = [d.integer(1, 3 if d.smooth else 9 if d.large else 5) for _ in range(3)]
    window, stride = [d.integer(1, min(3, n)) for n in space], [d.integer(1, 3) for _ in range(3)]
    batch, channels = (1, 2) if d.smooth else (2, 70) if d.large else (d.integer(0, 2), d.integer(0, 4))
    out = out_sizes(d, space, window, stride, [1, 1, 1])
    ksize, strides = ([1, 1, *v] if data_format == "NCDHW" else [1, *v, 1] for v in (window, stride))
    d.set(ksize=ksize, strides=strides)
    return [with_channels(data_format, batch, s, channels) for s in (space, out)]


def places(shape, ksize, strides, padding, data_format):
    """Yields, tap by tap, the numbers of the elements, counted from 1; 0 for padding. The channels are last."""
    window, stride = spaces(list(ksize), data_format), spaces(list(strides), data_format)
    pads = paddings(shape[1:4], window, stride, [1, 1, 1], padding, [], data_format)
    for _, at in taps(np.arange(1, int(np.prod(shape)) + 1).reshape(shape), window, stride, [1, 1, 1], pads):
        yield at


def winners(x, how):
    best = where = None
    for at in places(x.shape, **how):
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
    return near(*(back(s[1:].reshape(x.shape), how["data_format"]) for s in sums))


def pool_grad_grad(x, _, dy, **how):
    x, dy = last(x, how["data_format"]), last(dy, how["data_format"])
    return back(np.concatenate([np.zeros(1, dy.dtype), dy.reshape(-1)])[winners(x, how)[1]], how["data_format"])


def mean(x, **how):
    x, total, size, count = last(x, how["data_format"]), 0, 0, 0
    for at in places(x.shape, **how):
        value = np.concatenate([np.zeros(1, x.dtype), x.reshape(-1)])[at]
        total, size, count = total + value, size + abs(value), count + (at > 0)
    return near(*(back(v / count, how["data_format"]) for v in (total, size)))


def mean_grad(shape, dy, **how):
    shape, dy = last(np.empty(shape), how["data_format"]).shape, last(dy, how["data_format"])
    count, sums = 0, np.zeros((2, int(np.prod(shape)) + 1), dy.dtype)
    for at in places(shape, **how):
        count = count + (at > 0)
    for at in places(shape, **how):
        np.add.at(sums[0], at, dy / count)
        np.add.at(sums[1], at, abs(dy) / count)
    return near(*(back(s[1:].reshape(shape), how["data_format"]) for s in sums))


def forward(d):
    return [d("input", sizes(d)[0])]


def pooled_of(d, x):
    return d("orig_output", of=pool(widened(x), **{a: d.attrs[a] for a in ATTRS}))


def backward(d):
    volume, result = sizes(d)
    x = d("orig_input", volume)
    return [x, pooled_of(d, x), d("grad", result)]


def forward_again(d):
    x = d("orig_input", sizes(d)[0])
    return [x, pooled_of(d, x), d("grad", x.shape)]


def mean_backward(d):
    volume, result = sizes(d)
    return [d("orig_input_shape", of=volume), d("grad", result)]


ATTRS = ["ksize", "strides", "padding", "data_format"]
given = dict(ksize=[1, 2, 2, 2, 1], strides=[1, 1, 1, 1, 1], padding="VALID")
how = dict(asks=ATTRS, given=given)
op("MaxPool3D", pool, forward, smooth=distinct, **how)
op("MaxPool3DGrad", pool_grad, backward, domain=dict(grad=normal.calm), smooth=dict(orig_input=distinct, grad=normal), wrt=("grad",), ulps=2,
   zero_signs=False, **how)
op("MaxPool3DGradGrad", pool_grad_grad, forward_again, domain=dict(grad=normal.calm), smooth=dict(orig_input=distinct, grad=normal), wrt=("grad",),
   smooth_types="float", **how)
op("AvgPool3D", mean, forward, domain=normal.calm, ulps=8, half_ulps=2, zero_signs=False, **how)
op("AvgPool3DGrad", mean_grad, mean_backward, domain=normal.calm, ulps=8, half_ulps=2, zero_signs=False, **how)

volume, pooled = zeros(1, 4, 4, 4, 2), zeros(1, 3, 3, 3, 2)
for name, inputs in (("MaxPool3D", [volume]), ("AvgPool3D", [volume]), ("MaxPool3DGrad", [volume, pooled, pooled]),
                     ("MaxPool3DGradGrad", [volume, pooled, volume]), ("AvgPool3DGrad", [np.int32(volume.shape), pooled])):
    for what in ("ksize", "strides"):
        for wrong in ([1, 2, 2, 1], [2, 1, 1, 1, 1], [1, 1, 1, 1, 2], [1, 0, 1, 1, 1], [1, 1, -1, 1, 1]):
            refuses(name, inputs, what, **given | {what: wrong})
    refuses(name, inputs, "covers 9", **given | dict(ksize=[1, 9, 2, 2, 1]))
for name in ("MaxPool3D", "AvgPool3D"):
    refuses(name, [volume[0]], "[4, 4, 4, 2]", **given)
for name, inputs in (("MaxPool3DGrad", [volume, pooled, volume]), ("MaxPool3DGradGrad", [volume, pooled, pooled]),
                     ("AvgPool3DGrad", [np.int32(volume.shape), volume]), ("MaxPool3DGrad", [volume, volume, pooled])):
    refuses(name, inputs, "3", "4", **given)
refuses("AvgPool3DGrad", [np.int32([1, 4, 4, 2]), pooled], "4", **given)
