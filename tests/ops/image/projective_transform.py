import numpy as np

from arrays import i32, zeros
from declare import expect, op, refuses
from domains import normal
from ulps import near

F = np.float32


def inside(at, n, mode):
    """Maps a position, in float as in the op, to the axis of n pixels."""
    at, last = F(at), F(n - 1)
    if mode == "CONSTANT":
        return at
    if mode == "REFLECT" and n > 1:
        period = F(2 * n)
        if at < 0:
            at = F(period * np.trunc(F(-at / period)) + at)
            at = F(at + period) if at < -n else F(-at - 1)
        elif at > last:
            at = F(at - F(period * np.trunc(F(at / period))))
            at = F(F(period - at) - 1) if at >= n else at
    elif mode == "WRAP" and n > 1:
        if at < 0:
            at = F(at + F(F(n) * (np.trunc(F(-at / last)) + 1)))
        elif at > last:
            at = F(at - F(F(n) * np.trunc(F(at / last))))
    return min(max(at, F(0)), last)


def project(images, transforms, size, fill=0.0, *, interpolation, fill_mode):
    mode, kind = fill_mode, interpolation
    batch, rows, columns, channels = images.shape
    values, sizes = np.zeros((2, batch, *map(int, size), channels), np.longdouble)
    for b, y, x in np.ndindex(batch, *map(int, size)):
        t = transforms[b if len(transforms) > 1 else 0].astype(F)
        scale = F(F(F(t[6] * F(x)) + F(t[7] * F(y))) + F(1))
        if scale == 0:
            values[b, y, x] = fill
            continue
        at = [F(F(F(F(t[k] * F(x)) + F(t[k + 1] * F(y))) + t[k + 2]) / scale) for k in (3, 0)]
        at = [inside(v, n, mode) for v, n in zip(at, (rows, columns))]

        def pixel(r, c):
            return images[b, r, c].astype(np.longdouble) if 0 <= r < rows and 0 <= c < columns else np.full(channels, fill, np.longdouble)

        if kind == "NEAREST":
            r, c = (int(np.copysign(np.floor(abs(v) + F(0.5)), v)) for v in at)
            values[b, y, x] = pixel(r, c)
            continue
        low = [int(np.floor(v)) for v in at]
        for r, wr in ((low[0], low[0] + 1 - np.longdouble(at[0])), (low[0] + 1, np.longdouble(at[0]) - low[0])):
            for c, wc in ((low[1], low[1] + 1 - np.longdouble(at[1])), (low[1] + 1, np.longdouble(at[1]) - low[1])):
                values[b, y, x] += wr * wc * pixel(r, c)
                sizes[b, y, x] += abs(wr * wc * pixel(r, c))
    return near(values, np.maximum(sizes, abs(values)))


def drawn(d):
    batch = d.integer(1, 2)
    image = d("images", (batch, d.integer(1, 6), d.integer(1, 6), 20 if d.large else d.integer(0, 3)))
    # In sixteenths, so that products are exact.
    turns = d.rng.integers(-20, 21, (d.pick(1, batch), 8)) / 16
    turns[:, 6:] = d.pick(0, d.rng.integers(0, 3, 2) / 16)
    inputs = [image, d("transforms", of=turns), d("output_shape", of=(d.integer(1, 5), d.integer(1, 5)))]
    return [*inputs, d("fill_value", of=d.pick(0.0, 2.0, -1.5))] if "fill_value" in d.inputs else inputs


FLOATS = dict(dtype="float half bfloat16")
plain = dict(domain=dict(images=normal.plain), ulps=64, half_ulps=4, zero_signs=False, types=FLOATS, given=dict(interpolation="BILINEAR"))
op("ImageProjectiveTransformV2", project, drawn, **plain)
op("ImageProjectiveTransformV3", project, drawn, **plain)

image, still, size = np.arange(6, dtype=np.uint8).reshape(1, 2, 3, 1), np.float32([[1, 0, 0, 0, 1, 0, 0, 0]]), i32(2, 3)
shifted = np.float32([[1, 0, 1, 0, 1, 0, 0, 0]])
for dtype in (np.uint8, np.int32, np.int64, np.float64):
    for kind in ("NEAREST", "BILINEAR"):
        expect("ImageProjectiveTransformV3", [image.astype(dtype), shifted, size, np.float32(7)],
               [np.array([1, 2, 7, 4, 5, 7], dtype).reshape(1, 2, 3, 1)], interpolation=kind)
expect("ImageProjectiveTransformV2", [image, shifted, size], [np.uint8([1, 2, 0, 4, 5, 0]).reshape(1, 2, 3, 1)], interpolation="NEAREST")
for name, more in (("ImageProjectiveTransformV2", []), ("ImageProjectiveTransformV3", [np.float32(0)])):
    refuses(name, [image[0], still, size, *more], "images", interpolation="NEAREST")
    refuses(name, [image, still[0], size, *more], "transforms", interpolation="NEAREST")
    refuses(name, [image, still[:, :7], size, *more], "eight", interpolation="NEAREST")
    refuses(name, [image, zeros(2, 8), size, *more], "transforms", interpolation="NEAREST")
    refuses(name, [image, still, i32(2, 3, 1), *more], "output_shape", interpolation="NEAREST")
    refuses(name, [image, still, i32(2, 0), *more], "output_shape", interpolation="NEAREST")
refuses("ImageProjectiveTransformV3", [image, still, size, np.float32([0])], "fill_value", interpolation="NEAREST")
