"""Relu and pooling of quantised numbers: whole numbers, from the definitions."""
import numpy as np

from declare import expect, op, refuses
from quantised import F, WHOLE, away, kind_of, numbers, quantised
from schema import type_of
from windows import draw_windows, paddings, taps


def place(x, kind, low, high):
    """The number that stands for x, limited to the type."""
    info = np.iinfo(WHOLE[kind])
    values = float(int(info.max) - int(info.min) + 1)
    scale = values / (float(F(high) - F(low)) * (values / (values - 1)))
    return int(np.clip(away(float(F(x)) * scale) - away(float(F(low)) * scale) + info.min, info.min, info.max))


def limited(x, most, low, high):
    kind = kind_of(x)
    n = np.maximum(numbers(x), np.array(place(0, kind, low, high), WHOLE[kind]))
    return [quantised(n if most is None else np.minimum(n, np.array(place(most, kind, low, high), WHOLE[kind])), kind), F(low), F(high)]


def with_range(d):
    low = F(d.rng.uniform(-9, 2))
    d.types["out_type"] = d.types["Tinput"]
    inputs = [d("features", d.shape(most=4)), low, F(low + d.rng.uniform(0.5, 20))]
    return inputs[:1] + [F(d.rng.uniform(-1, 9))] + inputs[1:] if "max_value" in d.inputs else inputs


# There are kernels of one type alone: qint8, quint8 and qint32.
WHY = "the results are of the type of the features, and numbers have 8 bits, or 32 of sums"
kinds = dict(types=dict(Tinput="qint8 quint8 qint32", out_type="quint8"), no_kernel={WHY: "quint8 qint32 qint16 quint16"})
op("QuantizedRelu", lambda x, low, high: limited(x, None, low, high), with_range, **kinds)
op("QuantizedRelu6", lambda x, low, high: limited(x, 6, low, high), with_range, **kinds)
op("QuantizedReluX", limited, with_range, **kinds)


def images(d):
    d.attrs["data_format"] = "NHWC"
    _, sizes, windows, strides, _ = draw_windows(d, 2, ("SAME", "VALID"), most=16 if d.large else 7)
    for name in ("data_format", "dilations", "explicit_paddings"):
        d.attrs.pop(name, None)
    d.set(ksize=[1, *(max(1, min(w, n)) for w, n in zip(windows, sizes)), 1])
    return [d("input", (d.integer(0, 3), *sizes, 300 if d.large else d.integer(1, 9))), F(-1), F(d.rng.uniform(0, 3))]


def pooled(image, ksize, strides, padding, combine, nothing):
    image = numbers(image)
    windows, steps = ksize[1:3], strides[1:3]
    pads = paddings(image.shape[1:3], windows, steps, (1, 1), padding, [], "NHWC")
    inside = np.pad(np.ones_like(image, bool), [(0, 0), *pads, (0, 0)])
    filled = np.where(inside, np.pad(image, [(0, 0), *pads, (0, 0)]).astype(np.int64), nothing)
    views = [view for _, view in taps(filled, windows, steps, (1, 1), [(0, 0), (0, 0)])]
    counts = sum(view for _, view in taps(inside.astype(np.int64), windows, steps, (1, 1), [(0, 0), (0, 0)]))
    return combine(views, counts)


def largest(image, low, high, *, ksize, strides, padding):
    return [quantised(pooled(image, ksize, strides, padding, lambda views, _: np.max(views, 0), -999), kind_of(image)), F(low), F(high)]


def mean(image, low, high, *, ksize, strides, padding):
    def cut(views, counts):
        sums = np.sum(views, 0)
        return np.sign(sums) * (abs(sums) // np.maximum(counts, 1))
    return [quantised(pooled(image, ksize, strides, padding, cut, 0), kind_of(image)), F(low), F(high)]


given = dict(ksize=[1, 1, 1, 1], strides=[1, 1, 1, 1], padding="VALID")
for name, oracle in (("QuantizedMaxPool", largest), ("QuantizedAvgPool", mean)):
    op(name, oracle, images, types=dict(T="qint8 quint8"), given=given, no_kernel={"images have 8 bits": "qint16 quint16 qint32"})

one, minus, nan = F(1), F(-1), F(np.nan)
x, image = quantised([1, 2], "quint8"), quantised(np.zeros((1, 3, 3, 2)), "quint8")
# The number for 9 is below that for 0, and both are beyond the range.
expect("QuantizedReluX", [x, F(-3), F(-2), minus], [quantised([0, 0], "quint8"), F(-2), minus])
for name, more in (("QuantizedRelu", []), ("QuantizedRelu6", []), ("QuantizedReluX", [one])):
    refuses(name, [x, *more, one, one], "min_features", "longer than 0")
    refuses(name, [x, *more, minus, nan], "max_features", "nan")
    refuses(name, [x, *more, F([-1, -1]), one], "min_features", "[2]")
far = F(3e30)
refuses("QuantizedRelu", [quantised([1], "qint32"), far, np.nextafter(far, F(np.inf))], "min_features", "too far from 0",
        out_type=type_of("qint32"))
refuses("QuantizedReluX", [x, nan, minus, one], "max_value", "nan")
for name in ("QuantizedMaxPool", "QuantizedAvgPool"):
    refuses(name, [image[0], minus, one], "input", "[3, 3, 2]", **given)
    refuses(name, [image, F([1, 1]), one], "min_input", "[2]", **given)
    refuses(name, [image, minus, one], "ksize", "[1, 1, 1, 2]", **{**given, "ksize": [1, 1, 1, 2]})
    refuses(name, [image, minus, one], "ksize", "[1, 1]", **{**given, "ksize": [1, 1]})
    refuses(name, [image, minus, one], "strides", "[1, 0, 1, 1]", **{**given, "strides": [1, 0, 1, 1]})
    refuses(name, [image, minus, one], "9", "3", **{**given, "ksize": [1, 9, 1, 1]})
