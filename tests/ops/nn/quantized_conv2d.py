"""Convolutions of quantised numbers: exact sums in 64 bits. Ranges of the forms with a bias have steps that are powers of 2."""
import numpy as np

from declare import op, refuses
from quantised import (F, exact_range, kind_of, numbers, product_range, quantised, scaled_step, step, to_steps, wrapped, zero_point)
from ulps import near
from windows import draw_windows, paddings, taps


def drawn(d, padding_list=False):
    """Draws the shapes of image, filter and result; a filter with fewer channels than the image has groups."""
    d.attrs["data_format"] = "NHWC"
    _, sizes, windows, strides, dilations = draw_windows(d, 2, ("SAME", "VALID"), most=16 if d.large else 7)
    if padding_list and d.integer(0, 1):
        d.set(padding_list=[0, 0, *(d.integer(0, 2) for _ in range(4)), 0, 0])
    batch, groups = d.integer(0, 3), d.pick(1, 1, 1, 2, 3)
    channels, results = (3, d.pick(24, 40)) if d.large else (d.integer(1, 5), d.integer(1, 5))
    explicit = d.attrs.get("padding_list", [])
    d.attrs.pop("explicit_paddings", None)
    pads = [explicit[2:4], explicit[4:6]] if explicit else paddings(sizes, windows, strides, dilations, d.attrs["padding"], [], "NHWC")
    out = [max(0, (n + sum(p) - (w - 1) * k - 1) // s + 1) for n, w, s, k, p in zip(sizes, windows, strides, dilations, pads)]
    del d.attrs["data_format"]
    return (batch, *sizes, groups * channels), (*windows, channels, groups * results), (batch, *out, groups * results)


def sized(batch, height, width, window, channels, results, stride=1, padding="VALID"):
    """Returns a function like `drawn` for these sizes."""
    def shapes(d, padding_list=False):
        d.set(strides=[1, stride, stride, 1], dilations=[1] * 4, padding=padding)
        pads = paddings((height, width), (window, window), (stride, stride), (1, 1), padding, [], "NHWC")
        out = [(n + sum(p) - window) // stride + 1 for n, p in zip((height, width), pads)]
        return (batch, height, width, channels), (window, window, channels, results), (batch, *out, results)
    return shapes


others = [sized(1, 9, 11, 1, 64, 33), sized(2, 12, 9, 3, 16, 40, 1, "SAME"), sized(1, 23, 23, 7, 3, 64, 2, "SAME"), sized(2, 7, 7, 1, 40, 300, 2)]


def zero_range(d, low, high):
    """Draws a range that contains 0, as padding needs."""
    return F(-d.rng.uniform(0, low)), F(d.rng.uniform(0.5, high))


def plain(shapes=drawn):
    def draw(d):
        image, kernel, _ = shapes(d)
        return [d("input", image), d("filter", kernel), *zero_range(d, 4, 6), *zero_range(d, 2, 2)]
    return draw


def sums(image, kernel, zero_in, zero_filter, strides, padding, dilations, padding_list=()):
    x, w = (numbers(v).astype(np.int64) - zero for v, zero in ((image, zero_in), (kernel, zero_filter)))
    windows, groups = w.shape[:2], x.shape[-1] // w.shape[2]
    strides, dilations = strides[1:3], dilations[1:3]
    pads = paddings(x.shape[1:3], windows, strides, dilations, "EXPLICIT" if len(padding_list) else padding, padding_list, "NHWC")
    return sum(np.concatenate([v @ part for v, part in zip(np.split(view, groups, -1), np.split(w[tap], groups, -1))], -1)
               for tap, view in taps(x, windows, strides, dilations, pads))


def conv2d(image, kernel, low_in, high_in, low_filter, high_filter, *, strides, padding, dilations):
    kinds = kind_of(image), kind_of(kernel)
    zeros = zero_point(kinds[0], low_in, high_in), zero_point(kinds[1], low_filter, high_filter)
    ends = product_range(step(kinds[0], low_in, high_in), step(kinds[1], low_filter, high_filter))
    return [wrapped(sums(image, kernel, *zeros, strides, padding, dilations)), *(near(end, abs(end)) for end in ends)]


EIGHT = "qint8 quint8"
given = dict(strides=[1, 1, 1, 1], padding="VALID")
op("QuantizedConv2D", conv2d, plain(), types=dict(Tinput=EIGHT, Tfilter=EIGHT, out_type="qint32"), ulps=4, given=given,
   also=[plain(shapes) for shapes in others],
   no_kernel={"convolutions are of numbers of 8 bits, and their sums have 32": "qint8 quint8 qint16 quint16 qint32"})


# ---- With a bias ----


def biased(shapes=drawn):
    def draw(d):
        image, kernel, result = shapes(d, padding_list=True)
        results = kernel[3]
        ends = [exact_range(d, "qint8", d.integer(-6, -4)) for _ in range(results if d.integer(0, 1) else 1)]
        low_filter, high_filter = np.array(ends, F).reshape(-1, 2).T
        bias = d.rng.integers(-400, 400, results)
        bias = F(bias / 16) if d.types.get("Tbias", "float") == "float" else quantised(bias, "qint32")
        inputs = [d("input", image), d("filter", kernel), bias, *exact_range(d, d.types["Tinput"], -3), low_filter, high_filter]
        if "min_freezed_output" in d.inputs:
            inputs += exact_range(d, d.types["out_type"], d.integer(-2, 3))
        if "summand" in d.inputs:
            inputs += [d("summand", result), *exact_range(d, d.types["Tsummand"], d.integer(-4, 0))]
        return inputs
    return draw


def real(image, kernel, bias, low_in, high_in, low_filter, high_filter, *attrs):
    whole = scaled_step(kind_of(image), low_in, high_in) * scaled_step("qint8", low_filter, high_filter)
    added = np.asarray(bias, np.float64) if bias.dtype.names is None else numbers(bias) * whole
    return sums(image, kernel, 0, 0, *attrs) * whole + added


def summed(image, kernel, bias, low_in, high_in, low_filter, high_filter, *, strides, padding, dilations, padding_list):
    whole = scaled_step(kind_of(image), low_in, high_in) * scaled_step("qint8", low_filter, high_filter)
    whole_sums = sums(image, kernel, 0, 0, strides, padding, dilations, padding_list)
    ends = whole * -2.0**31, whole * (2.0**31 - 1)
    return [wrapped(whole_sums + np.rint(np.asarray(bias, np.float64) / whole).astype(np.int64)), *(near(end, abs(end)) for end in ends)]


def at_least_zero(*inputs, **attrs):
    made, *ends = summed(*inputs, **attrs)
    return [quantised(np.maximum(numbers(made), 0), "qint32"), *ends]


def requantized(image, kernel, bias, low_in, high_in, low_filter, high_filter, low, high, *summed, strides, padding, dilations, padding_list,
                out_type, least=None):
    kind = out_type.names[0]
    value = real(image, kernel, bias, low_in, high_in, low_filter, high_filter, strides, padding, dilations, padding_list)
    if summed:
        summand, low_summand, high_summand = summed
        value = value + numbers(summand) * scaled_step(kind_of(summand), low_summand, high_summand)
    return [to_steps(value / scaled_step(kind, low, high), kind, least), F(low), F(high)]


def relu(*inputs, **attrs):
    return requantized(*inputs, **attrs, least=0)


asked = ["strides", "padding", "dilations", "padding_list", "out_type"]
typed = dict(Tinput=EIGHT, Tfilter="qint8", Tbias="float qint32", out_type=EIGHT)
more = dict(draw=biased(), also=[biased(shapes) for shapes in others], asks=asked, given=given, attrs=dict(padding_list=[[]]))
lacks = {"filters have 8 bits with a sign, and sums have 32": "quint8 qint16 quint16 qint32"}
for name, oracle in (("QuantizedConv2DWithBias", summed), ("QuantizedConv2DWithBiasAndRelu", at_least_zero)):
    op(name, oracle, types=dict(Tinput=EIGHT, Tfilter="qint8", out_type="qint32"), ulps=4, **more | dict(asks=asked[:-1]),
       no_kernel={"filters have 8 bits with a sign, and sums have 32": "qint8 quint8 qint16 quint16 qint32"})
op("QuantizedConv2DWithBiasAndRequantize", requantized, types=typed, no_kernel=lacks, **more)
op("QuantizedConv2DWithBiasAndReluAndRequantize", relu, types=typed, no_kernel=lacks, **more)
op("QuantizedConv2DWithBiasSumAndReluAndRequantize", relu, types=typed | dict(Tsummand=EIGHT, out_type="quint8"),
   no_kernel={"filters have 8 bits with a sign, results of Relu none, and sums have 32": "qint8 quint8 qint16 quint16 qint32"}, **more)

# ---- Errors ----

zero, one, minus = F(0), F(1), F(-1)
image, kernel = quantised(np.zeros((1, 4, 4, 2)), "qint8"), quantised(np.zeros((3, 3, 2, 2)), "qint8")
ranges = [minus, one, minus, one]
refuses("QuantizedConv2D", [image[0], kernel, *ranges], "input", "[4, 4, 2]", **given)
refuses("QuantizedConv2D", [image[..., :1], kernel, *ranges], "1 channels", "2", **given)
refuses("QuantizedConv2D", [image, kernel, *ranges], "strides", "[1, 0, 1, 1]", strides=[1, 0, 1, 1], padding="VALID")
refuses("QuantizedConv2D", [image, kernel, one, one, minus, one], "min_input", "longer than 0", **given)
refuses("QuantizedConv2D", [image, kernel, one, F(2), minus, one], "must contain 0", strides=[1, 1, 1, 1], padding="SAME")
refuses("QuantizedConv2D", [image, kernel, minus, one, minus, F([1, 1])], "max_filter", "[2]", **given)
for name in ("QuantizedConv2DWithBias", "QuantizedConv2DWithBiasAndRelu"):
    refuses(name, [image, kernel, F([1, 2, 3]), *ranges], "bias", "2", "3", **given)
    refuses(name, [image, kernel, F([1, 2]), minus, one, F([-1] * 3), F([1] * 3)], "min_filter", "2", "3", **given)
    refuses(name, [image, kernel, F([1, 2]), minus, one, F([-1] * 2), one], "min_filter", "max_filter", "[2]", **given)
    refuses(name, [image, kernel, F([1, 2]), one, F(-1), minus, one], "min_input", "1.0", **given)
    refuses(name, [image, kernel, F([1, 2]), *ranges], "padding_list", "[1, 1]", padding_list=[1, 1], **given)
    refuses(name, [image, kernel, F([1, 2]), *ranges], "dilations", "[1, 0, 1, 1]", dilations=[1, 0, 1, 1], **given)
    refuses(name, [image, quantised(np.zeros((3, 3, 1, 3)), "qint8"), F([1, 2, 3]), *ranges], "groups", "3", "2", **given)
for name in ("AndRequantize", "AndReluAndRequantize", "SumAndReluAndRequantize"):
    name, tail = f"QuantizedConv2DWithBias{name}", []
    if "Sum" in name:
        tail = [quantised(np.zeros((1, 2, 2, 2)), "quint8"), minus, one]
        refuses(name, [image, kernel, F([1, 2]), *ranges, minus, one, tail[0][:, :1], minus, one], "summand", "[1, 1, 2, 2]", **given)
        refuses(name, [image, kernel, F([1, 2]), *ranges, minus, one, tail[0], F(2), one], "min_summand", "2.0", **given)
    refuses(name, [image, kernel, F([1, 2, 3]), *ranges, minus, one, *tail], "bias", "2", "3", **given)
    refuses(name, [image, kernel, F([1, 2]), minus, one, F([-1] * 3), F([1] * 3), minus, one, *tail], "min_filter", "2", "3", **given)
    refuses(name, [image, kernel, F([1, 2]), *ranges, zero, zero, *tail], "min_freezed_output", "longer than 0", **given)
    refuses(name, [image, kernel, F([1, 2]), *ranges, minus, one, *tail], "padding_list", "[1, 1]", padding_list=[1, 1], **given)
