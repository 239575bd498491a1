"""Products of quantised numbers: exact sums in 64 bits. Ranges of the forms with a bias have steps that are powers of 2, so that their
results are exact, too, and halves occur."""
import numpy as np

from arrays import f32
from declare import expect, op, refuses
from quantised import (F, exact_range, kind_of, numbers, product_range, quantised, scaled_step, step, to_steps, wrapped, zero_point)
from schema import type_of
from ulps import near


def sizes(d):
    return (70, 130, 257) if d.large else tuple(d.integer(0, 40) for _ in range(3))


def factors(d, m, k, n):
    return [d("a", (k, m) if d.attrs["transpose_a"] else (m, k)), d("b", (n, k) if d.attrs["transpose_b"] else (k, n))]


def any_range(d):
    low = F(d.rng.uniform(-4, 1))
    return low, F(low + d.rng.uniform(0.5, 6))


def plain(d):
    (low_a, high_a), (low_b, high_b) = any_range(d), any_range(d)
    return [*factors(d, *sizes(d)), low_a, high_a, low_b, high_b]


def sized(m, k, n, transpose_a=False, transpose_b=False):
    def draw(d):
        d.set(transpose_a=transpose_a, transpose_b=transpose_b)
        return [*factors(d, m, k, n), F(-1), F(3), F(-2), F(2)]
    return draw


# More rows than a tile, more columns than a stripe, products that tasks share, sums that are long.
others = [sized(*each) for each in ((1, 300, 9), (13, 5, 31), (97, 33, 160), (49, 1029, 300), (230, 40, 8, True), (9, 70, 300, False, True))]


def product(a, b, transpose_a, transpose_b, zero_a, zero_b):
    x, y = (numbers(v).astype(np.int64) - zero for v, zero in ((a, zero_a), (b, zero_b)))
    return (x.T if transpose_a else x) @ (y.T if transpose_b else y)


def matmul(a, b, low_a, high_a, low_b, high_b, *, transpose_a, transpose_b):
    kinds = kind_of(a), kind_of(b)
    zeros = zero_point(kinds[0], low_a, high_a), zero_point(kinds[1], low_b, high_b)
    ends = product_range(step(kinds[0], low_a, high_a), step(kinds[1], low_b, high_b))
    return [wrapped(product(a, b, transpose_a, transpose_b, *zeros)), *(near(end, abs(end)) for end in ends)]


EIGHT = "qint8 quint8"
WHY = "products are of numbers of 8 bits, and their sums have 32"
op("QuantizedMatMul", matmul, plain, types=dict(T1=EIGHT, T2=EIGHT, Toutput="qint32", Tactivation="quint8"), ulps=4, also=others,
   no_kernel={WHY: "qint8 quint8 qint16 quint16 qint32"})


# ---- With a bias ----


def biased(draw_sizes=sizes):
    def draw(d):
        m, k, n = draw_sizes(d)
        kind = d.types["T1"]
        if d.attrs["input_quant_mode"] == "SCALED":
            low_a, high_a = exact_range(d, kind, -3)
        else:
            least, zero = np.iinfo(numbers(d("a", (0,))).dtype).min, d.integer(-9, 300)
            low_a, high_a = F((least - zero) / 8), F((least + 255 - zero) / 8)
        ends = [exact_range(d, "qint8", d.integer(-6, -4)) for _ in range(n if d.integer(0, 1) else 1)]
        low_b, high_b = np.array(ends, F).reshape(-1, 2).T
        if len(ends) == 1 and d.integer(0, 1):
            low_b, high_b = low_b[0], high_b[0]
        low, high = exact_range(d, d.types.get("Toutput", "qint8") if d.types.get("Toutput") != "float" else "qint8", d.integer(-2, 3))
        bias = d.rng.integers(-400, 400, n)
        bias = F(bias / 16) if d.types.get("Tbias", "float") == "float" else quantised(bias, "qint32")
        return [*factors(d, m, k, n), bias, low_a, high_a, low_b, high_b, low, high]
    return draw


def step_of_sums(kind, low_a, high_a, low_b, high_b, mode):
    """The float from one sum to the next: one for all columns, or one for each."""
    return scaled_step("qint8", low_b, high_b) * (scaled_step(kind, low_a, high_a) if mode == "SCALED" else float(F(high_a) - F(low_a)) / 255)


def real(a, b, bias, low_a, high_a, low_b, high_b, transpose_a, transpose_b, mode):
    """Returns the results as real numbers, exactly."""
    kind = kind_of(a)
    zero = 0 if mode == "SCALED" else zero_point(kind, low_a, high_a)
    whole = step_of_sums(kind, low_a, high_a, low_b, high_b, mode)
    added = np.asarray(bias, np.float64) if bias.dtype.names is None else numbers(bias) * whole
    return product(a, b, transpose_a, transpose_b, zero, 0) * whole + added


def summed(a, b, bias, low_a, high_a, low_b, high_b, *, transpose_a, transpose_b, input_quant_mode):
    kind = kind_of(a)
    zero = 0 if input_quant_mode == "SCALED" else zero_point(kind, low_a, high_a)
    whole = step_of_sums(kind, low_a, high_a, low_b, high_b, input_quant_mode)
    added = np.rint(np.asarray(bias, np.float64) / whole).astype(np.int64) if bias.dtype.names is None else numbers(bias)
    ends = whole * -2.0**31, whole * (2.0**31 - 1)
    return [wrapped(product(a, b, transpose_a, transpose_b, zero, 0) + added), *(near(end, abs(end)) for end in ends)]


def at_least_zero(*inputs, transpose_a, transpose_b, input_quant_mode):
    sums, *ends = summed(*inputs, transpose_a=transpose_a, transpose_b=transpose_b, input_quant_mode=input_quant_mode)
    return [quantised(np.maximum(numbers(sums), 0), "qint32"), *ends]


def without_result_range(draw):
    return lambda d: draw(d)[:-2]


def requantized(a, b, bias, low_a, high_a, low_b, high_b, low, high, *, transpose_a, transpose_b, input_quant_mode, Toutput):
    kind = Toutput.names[0]
    value = real(a, b, bias, low_a, high_a, low_b, high_b, transpose_a, transpose_b, input_quant_mode)
    return [to_steps(value / scaled_step(kind, low, high), kind), F(low), F(high)]


def relu(*inputs, Toutput, **attrs):
    steps, low, high = requantized(*inputs, Toutput=Toutput, **attrs)
    return [quantised(np.maximum(numbers(steps), 0), Toutput.names[0]), low, high]


def dequantized(a, b, bias, low_a, high_a, low_b, high_b, low, high, *, transpose_a, transpose_b, input_quant_mode):
    value = real(a, b, bias, low_a, high_a, low_b, high_b, transpose_a, transpose_b, input_quant_mode)
    return near(value, abs(value) + 64)


ASKED = ["transpose_a", "transpose_b", "input_quant_mode", "Toutput"]
typed = dict(T1=EIGHT, T2="qint8", Tbias="float qint32")
more = dict(draw=biased(), also=[biased(lambda d: (49, 129, 200)), biased(lambda d: (1, 64, 33))])
lacks = {"b has 8 bits with a sign, and sums have 32": "quint8 qint16 quint16 qint32"}
sums = dict(draw=without_result_range(biased()), also=[without_result_range(draw) for draw in more["also"]], ulps=4,
            no_kernel={"b has 8 bits with a sign, and sums have 32": "qint8 quint8 qint16 quint16 qint32"})
op("QuantizedMatMulWithBias", summed, types=typed | dict(Toutput="qint32"), **sums)
op("QuantizedMatMulWithBiasAndRelu", at_least_zero, types=dict(T1=EIGHT, T2="qint8", Toutput="qint32"), **sums)
op("QuantizedMatMulWithBiasAndRequantize", requantized, types=typed | dict(Toutput=EIGHT), no_kernel=lacks, **more)
op("QuantizedMatMulWithBiasAndReluAndRequantize", relu, types=typed | dict(Toutput=EIGHT), no_kernel=lacks, asks=ASKED, **more)
op("QuantizedMatMulWithBiasAndDequantize", dequantized, types=typed | dict(Toutput="float"), no_kernel=lacks, ulps=4, zero_signs=False, **more)

# ---- Edges ----

zero, one = F(0), F(1)
a, b = quantised([[255, 0, 7]], "quint8"), quantised([[-128], [127], [1]], "qint8")
expect("QuantizedMatMul", [a, b, zero, F(255), F(-128), F(127)], [quantised([[255 * -128 + 7]], "qint32"), F(-2.0**31), F(2.0**31)])
# Sums that do not fit wrap around: the numbers stand for -128 + 8192 steps.
ends = [quantised(np.full(shape, -128), "qint8") for shape in ((1, 40), (40, 1))]
far = F(8192 - 128), F(8192 + 127)
expect("QuantizedMatMul", [*ends, *far, *far], [wrapped([[8064**2 * 40]])])
# Sums of the largest magnitudes, which just fit in 32 bits, and those which wrap around.
for k in (65793, 65794):
    longest = quantised(np.full((1, k), 255), "quint8"), quantised(np.full((k, 1), -128), "qint8")
    expect("QuantizedMatMul", [*longest, zero, F(255), F(-128), F(127)], [wrapped([[255 * -128 * k]])])
# A bias in steps: halves go to the even number, floats beyond 32 bits to its ends, NaN to the lowest, and sums of both wrap around.
ones = quantised([[1, -1]], "qint8"), quantised(np.ones((2, 6)), "qint8"), f32(0.5, 1.5, -2.5, np.inf, -1e12, np.nan)
units = F(-127), F(127), F(-127), F(127)
expect("QuantizedMatMulWithBias", [*ones, *units], [quantised([[0, 2, -2, 2**31 - 1, -2**31, -2**31]], "qint32")], input_quant_mode="SCALED")
expect("QuantizedMatMulWithBias", [quantised([[1]], "qint8"), quantised([[127]], "qint8"), quantised([2**31 - 1], "qint32"), *units],
       [wrapped([[127 + 2**31 - 1]])], input_quant_mode="SCALED")
# A bias without a fraction: halves go to the even number, NaN to the lowest.
four = quantised([[0, 0]], "qint8"), quantised(np.zeros((2, 5)), "qint8"), f32(0.5, 1.5, -2.5, np.inf, np.nan)
expect("QuantizedMatMulWithBiasAndRequantize", [*four, F(-1), one, F(-1), one, F(-127), F(127)],
       [quantised([[0, 2, -2, 127, -128]], "qint8"), F(-127), F(127)], Toutput=type_of("qint8"))

matrix, vector = quantised(np.zeros((2, 3)), "qint8"), f32(0, 0, 0)
square = quantised(np.zeros((3, 3)), "qint8")
refuses("QuantizedMatMul", [matrix, matrix, F(-1), one, F(-1), one], "[2, 3]")
refuses("QuantizedMatMul", [matrix, square, one, one, F(-1), one], "min_a", "1.0", "longer than 0")
refuses("QuantizedMatMul", [matrix, square, F(-1), one, F(np.nan), one], "min_b", "nan")
refuses("QuantizedMatMul", [matrix, square, F(-1), one, f32(-1, -1, -1), one], "min_b", "[3]")
for name in ("QuantizedMatMulWithBias", "QuantizedMatMulWithBiasAndRelu"):
    refuses(name, [matrix, square, f32(1, 2), F(-1), one, F(-1), one], "bias", "3", "2")
    refuses(name, [matrix, square, vector, F(-1), one, f32(-1, -1), f32(1, 1)], "min_b", "3", "2")
    refuses(name, [matrix, square, vector, F(-1), one, f32(-1, -1, -1), one], "min_b", "max_b", "[3]")
    refuses(name, [matrix, square, vector, F(-1), one, F(2), one], "min_b", "2.0")
    refuses(name, [matrix, square, vector, F(-1), f32(1, 1), F(-1), one], "max_a", "[2]")
    refuses(name, [matrix, square, f32(0, 1, 0), F(-1), one, zero, zero], "bias", "1.0", "length 0")
for name in ("QuantizedMatMulWithBiasAndRequantize", "QuantizedMatMulWithBiasAndReluAndRequantize", "QuantizedMatMulWithBiasAndDequantize"):
    kind = type_of("float" if name.endswith("AndDequantize") else "qint8")
    refuses(name, [matrix, square, f32(1, 2), F(-1), one, F(-1), one, F(-1), one], "bias", "3", "2", Toutput=kind)
    refuses(name, [matrix, square, vector, F(-1), one, f32(-1, -1), f32(1, 1), F(-1), one], "min_b", "3", "2", Toutput=kind)
    refuses(name, [matrix, square, vector, F(-1), one, F(2), one, F(-1), one], "min_b", "2.0", Toutput=kind)
    refuses(name, [matrix, square, vector, F(-1), f32(1, 1), F(-1), one, F(-1), one], "max_a", "[2]", Toutput=kind)
    if kind != type_of("float"):
        refuses(name, [matrix, square, vector, F(-1), one, F(-1), one, zero, zero], "min_freezed_output", "longer than 0", Toutput=kind)
