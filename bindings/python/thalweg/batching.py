"""How each op works on batched inputs, for vmap: the values of all examples, along a new first axis.

A rule gets the call (a Call) and returns the outputs, batched in the same way. RULES has one for each op that has any."""
import string
from collections.abc import Callable, Sequence
from typing import Any, Optional

import numpy as np

from .output import Output


class Call:
    """An operation to be batched.

    op, attributes: as of the operation.   inputs: in the order of its schema; a list where an argument is one.   batched: whether each has the
    batch axis, in the same form.   shapes: the shapes of one example, in the same form.   where: the graph or context.   size: of the batch."""

    def __init__(self, where: Any, op: str, inputs: list[Any], batched: list[Any], shapes: list[Any], attributes: dict[str, Any], size: Any):
        self.where, self.op, self.inputs, self.batched, self.shapes = where, op, inputs, batched, shapes
        self.attributes, self.size = attributes, size

    def run(self, op: str, *inputs: Any, **attributes: Any) -> Any:
        return self.where.op(op, *inputs, **attributes)

    def again(self, *inputs: Any, **changed: Any) -> Any:
        """The same op on other inputs."""
        return self.run(self.op, *inputs, **{**self.attributes, **changed})

    def rank(self, i: int) -> int:
        """Of one example of input i."""
        if self.shapes[i] is None:
            raise Unknown(f"the rank of input {i} is unknown")
        return len(self.shapes[i])

    def shape(self, i: int) -> tuple[int, ...]:
        """Of one example of input i, all sizes known."""
        shape = self.shapes[i]
        if shape is None or None in shape:
            raise Unknown(f"the shape of input {i} is {shape}")
        return tuple(shape)

    def sizes(self, *parts: Any) -> Any:
        """A vector of sizes from numbers and vectors, as a value."""
        if not any(isinstance(p, Output) for p in parts) and isinstance(self.size, int):
            return np.asarray([n for p in parts for n in (p if isinstance(p, (list, tuple)) else [p])], np.int32)
        vectors = []
        for p in parts:
            vectors.append(p if isinstance(p, Output) and p.shape != () else self.run("Reshape", p, [-1]) if isinstance(p, Output)
                           else np.atleast_1d(np.asarray(p, np.int32)))
        kind = next((v.dtype for v in vectors if isinstance(v, Output)), None)
        vectors = [v.astype(kind) if isinstance(v, Output) else self.where.constant(v, kind) for v in vectors]
        return self.run("ConcatV2", vectors, 0) if len(vectors) > 1 else vectors[0]

    def lined(self, i: int, rank: int) -> Any:
        """Input i with ones after the batch axis, so that its examples broadcast as values of that rank."""
        x = self.inputs[i]
        missing = rank - self.rank(i)
        if not self.batched[i] or missing == 0:
            return x
        return self.run("Reshape", x, self.sizes(self.size, [1] * missing, *([list(self.shape(i))] if self.shape(i) else [])))

    def full(self, i: int) -> Any:
        """Input i with a batch axis; the same for all examples where it had none."""
        x = self.inputs[i]
        if self.batched[i]:
            return x
        return self.run("BroadcastTo", x, self.sizes(self.size, *([list(self.shape(i))] if self.shape(i) else [])))

    def plain(self, *numbers: int) -> None:
        """Requires inputs to be the same for all examples."""
        for i in numbers:
            if self.batched[i] if not isinstance(self.batched[i], list) else any(self.batched[i]):
                raise Unknown(f"input {i} differs between the examples")


class Unknown(Exception):
    """A rule does not serve a call, which then is made for each example."""


Rule = Callable[[Call], Any]
RULES: dict[str, Rule] = {}
KINDS: dict[str, str] = {}  # what each rule does, for the list of ops


def _rule(kind: str, *ops: str) -> Callable[[Rule], Rule]:
    def add(rule: Rule) -> Rule:
        for op in ops:
            RULES[op], KINDS[op] = rule, kind
        return rule
    return add


def _ops(text: str) -> list[str]:
    return text.split()


@_rule("element by element, or over the last axes", *_ops(
    "Abs Neg Sign Square Sqrt Rsqrt Reciprocal Inv Exp Expm1 Log Log1p Sin Cos Tanh Sigmoid Erf Erfc Floor Ceil Round Rint IsNan IsInf IsFinite "
    "LogicalNot Conj LeakyRelu Elu Selu Softplus Softsign Relu Relu6 Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Lgamma Digamma Erfinv "
    "Ndtri Real Imag Angle ComplexAbs Invert Bucketize Cast Identity StopGradient PreventGradient CheckNumerics ZerosLike OnesLike "
    "FakeQuantWithMinMaxArgs Softmax LogSoftmax RGBToHSV HSVToRGB FFT IFFT FFT2D IFFT2D FFT3D IFFT3D Cholesky MatrixInverse MatrixDeterminant "
    "LogMatrixDeterminant Qr Svd SelfAdjointEigV2 Snapshot"))
def _same(c: Call) -> Any:
    return c.again(*c.inputs)


@_rule("the first input batched, the others the same for all", *_ops(
    "TopKV2 NthElement MatrixBandPart RFFT IRFFT RFFT2D IRFFT2D AdjustHue AdjustSaturation AdjustContrastv2 MatrixDiagV3 MatrixDiagPartV3"))
def _first(c: Call) -> Any:
    c.plain(*range(1, len(c.inputs)))
    return c.again(*c.inputs)


@_rule("element by element, broadcasting", *_ops(
    "Add AddV2 Sub Mul Div RealDiv DivNoNan FloorDiv FloorMod Pow Maximum Minimum SquaredDifference Equal NotEqual Less LessEqual Greater "
    "GreaterEqual LogicalAnd LogicalOr Complex Atan2 MulNoNan Xdivy Xlogy Xlog1py TruncateDiv TruncateMod Mod BitwiseAnd BitwiseOr BitwiseXor "
    "LeftShift RightShift Polygamma Zeta Igamma Igammac IgammaGradA SelectV2"))
def _broadcast(c: Call) -> Any:
    rank = max(c.rank(i) for i in range(len(c.inputs)))
    return c.again(*(c.lined(i, rank) for i in range(len(c.inputs))))


@_rule("element by element, of equal shapes", *_ops(
    "SqrtGrad RsqrtGrad ReciprocalGrad InvGrad TanhGrad SigmoidGrad LeakyReluGrad EluGrad SeluGrad SoftplusGrad SoftsignGrad ReluGrad "
    "Relu6Grad ApproximateEqual FakeQuantWithMinMaxArgsGradient CholeskyGrad MatrixSolve MatrixTriangularSolve MatrixSetDiagV3"))
def _equal(c: Call) -> Any:
    if c.op == "MatrixSetDiagV3":
        c.plain(2)
        return c.again(c.full(0), c.full(1), c.inputs[2])
    return c.again(*(c.full(i) for i in range(len(c.inputs))))


@_rule("element by element, of equal shapes", "Select")
def _select(c: Call) -> Any:
    if c.rank(0) != c.rank(1):
        return c.run("SelectV2", c.run("Reshape", c.full(0), c.sizes(c.size, list(c.shape(0)), [1] * (c.rank(1) - c.rank(0)))), c.full(1), c.full(2))
    return c.run("SelectV2", *(c.full(i) for i in range(3)))


@_rule("element by element, of equal shapes", "AddN", "AccumulateNV2")
def _add_n(c: Call) -> Any:
    parts = _each(c, 0)
    return c.run("AddN", [parts.full(i) for i in range(len(parts.inputs))])


@_rule("element by element, broadcasting", "ClipByValue")
def _clip(c: Call) -> Any:
    rank = c.rank(0)
    return c.run("Minimum", c.run("Maximum", c.lined(0, rank), c.lined(1, rank)), c.lined(2, rank))


def _each(c: Call, i: int) -> Call:
    """A list argument as the inputs of a call."""
    return Call(c.where, c.op, c.inputs[i], c.batched[i], c.shapes[i], c.attributes, c.size)


# ---- Axes ----

def _shifted(c: Call, axes: Any) -> Any:
    """Axes of one example as axes of the batch; negative ones count from the end, and stay."""
    found = _known(axes)
    if found is not None:
        return np.where(found < 0, found, found + 1).astype(found.dtype)
    return axes + (axes >= 0).astype(axes.dtype)


def _known(x: Any) -> Optional[Any]:
    """The elements of a value that has them already."""
    if not isinstance(x, Output):
        return np.asarray(x)
    if x.graph.computes:
        return np.asarray(x.numpy())
    operation = x.operation
    return operation.attributes["value"].numpy() if operation.type == "Const" else None


@_rule("along axes", *_ops("Sum Mean Prod Max Min All Any EuclideanNorm ArgMax ArgMin Cumsum Cumprod ReverseV2 ExpandDims"))
def _axes(c: Call) -> Any:
    c.plain(1)
    return c.again(c.inputs[0], _shifted(c, c.inputs[1]))


@_rule("along axes", "Roll")
def _roll(c: Call) -> Any:
    c.plain(1, 2)
    return c.again(c.inputs[0], c.inputs[1], _shifted(c, c.inputs[2]))


@_rule("along axes", "L2Loss")
def _l2(c: Call) -> Any:
    x = c.inputs[0]
    return c.run("Sum", c.run("Square", x), np.arange(1, c.rank(0) + 1, dtype=np.int32)) * 0.5


# ---- Shapes ----

@_rule("other shapes", "Reshape")
def _reshape(c: Call) -> Any:
    c.plain(1)
    known = _known(c.inputs[1])
    return c.run("Reshape", c.inputs[0], c.sizes(c.size, list(known.reshape(-1)) if known is not None else c.inputs[1]))


@_rule("other shapes", "BroadcastTo")
def _broadcast_to(c: Call) -> Any:
    c.plain(1)
    known = _known(c.inputs[1])
    if known is None:
        raise Unknown("the shape is known only to a run")
    return c.run("BroadcastTo", c.lined(0, len(known)), c.sizes(c.size, list(known)))


@_rule("other shapes", "Fill")
def _fill(c: Call) -> Any:
    c.plain(0)
    known = _known(c.inputs[0])
    if known is None:
        raise Unknown("the shape is known only to a run")
    return c.run("BroadcastTo", c.lined(1, len(known)), c.sizes(c.size, list(known)))


@_rule("other shapes", "Transpose")
def _transpose(c: Call) -> Any:
    c.plain(1)
    known = _known(c.inputs[1])
    order = c.sizes([0], c.inputs[1] + 1) if known is None else np.concatenate([[0], known + 1]).astype(np.int32)
    return c.run("Transpose", c.inputs[0], order)


@_rule("other shapes", "Squeeze")
def _squeeze(c: Call) -> Any:
    axes = list(c.attributes.get("squeeze_dims") or [])
    axes = axes or [i for i, n in enumerate(c.shape(0)) if n == 1]
    return c.run("Squeeze", c.inputs[0], squeeze_dims=[a + (a >= 0) for a in axes]) if axes else c.inputs[0]


@_rule("other shapes", "Shape")
def _shape(c: Call) -> Any:
    return c.again(c.inputs[0])[1:], False


@_rule("other shapes", "Rank")
def _rank(c: Call) -> Any:
    return c.where.constant(c.rank(0), "int32"), False


@_rule("other shapes", "Size")
def _size(c: Call) -> Any:
    return c.where.constant(int(np.prod(c.shape(0))), c.attributes.get("out_type", "int32")), False


@_rule("other shapes", "EnsureShape")
def _ensure(c: Call) -> Any:
    shape = c.attributes["shape"]
    return c.run("EnsureShape", c.inputs[0], shape=None if shape is None else (None, *shape))


@_rule("parts and joints", "ConcatV2")
def _concat(c: Call) -> Any:
    c.plain(1)
    parts = _each(c, 0)
    return c.run("ConcatV2", [parts.full(i) for i in range(len(parts.inputs))], _shifted(c, c.inputs[1]))


@_rule("parts and joints", "Pack")
def _pack(c: Call) -> Any:
    parts, axis = _each(c, 0), c.attributes.get("axis", 0)
    return c.run("Pack", [parts.full(i) for i in range(len(parts.inputs))], axis=axis + (axis >= 0))


@_rule("parts and joints", "Unpack")
def _unpack(c: Call) -> Any:
    axis = c.attributes.get("axis", 0)
    return c.run("Unpack", c.inputs[0], num=c.attributes["num"], axis=axis + (axis >= 0))


@_rule("parts and joints", "Split")
def _split(c: Call) -> Any:
    c.plain(0)
    return c.run("Split", _shifted(c, c.inputs[0]), c.inputs[1], num_split=c.attributes["num_split"])


@_rule("parts and joints", "SplitV")
def _split_v(c: Call) -> Any:
    c.plain(1, 2)
    return c.run("SplitV", c.inputs[0], c.inputs[1], _shifted(c, c.inputs[2]), num_split=c.attributes["num_split"])


@_rule("parts and joints", "Slice")
def _slice(c: Call) -> Any:
    c.plain(1, 2)
    return c.run("Slice", c.inputs[0], _front(c, 0, c.inputs[1]), _front(c, -1, c.inputs[2]))


def _front(c: Call, first: int, vector: Any) -> Any:
    """The vector with an element before it."""
    known = _known(vector)
    if known is not None:
        return np.concatenate([[first], known]).astype(known.dtype)
    return c.run("ConcatV2", [c.where.constant([first], vector.dtype), vector], 0)


@_rule("parts and joints", "StridedSlice")
def _strided(c: Call) -> Any:
    c.plain(1, 2, 3)
    given = {k: c.attributes.get(k, 0) << 1 for k in ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")}
    given["begin_mask"] |= 1
    given["end_mask"] |= 1
    return c.run("StridedSlice", c.inputs[0], _front(c, 0, c.inputs[1]), _front(c, 0, c.inputs[2]), _front(c, 1, c.inputs[3]), **given)


@_rule("parts and joints", "Tile")
def _tile(c: Call) -> Any:
    c.plain(1)
    return c.run("Tile", c.inputs[0], _front(c, 1, c.inputs[1]))


@_rule("parts and joints", "Pad", "PadV2", "MirrorPad")
def _pad(c: Call) -> Any:
    c.plain(*range(1, len(c.inputs)))
    known = _known(c.inputs[1])
    if known is None:
        raise Unknown("the paddings are known only to a run")
    return c.again(c.inputs[0], np.concatenate([[[0, 0]], known]).astype(known.dtype), *c.inputs[2:])


@_rule("parts and joints", "GatherV2", "Gather")
def _gather(c: Call) -> Any:
    known = _known(c.inputs[2]) if c.op == "GatherV2" else np.zeros((), np.int32)
    if known is None or (len(c.inputs) > 2 and c.batched[2]):
        raise Unknown("the axis is known only to a run")
    dims = c.attributes.get("batch_dims", 0)
    axis = int(known) + (c.rank(0) if int(known) < 0 else 0)
    dims += c.rank(1) if dims < 0 else 0
    params, indices = c.inputs[:2]
    if c.batched[0] and c.batched[1]:
        return c.run("GatherV2", params, indices, np.int32(axis + 1), batch_dims=dims + 1)
    if c.batched[0] and dims == 0:
        return c.run("GatherV2", params, indices, np.int32(axis + 1))
    if not c.batched[0] and axis == 0 and dims == 0:
        return c.run("GatherV2", params, indices, np.int32(0))
    return c.run("GatherV2", c.full(0), c.full(1), np.int32(axis + 1), batch_dims=dims + 1)


@_rule("parts and joints", "OneHot")
def _one_hot(c: Call) -> Any:
    c.plain(1, 2, 3)
    axis = c.attributes.get("axis", -1)
    return c.run("OneHot", *c.inputs, axis=axis + (axis >= 0))


# ---- Products ----

@_rule("products", "MatMul")
def _matmul(c: Call) -> Any:
    a, b = c.attributes.get("transpose_a", False), c.attributes.get("transpose_b", False)
    if c.batched[0] and not c.batched[1] and not a:
        rows, columns = c.shape(0)
        flat = c.run("Reshape", c.inputs[0], [-1, columns])
        product = c.run("MatMul", flat, c.inputs[1], transpose_b=b)
        return c.run("Reshape", product, c.sizes(c.size, [rows], [-1]))
    x, y = c.inputs
    if a:
        x = _turned(c, x, c.batched[0])
    if b:
        y = _turned(c, y, c.batched[1])
    return c.run("BatchMatMulV2", x, y)


def _turned(c: Call, x: Any, batched: bool) -> Any:
    return c.run("Transpose", x, np.asarray([0, 2, 1] if batched else [1, 0], np.int32))


@_rule("products", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def _batch_matmul(c: Call) -> Any:
    rank = max(c.rank(0), c.rank(1))
    given = {k: v for k, v in c.attributes.items() if k in ("adj_x", "adj_y") or (k == "Tout" and c.op.endswith("3"))}
    return c.run("BatchMatMulV3" if c.op.endswith("3") else "BatchMatMulV2", c.lined(0, rank), c.lined(1, rank), **given)


@_rule("products", "Einsum")
def _einsum(c: Call) -> Any:
    equation = c.attributes["equation"]
    equation = (equation.decode() if isinstance(equation, bytes) else equation).replace(" ", "")
    left, _, right = equation.partition("->")
    letter = next(x for x in string.ascii_letters if x not in equation)
    terms = [letter + t if batched else t for t, batched in zip(left.split(","), c.batched[0])]
    return c.run("Einsum", c.inputs[0], equation=",".join(terms) + "->" + letter + right)


@_rule("products", "BiasAdd")
def _bias(c: Call) -> Any:
    first = str(c.attributes.get("data_format", "NHWC")).strip("b'") == "NCHW" and c.rank(0) > 2
    if first:
        raise Unknown("channels are not the last axis")
    if not c.batched[1]:
        return c.run("AddV2", c.inputs[0], c.inputs[1])
    return c.run("AddV2", c.inputs[0], c.lined(1, c.rank(0)))


@_rule("products", "BiasAddGrad")
def _bias_grad(c: Call) -> Any:
    if str(c.attributes.get("data_format", "NHWC")).strip("b'") == "NCHW":
        raise Unknown("channels are not the last axis")
    return c.run("Sum", c.inputs[0], np.arange(1, c.rank(0), dtype=np.int32))


# ---- The batch axis of an op ----

@_rule("the batch axis joins that of the op", *_ops(
    "Conv2D Conv3D DepthwiseConv2dNative MaxPool AvgPool MaxPool3D AvgPool3D LRN ResizeBilinear ResizeNearestNeighbor ResizeArea ResizeBicubic "
    "SpaceToDepth DepthToSpace ExtractImagePatches SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits MaxPoolGrad InTopKV2"))
def _merged(c: Call) -> Any:
    """The examples become rows of the op's own first axis."""
    fixed = {"Conv2D": 1, "Conv3D": 1, "DepthwiseConv2dNative": 1, "ResizeBilinear": 1, "ResizeNearestNeighbor": 1, "ResizeArea": 1,
             "ResizeBicubic": 1, "InTopKV2": 2}.get(c.op, len(c.inputs))
    c.plain(*range(fixed, len(c.inputs)))
    rows = c.shape(0)[0]
    joined = [c.run("Reshape", c.full(i), c.sizes([-1], list(c.shape(i)[1:]))) for i in range(fixed)]
    found = c.again(*joined, *c.inputs[fixed:])

    def apart(y: Any) -> Any:
        shape = y.shape
        if shape is None or None in shape[1:]:
            raise Unknown("the shape of the result is unknown")
        return c.run("Reshape", y, c.sizes(c.size, [rows], list(shape[1:])))

    return apart(found) if isinstance(found, Output) else [apart(y) for y in found]


@_rule("the batch axis joins that of the op", "Conv2DBackpropInput")
def _conv_back(c: Call) -> Any:
    c.plain(0, 1)
    known = _known(c.inputs[0])
    if known is None or not isinstance(c.size, int):
        raise Unknown("the sizes are known only to a run")
    dy = c.run("Reshape", c.inputs[2], c.sizes([-1], list(c.shape(2)[1:])))
    sizes = np.concatenate([[known[0] * c.size], known[1:]]).astype(known.dtype)
    return c.run("Reshape", c.again(sizes, c.inputs[1], dy), c.sizes(c.size, list(known)))


@_rule("other shapes", "ShapeN")
def _shapes(c: Call) -> Any:
    return [y[1:] if b else y for y, b in zip(c.run("ShapeN", c.inputs[0], out_type=c.attributes.get("out_type", "int32")), c.batched[0])], False


DRAWS = {"RandomUniform", "RandomStandardNormal", "TruncatedNormal", "RandomUniformInt"}


def drawn(c: Call) -> Any:
    """Random numbers of each example: the op draws for the whole batch."""
    return c.again(_front(c, c.size, c.inputs[0]) if isinstance(c.size, int) else c.sizes(c.size, c.inputs[0]), *c.inputs[1:])


def covered(ops: Sequence[str]) -> list[str]:
    """The ops of these that have a rule."""
    return sorted(op for op in ops if op in RULES or op in DRAWS)
