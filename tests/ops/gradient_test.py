"""Compares symbolic gradients with central differences, both through the public API. The sum of all outputs, weighted with random
cotangents, is differentiated for every input. Then the gradients, weighted again, are differentiated for the inputs and the cotangents,
which gives the second derivative. While the graph is built, each case knows shapes and index inputs, or only ranks, or nothing.
With THALWEG_TEST_EAGER=1 each case runs without a graph, by tapes (eager_problem.py).

THALWEG_TEST_OPS names the ops to differentiate (default: all); `gradient_test.py PART PARTS` takes every PARTSth op, from the PARTth on."""
import os
import sys

import numpy as np

import cases
import tw
from arrays import i32, i64
from declare import SMOOTH, declared, uses
from undeclared import UNDECLARED
from thalweg import SparseGradient, gradients

rng = np.random.default_rng(11)
covered = set()
ONLY = os.environ.get("THALWEG_TEST_OPS", "").split()
PART, PARTS = map(int, sys.argv[1:3] or (0, 1))
ORDER = {op: i for i, op in enumerate(sorted(tw.ops()))}
FINE, COARSE = (1e-5, 1e-6), (1e-2, 1e-2)  # (step of differences, tolerance); COARSE is for ops without double

# The known part of a shape while the graph is built.
KNOWN = {"shapes": lambda shape: shape, "ranks": lambda shape: tuple(-1 for _ in shape), "nothing": lambda shape: None}

# Differentiable ops without a case, and the reasons.
EXEMPT = {op: f"its derivatives are in {path}" for path, names in UNDECLARED.items() for op in names.split()
          if path in ("ops/list_test.py", "ops/optional_test.py", "ops/tensor_array_test.py", "ops/snapshot_test.py", "python/flow_test.py",
                      "python/host_functions_test.py")}


def perturbed(point, wiggle, step=FINE[0]):
    """Returns central differences of wiggle(point) for every element of every array of the point; complex ones as d/d re + i d/d im."""
    slopes = []
    for k, array in enumerate(point):
        slope = np.zeros(array.shape, np.complex128 if array.dtype.kind == "c" else np.float64)
        for at in np.ndindex(array.shape):
            for unit in (1, 1j) if array.dtype.kind == "c" else (1,):
                ends = []
                for side in (step, -step):
                    moved = array.copy()
                    moved[at] += side * unit
                    ends.append(wiggle(point[:k] + [moved] + point[k + 1:]))
                slope[at] += (ends[0] - ends[1]) / (2 * step) * unit
        slopes.append(slope)
    return slopes


def weighted(arrays, weights):
    wide = lambda a: a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)
    return sum(np.vdot(wide(w), wide(a)).real for a, w in zip(arrays, weights))


def cotangents(arrays):
    return [np.array(rng.normal(size=a.shape) + (1j * rng.normal(size=a.shape) if a.dtype.kind == "c" else 0), a.dtype) for a in arrays]


def parts(gradient):
    """Returns the fetches of a gradient: none, its values, or the values and the indices of some rows."""
    return () if gradient is None else tuple(gradient) if isinstance(gradient, SparseGradient) else (gradient,)


def dense(gradient, x):
    """Returns the fetched parts of a gradient (none, its values, or some rows) as an array of the shape of x."""
    if not gradient:
        return np.zeros_like(x)
    if len(gradient) == 1:
        return gradient[0]
    whole = np.zeros_like(x)
    np.add.at(whole, gradient[1], gradient[0])
    return whole


class Problem:
    """One op in a graph with its first and second gradients for the inputs in `wrt`."""

    def __init__(self, op, inputs, wrt, known, second, attrs):
        self.graph, self.known = tw.Graph(), KNOWN[known]
        constant = known != "nothing"
        self.values = [self.graph.constant(x) if constant and i not in wrt else self.graph.placeholder(x.dtype, self.known(x.shape))
                       for i, x in enumerate(inputs)]
        self.fixed = {} if constant else {v: x for i, (v, x) in enumerate(zip(self.values, inputs)) if i not in wrt}
        self.xs = [self.values[i] for i in wrt]
        outputs = self.graph.add(op, *self.values, name="op", **attrs).outputs
        self.ys = [y for y in outputs if y.dtype.is_floating or y.dtype.is_complex]
        self.session, self.steps = self.graph.session(), {}
        self.dys = self.free(self.run(self.ys, [inputs[i] for i in wrt]))
        self.first = [parts(g) for g in gradients(self.ys, self.xs, self.dys)]
        self.gs = [g[0] for g in self.first if g]
        self.second, self.vs = [], []
        if second and self.gs:
            point = [inputs[i] for i in wrt]
            self.vs = self.free(self.run(self.gs, point + cotangents(self.run(self.ys, point))))
            self.second = [parts(g) for g in gradients(self.gs, self.xs + self.dys, self.vs)]

    def free(self, arrays):
        return [self.graph.placeholder(a.dtype, self.known(a.shape)) for a in arrays]

    def run(self, fetches, point):
        """Runs the fetches. point: values of the inputs, then, if they are needed, of the first cotangents, then of the second."""
        where = self.xs if len(point) == len(self.xs) else self.xs + self.dys
        where = where if len(point) == len(where) else where + self.vs
        key = len(where), *fetches
        if key not in self.steps:
            self.steps[key] = self.session.step(fetches, where + list(self.fixed))
        return self.steps[key](point + list(self.fixed.values()))

    def gradients(self, which, point):
        fetched = iter(self.run([e for part in which for e in part], point))
        return [[next(fetched) for _ in part] for part in which]


# Without a graph nothing is known before the op runs, so a case runs one way only.
WAYS = ("ranks", "nothing", "shapes")
if os.environ.get("THALWEG_TEST_EAGER"):
    from eager_problem import Problem  # noqa: F811
    WAYS = ("shapes",)


def chosen(op):
    return op in ONLY if ONLY else ORDER[op] % PARTS == PART


def check(op, *inputs, wrt=None, second=True, **attrs):
    """Checks the gradients of an op. wrt: the inputs to differentiate for, by default all floating-point ones. second: whether the second
    derivative exists in the graph (False needs a reason beside it)."""
    covered.add(op)
    if not chosen(op) or not cases.takes(op) or not cases.sampled(op):
        return
    inputs = [np.asarray(x) for x in inputs]
    wrt = [i for i, x in enumerate(inputs) if x.dtype.kind in "fc"] if wrt is None else wrt
    where = f"{op} {[i.dtype.name + str(i.shape) for i in inputs]} {attrs}"
    try:
        for known in WAYS:
            exact = check_type(f"{where}, known: {known}", Problem(op, inputs, wrt, known, second, attrs), inputs, wrt)
        for short in filter(lambda short: knows(op, short), SHORTER):
            narrow = [x.astype(SHORTER[short][x.dtype]) if x.dtype in SHORTER[short] else x for x in inputs]
            types = {a: [SHORTER[short].get(np.dtype(t), t) for t in v] if a == "T" else v for a, v in attrs.items()}
            compare_types(f"{where} in {short}", Problem(op, narrow, wrt, "shapes", second, types), narrow, wrt, *exact)
    except tw.Error as error:
        cases.holds(where, False, f"{error.code_name}: {error}")


def knows(op, short):
    """Returns whether the op takes that type wherever it takes double."""
    return all(short in a["allowed"] for a in tw.ops()[op]["attrs"] if a["kind"] == "type" and "double" in a.get("allowed", []))


def check_type(where, problem, inputs, wrt):
    """Compares with central differences. Returns the weights and the gradients."""
    x = [inputs[i] for i in wrt]
    dy = cotangents(problem.run(problem.ys, x))
    step, tolerance = COARSE if any(a.dtype == np.float32 for a in x + dy) else FINE
    slopes = perturbed(x, lambda point: weighted(problem.run(problem.ys, point), dy), step)
    first = [dense(g, at) for g, at in zip(problem.gradients(problem.first, x + dy), x)]
    for i, g, wanted in zip(wrt, first, slopes):
        cases.equal(f"gradient of {where} for input {i}", g, wanted, tolerance)
    if not problem.second:
        return dy, first, [], []
    v = cotangents(problem.run(problem.gs, x + dy))
    slopes = perturbed(x + dy, lambda point: weighted(problem.run(problem.gs, point), v), step)
    second = [dense(g, at) for g, at in zip(problem.gradients(problem.second, x + dy + v), x + dy)]
    for i, (g, wanted) in enumerate(zip(second, slopes)):
        cases.equal(f"second derivative of {where}, part {i}", g, wanted, tolerance)
    return dy, first, v, second


# The shorter types in place of double, and the allowed error of their gradients, relative to the largest.
SHORTER = {"float": {np.dtype(np.float64): np.float32, np.dtype(np.complex128): np.complex64}, "half": {np.dtype(np.float64): np.float16}}
LOOSE = {"float": 1e-3, "half": 0.1}


def compare_types(where, problem, inputs, wrt, dy, first, v, second):
    """Compares the same gradients in a shorter type, if the op has one: the graph uses that type's kernels, and results have that type."""
    x = [inputs[i] for i in wrt]
    if not any(a.dtype in (np.float32, np.complex64, np.float16) for a in x):
        return
    dy = [a.astype(y.dtype) for a, y in zip(dy, problem.run(problem.ys, x))]
    v = [a.astype(g.dtype) for a, g in zip(v, problem.run(problem.gs, x + dy))] if v else []
    got = problem.gradients(problem.first, x + dy) + (problem.gradients(problem.second, x + dy + v) if v else [])
    for i, (g, at, wanted) in enumerate(zip(got, x + dy if not v else x + x + dy, first + second)):
        g = dense(g, at)
        limit = LOOSE["half" if g.dtype == np.float16 else "float"] * max(1, np.abs(wanted).max(initial=0))
        near = g.dtype == at.dtype and np.abs(g - wanted).max(initial=0) <= limit
        cases.holds(f"gradient {i} of {where}", near, "" if near else f"{g} is not {wanted}")


def normal(*shape):
    return rng.normal(size=shape)


def positive(*shape):
    return rng.uniform(0.5, 2, shape)


def signed(*shape):
    """Returns numbers away from 0."""
    return positive(*shape) * rng.choice([-1, 1], shape)


def between(*shape):
    """Returns numbers away from integers and halves."""
    return rng.integers(-3, 3, shape) + rng.uniform(0.1, 0.4, shape)


def distinct(*shape):
    """Returns numbers of which no two are near each other, or near 0 or 6."""
    n = int(np.prod(shape))
    return (rng.permutation(n).reshape(shape) - n / 3 + 0.37) / 2


SHAPES = [(), (3,), (2, 3), (0, 3), (2, 1, 2)]
PAIRS = [((), ()), ((3,), (3,)), ((3,), ()), ((2, 1), (1, 3)), ((2, 1, 2), (3, 1)), ((1, 3), (2, 3)), ((0, 3), (3,)), ((0, 1), (1, 2))]

# ---- Element by element ----

UNARY = {normal: "Neg Square Exp Expm1 Sin Cos Tanh Sigmoid Erf Identity OnesLike ZerosLike", positive: "Sqrt Rsqrt Log Log1p",
         signed: "Reciprocal Abs Sign", between: "Floor Ceil Round", distinct: "Relu Relu6"}
BACKWARD = {"SqrtGrad": (positive, normal), "RsqrtGrad": (positive, normal), "ReciprocalGrad": (signed, normal),
            "TanhGrad": (normal, normal), "SigmoidGrad": (normal, normal), "ReluGrad": (normal, distinct), "Relu6Grad": (normal, distinct)}
BINARY = {"Add": (normal, normal), "AddV2": (normal, normal), "Sub": (normal, normal), "Mul": (normal, normal), "Div": (normal, signed),
          "RealDiv": (normal, signed), "DivNoNan": (normal, signed), "SquaredDifference": (normal, normal), "Pow": (positive, normal)}
for shape in SHAPES:
    for make, names in UNARY.items():
        for op in names.split():
            check(op, make(*shape))
    for op, makes in BACKWARD.items():
        check(op, *[make(*shape) for make in makes])
    check("L2Loss", normal(*shape))
    check("AddN", normal(*shape), normal(*shape), normal(*shape), N=3)
    check("IdentityN", normal(*shape), normal(2), T=[np.float64, np.float64])
    check("EnsureShape", normal(*shape), shape=tuple(-1 for _ in shape))
    check("PlaceholderWithDefault", normal(*shape), shape=None)
for a, b in PAIRS:
    for op, (left, right) in BINARY.items():
        check(op, left(*a), right(*b))
    whole = np.broadcast_shapes(a, b)
    x, y = normal(*a), normal(*b)
    gap = np.abs(x - y).min(initial=1)
    for op in ("Maximum", "Minimum"):
        check(op, x, y) if gap > 1e-3 else check(op, x, y + 2 * gap)
    check("FloorMod", rng.integers(-2, 3, a) + rng.uniform(0.2, 0.8, a), np.full(b, 1.0) * rng.choice([-1, 1], b))
    check("FloorDiv", rng.integers(-2, 3, a) + rng.uniform(0.2, 0.8, a), np.full(b, 1.0) * rng.choice([-1, 1], b))
    for condition in ((), whole, b):
        check("SelectV2", rng.integers(0, 2, condition).astype(bool), normal(*a), normal(*b))
check("Pow", signed(4), np.array([2.0, 3, -1, 2]), wrt=[0])  # below 0 the exponent's gradient is 0, as in TensorFlow
check("FloorMod", np.array([7.3, -7.3, 7.3, -7.3]), np.array([2.5, 2.5, -2.5, -2.5]))
for shape in ((2,), (2, 3), (2, 0)):
    for condition in ((), (2,), shape):
        check("Select", rng.integers(0, 2, condition).astype(bool), normal(*shape), normal(*shape))

# ---- Reductions ----

for shape, axes in (((), ()), ((4,), (0,)), ((2, 3), (1,)), ((2, 3), (0, -1)), ((2, 3, 2), (0, 2)), ((2, 3), ()), ((0, 3), (0,)),
                    ((3, 0), (0,))):
    for keep in (False, True):
        for op in ("Sum", "Mean"):
            check(op, normal(*shape), np.array(axes, np.int32), keep_dims=keep)
        if 0 not in shape:
            check("Prod", signed(*shape), np.array(axes, np.int64), keep_dims=keep)
            for op in ("Max", "Min"):
                check(op, distinct(*shape), np.array(axes, np.int32), keep_dims=keep)
check("Sum", normal(3, 2), np.int32(-2))
check("Prod", np.array([[2.0, 0, 3], [1, 2, 3]]), i32(1))  # one 0 in a group
for exclusive in (False, True):
    for reverse in (False, True):
        check("Cumsum", normal(2, 3), np.int32(1), exclusive=exclusive, reverse=reverse)
        check("Cumsum", normal(2, 0, 2), np.int32(0), exclusive=exclusive, reverse=reverse)
check("UnsortedSegmentSum", normal(4, 2), i32(1, -1, 0, 1), np.int32(3))
check("UnsortedSegmentSum", normal(2, 2, 2), np.array([[0, 2], [2, -1]], np.int64), np.int32(3))
check("UnsortedSegmentSum", normal(0, 2), np.zeros(0, np.int32), np.int32(2))

# ---- Matrices ----

for m, k, n in ((2, 3, 2), (1, 1, 1), (2, 0, 3), (0, 2, 2)):
    for ta in (False, True):
        for tb in (False, True):
            a, b = normal(*((k, m) if ta else (m, k))), normal(*((n, k) if tb else (k, n)))
            check("MatMul", a, b, transpose_a=ta, transpose_b=tb)
            check("BatchMatMulV2", a, b, adj_x=ta, adj_y=tb)
for x, y in (((2, 2, 3), (2, 3, 2)), ((2, 2, 3), (3, 2)), ((1, 2, 2), (3, 2, 2)), ((2, 1, 2, 2), (3, 2, 1)), ((0, 2, 2), (2, 2))):
    check("BatchMatMulV2", normal(*x), normal(*y))

# ---- Moving data ----

check("Reshape", normal(2, 3), i32(3, -1))
check("Reshape", normal(0, 3), i32(3, 0))
check("Reshape", normal(1), np.zeros(0, np.int32))
check("ExpandDims", normal(2, 3), np.int32(-2))
check("ExpandDims", normal(), np.int32(0))
check("Squeeze", normal(1, 2, 1))
check("Squeeze", normal(1, 2, 1), squeeze_dims=[-1])
check("Transpose", normal(2, 3, 2), i32(2, 0, 1))
check("Transpose", normal(2, 0, 2), i32(-1, 0, 1))
check("Transpose", normal(), np.zeros(0, np.int32))
check("ConcatV2", normal(2, 2), normal(2, 1), normal(2, 0), np.int32(-1), N=3)
check("ConcatV2", normal(1, 2), normal(2, 2), np.int64(0), N=2)
check("Split", np.int32(1), normal(2, 4), num_split=2)
check("Split", np.int32(-2), normal(2, 2), num_split=1)
check("Pack", normal(2), normal(2), axis=-1, N=2)
check("Pack", normal(), normal(), normal(), N=3)
check("Unpack", normal(2, 3), axis=1, num=3)
check("Unpack", normal(2, 0), axis=0, num=2)
check("Slice", normal(3, 4), i32(1, 0), i32(2, -1))
check("Slice", normal(3, 4), i64(3, 1), i64(0, 2))
check("StridedSlice", normal(3, 4), i32(0, 3), i32(3, 0), i32(2, -2))
check("StridedSlice", normal(3, 4), i32(1, 9, 9), i32(2, 9, 9), i32(1, 1, 1), shrink_axis_mask=1, new_axis_mask=2, ellipsis_mask=4)
check("StridedSlice", normal(3, 4), i64(-1), i64(-9), i64(-1), begin_mask=1, end_mask=1)
check("StridedSlice", normal(3), np.array([1], np.int16), np.array([3], np.int16), np.array([1], np.int16))
check("StridedSliceGrad", i32(3, 4), i32(0, 3), i32(3, 0), i32(2, -2), normal(2, 2))
check("Pad", normal(2, 3), i32([1, 0], [2, 1]))
check("Pad", normal(0, 2), i64([1, 1], [0, 0]))
check("Tile", normal(2, 3), i32(2, 3))
check("Tile", normal(2, 3), i64(0, 2))
check("BroadcastTo", normal(3), i32(2, 3))
check("BroadcastTo", normal(2, 1), i64(2, 2, 3))
check("BroadcastTo", normal(), i32(2))
check("Fill", i32(2, 3), normal())
check("Fill", i64(0, 3), normal())
check("OneHot", i64(0, 2, -1), np.int32(3), normal(), normal())
check("OneHot", np.array([[1], [0]], np.int32), np.int32(2), normal(), normal(), axis=1)
check("GatherV2", normal(4, 2), i32(3, 0, 3), np.int32(0))
check("GatherV2", normal(4, 2), np.array([[1], [1]], np.int64), np.int32(0))
check("GatherV2", normal(4), np.int32(2), np.int32(-1))
check("GatherV2", normal(2, 3, 2), i32(2, 2), np.int32(1))
check("GatherV2", normal(2, 3, 2), np.array([[2, 0], [1, 1]], np.int32), np.int32(1), batch_dims=1)
check("GatherV2", normal(2, 3), np.array([[2, 0], [1, 1]], np.int16), np.int32(-1), batch_dims=1)
check("GatherV2", normal(3, 2), np.zeros(0, np.int32), np.int32(0))
check("GatherNd", normal(3, 2), i32([2, 1], [0, 0], [2, 1]))
check("GatherNd", normal(3, 2), i64([2], [0]))
check("GatherNd", normal(3, 2), np.zeros((2, 0), np.int32))
check("ScatterNd", i32([2], [0], [2]), normal(3, 2), i32(4, 2))
check("ScatterNd", np.zeros((0, 1), np.int64), normal(0, 2), i64(4, 2))

# ---- Networks ----

for shape in ((3,), (2, 3), (2, 1, 3), (0, 3)):
    check("Softmax", normal(*shape))
    check("LogSoftmax", normal(*shape))
for features, labels in (((2, 3), (2, 3)), ((1, 3), (2, 3)), ((2, 3), (1, 3)), ((0, 3), (0, 3))):
    weights = positive(*labels)
    check("SoftmaxCrossEntropyWithLogits", normal(*features), weights / weights.sum(1, keepdims=True))
check("SparseSoftmaxCrossEntropyWithLogits", normal(3, 4), i64(0, 3, 1))
check("SparseSoftmaxCrossEntropyWithLogits", normal(0, 4), np.zeros(0, np.int32))
for shape, data_format, channels in (((2, 3), "NHWC", 3), ((2, 2, 3), "NHWC", 3), ((2, 3, 2), "NCHW", 3), ((1, 3, 2, 2), "NCHW", 3),
                                     ((0, 3), "NHWC", 3)):
    check("BiasAdd", normal(*shape), normal(channels), data_format=data_format)
    check("BiasAddGrad", normal(*shape), data_format=data_format)

for image, kernel, out, attrs in (
        ((1, 4, 3, 2), (2, 2, 2, 2), (1, 3, 2, 2), dict(strides=[1, 1, 1, 1], padding="VALID")),
        ((2, 3, 4, 1), (2, 3, 1, 2), (2, 2, 2, 2), dict(strides=[1, 2, 2, 1], padding="SAME")),
        ((1, 2, 4, 3), (2, 1, 2, 2), (1, 2, 2, 3), dict(strides=[1, 1, 1, 1], padding="VALID", dilations=[1, 1, 2, 1], data_format="NCHW")),
        ((1, 3, 3, 2), (2, 2, 1, 2), (1, 2, 2, 2), dict(strides=[1, 1, 1, 1], padding="VALID")),
        ((1, 3, 2, 1), (2, 2, 1, 1), (1, 4, 3, 1),
         dict(strides=[1, 1, 1, 1], padding="EXPLICIT", explicit_paddings=[0, 0, 1, 1, 0, 2, 0, 0])),
        ((0, 3, 3, 1), (2, 2, 1, 1), (0, 2, 2, 1), dict(strides=[1, 1, 1, 1], padding="VALID"))):
    check("Conv2D", normal(*image), normal(*kernel), **attrs)
    check("Conv2DBackpropInput", i32(*image), normal(*kernel), normal(*out), **attrs)
    check("Conv2DBackpropFilter", normal(*image), i32(*kernel), normal(*out), **attrs)
for image, pooled, attrs in (
        ((1, 4, 4, 2), (1, 2, 2, 2), dict(ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")),
        ((2, 3, 5, 1), (2, 2, 3, 1), dict(ksize=[1, 2, 3, 1], strides=[1, 2, 2, 1], padding="SAME")),
        ((1, 2, 3, 3), (1, 2, 2, 2), dict(ksize=[1, 1, 2, 2], strides=[1, 1, 1, 1], padding="VALID", data_format="NCHW")),
        ((0, 4, 4, 1), (0, 2, 2, 1), dict(ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID"))):
    x = distinct(*image)
    largest = tw.run("MaxPool", [x], **attrs)[0]
    check("MaxPool", x, **attrs)
    check("MaxPoolGrad", x, largest, normal(*pooled), wrt=[2], **attrs)  # the maxima are those of the unperturbed image
    check("MaxPoolGradGrad", x, largest, normal(*image), wrt=[2], **attrs)
    check("AvgPool", normal(*image), **attrs)
    check("AvgPoolGrad", i32(*image), normal(*pooled), **attrs)
# No second derivative: MaxPoolGradGrad has no explicit paddings.
check("MaxPool", distinct(1, 3, 3, 1), second=False, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="EXPLICIT",
      explicit_paddings=[0, 0, 1, 0, 0, 1, 0, 0])

# ---- Complex numbers ----


def imaginary(*shape):
    return normal(*shape) + 1j * normal(*shape)


def far(*shape):
    """Returns complex numbers away from 0 and from the negative axis."""
    return positive(*shape) * np.exp(1j * rng.uniform(-1, 1, shape))


for shape in SHAPES:
    for op in ("Neg", "Conj", "Square", "Identity", "Exp", "Expm1", "Sin", "Cos"):
        check(op, imaginary(*shape))
    for op in ("Reciprocal", "Sqrt", "Rsqrt", "Log", "Log1p", "Tanh", "Sigmoid"):
        check(op, far(*shape))
    for op in ("SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "TanhGrad", "SigmoidGrad"):
        check(op, far(*shape), imaginary(*shape))
    check("AddN", imaginary(*shape), imaginary(*shape), imaginary(*shape), N=3)
for a, b in PAIRS:
    for op in ("Add", "AddV2", "Sub", "Mul"):
        check(op, imaginary(*a), imaginary(*b))
    for op in ("Div", "RealDiv", "DivNoNan"):
        check(op, imaginary(*a), far(*b))
    check("Pow", far(*a), imaginary(*b))
check("MatMul", imaginary(2, 3), imaginary(3, 2))
check("BatchMatMulV2", imaginary(2, 3, 2), imaginary(2, 3, 2), adj_x=True)
check("Sum", imaginary(2, 3), i32(1))
check("Mean", imaginary(2, 3), i32(0))
check("Prod", far(2, 3), i32(1))
check("Cumsum", imaginary(2, 3), np.int32(0))
check("BiasAdd", imaginary(2, 3), imaginary(3))
check("UnsortedSegmentSum", imaginary(4, 2), i32(1, -1, 0, 1), np.int32(3))
check("Cast", imaginary(3), DstT=np.complex128)
check("Cast", normal(3), DstT=np.complex128)
check("Cast", imaginary(3), DstT=np.float64)

# ---- Gradients that central differences of the op alone cannot check ----


def check_flow(op, x, wanted, **attrs):
    """Checks the gradient for x: the output's weights times `wanted`, in their type. None: there is no gradient."""
    covered.add(op)
    graph = tw.Graph()
    value = graph.placeholder(x.dtype)
    y = graph.op(op, value, **attrs)
    dtype = tw.numpy_of(y.dtype)
    where = f"gradient of {op} from {x.dtype} to {dtype}"
    if dtype.kind not in "fc":  # integers take no cotangent, so a cast to floats follows
        y = graph.op("Cast", y, DstT=np.float64)
        dtype = np.dtype(np.float64)
    dy = rng.integers(-8, 8, x.shape).astype(dtype)
    gradient = gradients(y, value, [graph.constant(dy)])
    if wanted is None or gradient is None:
        cases.holds(where, wanted is None and gradient is None, "flows, or does not, and should not, or should")
        return
    got = graph.session().run([gradient], {value: x})[0]
    cases.holds(where, got.dtype == x.dtype, f"is {got.dtype}")
    cases.equal(where, got, dy * wanted)


for source in (np.float16, np.float32, np.float64):
    x = np.arange(6, dtype=source).reshape(2, 3)
    for to in (np.float16, np.float32, np.float64):
        check_flow("Cast", x, 1, DstT=to)
    check_flow("Cast", x, None, DstT=np.int32)
    check_flow("StopGradient", x, None)


def check_through(op, *inputs, inside=None, **attrs):
    """Checks that the gradient of a rounding op passes to its first input as it arrives, or where `inside` is true, and to no other."""
    covered.add(op)
    if not chosen(op):
        return
    graph = tw.Graph()
    places = [graph.placeholder(x.dtype, x.shape) for x in inputs]
    dy = rng.normal(size=inputs[0].shape)
    found = gradients(graph.op(op, *places, **attrs), [p for p, x in zip(places, inputs) if x.dtype.kind == "f"], [graph.constant(dy)])
    fetched = [g for g in found if g is not None]
    got = graph.session().run(fetched, dict(zip(places, inputs)))
    cases.equal(f"gradient of {op}", got[0], dy if inside is None else np.where(inside, dy, 0))
    for g in got[1:]:
        cases.holds(f"gradient of {op} for its range", not g.any(), g)


through = np.array([[-3, 0.2, 0.7], [1, 2, -0.4]]), np.float64(-1), np.float64(1)
check_through("QuantizeAndDequantize", through[0], num_bits=3)
check_through("QuantizeAndDequantizeV2", *through, num_bits=3, range_given=True)
check_through("QuantizeAndDequantizeV3", *through, np.int32(3))
check_through("QuantizeAndDequantizeV4", *through, inside=abs(through[0]) <= 1, num_bits=3, range_given=True)
low, high = np.array([-3, 0.5]), np.array([0.5, 1])
check_through("QuantizeAndDequantizeV4", through[0], low, high, inside=(low[:, None] <= through[0]) & (through[0] <= high[:, None]), axis=0)


def check_loss(op, x, *rest, wide=np.float64, **attrs):
    """Checks the gradient of output 0 alone for the first input; output 1 has none."""
    covered.add(op)
    if not chosen(op):
        return
    x = x.astype(wide)
    step, tolerance = COARSE if wide == np.float32 else FINE
    for known, shape in KNOWN.items():
        graph = tw.Graph()
        place = graph.placeholder(x.dtype, shape(x.shape))
        whole = graph.add(op, place, *map(graph.constant, rest), name="loss", **attrs).outputs
        session = graph.session()
        dy = cotangents(session.run([whole[0]], {place: x}))
        slope = gradients(whole[0], place, [graph.constant(dy[0])])
        numeric = perturbed([x], lambda point: weighted(session.run([whole[0]], {place: point[0]}), dy), step)[0]
        cases.equal(f"gradient of {op} {attrs}, known: {known}", session.run([slope], {place: x})[0], numeric, tolerance)
        cases.refuses(f"second derivative of {op}", lambda: gradients(slope, place), "no second derivative")
        cases.refuses(f"gradient of output 1 of {op}", lambda: gradients(whole[1], place), op, "gradient")


labels = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.int64), i32(1, 1, 2, 1), i32(4, 3)
for more in ({}, dict(ctc_merge_repeated=False), dict(preprocess_collapse_repeated=True)):
    check_loss("CTCLoss", normal(4, 2, 4), *labels, **more)
    check_loss("CTCLossV2", normal(4, 2, 4), *labels, wide=np.float32, **more)


def check_variable(op, variable, *indices, **attrs):
    """Compares the gradient for the handle with differences after assignments to the variable."""
    covered.add(op)
    if not chosen(op):
        return
    for static in (True, False):
        graph = tw.Graph()
        name = f"gradient{len(variable)}{op}{static}{[i.shape for i in indices]}{attrs}"
        handle = graph.op("VarHandleOp", dtype=np.float64, shape=variable.shape if static else None, shared_name=name)
        to = graph.placeholder(np.float64)
        assign = graph.add("AssignVariableOp", handle, to, dtype=np.float64)
        y = graph.op("Square", graph.op(op, handle, *map(graph.constant, indices), dtype=np.float64, **attrs))
        session = graph.session()

        def assigned(value, *fetches):
            session.run([], {to: value}, [assign])
            return session.run(fetches)

        dy = cotangents(assigned(variable, y))
        gradient = parts(gradients(y, handle, [graph.constant(dy[0])]))
        numeric = perturbed([variable], lambda point: weighted(assigned(point[0], y), dy))[0]
        got = assigned(variable, *gradient)
        cases.equal(f"gradient of {op} {[i.shape for i in indices]} {attrs}", dense(got, variable), numeric, FINE[1])


check_variable("ReadVariableOp", normal(2, 3))
check_variable("ResourceGather", normal(4, 2), i32(3, 0, 3))
check_variable("ResourceGather", normal(4, 2), np.array([[1], [2]], np.int64))
check_variable("ResourceGather", normal(4), np.int32(1))
check_variable("ResourceGatherNd", normal(4, 2), i32([3], [0], [3]))
check_variable("ResourceGatherNd", normal(4, 2), np.array([[[1]], [[2]]], np.int64))
check_variable("ResourceGatherNd", normal(4, 2), i32([3, 1], [0, 0], [3, 1]))
check_variable("ResourceGatherNd", normal(4, 2), np.zeros((2, 0), np.int64))
check_variable("ResourceGather", normal(2, 3, 2), np.array([[1, 1], [0, 2]], np.int32), batch_dims=1)

# ---- Declared ops (declare.py): drawn smooth uses, and the uses in the declarations ----


def check_drawn(declaration, use):
    implied = {x.get("type_attr") for x in tw.ops()[use.op]["inputs"]}
    attrs = {a: v for a, v in use.attrs.items() if a not in implied}
    names = [x["name"] for x, group in zip(tw.ops()[use.op]["inputs"], use.inputs) for _ in (group if isinstance(group, list) else [0])]
    wrt = None if declaration.wrt is None else [i for i, name in enumerate(names) if name in declaration.wrt]
    check(use.op, *use.flat, wrt=wrt, second=declaration.second, **attrs)


for op, declaration in declared().ops.items():
    if declaration.no_gradient:
        EXEMPT[op] = declaration.no_gradient
    elif not tw.ops()[op]["no_gradient"]:
        for use in uses(declaration, SMOOTH, kind="smooth"):
            check_drawn(declaration, use)
for op, inputs, more in declared().sloped:
    check(op, *inputs, **more)

# ---- Every differentiable op has a case, and the others fail ----

for op, about in tw.ops().items():
    if about["no_gradient"]:
        cases.holds(f"{op} is not differentiable", op not in covered, "has a case")
    else:
        cases.holds(f"{op} is differentiable", op in covered or op in EXEMPT, "has neither a case nor a reason to have none")

graph = tw.Graph()
x = graph.placeholder(np.float64, (3,))
for op in ("Where", "ArgMax", "IsNan", "Shape"):
    y = graph.op(op, x, *([graph.constant(np.int32(0))] if op == "ArgMax" else []), name=op)
    whole = graph.op("Cast", y, DstT=np.float64)
    # Cast from integers has no gradient, so the gradient of the op before it is never called.
    cases.holds(f"{op} behind a Cast", gradients(whole, x) is None, "something flows")
    cases.refuses(f"{op}, whole numbers", lambda: gradients(y, x), op)
limit = graph.op("Range", graph.op("Sum", x, graph.constant(i32(0))), graph.constant(9.0), graph.constant(1.0), name="numbers")
cases.refuses("Range", lambda: gradients(limit, x), "Range", "numbers", "jumps")
prevented = graph.op("PreventGradient", x, message="the table is frozen", name="frozen")
cases.refuses("PreventGradient", lambda: gradients(prevented, x), "PreventGradient 'frozen'", "the table is frozen")
cases.refuses("PreventGradient without a word", lambda: gradients(graph.op("PreventGradient", x, name="frozen_too"), x), "'frozen_too'", "ruled out")

cases.finish()
