import numpy as np

from arrays import zeros
from declare import op, refuses
from domains import between, normal, positive
from ulps import near


def colors(d, least=1):
    shape = d.shape(least=least - 1, most=4)
    return d("images", (*shape, 3))


def relative(y, like):
    """Counts errors relative to the largest number of a colour, or to 1."""
    return near(y, np.broadcast_to(np.maximum(abs(like).max(-1, keepdims=True), 1), y.shape))


def hue_of(x):
    r, g, b = np.moveaxis(x, -1, 0)
    top, low = x.max(-1), x.min(-1)
    with np.errstate(all="ignore"):
        rc, gc, bc = ((top - c) / (top - low) for c in (r, g, b))
        hue = np.where(r == top, bc - gc, np.where(g == top, 2 + rc - bc, 4 + gc - rc)) / 6
    return np.where(top == low, 0, hue % 1)


def to_hsv(x):
    top, low = x.max(-1), x.min(-1)
    with np.errstate(all="ignore"):
        saturation = np.where(top > 0, (top - low) / top, 0)
    return relative(np.stack([hue_of(x), saturation, top], -1), x)


def rgb(h, s, v):
    """The six sectors of a turn of hues."""
    sector = np.floor(h * 6)
    f = h * 6 - sector
    p, q, t = v * (1 - s), v * (1 - s * f), v * (1 - s * (1 - f))
    choices = [(v, t, p), (q, v, p), (p, v, t), (p, q, v), (t, p, v), (v, p, q)]
    return np.stack([np.choose(sector.astype(int) % 6, [c[k] for c in choices]) for k in range(3)], -1)


def to_rgb(x):
    return relative(rgb(*np.moveaxis(x, -1, 0)), x)


def contrast(x, factor):
    mean = x.mean((-3, -2), keepdims=True) if x.size else np.zeros((*x.shape[:-3], 1, 1, x.shape[-1]))
    size = np.abs(x).max((-3, -2), keepdims=True, initial=0) * (1 + abs(factor))
    return near((x - mean) * factor + mean, np.broadcast_to(size, x.shape))


def hue(x, delta):
    full = rgb((hue_of(x) + delta) % 1, np.ones(x.shape[:-1]), np.ones(x.shape[:-1]))
    low, top = x.min(-1, keepdims=True), x.max(-1, keepdims=True)
    return relative(low + (top - low) * full, x)


def saturation(x, scale):
    top, low = x.max(-1), x.min(-1)
    with np.errstate(all="ignore"):
        s = np.where(top > 0, (top - low) / top, 0)
    return relative(rgb(hue_of(x), np.clip(s * scale, 0, 1), top), x)


def adjusted(name, low, high):
    return lambda d: [colors(d, 3), d(name, of=d.rng.uniform(low, high))]


def contrasted(d):
    return [d("images", (*d.shape(least=0, most=2), *(d.integer(1, 5) for _ in range(3)))), d("contrast_factor", of=d.rng.uniform(-1, 3))]


plain = dict(zero_signs=False, half_ulps=4)
op("RGBToHSV", to_hsv, lambda d: [colors(d)], domain=between(0, 1).plain, smooth=positive, ulps=64, second=False,
   why="as a point where two channels are equal is near, by the steps of differences", **plain)
op("HSVToRGB", to_rgb, lambda d: [colors(d)], domain=between(0, 1).plain, ulps=16, second=False, why="as for RGBToHSV", **plain)
op("AdjustContrastv2", contrast, contrasted, domain=normal.plain, ulps=16, **plain)
op("AdjustHue", hue, adjusted("delta", -1, 1), domain=normal.plain, ulps=256, **plain)
op("AdjustSaturation", saturation, adjusted("scale", 0, 3), domain=normal.plain, ulps=256, **plain)

image, one = zeros(2, 2, 3), np.float32(1)
for name in ("RGBToHSV", "HSVToRGB"):
    refuses(name, [np.float32(1)], "images")
    refuses(name, [zeros(2, 4)], "[2, 4]", "3")
for name in ("AdjustHue", "AdjustSaturation"):
    refuses(name, [zeros(2, 2, 4), one], "[2, 2, 4]", "3")
for name, factor in (("AdjustContrastv2", "contrast_factor"), ("AdjustHue", "delta"), ("AdjustSaturation", "scale")):
    refuses(name, [image[0], one], "[2, 3]")
    refuses(name, [image, zeros(1)], factor, "[1]")
