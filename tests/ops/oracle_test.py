"""Compares ops with NumPy in float64, for several types and shapes, in every way of giving inputs (tw.WAYS)."""
import numpy as np

import cases
import tw
from cases import expect

rng = np.random.default_rng(7)


def refuses(op, inputs, part, **attrs):
    cases.refuses(f"{op} {attrs}", lambda: tw.run(op, inputs, **attrs), part)


SHAPES = [(), (1,), (7,), (0, 3), (2, 3, 4), (33, 65)]
FLOATS = [np.float16, np.float32, np.float64]

UNARY = {"Abs": np.abs, "Neg": np.negative, "Sign": np.sign, "Square": np.square, "Exp": np.exp, "Expm1": np.expm1, "Sin": np.sin,
         "Cos": np.cos, "Tanh": np.tanh, "Sigmoid": lambda x: 1 / (1 + np.exp(-x)), "Floor": np.floor, "Ceil": np.ceil, "Round": np.rint,
         "Relu": lambda x: np.maximum(x, 0), "Relu6": lambda x: np.clip(x, 0, 6)}
POSITIVE = {"Sqrt": np.sqrt, "Rsqrt": lambda x: 1 / np.sqrt(x), "Log": np.log, "Log1p": np.log1p, "Reciprocal": lambda x: 1 / x}
for dtype in FLOATS:
    for shape in SHAPES:
        x = rng.normal(0, 2, shape).astype(dtype)
        for op, f in UNARY.items():
            expect(op, [x], [f(x.astype(np.float64))])
        y = (np.abs(x) + np.asarray(0.1, dtype)).astype(dtype)
        for op, f in POSITIVE.items():
            expect(op, [y], [f(y.astype(np.float64))])
special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0], np.float32)
for op, f in {"IsNan": np.isnan, "IsInf": np.isinf, "IsFinite": np.isfinite, "Abs": np.abs}.items():
    expect(op, [special], [f(special)])

BINARY = {"Add": np.add, "AddV2": np.add, "Sub": np.subtract, "Mul": np.multiply, "RealDiv": np.divide, "Maximum": np.maximum,
          "Minimum": np.minimum, "SquaredDifference": lambda a, b: (a - b) ** 2}
COMPARE = {"Equal": np.equal, "NotEqual": np.not_equal, "Less": np.less, "LessEqual": np.less_equal, "Greater": np.greater,
           "GreaterEqual": np.greater_equal}
PAIRS = [((), ()), ((5,), (5,)), ((5,), ()), ((), (2, 5)), ((4, 1), (1, 3)), ((2, 1, 3), (4, 1)), ((0, 3), (3,)), ((40, 50), (50,))]
for a, b in PAIRS:
    for dtype in FLOATS:
        x = rng.normal(0, 2, a).astype(dtype)
        y = (rng.normal(0, 1, b) + 3).astype(dtype)
        for op, f in BINARY.items():
            expect(op, [x, y], [f(x.astype(np.float64), y.astype(np.float64))])
    x, y = rng.integers(-4, 4, a).astype(np.int32), rng.integers(-4, 4, b).astype(np.int32)
    for op, f in COMPARE.items():
        expect(op, [x, y], [f(x, y)])
    d = np.where(y == 0, 3, y).astype(np.int32)
    expect("FloorDiv", [x, d], [np.floor_divide(x, d)])
    expect("FloorMod", [x, d], [np.mod(x, d)])

x = rng.normal(size=(3, 4, 5)).astype(np.float32)
wide = x.astype(np.float64)
for axes in ([0], [1, 2], [-1], [0, 1, 2], []):
    for keep in (False, True):
        t, i = tuple(axes), np.array(axes, np.int32)
        for op, f in {"Sum": np.sum, "Mean": np.mean, "Max": np.max, "Min": np.min, "Prod": np.prod}.items():
            expect(op, [x, i], [f(wide, axis=t, keepdims=keep)], keep_dims=keep)
expect("ArgMax", [x, np.int32(1)], [np.argmax(x, 1)])
expect("ArgMin", [x, np.int32(2)], [np.argmin(x, 2).astype(np.int32)], output_type=np.int32)
expect("L2Loss", [x], [np.sum(wide ** 2) / 2])
expect("Cumsum", [x, np.int32(1)], [np.cumsum(wide, 1)])

for m, k, n in [(1, 1, 1), (1, 7, 5), (4, 0, 3), (17, 33, 9), (100, 784, 100), (130, 70, 257)]:
    a, b = rng.normal(size=(m, k)), rng.normal(size=(k, n))
    for ta in (False, True):
        for tb in (False, True):
            for dtype, eps in ((np.float32, 1e-3), (np.float64, 1e-10)):
                p, q = (a.T if ta else a).astype(dtype), (b.T if tb else b).astype(dtype)
                wanted = (p.T if ta else p).astype(np.float64) @ (q.T if tb else q).astype(np.float64)
                expect("MatMul", [p, q], [wanted], eps, transpose_a=ta, transpose_b=tb)

i32 = lambda *v: np.array(v, np.int32)
for dtype in (np.float32, np.int64, np.bool_, np.uint8):
    y = rng.integers(0, 2, (2, 3, 4)).astype(dtype)
    expect("Reshape", [y, i32(4, -1)], [y.reshape(4, 6)])
    expect("Transpose", [y, i32(2, 0, 1)], [y.transpose(2, 0, 1)])
    expect("Slice", [y, i32(0, 1, 1), i32(2, -1, 2)], [y[:, 1:, 1:3]])
    expect("Tile", [y, i32(1, 2, 3)], [np.tile(y, (1, 2, 3))])
    expect("GatherV2", [y, i32(2, 0, 2), np.int32(1)], [y[:, [2, 0, 2]]])
    expect("ConcatV2", [y, y, np.int32(2)], [np.concatenate([y, y], 2)], N=2)
    expect("Pack", [y, y, y], [np.stack([y, y, y], 1)], axis=1, N=3)
    expect("Unpack", [y], list(np.moveaxis(y, 1, 0)), axis=1, num=3)
    expect("Split", [np.int32(2), y], np.split(y, 2, 2), num_split=2)
    expect("ExpandDims", [y, np.int32(-1)], [y[..., None]])
    expect("BroadcastTo", [y, i32(5, 2, 3, 4)], [np.broadcast_to(y, (5, 2, 3, 4))])
    expect("Shape", [y], [i32(2, 3, 4)])
expect("Pad", [x, np.array([[1, 0], [0, 2], [1, 1]], np.int32)], [np.pad(wide, ((1, 0), (0, 2), (1, 1)))])
expect("Range", [np.int32(3), np.int32(18), np.int32(4)], [np.arange(3, 18, 4, np.int32)])
expect("Fill", [i32(2, 3), np.float32(2.5)], [np.full((2, 3), 2.5)])
expect("Where", [np.array([[True, False], [False, True]])], [np.array([[0, 0], [1, 1]])])
expect("OneHot", [i32(0, 2, -1, 5), np.int32(3), np.float32(1), np.float32(0)], [np.eye(6)[[0, 2, 3, 5], :3]], axis=-1)
expect("Cast", [np.array([1.9, -1.9, 0.0], np.float32)], [i32(1, -1, 0)], DstT=np.int32)
expect("Select", [np.array([True, False]), i32(1, 2), i32(3, 4)], [i32(1, 4)])

z = rng.normal(0, 5, (6, 9))
shifted = z - z.max(1, keepdims=True)
soft = np.exp(shifted) / np.exp(shifted).sum(1, keepdims=True)
labels = rng.integers(0, 9, 6).astype(np.int32)
for dtype in (np.float32, np.float64):
    expect("Softmax", [z.astype(dtype)], [soft], 1e-5)
    expect("LogSoftmax", [z.astype(dtype)], [np.log(soft)], 1e-5)
    expect("SparseSoftmaxCrossEntropyWithLogits", [z.astype(dtype), labels],
           [-np.log(soft[np.arange(6), labels]), soft - np.eye(9)[labels]], 1e-5)

# ---- bfloat16: computed in float, rounded once ----

for shape in SHAPES:
    x = tw.to_bfloat16(rng.normal(0, 2, shape))
    wide = tw.from_bfloat16(x).astype(np.float64)
    for op, f in UNARY.items():
        expect(op, [x], [f(wide)])
    y = tw.to_bfloat16(np.abs(wide) + 0.1)
    for op, f in POSITIVE.items():
        expect(op, [y], [f(tw.from_bfloat16(y).astype(np.float64))])
    expect("Softmax", [x], [np.exp(wide) / np.exp(wide).sum(-1, keepdims=True)]) if shape else None
    expect("Cast", [x], [wide], DstT=np.float64)
    expect("Cast", [wide], [wide], DstT=tw.bfloat16)
    expect("AddN", [x, x, x], [3 * wide], N=3)
for a, b in PAIRS:
    x, y = tw.to_bfloat16(rng.normal(0, 2, a)), tw.to_bfloat16(rng.normal(0, 1, b) + 3)
    p, q = tw.from_bfloat16(x).astype(np.float64), tw.from_bfloat16(y).astype(np.float64)
    for op, f in (BINARY | COMPARE).items():
        expect(op, [x, y], [f(p, q)])
# A value half-way between two numbers is rounded to the even one; a value beyond the largest becomes infinite.
halves = np.array([1 + 2**-8, 1 + 3 * 2**-8, 3.4e38, -3.4e38, np.inf, np.nan, 1e-40])
rounded = tw.from_bfloat16(tw.to_bfloat16(halves.astype(np.float32)))
for number, wanted in zip(tw.run("Cast", [halves.astype(np.float32)], DstT=tw.bfloat16)[0], rounded):
    cases.holds(f"bfloat16 of {wanted}", np.array_equal(tw.from_bfloat16(number), wanted, equal_nan=True), tw.from_bfloat16(number))
# Sums are kept in float: 300 ones, where bfloat16 itself would stop at 256.
ones = tw.to_bfloat16(np.ones((300, 3)))
expect("Sum", [ones, i32(0)], [np.full(3, 300)], 1e-9)
expect("Mean", [ones, i32(0)], [np.ones(3)], 1e-9)
expect("MatMul", [ones, ones], [np.full((3, 3), 300)], 1e-9, transpose_a=True)
expect("BiasAddGrad", [ones], [np.full(3, 300)], 1e-9)
expect("UnsortedSegmentSum", [ones, np.zeros(300, np.int32), np.int32(1)], [np.full((1, 3), 300)], 1e-9)
expect("ScatterNd", [np.zeros((300, 1), np.int32), ones, i32(1, 3)], [np.full((1, 3), 300)], 1e-9)
expect("Cumsum", [ones, np.int32(0), ], [np.tile(tw.from_bfloat16(tw.to_bfloat16(np.arange(1, 301)))[:, None], (1, 3))], 1e-9)
z = tw.to_bfloat16(rng.normal(size=(5, 4)))
expect("Max", [z, i32(1)], [tw.from_bfloat16(z).max(1)])
expect("ArgMax", [z, np.int32(1)], [tw.from_bfloat16(z).argmax(1)])
expect("Transpose", [z, i32(1, 0)], [tw.from_bfloat16(z).T])
expect("OnesLike", [z], [np.ones((5, 4))])

# ---- Complex numbers ----

COMPLEX_UNARY = {"Conj": np.conj, "Neg": np.negative, "Square": np.square, "Sqrt": np.sqrt, "Rsqrt": lambda z: 1 / np.sqrt(z),
                 "Exp": np.exp, "Reciprocal": lambda z: 1 / z, "Expm1": np.expm1, "Log": np.log, "Log1p": np.log1p, "Sin": np.sin,
                 "Cos": np.cos, "Tanh": np.tanh, "Sigmoid": lambda z: 1 / (1 + np.exp(-z)), "Sign": lambda z: z / np.abs(z),
                 "Identity": lambda z: z}
COMPLEX_BINARY = {"Add": np.add, "AddV2": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "RealDiv": np.divide,
                  "DivNoNan": np.divide, "Pow": np.power, "SquaredDifference": lambda a, b: np.abs(a - b) ** 2 + 0j,
                  "Equal": np.equal, "NotEqual": np.not_equal}
COMPLEX_BACKWARD = {"SqrtGrad": lambda y, dy: dy / 2 / y.conj(), "RsqrtGrad": lambda y, dy: -dy * y.conj() ** 3 / 2,
                    "ReciprocalGrad": lambda y, dy: -dy * y.conj() ** 2, "TanhGrad": lambda y, dy: dy * (1 - y ** 2),
                    "SigmoidGrad": lambda y, dy: dy * y * (1 - y)}


def imaginary(shape, dtype):
    """Returns complex numbers with magnitudes from 0.5 to 2, so that quotients and powers stay near 1."""
    return np.asarray(rng.uniform(0.5, 2, shape) * np.exp(1j * rng.uniform(-np.pi, np.pi, shape)), dtype)


for dtype in (np.complex64, np.complex128):
    for shape in SHAPES:
        z, dz = imaginary(shape, dtype), imaginary(shape, dtype)
        wide = z.astype(np.complex128)
        for op, f in COMPLEX_UNARY.items():
            expect(op, [z], [f(wide)])
        for op, f in COMPLEX_BACKWARD.items():
            expect(op, [z, dz], [f(wide, dz.astype(np.complex128))], 1e-4 if dtype == np.complex64 else None)
        expect("AddN", [z, dz, z], [2 * wide + dz], N=3)
        expect("OnesLike", [z], [np.ones(shape)])
    for a, b in PAIRS:
        x, y = imaginary(a, dtype), imaginary(b, dtype)
        for op, f in COMPLEX_BINARY.items():
            expect(op, [x, y], [f(x.astype(np.complex128), y.astype(np.complex128))],
                   1e-4 if op == "Pow" and dtype == np.complex64 else None)
    expect("DivNoNan", [imaginary((3,), dtype), np.zeros(3, dtype)], [np.zeros(3)])
    expect("Sign", [np.zeros(2, dtype)], [np.zeros(2)])
    expect("Equal", [imaginary((2,), dtype), imaginary((3,), dtype)], [np.bool_(False)], incompatible_shape_error=False)
    expect("NotEqual", [imaginary((2,), dtype), imaginary((3,), dtype)], [np.bool_(True)], incompatible_shape_error=False)
    expect("Equal", [np.array([1 + 2j, 1 + 2j], dtype), np.array([1 + 2j, 1 - 2j], dtype)], [[True, False]])
    tiny = np.array([1e-9 + 1e-9j, -2e-10j, 3e-12], dtype)
    expect("Expm1", [tiny * 1e9], [np.expm1(tiny * 1e9)])
    for op, sign in (("Expm1", 1), ("Log1p", -1)):  # relative to the result: scaled up to 1
        cases.equal(f"{op} near 0", tw.run(op, [tiny])[0] / tiny, 1 + sign * tiny / 2)
    z = imaginary((3, 70, 5), dtype)
    wide = z.astype(np.complex128)
    for axes in ([0], [1, 2], [0, 1, 2], []):
        for op, f in (("Sum", np.sum), ("Mean", np.mean)):
            expect(op, [z, i32(*axes)], [f(wide, axis=tuple(axes))], 1e-4 if dtype == np.complex64 else 1e-11)
    expect("Prod", [z, i32(0)], [np.prod(wide, 0)], 1e-4)
    expect("Sum", [np.zeros((0, 2), dtype), i32(0)], [np.zeros(2)])
    expect("Prod", [np.zeros((0, 2), dtype), i32(0)], [np.ones(2)])
    expect("Cumsum", [z, np.int32(1)], [np.cumsum(wide, 1)], 1e-4)
    large = imaginary((70000, 2), dtype)  # more than one block
    for axis in (0, 1):
        expect("Sum", [large, i32(axis)], [large.astype(np.complex128).sum(axis)], 1e-3 if dtype == np.complex64 else 1e-9)
    expect("Sum", [large, i32(0, 1)], [large.astype(np.complex128).sum()], 1e-3 if dtype == np.complex64 else 1e-9)
    expect("MatMul", [z[0], z[1]], [wide[0].T @ wide[1]], 1e-4, transpose_a=True)
    expect("BatchMatMulV2", [z, z], [wide.transpose(0, 2, 1).conj() @ wide], 1e-4, adj_x=True)
    expect("Transpose", [z, i32(2, 0, 1)], [wide.transpose(2, 0, 1)])
    expect("Where", [np.array([0, 1j, 1, -0.0], dtype)], [[[1], [2]]])
    for to in (np.complex64, np.complex128):
        expect("Cast", [z], [wide], 2e-5, DstT=to)
    for to in (np.float16, tw.bfloat16, np.float32, np.float64):
        expect("Cast", [z], [wide.real], 8e-3, DstT=to)  # the real part
    expect("Cast", [np.array([-3.7 + 9j, 2.2], dtype)], [[-3, 2]], DstT=np.int32)
    expect("Cast", [np.array([0, 1j, -0.0], dtype)], [[False, True, False]], DstT=np.bool_)
    for source in (np.float16, np.float32, np.float64, np.int8, np.uint64, np.bool_):
        expect("Cast", [np.array([0, 1, 1], source)], [[0, 1, 1]], DstT=dtype)
    expect("Cast", [tw.to_bfloat16(np.array([0, -2.5]))], [[0, -2.5]], DstT=dtype)

# ---- Special floating-point numbers ----

for dtype in FLOATS:
    largest, least = np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal
    v = np.array([0, -0.0, 1, -1, 0.5, 2.5, -2.5, np.inf, -np.inf, np.nan, largest, -largest, least, 710, -710, 11, -17], dtype)
    wide = v.astype(np.longdouble)
    with np.errstate(all="ignore"):
        for op, f in (UNARY | POSITIVE).items():
            expect(op, [v], [f(wide).astype(dtype)], 1e-3 if dtype == np.float16 else None)
        for op, f in {"IsNan": np.isnan, "IsInf": np.isinf, "IsFinite": np.isfinite}.items():
            expect(op, [v], [f(v)])
        a, b = np.repeat(v, len(v)), np.tile(v, len(v))
        for op, f in BINARY.items():
            # An intermediate result that overflows stays infinite, although a longer type could hold it.
            expect(op, [a, b], [f(a, b)])
        for op, f in COMPARE.items():
            expect(op, [a, b], [f(a, b)])
    # Signs of zeros.
    zeros = np.array([0, -0.0], dtype)
    for op, inputs, wanted in (("Neg", [zeros], [True, False]), ("Abs", [zeros], [False, False]), ("Sign", [zeros], [False, True]),
                               ("Ceil", [np.array([-0.5, 0.5], dtype)], [True, False]),
                               ("Round", [np.array([-0.2, 0.2], dtype)], [True, False]),
                               ("Identity", [zeros], [False, True]), ("Mul", [zeros, np.array([-1, 1], dtype)], [True, True]),
                               ("Sqrt", [zeros], [False, True])):
        expect("Less", [tw.run("RealDiv", [np.ones(2, dtype), tw.run(op, inputs)[0]])[0], np.zeros((), dtype)], [wanted])
    with_nan = np.array([[1, np.nan, 3], [4, 2, 5]], dtype)
    expect("Max", [with_nan, i32(1)], [[np.nan, 5]])
    expect("Min", [with_nan, i32(1)], [[np.nan, 2]])
    expect("ArgMax", [with_nan, np.int32(1)], [[1, 2]])
    expect("ArgMin", [with_nan, np.int32(1)], [[1, 1]])
    expect("Max", [np.zeros((0, 2), dtype), i32(0)], [[-np.inf] * 2])
    expect("Min", [np.zeros((0, 2), dtype), i32(0)], [[np.inf] * 2])
    expect("Mean", [np.zeros((0, 2), dtype), i32(0)], [[np.nan] * 2])
    expect("DivNoNan", [np.array([1, 0, np.inf, 6], dtype), np.array([0, 0, 0, 3], dtype)], [[0, 0, 0, 2]])
    expect("FloorMod", [np.array([7.5, -7.5, 7.5, -7.5], dtype), np.array([2, 2, -2, -2], dtype)], [[1.5, 0.5, -0.5, -1.5]])
    expect("Softmax", [np.array([[np.inf, 0], [-np.inf, 0], [largest, -largest]], dtype)], [[[np.nan, np.nan], [0, 1], [1, 0]]])

# ---- Whole numbers wrap around ----

for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64):
    info = np.iinfo(dtype)
    v = np.array([0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min + 1, info.max // 2 + 1], dtype)
    a, b = np.repeat(v, len(v)), np.tile(v, len(v))
    with np.errstate(all="ignore"):
        for op, f in {"AddV2": np.add, "Sub": np.subtract, "Mul": np.multiply, "Maximum": np.maximum, "Minimum": np.minimum}.items():
            expect(op, [a, b], [f(a, b)])
        for op, f in COMPARE.items():
            expect(op, [a, b], [f(a, b)])
        fits = (b != 0) & ~((a == info.min) & (b.astype(np.float64) == -1))
        expect("FloorDiv", [a[fits], b[fits]], [a[fits] // b[fits]])
        towards_zero = [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in zip(a[fits].tolist(), b[fits].tolist())]
        expect("Div", [a[fits], b[fits]], [np.array(towards_zero, dtype)])
        expect("FloorMod", [a[fits], b[fits]], [a[fits] % b[fits]])
        expect("Square", [v], [v * v])
        if info.min:
            for op, f in {"Neg": np.negative, "Abs": np.abs, "Sign": np.sign}.items():
                expect(op, [v], [f(v)])
            expect("Pow", [v, np.full(len(v), 3, dtype)], [v ** 3])
        for op, f in {"Sum": np.sum, "Prod": np.prod, "Max": np.max, "Min": np.min}.items():
            m = np.stack([v, v[::-1]])
            expect(op, [m, i32(0)], [f(m, 0, dtype=dtype) if op in ("Sum", "Prod") else f(m, 0)])
        expect("Cumsum", [v, np.int32(0)], [np.cumsum(v, dtype=dtype)])
        expect("AddN", [v, v, v], [v + v + v], N=3)
    expect("ArgMax", [v, np.int32(0)], [v.argmax()])
    expect("Relu", [v], [np.maximum(v, 0)])
    expect("MatMul", [v[None], v[:, None]], [[[(v.astype(object) @ v.astype(object) - info.min) % 2 ** info.bits + info.min]]]) \
        if dtype in (np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64) else None

# ---- Cast: to whole numbers towards 0 and to the nearest that fits; among whole numbers modulo 2^bits ----

REAL = [np.float16, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.bool_]
for source in REAL:
    if np.dtype(source).kind == "f":
        v = np.array([0, -0.0, 0.9, -0.9, 1.5, -1.5, 127.9, 128, 300, -300, 65504, -65504, np.inf, -np.inf, np.nan], source)
        v = np.concatenate([v, np.array([2.0 ** k * sign for k in (31, 32, 63, 64) for sign in (1, -1)]).astype(source)]) \
            if source != np.float16 else v
    else:
        v = np.array([0, 1], source) if source == np.bool_ else \
            np.array([0, 1, 2, np.iinfo(source).max, np.iinfo(source).min, np.iinfo(source).max // 2 + 1], source)
    for to in REAL:
        if v.dtype.kind == "f" and np.dtype(to).kind in "iu":
            info = np.iinfo(to)
            wanted = np.array([0 if np.isnan(n) else info.max if n >= info.max else info.min if n <= info.min else int(n) for n in v], to)
        else:
            with np.errstate(all="ignore"):
                wanted = v.astype(to)
        expect("Cast", [v], [wanted], 1e-30, DstT=to)

# ---- Sizes that threads share ----

big, row = rng.normal(size=(700, 501)).astype(np.float32), rng.normal(size=501).astype(np.float32)
wide = big.astype(np.float64)
for op, f in UNARY.items():
    expect(op, [big], [f(wide)])
expect("AddV2", [big, row], [wide + row])
expect("Mul", [big, row[:1]], [wide * row[:1]])
expect("Sub", [row, big], [row - wide])
for axes in ([0], [1], [0, 1]):
    for op, f in {"Sum": np.sum, "Mean": np.mean, "Max": np.max, "Min": np.min}.items():
        expect(op, [big, i32(*axes)], [f(wide, axis=tuple(axes))], 1e-4)
expect("Transpose", [big, i32(1, 0)], [wide.T])
expect("Cumsum", [big, np.int32(0)], [np.cumsum(wide, 0)], 1e-3)
expect("ArgMax", [big, np.int32(0)], [wide.argmax(0)])
expect("Where", [big > 1], [np.argwhere(big > 1)])
expect("GatherV2", [big, i32(*range(699, -1, -1)), np.int32(0)], [wide[::-1]])
expect("SelectV2", [big > 0, big, row], [np.where(big > 0, wide, row)])

# ---- The rest of the data movement ----

y = rng.normal(size=(3, 4, 5))
for exclusive in (False, True):
    for reverse in (False, True):
        sums = np.cumsum(y[:, ::-1] if reverse else y, 1)
        sums = np.concatenate([np.zeros((3, 1, 5)), sums[:, :-1]], 1) if exclusive else sums
        expect("Cumsum", [y, np.int32(1)], [sums[:, ::-1] if reverse else sums], exclusive=exclusive, reverse=reverse)
expect("StridedSlice", [y, i32(1, 0, 9), i32(3, 9, -9), i32(1, 2, -2)], [y[1:3, 0:9:2, 9:-9:-2]])
expect("StridedSlice", [y, i32(0, 0, -2), i32(0, 0, 0), i32(1, 1, 1)], [y[None, ..., -2]], new_axis_mask=1, ellipsis_mask=2,
       shrink_axis_mask=4)
scattered = np.zeros((3, 4))
scattered[1:3, 3:0:-2] = 7
expect("StridedSliceGrad", [i32(3, 4), i32(1, 3), i32(3, 0), i32(1, -2), np.full((2, 2), 7.0)], [scattered])
expect("GatherNd", [y, i32([2, 1], [0, 3])], [y[[2, 0], [1, 3]]])
expect("GatherNd", [y, np.zeros((2, 0), np.int64)], [np.stack([y, y])])
expect("GatherV2", [y, i32([1, 0], [3, 3], [2, 1]), np.int32(1)], [np.stack([y[k][[[1, 0], [3, 3], [2, 1]]] for k in range(3)])])
expect("GatherV2", [y, i32([1, 0], [3, 3], [2, 1]), np.int32(1)], [np.stack([y[k][at] for k, at in enumerate([[1, 0], [3, 3], [2, 1]])])],
       batch_dims=1)
expect("ScatterNd", [i32([1], [3], [1]), np.array([1.0, 2, 4]), i32(5)], [[0, 5, 0, 2, 0]])
expect("UnsortedSegmentSum", [y, i32(1, -1, 1), np.int32(3)], [np.stack([np.zeros((4, 5)), y[0] + y[2], np.zeros((4, 5))])])
expect("InvertPermutation", [i32(2, 0, 3, 1)], [i32(1, 3, 0, 2)])
expect("BroadcastGradientArgs", [i32(2, 1, 3), i32(4, 1)], [i32(1), i32(0, 2)])
expect("BroadcastGradientArgs", [i32(2, 3), i32(2, 3)], [i32(), i32()])
expect("OneHot", [i32([0, 1], [2, -1]), np.int32(3), np.int32(7), np.int32(-7)],
       [np.where(np.arange(3)[:, None] == i32([0, 1], [2, -1])[:, None], 7, -7)], axis=1)
expect("Range", [np.float32(1), np.float32(2), np.float32(0.25)], [np.arange(1, 2, 0.25)])
expect("Range", [np.int64(5), np.int64(-4), np.int64(-3)], [np.arange(5, -4, -3)])
expect("Squeeze", [y[:1, :, :1]], [y[0, :, 0]])
expect("Squeeze", [y[:1, :, :1]], [y[:1, :, 0]], squeeze_dims=[-1])
expect("ShapeN", [y, y[0]], [np.array([3, 4, 5]), np.array([4, 5])], N=2, out_type=np.int64)
expect("Size", [y], [np.int64(60)], out_type=np.int64)
expect("Rank", [y], [np.int32(3)])
expect("All", [y > -9, i32(0)], [np.ones((4, 5), bool)])
expect("Any", [y > 1, i32(0, 2)], [(y > 1).any((0, 2))])
for op, f in {"LogicalAnd": np.logical_and, "LogicalOr": np.logical_or}.items():
    expect(op, [y > 0, y[0] > 0], [f(y > 0, y[0] > 0)])
expect("LogicalNot", [y > 0], [y <= 0])
expect("Select", [np.array([True, False, True]), y, -y], [np.where(np.array([True, False, True])[:, None, None], y, -y)])
erf = [-0.9999779095030014, -0.8427007929497149, 0, 0.5204998778130465, 0.9953222650189527, 1]
expect("Erf", [np.array([-3, -1, 0, 0.5, 2, 9])], [erf])
expect("Erf", [np.array([-3, -1, 0, 0.5, 2, 9], np.float32)], [erf])
expect("Pow", [np.array([2.0, 9, 0, 4, -2]), np.array([10, 0.5, 0, -1, 3])], [[1024, 3, 1, 0.25, -8]])
features, labels = rng.normal(size=(4, 3)), rng.dirichlet(np.ones(3), 4)
e = np.exp(features)
expect("SoftmaxCrossEntropyWithLogits", [features, labels],
       [-(labels * np.log(e / e.sum(1, keepdims=True))).sum(1), e / e.sum(1, keepdims=True) - labels])
expect("BiasAdd", [y, np.arange(4.0)], [y + np.arange(4)[:, None]], data_format="NCHW")
expect("BiasAddGrad", [y], [y.sum((0, 2))], data_format="NCHW")
for op in ("Identity", "StopGradient"):
    expect(op, [y], [y])
for shape in (None, (3, -1, -1), (3, 4, 5)):
    expect("PlaceholderWithDefault", [y], [y], shape=shape)
    expect("EnsureShape", [y], [y], shape=shape)
expect("IdentityN", [y, i32(1)], [y, i32(1)], T=[np.float64, np.int32])

x = rng.normal(size=(3, 4, 5)).astype(np.float32)
refuses("GatherV2", [x, i32(9), np.int32(0)], "9")
refuses("FloorDiv", [i32(1), i32(0)], "zero")
refuses("MatMul", [x[0], x[0]], "MatMul 'op'")
refuses("Reshape", [x, i32(7, -1)], "Reshape 'op'")
refuses("AddV2", [x, x[:2, :3]], "AddV2 'op'")

cases.finish()
