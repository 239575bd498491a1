"""vmap: every op with a rule against a loop over the examples; axes, nesting, gradients; what has no rule."""
import pathlib
import re
import sys
import warnings

import numpy as np
import pytest

import thalweg as tw
from thalweg import batching

B = 3
rng = np.random.default_rng(7)


def floats(*shape):
    """Numbers between 0.1 and 0.9, which every op takes."""
    return rng.uniform(0.1, 0.9, shape).astype(np.float32)


def signed(*shape):
    return rng.normal(size=shape).astype(np.float32)


def whole(*shape, low=1, high=6):
    return rng.integers(low, high, shape).astype(np.int32)


def truth(*shape):
    return rng.integers(0, 2, shape).astype(bool)


def positive(*shape):
    """Symmetric positive definite matrices."""
    a = rng.normal(size=shape).astype(np.float64)
    return a @ np.swapaxes(a, -1, -2) + 3 * np.eye(shape[-1])


def complexes(*shape):
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(np.complex64)


# Each case: which inputs are batched, makers of one example of each input, and the attributes. `list` stands for an input that is a list.
CASES = {}


def case(ops, *inputs, batched=None, **attributes):
    """inputs: functions without arguments that make one example, or fixed values; batched: for each, True or False, or several of these."""
    for op in ops.split():
        choices = batched or [[callable(x) for x in inputs]]
        CASES.setdefault(op, []).extend((inputs, choice, attributes) for choice in choices)


UNARY = ("Abs Neg Sign Square Sqrt Rsqrt Reciprocal Inv Exp Expm1 Log Log1p Sin Cos Tanh Sigmoid Erf Erfc Floor Ceil Round Rint IsNan IsInf IsFinite "
         "LeakyRelu Elu Selu Softplus Softsign Relu Relu6 Tan Asin Acos Atan Sinh Cosh Asinh Atanh Lgamma Digamma Erfinv Ndtri "
         "Identity StopGradient PreventGradient ZerosLike OnesLike FakeQuantWithMinMaxArgs Softmax LogSoftmax")
case(UNARY, lambda: floats(2, 4))
case("Acosh", lambda: floats(2) + 1)
case("LogicalNot", lambda: truth(2))
case("Conj Real Imag Angle ComplexAbs FFT IFFT", lambda: complexes(4))
case("FFT2D IFFT2D", lambda: complexes(2, 4))
case("FFT3D IFFT3D", lambda: complexes(2, 2, 4))
case("Invert", lambda: whole(3))
case("Bucketize", lambda: floats(3), boundaries=[0.3, 0.6])
case("Cast", lambda: floats(3), DstT="float64")
case("CheckNumerics", lambda: floats(3), message="bad")
case("RGBToHSV HSVToRGB", lambda: floats(2, 3))
case("Cholesky MatrixInverse MatrixDeterminant LogMatrixDeterminant", lambda: positive(3, 3))
case("Qr", lambda: floats(3, 2))
case("Svd SelfAdjointEigV2", lambda: positive(3, 3))
case("TopKV2", lambda: floats(5), np.int32(2))
case("NthElement", lambda: floats(5), np.int32(1))
case("MatrixBandPart", lambda: floats(3, 3), np.int64(1), np.int64(0))
case("RFFT", lambda: floats(8), np.array([8], np.int32))
case("IRFFT", lambda: complexes(5), np.array([8], np.int32))
case("RFFT2D", lambda: floats(4, 8), np.array([4, 8], np.int32))
case("IRFFT2D", lambda: complexes(4, 5), np.array([4, 8], np.int32))
case("AdjustHue AdjustSaturation AdjustContrastv2", lambda: floats(2, 2, 3), np.float32(0.3))
case("MatrixDiagV3", lambda: floats(3), np.int32(0), np.int32(3), np.int32(3), np.float32(0))
case("MatrixDiagPartV3", lambda: floats(3, 3), np.int32(0), np.float32(0))
EITHER = [[True, True], [True, False], [False, True]]
BINARY = ("AddV2 Sub Mul Div RealDiv DivNoNan Pow Maximum Minimum SquaredDifference Equal NotEqual Less LessEqual Greater GreaterEqual "
          "Complex Atan2 MulNoNan Xdivy Xlogy Xlog1py Add Igamma Igammac IgammaGradA")
case(BINARY, lambda: floats(2, 4), lambda: floats(2, 4), batched=EITHER)
case("AddV2 Mul Maximum", lambda: floats(2, 4), lambda: floats(4), batched=EITHER)
case("AddV2 Sub Less", lambda: floats(), lambda: floats(3, 4), batched=EITHER)
case("FloorDiv FloorMod TruncateDiv TruncateMod Mod BitwiseAnd BitwiseOr BitwiseXor LeftShift RightShift", lambda: whole(4), lambda: whole(2, 4),
     batched=EITHER)
case("LogicalAnd LogicalOr", lambda: truth(4), lambda: truth(2, 1), batched=EITHER)
case("Polygamma", lambda: np.full(3, 1, np.float32), lambda: floats(3), batched=EITHER)
case("Zeta", lambda: floats(3) + 2, lambda: floats(3) + 1, batched=EITHER)
case("SelectV2", lambda: truth(4), lambda: floats(2, 4), lambda: floats(4), batched=[[1, 1, 1], [1, 0, 0], [0, 1, 0]])
case("SqrtGrad RsqrtGrad ReciprocalGrad InvGrad TanhGrad SigmoidGrad LeakyReluGrad EluGrad SeluGrad SoftplusGrad SoftsignGrad ReluGrad "
     "Relu6Grad ApproximateEqual FakeQuantWithMinMaxArgsGradient", lambda: floats(2, 3), lambda: floats(2, 3), batched=EITHER)
case("CholeskyGrad", lambda: np.linalg.cholesky(positive(3, 3)), lambda: positive(3, 3), batched=EITHER)
case("MatrixSolve MatrixTriangularSolve", lambda: positive(3, 3), lambda: positive(3, 3)[:, :2], batched=EITHER)
case("MatrixSetDiagV3", lambda: floats(3, 3), lambda: floats(3), np.int32(0), batched=[[1, 1, 0], [1, 0, 0], [0, 1, 0]])
case("Select", lambda: truth(2, 3), lambda: floats(2, 3), lambda: floats(2, 3), batched=[[1, 1, 1], [0, 1, 0]])
case("Select", lambda: truth(2), lambda: floats(2, 3), lambda: floats(2, 3), batched=[[1, 1, 1], [0, 1, 0]])
case("AddN", [lambda: floats(2), lambda: floats(2), lambda: floats(2)], batched=[[[1, 1, 1]], [[0, 1, 0]]])
case("AccumulateNV2", [lambda: floats(2), lambda: floats(2)], batched=[[[1, 1]], [[0, 1]]], shape=[2])
case("ClipByValue", lambda: signed(4), lambda: -floats(), lambda: floats(), batched=[[1, 0, 0], [1, 1, 1]])
for axes in (np.array([0], np.int32), np.array([-1], np.int32), np.array([0, 2], np.int32)):
    case("Sum Mean Prod Max Min EuclideanNorm", lambda: floats(2, 3, 2), axes)
    case("All Any", lambda: truth(2, 3, 2), axes)
    case("ReverseV2", lambda: floats(2, 3, 2), axes)
for axis in (np.int32(0), np.int32(-1)):
    case("ArgMax ArgMin Cumsum Cumprod ExpandDims", lambda: floats(3, 4), axis)
    case("Roll", lambda: floats(3, 4), np.int32(1), axis)
    case("ConcatV2", [lambda: floats(2, 2), lambda: floats(2, 2)], axis, batched=[[[1, 1], 0], [[1, 0], 0]])
    case("Pack", [lambda: floats(2), lambda: floats(2)], batched=[[[1, 1]], [[0, 1]]], axis=int(axis))
    case("Unpack", lambda: floats(2, 2), num=2, axis=int(axis))
    case("Split", axis, lambda: floats(4, 4), num_split=2)
    case("SplitV", lambda: floats(4, 4), np.array([1, 3], np.int32), axis, num_split=2)
    case("OneHot", lambda: whole(3, low=0), np.int32(6), np.float32(1), np.float32(0), axis=int(axis))
    case("GatherV2", lambda: floats(3, 3), lambda: whole(2, low=0, high=3), axis, batched=[[1, 1, 0], [1, 0, 0], [0, 1, 0]])
case("GatherV2", lambda: floats(2, 3), lambda: whole(2, 2, low=0, high=3), np.int32(1), batched=[[1, 1, 0], [1, 0, 0], [0, 1, 0]], batch_dims=1)
case("Gather", lambda: floats(3, 3), lambda: whole(2, low=0, high=3), batched=EITHER)
case("L2Loss", lambda: floats(2, 3))
case("Reshape", lambda: floats(2, 3), np.array([3, 2], np.int32))
case("Reshape", lambda: floats(2, 3), np.array([-1], np.int32))
case("BroadcastTo", lambda: floats(3), np.array([2, 3], np.int32))
case("Fill", np.array([2, 3], np.int32), lambda: floats())
case("Transpose", lambda: floats(2, 3, 4), np.array([2, 0, 1], np.int32))
case("Squeeze", lambda: floats(1, 3, 1))
case("Squeeze", lambda: floats(1, 3, 1), squeeze_dims=[0])
case("Shape Rank Size", lambda: floats(2, 3))
case("EnsureShape", lambda: floats(2, 3), shape=[None, 3])
case("ShapeN", [lambda: floats(2), lambda: floats(3, 1)], batched=[[[1, 1]]])
case("Slice", lambda: floats(4, 3), np.array([1, 0], np.int32), np.array([2, -1], np.int32))
case("StridedSlice", lambda: floats(4, 3), np.array([3, 1], np.int32), np.array([0, 2], np.int32), np.array([-2, 1], np.int32), shrink_axis_mask=2)
case("StridedSlice", lambda: floats(4, 3), np.array([0, 1], np.int32), np.array([0, 2], np.int32), np.array([1, 1], np.int32), ellipsis_mask=1)
case("Tile", lambda: floats(2, 3), np.array([2, 1], np.int32))
case("Pad", lambda: floats(2, 3), np.array([[1, 0], [0, 2]], np.int32))
case("PadV2", lambda: floats(2), np.array([[1, 2]], np.int32), np.float32(9))
case("MirrorPad", lambda: floats(4), np.array([[1, 2]], np.int32), mode="REFLECT")
case("MatMul", lambda: floats(2, 3), lambda: floats(3, 4), batched=EITHER)
case("MatMul", lambda: floats(3, 2), lambda: floats(4, 3), batched=EITHER, transpose_a=True, transpose_b=True)
case("BatchMatMul", lambda: floats(2, 2, 3), lambda: floats(2, 3, 4), batched=[[1, 1]])
case("BatchMatMulV2", lambda: floats(2, 3), lambda: floats(5, 3, 4), batched=EITHER)
case("BatchMatMulV3", lambda: floats(5, 2, 3), lambda: floats(3, 4), batched=EITHER, Tout="float32")
case("Einsum", [lambda: floats(2, 3), lambda: floats(3, 4)], batched=[[[1, 1]], [[1, 0]], [[0, 1]]], equation="ij,jk->ik")
case("BiasAdd", lambda: floats(2, 3), lambda: floats(3), batched=EITHER)
case("BiasAddGrad", lambda: floats(2, 4, 3))
IMAGE = dict(strides=[1, 1, 1, 1], padding="SAME")
POOL = dict(ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
case("Conv2D", lambda: signed(2, 5, 5, 3), signed(3, 3, 3, 4), **IMAGE)
case("DepthwiseConv2dNative", lambda: signed(2, 5, 5, 3), signed(3, 3, 3, 2), **IMAGE)
case("Conv2DBackpropInput", np.array([2, 5, 5, 3], np.int32), signed(3, 3, 3, 4), lambda: signed(2, 5, 5, 4), **IMAGE)
case("Conv3D", lambda: signed(1, 3, 4, 4, 2), signed(2, 2, 2, 2, 3), strides=[1] * 5, padding="SAME")
case("MaxPool AvgPool", lambda: signed(2, 4, 4, 3), **POOL)
case("MaxPool3D AvgPool3D", lambda: signed(1, 4, 4, 4, 2), ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="VALID")
case("MaxPoolGrad", lambda: signed(2, 4, 4, 3), lambda: signed(2, 2, 2, 3), lambda: signed(2, 2, 2, 3), **POOL)
case("LRN", lambda: signed(2, 3, 3, 4))
case("ResizeBilinear ResizeNearestNeighbor ResizeArea ResizeBicubic", lambda: signed(2, 3, 3, 2), np.array([5, 4], np.int32))
case("SpaceToDepth", lambda: signed(2, 4, 4, 1), block_size=2)
case("DepthToSpace", lambda: signed(2, 2, 2, 4), block_size=2)
case("ExtractImagePatches", lambda: signed(1, 4, 4, 1), ksizes=[1, 2, 2, 1], strides=[1, 2, 2, 1], rates=[1, 1, 1, 1], padding="VALID")
case("SoftmaxCrossEntropyWithLogits", lambda: signed(4, 5), lambda: floats(4, 5), batched=EITHER)
case("SparseSoftmaxCrossEntropyWithLogits", lambda: signed(4, 5), lambda: whole(4, low=0, high=5), batched=EITHER)
case("InTopKV2", lambda: signed(4, 5), lambda: whole(4, low=0, high=5), np.int32(2), batched=[[1, 1, 0], [1, 0, 0]])

ALONE = {"Svd": 1, "SelfAdjointEigV2": 1, "Qr": 0}  # vectors are unique up to their signs: the number of outputs to compare
NO_CASE = {"Snapshot"}


def made(x, batched):
    """A batch of examples where that is wanted, else one example."""
    if isinstance(x, list):
        return [made(y, b) for y, b in zip(x, batched)]
    if not callable(x):
        return np.stack([x] * B) if batched else x
    return np.stack([x() for _ in range(B)]) if batched else x()


def flat(y):
    return [z for part in y for z in flat(part)] if isinstance(y, (list, tuple)) else [y]


def example(x, batched, i):
    return [example(y, b, i) for y, b in zip(x, batched)] if isinstance(x, list) else x[i] if batched else x


def check(op, inputs, batched, attributes, where):
    """Compares vmap of one op with a loop."""
    arrays = [made(x, b) for x, b in zip(inputs, batched)]
    leaves = [(x, b) for x, b in zip(flat(arrays), flat(list(batched)))]

    def apply(*values):
        it = iter(values)
        return flat(where().op(op, *([next(it) for _ in x] if isinstance(x, list) else next(it) for x in arrays), **attributes))

    axes = [0 if b else None for _, b in leaves]
    fixed = [i for i, (x, b) in enumerate(leaves) if not b]

    def of_batched(*values):
        it = iter(values)
        return apply(*(leaves[i][0] if i in fixed else next(it) for i in range(len(leaves))))

    got = tw.vmap(of_batched, [0] * (len(leaves) - len(fixed)))(*(x for x, b in leaves if b))
    also = tw.vmap(apply, axes)(*(x for x, _ in leaves)) if op not in FIXED_ONLY else got
    expected = [np.stack(column) for column in zip(*([np.asarray(y.numpy()) for y in apply(*(example(x, b, i) for x, b in leaves))] for i in range(B)))]
    for found in (got, also):
        for k, (a, e) in enumerate(zip(flat(found), expected, strict=True)):
            if k < ALONE.get(op, 99):
                assert a.numpy().dtype == e.dtype and a.numpy().shape == e.shape, (op, k)
                np.testing.assert_allclose(a.numpy(), e, rtol=3e-4, atol=2e-5, err_msg=op)


FIXED_ONLY = {"Split", "Conv2DBackpropInput", "Fill"}  # inputs that the same rule wants to know


def test_every_op_with_a_rule_gives_what_a_loop_gives():
    ops = tw.vmap_ops()
    assert len([op for op in ops if op in CASES]) >= 150
    missing = [op for op in ops if op not in CASES and op not in batching.DRAWS and op not in NO_CASE]
    assert not missing, missing
    with tw.Eager() as eager, warnings.catch_warnings():
        warnings.simplefilter("error", tw.VmapWarning)
        for op in ops:
            for inputs, batched, attributes in CASES.get(op, ()):
                try:
                    check(op, inputs, batched, attributes, lambda: here(eager))
                except Exception as e:
                    raise AssertionError(f"{op}, batched {batched}, {attributes}: {type(e).__name__}: {e}") from e


def here(eager):
    """The graph that vmap traces into, or the context."""
    try:
        return tw.current_graph()
    except RuntimeError:
        return eager


def test_the_guide_lists_every_op_with_a_rule():
    guide = next(p / "vmap.md" for p in (pathlib.Path(tw.__file__).parents[1], pathlib.Path(__file__).parents[2] / "bindings/python")
                 if (p / "vmap.md").exists())
    listed = set(re.findall(r"`([A-Z][A-Za-z0-9]+)`", guide.read_text(encoding="utf-8")))
    assert listed == set(tw.vmap_ops())


def test_axes_names_and_values_that_are_the_same_for_all():
    with tw.Eager():
        x, w = floats(4, 2, 3), floats(2)
        f = lambda a, b: (a * b).sum()  # noqa: E731
        np.testing.assert_allclose(tw.vmap(f, [1, None])(x[0], w).numpy(), [(x[0][:, i] * w).sum() for i in range(3)], rtol=1e-6)
        moved = tw.vmap(lambda a: a * 2, 1, 2)(x)
        np.testing.assert_array_equal(moved.numpy(), np.moveaxis(x * 2, 1, 2))
        named = tw.vmap(lambda a, k: {"sum": a["v"].sum() + k, "same": 1.0})({"v": x}, k=floats(4))
        assert named["sum"].shape == (4,) and named["same"].numpy().tolist() == [1] * 4


def test_nested_and_with_gradients():
    with tw.Eager():
        a, b = floats(3, 5), floats(4, 5)
        distances = tw.vmap(tw.vmap(lambda x, y: ((x - y) ** 2).sum(), [None, 0]), [0, None])(a, b)
        np.testing.assert_allclose(distances.numpy(), ((a[:, None] - b) ** 2).sum(-1), rtol=1e-5)
        each = tw.vmap(tw.grad(lambda w, x: (tw.ops.tanh(w * x) ** 2).sum()), [None, 0])(b[0], a)
        expected = np.stack([2 * np.tanh(b[0] * x) * (1 - np.tanh(b[0] * x) ** 2) * x for x in a])
        np.testing.assert_allclose(each.numpy(), expected, rtol=1e-4)
        total = tw.grad(lambda w: tw.vmap(lambda x: (w * x).sum())(a).sum())(b[0])
        np.testing.assert_allclose(total.numpy(), a.sum(0), rtol=1e-5)


def test_per_example_gradients_of_a_network():
    with tw.Eager():
        tw.random.seed(2)
        net = tw.nn.Sequential(tw.nn.Dense(4, "tanh"), tw.nn.Dense(1))
        x = floats(5, 3)
        net(x)
        outputs = tw.vmap(lambda row: net(row[None])[0, 0])(x)
        np.testing.assert_allclose(outputs.numpy(), net(x).numpy()[:, 0], rtol=1e-5)


def test_in_graphs_of_known_and_unknown_batches():
    for size in (4, None):
        with tw.Graph() as g:
            x = tw.placeholder("float32", [size, 3, 2])
            w = tw.Variable(floats(2, 5), name="w")
            y = tw.vmap(lambda row: tw.ops.softmax(tw.ops.mat_mul(row, w)).reshape(-1) + row.sum())(x)
            slope = tw.gradients(y.sum(), x)
        fed = floats(4, 3, 2)
        with tw.Session(g) as s:
            s.run(g.initializer())
            got, weight, dx = s.run([y, w, slope], {x: fed})
        z = fed @ weight
        p = np.exp(z) / np.exp(z).sum(-1, keepdims=True)
        np.testing.assert_allclose(got, p.reshape(4, -1) + fed.sum((1, 2))[:, None], rtol=1e-5)
        np.testing.assert_allclose(dx, np.full_like(fed, 15), rtol=1e-4)


def test_each_example_draws_for_itself():
    with tw.Eager():
        found = tw.vmap(lambda x: x * 0 + tw.ops.random_uniform([2], dtype="float32"))(floats(4, 2)).numpy()
        assert len(np.unique(found)) == 8


def test_an_op_without_a_rule_runs_for_each_example_and_says_so_once():
    sys.modules["thalweg.vmap"]._told.clear()
    assert "SegmentSum" not in tw.vmap_ops()
    x, ids = floats(3, 4), np.array([0, 0, 1, 1], np.int32)
    f = tw.vmap(lambda a: tw.ops.segment_sum(a, ids))
    with tw.Eager():
        with pytest.warns(tw.VmapWarning, match="op SegmentSum runs for each of the 3 examples"):
            first = f(x)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            f(x)
        np.testing.assert_allclose(first.numpy(), np.stack([x[:, :2].sum(1), x[:, 2:].sum(1)], 1), rtol=1e-6)


def test_wrong_uses_are_refused():
    with tw.Eager():
        with pytest.raises(ValueError, match="the batches have 2 and 3 examples"):
            tw.vmap(lambda a, b: a + b)(floats(2), floats(3))
        with pytest.raises(ValueError, match="has no axis for the batch; give it in_axes None"):
            tw.vmap(lambda a, b: a + b)(floats(2), np.float32(1))
        with pytest.raises(ValueError, match="there are 1 arguments, but in_axes has 2"):
            tw.vmap(lambda a: a, [0, 0])(floats(2))
        w = tw.Variable(1.0)
        with pytest.raises(TypeError, match="changes state"):
            tw.vmap(lambda a: [a, w.assign(a)][0])(floats(2))
