import numpy as np

from arrays import zeros
from declare import op, refuses
from domains import distinct, normal
from ulps import near
from windows import paddings, taps


def sizes(d):
    """Draws the shapes of images and result; sets the attributes."""
    space = [d.integer(1, 4 if d.smooth else 30 if d.large else 7) for _ in range(2)]
    window, stride = [d.integer(1, min(3, n)) for n in space], [d.integer(1, 3) for _ in range(2)]
    batch, channels = (1, 2) if d.smooth else (2, 70) if d.large else (d.integer(0, 3), d.integer(0, 4))
    pads = paddings(space, window, stride, [1, 1], d.attrs["padding"], [], "NHWC")
    out = [(n + sum(p) - w) // s + 1 for n, w, s, p in zip(space, window, stride, pads)]
    d.set(ksize=[1, *window, 1], strides=[1, *stride, 1])
    return (batch, *space, channels), (batch, *out, channels)


def winners(x, ksize, strides, padding):
    """Returns the largest elements and their numbers in x."""
    pads = paddings(x.shape[1:3], ksize[1:3], strides[1:3], [1, 1], padding, [], "NHWC")
    best = where = None
    for _, at in taps(np.arange(1, x.size + 1).reshape(x.shape), ksize[1:3], strides[1:3], [1, 1], pads):
        value = np.concatenate([x.reshape(-1)[:1], x.reshape(-1)])[at] if x.size else np.empty(at.shape, x.dtype)
        if best is None:
            best, where = value, at
            continue
        beats = (at > 0) & ((where == 0) | (value > best) | ((value != value) & (best == best)))
        best, where = np.where(beats, value, best), np.where(beats, at, where)
    return best, where - 1


def in_entry(where, shape, of_batch):
    return where if of_batch or not where.size else where % int(np.prod(shape[1:]))


def in_batch(argmax, shape, of_batch):
    if of_batch or not argmax.size:
        return argmax
    return argmax + (np.arange(shape[0]) * int(np.prod(shape[1:]))).reshape(-1, 1, 1, 1)


def oracle(x, *, ksize, strides, padding, include_batch_in_index, Targmax):
    best, where = winners(x, ksize, strides, padding)
    return [best, in_entry(where, x.shape, include_batch_in_index).astype(Targmax)]


def forward(d):
    return [d("input", sizes(d)[0])]


def argmax_of(d, shape):
    order = d.rng.permutation(int(np.prod(shape))).reshape(shape)
    where = winners(order, d.attrs["ksize"], d.attrs["strides"], d.attrs["padding"])[1]
    return d("argmax", of=in_entry(where, shape, d.attrs["include_batch_in_index"]))


def backward(d):
    image, result = sizes(d)
    return [d("input", image), d("grad", result), argmax_of(d, image)]


def forward_again(d):
    image, _ = sizes(d)
    return [d("input", image), d("grad", image), argmax_of(d, image)]


def grad(x, dy, argmax, *, include_batch_in_index):
    sums, where = np.zeros((2, x.size), dy.dtype), in_batch(argmax, x.shape, include_batch_in_index)
    np.add.at(sums[0], where, dy)
    np.add.at(sums[1], where, abs(dy))
    return near(*(s.reshape(x.shape) for s in sums)) if dy.dtype.kind == "f" else sums[0].reshape(x.shape)


def grad_grad(x, dy, argmax, *, include_batch_in_index):
    return dy.reshape(-1)[in_batch(argmax, x.shape, include_batch_in_index)]


given = dict(ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding="VALID")
op("MaxPoolWithArgmax", oracle, forward, smooth=distinct, given=given)
op("MaxPoolGradWithArgmax", grad, backward, domain=dict(grad=normal.calm), wrt=("grad",), ulps=2, zero_signs=False, given=given)
op("MaxPoolGradGradWithArgmax", grad_grad, forward_again, wrt=("grad",), given=given)

image, pooled, where = zeros(1, 4, 4, 2), zeros(1, 3, 3, 2), np.zeros((1, 3, 3, 2), np.int64)
calls = {"MaxPoolWithArgmax": [image], "MaxPoolGradWithArgmax": [image, pooled, where], "MaxPoolGradGradWithArgmax": [image, image, where]}
for name, inputs in calls.items():
    for what in ("ksize", "strides"):
        for wrong in ([1, 1, 1, 1, 1], [2, 1, 1, 1], [1, 1, 1, 2], [1, 0, 1, 1], [1, 1, -1, 1]):
            refuses(name, inputs, what, **given | {what: wrong})
    refuses(name, [zeros(4, 4, 2), *inputs[1:]], "[4, 4, 2]", **given)
refuses("MaxPoolGradWithArgmax", [image, image, where], "gradient", **given)
refuses("MaxPoolGradWithArgmax", [image, pooled, where[:, :2]], "argmax", **given)
refuses("MaxPoolGradGradWithArgmax", [image, pooled, where], "grad", **given)
for wrong in (-1, 32):
    for name, inputs in list(calls.items())[1:]:
        refuses(name, [*inputs[:2], np.full_like(where, wrong)], "argmax", wrong, "32", **given)
