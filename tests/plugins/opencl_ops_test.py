"""Computes and trains on OpenCL devices: every op that has kernels there runs there and agrees with the CPU; fused sets have the results of
their single nodes; digits and text are learnt as on the CPU. Without an OpenCL device the test is skipped."""
import importlib.util
import os
import pathlib
import sys
import types

import numpy as np
import pytest

import thalweg as tw

sys.path.insert(0, str(pathlib.Path(os.environ["THALWEG_SOURCE_DIR"]) / "tests/ops"))
import tw as ops  # noqa: E402 - the tests' own helpers

ON = dict(device="OPENCL:0", fallback="fail", disable_pass="fold")
needs_device = pytest.mark.skipif(not any(d.kind == "OPENCL" for d in tw.devices()),
                                  reason="no OpenCL device was found; install a driver (pocl-opencl-icd runs on the CPU)")
rng = np.random.default_rng(0)


def f(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def i(*values):
    return np.array(values, np.int32)


def scalars(*values):
    return [np.float32(v) for v in values]


V = ops.Variable
UNARY = """Abs Neg Sign Square Sqrt Rsqrt Exp Expm1 Log Log1p Sin Cos Tanh Sigmoid Reciprocal Erf Floor Ceil Round IsNan IsFinite Relu
    Relu6 Elu Selu Softplus Softsign LeakyRelu ZerosLike L2Loss Identity""".split()
BINARY = """AddV2 Sub Mul RealDiv DivNoNan FloorMod Pow Maximum Minimum SquaredDifference Atan2 Equal Less GreaterEqual ReluGrad TanhGrad
    SigmoidGrad EluGrad SoftplusGrad""".split()


def uses():
    """Yields (op, inputs, attributes)."""
    for op in UNARY:
        yield op, [abs(f(3, 40)) if op in ("Sqrt", "Rsqrt", "Log", "Log1p") else f(3, 40)], {}
    for op in BINARY:
        yield op, [abs(f(5, 7)), abs(f(5, 7))], {}
    yield from (("AddV2", [f(3, 1, 5), f(4, 1)], {}), ("Mul", [f(4, 1), f(1)], {}), ("Abs", [i(-3, 4)], {}),
                ("AddV2", [i(-3, 4), i(5, 6)], {}), ("Exp", [f(9).astype(np.float16)], {}), ("Tanh", [f(9).astype(np.float64)], {}),
                ("BiasAdd", [f(2, 3, 4, 2), f(3)], dict(data_format="NCHW")), ("SelectV2", [f(2) > 0, f(3, 2), f(1)], {}),
                ("Select", [f(3) > 0, f(3, 2), f(3, 2)], {}), ("BitwiseXor", [i(6, 3), i(5, 1)], {}),
                ("Cast", [f(5) * 10], dict(DstT=np.dtype(np.int32))), ("Cast", [f(5) > 0], dict(DstT=np.dtype(np.float32))),
                ("ClipByValue", [f(9), np.float32(-.5), np.float32(.5)], {}), ("LogicalAnd", [f(9) > 0, f(9) > 0], {}))
    for op in ("Sum", "Mean", "Max", "Prod", "EuclideanNorm"):
        for shape, axes in (((30, 40), [0]), ((30, 40), [1]), ((300, 400), [0, 1]), ((3, 4, 5, 6), [0, 2]), ((5, 0), [1])):
            yield op, [f(*shape) * (.1 if op == "Prod" else 1), i(*axes)], {}
    yield from (("All", [f(3, 4) > -1, i(0)], {}), ("ArgMax", [f(3, 4), np.int32(1)], {}), ("ArgMin", [f(3, 4), np.int32(0)], {}),
                ("BiasAddGrad", [f(4, 5, 6)], {}))
    yield from (("MatMul", [f(33, 70), f(70, 45)], {}), ("MatMul", [f(70, 33), f(45, 70)], dict(transpose_a=True, transpose_b=True)),
                ("BatchMatMulV2", [f(2, 1, 5, 6), f(3, 6, 7)], {}), ("Softmax", [f(5, 7)], {}), ("LogSoftmax", [f(5, 7)], {}),
                ("SoftmaxCrossEntropyWithLogits", [f(5, 7), abs(f(1, 7))], {}),
                ("ScaledDotProductAttention", [f(2, 3, 4), f(2, 5, 4), f(2, 5, 6)], dict(N=0, is_causal=True)),
                ("ScaledDotProductAttentionGrad", [f(2, 3, 4), f(2, 5, 4), f(2, 5, 6), f(3, 1), f(2, 3, 6), f(2, 3), f(2, 3, 6)], dict(N=1)),
                ("SparseSoftmaxCrossEntropyWithLogits", [f(5, 7), np.arange(5)], {}))
    yield from (("Transpose", [f(3, 4, 5), i(2, 0, 1)], {}), ("ConcatV2", [f(3, 4), f(3, 2), np.int32(1)], dict(N=2)),
                ("Pack", [f(3, 4), f(3, 4)], dict(N=2, axis=1)), ("Unpack", [f(3, 4)], dict(num=3)),
                ("Split", [np.int32(1), f(3, 4)], dict(num_split=2)), ("Slice", [f(5, 6), i(1, 2), i(3, 3)], {}),
                ("StridedSlice", [f(5, 6, 7), i(1, -1, 0), i(5, 0, 7), i(2, -2, 3)], {}),
                ("StridedSliceGrad", [i(5, 6), i(1, 2), i(5, 6), i(2, 3), f(2, 2)], {}), ("Pad", [f(3, 4), i([1, 2], [0, 1])], {}),
                ("MirrorPad", [f(3, 4), i([1, 2], [0, 1])], dict(mode="REFLECT")), ("Tile", [f(3, 4), i(2, 3)], {}),
                ("BroadcastTo", [f(3, 1), i(2, 3, 4)], {}), ("Fill", [i(3, 4), np.float32(3)], {}),
                ("ReverseV2", [f(3, 4, 5), i(0, 2)], {}), ("OneHot", [i(1, 2, 0), np.int32(4), np.float32(1), np.float32(0)], {}),
                ("GatherV2", [f(5, 6), i(4, 0, 2), np.int32(1)], {}), ("ScatterNd", [i([1], [3], [1]), f(3, 2), i(4, 2)], {}),
                ("UnsortedSegmentSum", [f(4, 3), i(1, 0, 1, -1), np.int32(2)], {}),
                ("SparseTensorDenseMatMul", [np.int64([[2, 0], [0, 3], [2, 1]]), f(3), np.int64([3, 4]), f(4, 70)], {}),
                ("SparseTensorDenseMatMul", [np.int32([[2, 0], [0, 3], [2, 1]]), f(3), np.int64([3, 4]), f(5, 3)],
                 dict(adjoint_a=True, adjoint_b=True)),
                ("Cumsum", [f(3, 4, 5), np.int32(1)], dict(reverse=True, exclusive=True)), ("AddN", [f(3), f(3), f(3)], dict(N=3)))
    x, filter_, depthwise = f(2, 7, 8, 3), f(3, 3, 3, 4), f(3, 3, 3, 2)
    for padding in ("SAME", "VALID"):
        slide = dict(strides=[1, 2, 2, 1], padding=padding)
        pool = dict(slide, ksize=[1, 3, 3, 1])
        y, z = ops.run("Conv2D", [x, filter_], 1, **slide)[0], ops.run("DepthwiseConv2dNative", [x, depthwise], 1, **slide)[0]
        most = ops.run("MaxPool", [x], 1, **pool)[0]
        yield from (("Conv2D", [x, filter_], slide), ("Conv2DBackpropInput", [i(2, 7, 8, 3), filter_, y], slide),
                    ("Conv2DBackpropFilter", [x, i(3, 3, 3, 4), y], slide), ("DepthwiseConv2dNative", [x, depthwise], slide),
                    ("DepthwiseConv2dNativeBackpropInput", [i(2, 7, 8, 3), depthwise, z], slide),
                    ("DepthwiseConv2dNativeBackpropFilter", [x, i(3, 3, 3, 2), z], slide), ("MaxPool", [x], pool),
                    ("MaxPoolGrad", [x, most, most], pool), ("AvgPool", [x], pool), ("AvgPoolGrad", [i(2, 7, 8, 3), most], pool))
    yield "Conv2D", [x.transpose(0, 3, 1, 2).copy(), filter_], dict(strides=[1, 1, 2, 2], padding="SAME", data_format="NCHW")
    for op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
        yield op, [i(33, 5)], dict(dtype=np.dtype(np.float32), seed=3, seed2=5)
    for training in (True, False):
        yield "FusedBatchNormV3", [f(4, 3, 3, 5), f(5), f(5), f(5), abs(f(5))], dict(is_training=training)
        yield "FusedBatchNormGradV3", [f(4, 3, 3, 5), f(4, 3, 3, 5), f(5), f(5), abs(f(5)), f(5)], dict(is_training=training)
    yield from (("ResizeBilinear", [f(2, 4, 5, 3), i(7, 9)], {}), ("ResizeNearestNeighbor", [f(2, 4, 5, 3), i(7, 9)], {}),
                ("ResizeBilinearGrad", [f(2, 7, 9, 3), f(2, 4, 5, 3)], {}))
    batch, inner, cell = 3, 4, 5
    lstm = [f(batch, inner), f(batch, cell), f(batch, cell), f(inner + cell, 4 * cell), f(cell), f(cell), f(cell), f(4 * cell)]
    made = ops.run("LSTMBlockCell", lstm, 7, use_peephole=True)
    yield "LSTMBlockCell", lstm, dict(use_peephole=True)
    yield "LSTMBlockCellGrad", [*lstm, *made[:6], f(batch, cell), f(batch, cell)], dict(use_peephole=True)
    gru = [f(batch, inner), f(batch, cell), f(inner + cell, 2 * cell), f(inner + cell, cell), f(2 * cell), f(cell)]
    yield "GRUBlockCell", gru, {}
    yield "GRUBlockCellGrad", [*gru, *ops.run("GRUBlockCell", gru, 4)[:3], f(batch, cell)], {}
    yield from attention()
    yield from sequences()
    yield from segments()
    repeated = f(3000).round(1)
    repeated[::500] = np.nan
    yield from (("Unique", [repeated], {}), ("Unique", [rng.integers(0, 99, 5000)], dict(out_idx=np.dtype(np.int64))), ("Unique", [f(0)], {}))
    yield from (("UniqueV2", [repeated, i()], {}), ("UniqueV2", [rng.integers(0, 3, (3, 500, 2)).astype(np.float16), i(-2)], {}),
                ("UniqueV2", [repeated.reshape(500, 6), np.int64([1])], dict(out_idx=np.dtype(np.int64))),
                ("UniqueV2", [rng.integers(0, 2, (2000, 3)), i(0)], {}), ("UniqueV2", [f(4, 0), i(0)], {}), ("UniqueV2", [f(0, 4), i(0)], {}))
    yield from volumes()
    yield from (("OnesLike", [i(3, 4)], {}), ("IdentityN", [f(3), f(4)], dict(T=[np.float32, np.float32])),
                ("TruncateMod", [f(9) * 5, f(9)], {}), ("LeftShift", [i(3, -5, 7), i(2, 31, 40)], {}),
                ("RightShift", [i(300, -5, 7), i(2, 31, -4)], {}),
                ("BatchMatMulV3", [f(2, 3, 4), f(2, 4, 5)], dict(Tout=np.dtype(np.float32))),
                ("MirrorPadGrad", [f(6, 5), i([1, 2], [0, 1])], dict(mode="REFLECT")),
                ("MirrorPadGrad", [f(6, 5), i([1, 2], [0, 1])], dict(mode="SYMMETRIC")),
                ("ResizeNearestNeighborGrad", [f(2, 7, 9, 3), i(4, 5)], {}),
                ("MaxPoolGradGrad", [x, f(2, 4, 4, 3), x], dict(ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")),
                ("MaxPoolV2", [x, i(1, 3, 3, 1), i(1, 2, 2, 1)], dict(padding="VALID")))
    for t in (np.int32, np.int64):
        yield "RandomUniformInt", [i(3, 7), t(-5), t(100)], dict(seed=3, seed2=5)
    for op in ("StatelessRandomUniformV2", "StatelessRandomNormalV2", "StatelessTruncatedNormalV2"):
        yield op, [i(33, 5), np.array([7], np.uint64), np.array([2**64 - 2, 9], np.uint64), np.int32(1)], dict(dtype=np.dtype(np.float32))
    for t in (np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.uint64, np.bool_, np.float16, np.float64):
        y = np.arange(24).reshape(2, 3, 4).astype(t)
        yield from (("Transpose", [y, i(2, 0, 1)], {}), ("ConcatV2", [y, y, np.int32(2)], dict(N=2)),
                    ("GatherV2", [y, i(2, 0), np.int32(1)], {}), ("StridedSlice", [y, i(0, 2), i(2, 0), i(1, -1)], {}),
                    ("Tile", [y, i(1, 2, 1)], {}))
    yield from (("AssignAddVariableOp", [V(f(4)), f(4)], {}),
                ("ResourceGatherNd", [V(f(4, 3)), i([1, 2], [3, 0])], dict(dtype=np.dtype(np.float32))),
                *((f"ResourceScatterNd{end}", [V(f(4, 3)), i([1], [3]), f(2, 3)], {}) for end in ("Update", "Add", "Sub", "Max", "Min")),
                ("ResourceGather", [V(f(4, 3)), i(1, 3, 1)], dict(dtype=np.dtype(np.float32))),
                ("ResourceScatterAdd", [V(f(4, 3)), i(1, 3, 1), f(3, 3)], {}),
                ("ResourceApplyGradientDescent", [V(f(40)), np.float32(.1), f(40)], {}),
                ("ResourceApplyMomentum", [V(f(4)), V(f(4)), np.float32(.1), f(4), np.float32(.9)], dict(use_nesterov=True)),
                ("ResourceApplyAdam", [V(f(4)), V(abs(f(4))), V(abs(f(4))), *scalars(.9, .99, .1, .9, .99, 1e-3), f(4)], {}),
                ("ResourceApplyAdadelta", [V(f(4)), V(abs(f(4))), V(abs(f(4))), *scalars(.1, .9, 1e-3), f(4)], {}),
                ("ResourceApplyRMSProp", [V(f(4)), V(abs(f(4))), V(f(4)), *scalars(.1, .9, .5, 1e-3), f(4)], {}),
                ("ResourceApplyFtrl", [V(f(4)), V(abs(f(4))), V(f(4)), f(4), *scalars(.1, .01, .02, -.5)], {}),
                ("ResourceSparseApplyAdagrad", [V(f(4, 3)), V(abs(f(4, 3))), np.float32(.1), f(3, 3), i(1, 3, 1)], {}))


def attention():
    """Yields attention with more scores than a device computes at a time, and with few long rows."""
    hidden = f(2, 1, 3000)
    hidden[0, 0, 100:2900] = -np.inf
    for query, key, bias, causal in ((f(2200, 4), f(2300, 4), [], True), (f(2200, 4), f(2300, 4), [f(2200, 1)], False),
                                     (f(2300, 3), f(1900, 3), [], True), (f(2, 1, 4), f(2, 3000, 4), [hidden], False)):
        attrs, inputs = dict(N=len(bias), is_causal=causal), [query, key, f(*key.shape[:-1], 5)]
        yield "ScaledDotProductAttention", [*inputs, *bias], attrs
        output, sums = ops.run("ScaledDotProductAttention", [*inputs, *bias], 2, **attrs)
        yield "ScaledDotProductAttentionGrad", [*inputs, *bias, output, sums, f(*output.shape)], attrs


def sequences():
    time, batch, inner, cell = 4, 3, 2, 5
    for op, attrs in (("BlockLSTM", dict(use_peephole=True, cell_clip=.5)), ("BlockLSTMV2", {})):
        for length in (time, 2, 0):
            lstm = [np.int64(length), f(time, batch, inner), f(batch, cell), f(batch, cell), f(inner + cell, 4 * cell), f(cell), f(cell),
                    f(cell), f(4 * cell)]
            yield op, lstm, attrs
            back = [*lstm, *ops.run(op, lstm, 7, **attrs), f(time, batch, cell), f(time, batch, cell)]
            yield op.replace("LSTM", "LSTMGrad"), back, dict(use_peephole=attrs.get("use_peephole", False))


def segments():
    for what in ("Sum", "Mean", "Prod", "Max", "Min"):
        for data in (f(6, 70), f(6, 2, 3), i(5, -2, 3, 3, 9, 1), f(6).astype(np.float64), f(6, 0)):
            yield f"Segment{what}", [data, i(0, 0, 2, 2, 2, 5)], {}
            if what != "Mean":
                yield f"UnsortedSegment{what}", [data, i(3, -1, 0, 3, 3, 0), np.int32(5)], {}


def volumes():
    x, filter_ = f(2, 4, 5, 6, 3), f(2, 3, 2, 3, 4)
    for slide in (dict(strides=[1, 2, 1, 2, 1], padding="SAME"), dict(strides=[1, 1, 1, 1, 1], padding="VALID", dilations=[1, 1, 2, 1, 1])):
        y = ops.run("Conv3D", [x, filter_], 1, **slide)[0]
        yield from (("Conv3D", [x, filter_], slide), ("Conv3DBackpropInputV2", [i(*x.shape), filter_, y], slide),
                    ("Conv3DBackpropFilterV2", [x, i(*filter_.shape), y], slide))


def answers(op, inputs, attrs, **options):
    call = ops.Call(op, inputs, "fed", attrs)
    return call.step(None, **options)


@needs_device
def test_every_op_runs_on_the_device_and_agrees_with_the_cpu():
    tried, wrong = set(), []
    for op, inputs, attrs in uses():
        tried.add(op)
        for got, wanted in zip(answers(op, inputs, attrs, **ON), answers(op, inputs, attrs)):
            if got.dtype.kind == "f":
                most = np.abs(wanted, where=np.isfinite(wanted), out=np.ones_like(wanted)).max(initial=1)
                exact = np.allclose(got, wanted, rtol=2e-3 if got.itemsize == 2 else 2e-5, atol=2e-5 * most, equal_nan=True)
            else:
                exact = np.array_equal(got, wanted)
            if got.shape != wanted.shape or not exact:
                wrong.append((op, [np.shape(x) for x in inputs], attrs))
    assert not wrong and len(tried) > 150


@needs_device
@pytest.mark.parametrize("terms", [9, 15, 20, 300, 1000])
def test_long_sums_are_rounded_once_as_on_the_cpu(terms):
    values = [f(40) for _ in range(terms)]
    halves = [v.astype(np.float16) for v in values]
    for inputs in (halves, [ops.to_bfloat16(v) for v in values]):
        (got,), (wanted,) = answers("AddN", inputs, dict(N=terms), **ON), answers("AddN", inputs, dict(N=terms))
        assert got.tobytes() == wanted.tobytes()
    assert np.array_equal(answers("AddN", halves, dict(N=terms), **ON)[0], sum(h.astype(np.float32) for h in halves).astype(np.float16))


# Op, ranges of its arguments, the allowed error of the device in units in the last place, and the result below which that unit is fixed.
# For functions of the driver, the error is that which OpenCL allows.
SPECIAL = [("Digamma", [(0, 10), (1, 2)], 4, 0), ("Digamma", [(-30, 0)], 4, 4), ("Erfinv", [(-1, 1), (-1e-3, 1e-3), (.999, 1)], 4, 0),
           ("Ndtri", [(0, 1), (0, 1e-6), (.499, .501), (.999, 1)], 6, 0), ("Erf", [(-4, 4), (-1e-3, 1e-3)], 16, 0),
           ("Erfc", [(-4, 4)], 16, 0), ("Lgamma", [(.1, 30), (-30, 0)], 16, 1)]


@needs_device
def test_special_functions_are_some_units_in_the_last_place_off():
    off = []
    for op, ranges, units, least in SPECIAL:
        for low, high in ranges:
            x = rng.uniform(low, high, 20000).astype(np.float32)
            (got,), (wanted,) = answers(op, [x], {}, **ON), answers(op, [x], {})
            finite = np.isfinite(wanted)
            assert np.array_equal(got[~finite], wanted[~finite], equal_nan=True)
            error = abs(got.astype(np.float64) - wanted)[finite] / np.spacing(np.maximum(abs(wanted[finite]), np.float32(max(least, 1e-37))))
            if error.max() > units:
                off.append((op, low, high, error.max(), x[finite][error.argmax()]))
    assert not off
    edges = np.array([0, -0., -1, -2, 1, 2, np.inf, -np.inf, np.nan, 1e-40, 1e30], np.float32)
    with np.errstate(over="ignore"):
        halves = edges.astype(np.float16)
    for op in ("Digamma", "Erfinv", "Ndtri"):
        for x in (edges, halves, np.linspace(.1, .9, 50).astype(np.float16)):
            (got,), (wanted,) = answers(op, [x], {}, **ON), answers(op, [x], {})
            np.testing.assert_allclose(got, wanted, rtol=2e-3 if x.itemsize == 2 else 1e-6)


def network(columns):
    """Builds a small net with several kinds of ops. Returns its inputs x and label, its logits and its mean loss."""
    x, label = tw.placeholder("float32", [None, columns]), tw.placeholder("int64", [None])
    w1, b1 = tw.Variable(np.linspace(-.3, .3, columns * 20, dtype="f").reshape(columns, 20)), tw.Variable(np.zeros(20, "f"))
    w2, b2 = tw.Variable(np.linspace(.2, -.2, 20 * 10, dtype="f").reshape(20, 10)), tw.Variable(np.zeros(10, "f"))
    hidden = tw.ops.tanh(tw.ops.bias_add(tw.ops.mat_mul(x, w1), b1))
    logits = tw.ops.bias_add(tw.ops.mat_mul(hidden, w2), b2)
    loss, _ = tw.ops.sparse_softmax_cross_entropy_with_logits(logits, label)
    return x, label, logits, tw.ops.mean(loss, [0])


@needs_device
def test_gradients_and_training_agree_with_the_cpu():
    value, label = np.random.default_rng(1).standard_normal((50, 12)).astype("f"), np.arange(50) % 10
    losses = []
    for options in ({}, ON):
        with tw.Graph(tw.Runtime()) as g:  # with variables of its own
            x, wanted, _, loss = network(12)
            step, initializer = tw.train.Adam(0.01).minimize(loss), tw.initializer()
        session = tw.Session(g, **options)
        session.run(initializer)
        losses.append([session.run([loss, step], {x: value, wanted: label})[0] for _ in range(20)])
    assert np.allclose(*losses, rtol=1e-4) and losses[1][-1] < 0.9 * losses[1][0]


@needs_device
def test_digits_are_learnt_as_well_as_on_the_cpu():
    path = pathlib.Path(os.environ.get("THALWEG_DATA_PATH", "")) / "digits.csv"
    if not path.exists():
        pytest.skip(f"{path} is not there; run tools/setup")
    lines = np.loadtxt(path, delimiter=",", dtype=np.float32)
    pictures, labels, test = lines[:, :64] / 16, lines[:, 64].astype(np.int64), np.arange(len(lines)) % 5 == 0
    accuracy = []
    for options in ({}, ON):
        with tw.Graph(tw.Runtime()) as g:  # with variables of its own
            x, label = tw.placeholder("float32", [None, 64]), tw.placeholder("int64", [None])
            draw = np.random.default_rng(7)
            filters, hidden, output = (tw.Variable((draw.standard_normal(s) * d).astype("f")) for s, d in
                                       (((3, 3, 1, 16), .47), ((256, 64), .1), ((64, 10), .12)))
            biases = [tw.Variable(np.zeros(n, "f")) for n in (16, 64, 10)]
            y = tw.ops.conv2d(tw.ops.reshape(x, [-1, 8, 8, 1]), filters, strides=[1, 1, 1, 1], padding="SAME")
            y = tw.ops.max_pool(tw.ops.relu(tw.ops.bias_add(y, biases[0])), ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
            y = tw.ops.relu(tw.ops.bias_add(tw.ops.mat_mul(tw.ops.reshape(y, [-1, 256]), hidden), biases[1]))
            logits = tw.ops.bias_add(tw.ops.mat_mul(y, output), biases[2])
            loss = tw.ops.mean(tw.ops.sparse_softmax_cross_entropy_with_logits(logits, label)[0], [0])
            step, initializer = tw.train.Adam(0.004).minimize(loss), tw.initializer()
            found = tw.ops.arg_max(logits, 1)
        session = tw.Session(g, **options)
        session.run(initializer)
        order = np.random.default_rng(3)
        for _ in range(6):
            for rows in np.array_split(order.permutation(np.flatnonzero(~test)), 22):
                session.run([step], {x: pictures[rows], label: labels[rows]})
        accuracy.append(100 * np.mean(session.run(found, {x: pictures[test]}) == labels[test]))
    assert accuracy[1] > 95 and abs(accuracy[1] - accuracy[0]) < 1.5, accuracy


@needs_device
def test_the_character_model_of_the_example_learns_as_on_the_cpu():
    path = pathlib.Path(os.environ["THALWEG_SOURCE_DIR"]) / "bindings/python/examples/char_lm.py"
    example = importlib.util.module_from_spec(spec := importlib.util.spec_from_file_location("char_lm", path))
    spec.loader.exec_module(example)
    example.tw = types.SimpleNamespace(**vars(tw) | dict(Graph=lambda: tw.Graph(tw.Runtime())))  # with variables of its own
    text = np.add.outer(np.arange(20 * 8 + 1) ** 2 // 3, np.arange(example.STREAMS)).astype(np.int32) % 7
    curves = []
    for options in ({}, ON | dict(fallback="allow")):  # the loop itself runs on the CPU
        model, curve = example.Model(7, 16, 1), []
        session = tw.Session(model.graph, **options)
        session.run(model.init)
        for step in range(20):
            x, y = (text[8 * step + k:8 * step + k + 8] for k in (0, 1))
            session.run(model.step, {model.x: x, model.y: y})
            curve.append(session.run(model.smoothed))
        curve.append(session.run(model.held_out_loss, {model.x: x, model.y: y}))
        with model.graph:
            weights = model.weights.read()
        curves.append([*curve, *session.run(weights).ravel()])
    assert np.allclose(*curves, rtol=1e-3, atol=1e-4) and curves[1][19] < curves[1][0]


# ---- Nodes that kernels decline ----

def declined():
    """Returns (op, inputs, attributes, what the kernel says)."""
    wide = np.zeros((1,) * 8 + (3,), np.float32) + f(3)
    return [("MirrorPad", [wide, i(*[[0, 0]] * 8, [1, 2])], dict(mode=mode), "the input has 9 axes; the most are 8")
            for mode in ("REFLECT", "SYMMETRIC")]


@needs_device
@pytest.mark.parametrize("op, inputs, attrs, why", declined(), ids=lambda v: v if isinstance(v, str) and v.isalnum() else "")
def test_what_a_kernel_declines_runs_on_the_cpu_if_the_session_lets_it(op, inputs, attrs, why):
    with tw.Graph() as g:
        x = tw.placeholder("float32", inputs[0].shape)
        y = g.op(op, x, *map(g.constant, inputs[1:]), **attrs)
    feeds = {x: inputs[0]}
    with pytest.raises(tw.errors.NotFoundError) as refused:
        tw.Session(g, **ON).run(y, feeds)
    assert why in str(refused.value) and "declines" in str(refused.value)
    session = tw.Session(g, **ON | dict(fallback="allow"))
    there = session.run(y, feeds)
    assert [why in n["why"] for n in session.plan(y, {x: list(inputs[0].shape)})["fallbacks"]] == [True]
    assert np.array_equal(there, tw.Session(g, device="CPU:0").run(y, feeds))


# ---- Fusion ----

def chain(x, y):
    h = tw.ops.tanh(x * 2.0 + y) * x
    return tw.ops.maximum(h - 0.5, tw.ops.sigmoid(y)), tw.ops.relu(h)


@needs_device
def test_a_fused_cast_cuts_mantissas_where_it_is_to():
    with tw.Graph() as g:
        x = tw.placeholder("float64", [None])
        fetches = [tw.ops.cast(tw.ops.abs(x) * 1.1, DstT="float32", Truncate=cut) * 3.0 for cut in (True, False)]
    feeds = {x: f(1000).astype("float64") / 3}
    session, single = tw.Session(g, compilers="require", **ON), tw.Session(g, compilers="off", **ON)
    cut, rounded = session.run(fetches, feeds)
    assert all(np.array_equal(a, b) for a, b in zip((cut, rounded), single.run(fetches, feeds)))
    assert (cut <= rounded).all() and (cut < rounded).sum() > 300  # truncation, with which rounding agrees half of the time
    assert "fuse" in [n["op"] for n in session.plan(fetches, {x: [1000]})["nodes"]]


@needs_device
def test_chains_are_one_function_with_the_results_of_the_single_nodes():
    with tw.Graph() as g:
        x, y = tw.placeholder("float32", [None, 300]), tw.placeholder("float32", [300])
        fetches = list(chain(x, y))
    feeds = {x: f(40, 300), y: f(300)}
    session, single = tw.Session(g, compilers="require", **ON), tw.Session(g, compilers="off", **ON)
    for size in (40, 7):
        feeds[x] = f(size, 300)
        assert all(np.array_equal(a, b) for a, b in zip(session.run(fetches, feeds), single.run(fetches, feeds)))
    plan = session.plan(fetches, {x: [40, 300], y: [300]})
    assert sorted(n["op"] for n in plan["nodes"] if n["op"] != "copy") == ["Sigmoid", "fuse"]  # Sigmoid has another shape
