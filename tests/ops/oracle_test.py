"""Ops against NumPy in float64, with inputs fed (shapes known late) and constant (folded), for several types and shapes."""
import sys

import numpy as np

import tw

rng = np.random.default_rng(7)
failures = cases = 0


def expect(op, inputs, wanted, tolerance=None, **attrs):
    """All outputs of the op equal `wanted`, a list; float results within a few ulps of their type unless a tolerance is given."""
    global failures, cases
    for fed in (True, False):
        cases += 1
        where = f"{op} {[np.asarray(x).dtype.name + str(np.asarray(x).shape) for x in inputs]} {attrs} {'fed' if fed else 'constant'}"
        try:
            got = tw.run(op, inputs, len(wanted), fed, **attrs)
        except tw.Error as e:
            print(f"FAILED  {where}: {e}")
            failures += 1
            continue
        for g, w in zip(got, wanted):
            w = np.asarray(w)
            if g.shape != w.shape:
                problem = f"shape {g.shape}, not {w.shape}"
            elif g.dtype.kind == "f":
                eps = tolerance or {"float16": 4e-3, "float32": 2e-5, "float64": 1e-12}[g.dtype.name]
                problem = None if np.allclose(g.astype(np.float64), w.astype(np.float64), eps, eps, equal_nan=True) else f"{g} is not {w}"
            else:
                problem = None if np.array_equal(g, w) else f"{g} is not {w}"
            if problem:
                print(f"FAILED  {where}: {problem}")
                failures += 1


def refuses(op, inputs, part, **attrs):
    global failures, cases
    cases += 1
    try:
        tw.run(op, inputs, **attrs)
        print(f"FAILED  {op} {attrs}: no error where '{part}' was expected")
        failures += 1
    except tw.Error as e:
        if part not in str(e):
            print(f"FAILED  {op}: '{e}' does not say '{part}'")
            failures += 1


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


def conv(image, filters, stride):
    """NHWC, VALID, by its definition."""
    n, h, w, _ = image.shape
    fh, fw, _, out = filters.shape
    oh, ow = (h - fh) // stride + 1, (w - fw) // stride + 1
    result = np.zeros((n, oh, ow, out))
    for i in range(oh):
        for j in range(ow):
            patch = image[:, i * stride:i * stride + fh, j * stride:j * stride + fw]
            result[:, i, j] = np.tensordot(patch, filters, 3)
    return result


image, filters = rng.normal(size=(2, 9, 8, 3)), rng.normal(size=(3, 2, 3, 5))
for stride in (1, 2):
    for dtype in (np.float32, np.float64):
        expect("Conv2D", [image.astype(dtype), filters.astype(dtype)], [conv(image, filters, stride)], 1e-4,
               strides=[1, stride, stride, 1], padding="VALID")
blocks = image[:, :8].reshape(2, 4, 2, 4, 2, 3)
expect("MaxPool", [image[:, :8].astype(np.float32)], [blocks.max((2, 4))], ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
expect("AvgPool", [image[:, :8].astype(np.float32)], [blocks.mean((2, 4))], 1e-4, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")

refuses("GatherV2", [x, i32(9), np.int32(0)], "9")
refuses("FloorDiv", [i32(1), i32(0)], "zero")
refuses("MatMul", [x[0], x[0]], "MatMul 'op'")
refuses("Reshape", [x, i32(7, -1)], "Reshape 'op'")
refuses("AddV2", [x, x[:2, :3]], "AddV2 'op'")

print(f"{cases - failures} of {cases} cases agree")
sys.exit(failures > 0)
