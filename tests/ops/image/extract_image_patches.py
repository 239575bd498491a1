import numpy as np

from arrays import zeros
from declare import op, refuses
from windows import paddings, taps


def drawn(d):
    space = [d.integer(2, 4 if d.smooth else 30 if d.large else 8) for _ in range(2)]
    sizes = [d.integer(1, min(3, n)) for n in space]
    rates = [d.integer(1, min(3, (n - 1) // (k - 1))) if k > 1 else d.integer(1, 3) for n, k in zip(space, sizes)]
    d.set(ksizes=[1, *sizes, 1], rates=[1, *rates, 1], strides=[1, d.integer(1, 3), d.integer(1, 3), 1])
    batch, channels = (1, 2) if d.smooth else (d.integer(0, 3), d.integer(0, 4))
    return [d("images", (batch, *space, channels))]


def oracle(x, *, ksizes, strides, rates, padding):
    pads = paddings(x.shape[1:3], ksizes[1:3], strides[1:3], rates[1:3], padding, [], "NHWC")
    return np.concatenate([view for _, view in taps(x, ksizes[1:3], strides[1:3], rates[1:3], pads)], -1)


given = dict(ksizes=[1, 2, 2, 1], strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="VALID")
op("ExtractImagePatches", oracle, drawn, given=given, zero_signs=False)
image = zeros(1, 4, 4, 2)
for what in ("ksizes", "strides", "rates"):
    for wrong in ([1, 2, 2, 1, 1], [2, 1, 1, 1], [1, 1, 1, 2], [1, 0, 1, 1], [1, 1, -1, 1]):
        refuses("ExtractImagePatches", [image], what, **given | {what: wrong})
refuses("ExtractImagePatches", [image[0]], "[4, 4, 2]", **given)
refuses("ExtractImagePatches", [image], "5", "[1, 4, 4, 2]", **given | dict(rates=[1, 4, 1, 1]))
