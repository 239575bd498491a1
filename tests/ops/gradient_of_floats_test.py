"""Compares symbolic gradients of ops without kernels in double with central differences of their oracles (declare.py) in extended
precision: first and second order, for some of the outputs at a time, with known and unknown shapes. With L the sum of the outputs weighted
by dy, the first order is compared with dL/dx, the second with the derivatives of its slope along v."""
import numpy as np

import cases
import tw
from declare import declared
from thalweg import gradients

rng = np.random.default_rng(5)
STEP = np.longdouble(1e-4)
TOLERANCE = 2e-4
KNOWN = {"shapes": lambda shape: shape, "ranks": lambda shape: tuple(-1 for _ in shape), "nothing": lambda shape: None}


def normal(*shape):
    return rng.normal(size=shape).astype(np.float32)


def values(results):
    return [np.asarray(getattr(y, "value", y), np.longdouble) for y in results]


class Reference:
    """The oracle with its attributes. point: the inputs in `wrt`, then weights of the outputs."""

    def __init__(self, op, inputs, wrt, outputs, attrs):
        self.oracle, self.inputs, self.wrt, self.outputs = declared().ops[op].oracle, inputs, wrt, outputs
        defaults = {a["name"]: a["default"] for a in tw.ops()[op]["attrs"] if "default" in a}
        self.attrs = {a: attrs.get(a, defaults.get(a)) for a in declared().ops[op].asks}

    def results(self, xs):
        inputs = [x.astype(np.longdouble) if x.dtype.kind == "f" else x for x in self.inputs]
        for i, x in zip(self.wrt, xs):
            inputs[i] = x
        found = self.oracle(*inputs, **self.attrs)
        found = values(found if isinstance(found, list) else [found])
        return [found[k] for k in self.outputs]

    def weighted(self, point):
        xs, weights = point[:len(self.wrt)], point[len(self.wrt):]
        return sum((w * y).sum() for w, y in zip(weights, self.results(xs)))

    def along(self, point, v):
        """Returns the slope of `weighted` along v for the inputs."""
        ends = [self.weighted([x + side * STEP * d for x, d in zip(point, v)] + point[len(v):]) for side in (1, -1)]
        return (ends[0] - ends[1]) / (2 * STEP)


def slopes(f, point, count):
    """Returns central differences for the first `count` arrays of the point."""
    found = []
    for k in range(count):
        slope = np.zeros(point[k].shape, np.longdouble)
        for at in np.ndindex(point[k].shape):
            ends = []
            for side in (STEP, -STEP):
                moved = point[k].copy()
                moved[at] += side
                ends.append(f(point[:k] + [moved] + point[k + 1:]))
            slope[at] = (ends[0] - ends[1]) / (2 * STEP)
        found.append(slope)
    return found


def compare(where, got, wanted):
    limit = TOLERANCE * max(1, float(abs(wanted).max(initial=0)))
    off = float(abs(got.astype(np.float64) - wanted).max(initial=0)) if got.shape == wanted.shape else np.inf
    cases.holds(where, off <= limit, f"{got} is not {wanted}, off by {off}")


def check(op, *inputs, wrt, outputs=(0,), twice=True, **attrs):
    """Checks the gradients of an op. twice: whether there are second derivatives."""
    if not cases.sampled(op):
        return
    reference = Reference(op, inputs, wrt, outputs, attrs)
    xs = [inputs[i] for i in wrt]
    dys, vs = [normal(*y.shape) for y in reference.results([x.astype(np.longdouble) for x in xs])], [normal(*x.shape) for x in xs]
    wide, v = [a.astype(np.longdouble) for a in xs + dys], [a.astype(np.longdouble) for a in vs]
    first = slopes(reference.weighted, wide, len(xs))
    second = slopes(lambda point: reference.along(point, v), wide, len(wide)) if twice else []
    for known, shape in KNOWN.items():
        where = f"{op} {[x.shape for x in inputs]} of outputs {outputs} {attrs}, known: {known}"
        graph = tw.Graph()
        nodes = [graph.placeholder(x.dtype, shape(x.shape)) if i in wrt else graph.constant(x) for i, x in enumerate(inputs)]
        whole = graph.add(op, *nodes, name="op", **attrs).outputs
        ys = [whole[k] for k in outputs]
        places = [nodes[i] for i in wrt]
        dy_places, v_places = ([graph.placeholder(a.dtype, shape(a.shape)) for a in arrays] for arrays in (dys, vs))
        feeds = dict(zip(places + dy_places + v_places, xs + dys + vs))
        try:
            gs = gradients(ys, places, dy_places)
            for i, g, wanted in zip(wrt, gs, first):
                got = graph.session().run([g], feeds)[0] if g is not None else np.zeros(wanted.shape)
                compare(f"gradient of {where} for input {i}", got, wanted)
            if not twice:
                continue
            with_gradient = [(g, v_place) for g, v_place in zip(gs, v_places) if g is not None]
            again = gradients([g for g, _ in with_gradient], places + dy_places, [v_place for _, v_place in with_gradient])
            for part, (g, wanted) in enumerate(zip(again, second)):
                got = graph.session().run([g], feeds)[0] if g is not None else np.zeros(wanted.shape)
                compare(f"second derivative of {where}, part {part}", got, wanted)
        except tw.Error as error:
            cases.holds(where, False, f"{error.code_name}: {error}")


# ---- Batch normalisation ----


def positive(*shape):
    return rng.uniform(0.5, 2, shape).astype(np.float32)


for data_format, shape in (("NHWC", (2, 2, 1, 3)), ("NCHW", (2, 3, 1, 2)), ("NDHWC", (2, 1, 2, 1, 2)), ("NCDHW", (2, 2, 1, 2, 1))):
    c = shape[1] if data_format[1] == "C" else shape[-1]
    names = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3") if data_format == "NHWC" else ("FusedBatchNormV3",)
    for name in names:
        backward, more = name.replace("Norm", "NormGrad"), [normal(0)] if name[-1] == "3" else []
        attrs = dict(epsilon=0.25, data_format=data_format)
        for training in (True, False):
            inputs = [normal(*shape), normal(c), normal(c), normal(c), positive(c)]
            wrt = (0, 1, 2) if training else (0, 1, 2, 3, 4)
            check(name, *inputs, wrt=wrt, is_training=training, **attrs)
            check(name, *inputs, wrt=(0, 1, 2, 3, 4), outputs=(0, 1, 2, 3, 4), is_training=training, exponential_avg_factor=0.25, **attrs)
            check(name, *inputs, wrt=(0, 3, 4), outputs=(1,), is_training=training, exponential_avg_factor=0.25, **attrs)
            inputs = [normal(*shape), normal(*shape), normal(c), normal(c), positive(c), *more]
            for outputs in ((0,), (1,), (2,), (0, 1, 2)):
                check(backward, *inputs, wrt=(0, 1, 2, 3, 4), outputs=outputs, is_training=training, **attrs)

# ---- LRN ----

for radius, channels in ((0, 2), (1, 4), (2, 3), (9, 3)):
    attrs, shape = dict(depth_radius=radius, bias=1.5, alpha=0.5, beta=0.75), (1, 2, 1, channels)
    check("LRN", normal(*shape), wrt=(0,), **attrs)
    check("LRNGrad", normal(*shape), normal(*shape), normal(*shape), wrt=(0, 1, 2), **attrs)

# ---- Bilinear images ----

for how in ({}, dict(align_corners=True), dict(half_pixel_centers=True)):
    for size in ((1, 3), (4, 2), (5, 5)):
        check("ResizeBilinear", normal(1, 3, 2, 2), np.int32(size), wrt=(0,), **how)
        check("ResizeBilinearGrad", normal(1, *size, 2), normal(1, 3, 2, 2), wrt=(0,), **how)

# ---- Other images ----

for how in ({}, dict(align_corners=True), dict(half_pixel_centers=True)):
    for size in ((1, 3), (5, 4)):
        check("ResizeBicubic", normal(1, 3, 2, 2), np.int32(size), wrt=(0,), **how)
        check("ResizeBicubicGrad", normal(1, *size, 2), normal(1, 3, 2, 2), wrt=(0,), **how)
scale, translation = np.float32([1.5, 0.5]), np.float32([0.125, -0.25])
for how in ({}, dict(antialias=False, kernel_type="triangle"), dict(kernel_type="gaussian")):
    check("ScaleAndTranslate", normal(1, 3, 4, 2), np.int32([4, 3]), scale, translation, wrt=(0,), **how)
    check("ScaleAndTranslateGrad", normal(1, 4, 3, 2), normal(1, 3, 4, 2), scale, translation, wrt=(0,), **how)
boxes, numbers = np.float32([[0.1, -0.2, 0.83, 0.9], [0.95, 0.15, 0.2, 1.3], [0.3, 0.3, 0.61, 0.76]]), np.int32([0, 1, 0])
for method in ("bilinear", "nearest"):
    for size in ((1, 3), (4, 2)):
        check("CropAndResize", normal(2, 4, 3, 2), boxes, numbers, np.int32(size), wrt=(0,), method=method)
        check("CropAndResizeGradImage", normal(3, *size, 2), boxes, numbers, np.int32([2, 4, 3, 2]), wrt=(0,), method=method, T=np.float32)
for size in ((1, 3), (4, 2)):  # their second derivatives for the boxes are not offered
    check("CropAndResize", normal(2, 4, 3, 2), boxes, numbers, np.int32(size), wrt=(0, 1), twice=False)
    check("CropAndResizeGradImage", normal(3, *size, 2), boxes, numbers, np.int32([2, 4, 3, 2]), wrt=(0, 1), twice=False, T=np.float32)

# ---- Recurrent cells ----

for peephole in (False, True):
    batch, n, cell = 2, 2, 2
    attrs, state = dict(use_peephole=peephole), (batch, cell)
    parameters = [normal(n + cell, 4 * cell), normal(cell), normal(cell), normal(cell), normal(4 * cell)]
    step = [normal(batch, n), normal(*state), normal(*state), *parameters]
    wrt = (0, 1, 2, 3, 4, 5, 6, 7) if peephole else (0, 1, 2, 3, 7)
    for outputs in ((6,), (1, 6), (0, 2, 3, 4, 5)):
        check("LSTMBlockCell", *step, wrt=wrt, outputs=outputs, cell_clip=0.0, twice=outputs != (6,) or peephole, **attrs)
    made = [positive(*state) / 3 for _ in range(6)]
    wrt = (1, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15) if peephole else (1, 8, 10, 11, 12, 13, 14, 15)
    for outputs in ((0,), (1,), (2, 3, 4)) if peephole else ((0,), (1,)):
        check("LSTMBlockCellGrad", *step, *made, normal(*state), normal(*state), wrt=wrt, outputs=outputs, twice=outputs == (1,), **attrs)
    sequence = [normal(3, batch, n), normal(*state), normal(*state), *parameters]
    wrt = (1, 2, 3, 4, 5, 6, 7, 8) if peephole else (1, 2, 3, 4, 8)
    for name in ("BlockLSTM", "BlockLSTMV2"):
        for length, outputs in ((3, (1, 6)), (2, (6,)), (0, (6,))):
            check(name, np.int64(length), *sequence, wrt=wrt, outputs=outputs, cell_clip=0.0, twice=False, **attrs)
    refused = tw.Graph()
    x = refused.placeholder(np.float32, (3, batch, n))
    rest = [refused.constant(a) for a in sequence[1:]]
    whole = refused.add("BlockLSTM", refused.constant(np.int64(3)), x, *rest, name="op", **attrs)
    cases.refuses("a gradient at a gate of BlockLSTM", lambda: gradients([whole.outputs[2]], [x]), "BlockLSTM", "'f'", "LSTMBlockCell")

step = [normal(2, 2), normal(2, 2), normal(4, 4), normal(4, 2), normal(4), normal(2)]
for outputs in ((3,), (0, 1, 2), (0, 1, 2, 3)):
    check("GRUBlockCell", *step, wrt=(0, 1, 2, 3, 4, 5), outputs=outputs)
made = [positive(2, 2) / 3 for _ in range(3)]
for outputs in ((0,), (1,), (2,), (3,)):
    check("GRUBlockCellGrad", *step, *made, normal(2, 2), wrt=(1, 2, 3, 6, 7, 8, 9), outputs=outputs, twice=outputs == (3,))

# ---- Attention of double ----

# A number that is added to a whole row of scores changes nothing, at any size and for any form of `logsumexp`.
inputs = [normal(3, 2).astype(np.float64), normal(4, 2).astype(np.float64), normal(4, 3).astype(np.float64)]


def with_bias(bias, **more):
    graph = tw.Graph()
    places = [graph.placeholder(x.dtype, x.shape) for x in inputs]
    places.append(graph.placeholder(np.float64, bias.shape))
    y = graph.add("ScaledDotProductAttention", *places, name="op", N=1, **more).outputs[0]
    return graph.session().run(gradients([y], places, [graph.constant(np.arange(9.0).reshape(3, 3))]), dict(zip(places, [*inputs, bias])))


plain = with_bias(np.zeros((3, 4)))
for kind in (np.float32, np.float64):
    for i, (got, wanted) in enumerate(zip(with_bias(np.zeros((3, 4)) + [[1e3], [-1e5], [-1e9]], U=kind), plain)):
        compare(f"gradient of attention in double with logarithms of {kind.__name__} for input {i}", got, wanted)

cases.finish()
