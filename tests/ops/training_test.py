"""Optimizer steps against their formulas in float64, twenty steps each: the ops, and what tw_train_... builds of them."""
import itertools

import numpy as np

import cases
import thalweg
import tw
from thalweg.train import SGD, Adam, Momentum

rng = np.random.default_rng(17)
fresh = map("training{}".format, itertools.count())
STEPS = 20
TYPES = {np.float64: 1e-13, np.float32: 2e-5, np.float16: 2e-2, tw.bfloat16: 1e-1}
SHAPES = [(), (3,), (0, 2), (2, 3, 2), (70, 71)]  # the last one is longer than what the loops take at a time


def typed(array, dtype):
    return tw.to_bfloat16(array) if dtype == tw.bfloat16 else np.asarray(array, dtype)


def wide(array):
    return (tw.from_bfloat16(array) if array.dtype == tw.bfloat16 else array).astype(np.float64)


class Training:
    """Variables with their first values, and one op on them whose other inputs are fed."""

    def __init__(self, op, dtype, slots, inputs, **attrs):
        """slots: first values. inputs: arrays, or the type of what each step feeds."""
        self.graph, self.dtype = tw.Graph(), dtype
        self.handles = [self.graph.op("VarHandleOp", dtype=dtype, shape=None, shared_name=next(fresh)) for _ in slots]
        start = [self.graph.add("AssignVariableOp", h, self.graph.constant(typed(s, dtype)), dtype=dtype)
                 for h, s in zip(self.handles, slots)]
        self.fed, values = [], []
        for x in inputs:
            if isinstance(x, type) or isinstance(x, np.dtype):
                self.fed.append(self.graph.placeholder(x))
                values.append(self.fed[-1])
            else:
                values.append(self.graph.constant(x))
        update = self.graph.add(op, *self.handles, *values, name="op", **attrs)
        self.reads = [self.graph.op("ReadVariableOp", h, dtype=dtype) for h in self.handles]
        self.session = self.graph.session()
        self.session.run([], targets=start)
        self.update = self.session.step([], self.fed, [update])

    def step(self, *fed):
        self.update(fed)

    def values(self):
        return [wide(v) for v in self.session.run(self.reads)]


def gradient_descent(w, g, rate):
    w -= rate * g


def momentum(w, m, g, rate, keep, nesterov):
    m *= keep
    m += g
    w -= rate * (g + keep * m if nesterov else m)


def adam(w, m, v, g, t, rate, b1, b2, eps, nesterov):
    alpha = rate * np.sqrt(1 - b2 ** t) / (1 - b1 ** t)
    m += (g - m) * (1 - b1)
    v += (g * g - v) * (1 - b2)
    w -= alpha * (b1 * m + (1 - b1) * g if nesterov else m) / (np.sqrt(v) + eps)


def ada_max(w, m, v, g, power, rate, b1, b2, eps):
    m += (g - m) * (1 - b1)
    v[...] = np.maximum(b2 * v, np.abs(g))
    w -= rate / (1 - power) * m / (v + eps)


def adagrad(w, a, g, rate, eps=0, update_slots=True):
    if update_slots:
        a += g * g
    w -= rate * g / (np.sqrt(a) + eps)


def adadelta(w, a, u, g, rate, rho, eps):
    a[...] = rho * a + (1 - rho) * g * g
    update = g * np.sqrt(u + eps) / np.sqrt(a + eps)
    w -= rate * update
    u[...] = rho * u + (1 - rho) * update * update


def rmsprop(w, ms, mom, g, rate, rho, keep, eps):
    ms += (1 - rho) * (g * g - ms)
    mom[...] = keep * mom + rate * g / np.sqrt(ms + eps)
    w -= mom


def centered_rmsprop(w, mg, ms, mom, g, rate, rho, keep, eps):
    ms += (1 - rho) * (g * g - ms)
    mg += (1 - rho) * (g - mg)
    mom[...] = keep * mom + rate * g / np.sqrt(ms - mg * mg + eps)
    w -= mom


def ftrl(w, a, z, g, rate, l1, l2, shrinkage, power, scaled=False):
    """scaled: z is kept times the rate, which changes nothing else."""
    z /= rate if scaled else 1
    new = a + g * g
    z += g + 2 * shrinkage * w - (new ** -power - a ** -power) / rate * w
    a[...] = new
    w[...] = np.where(np.abs(z) > l1, (np.sign(z) * l1 - z) / (new ** -power / rate + 2 * l2), 0)
    z *= rate if scaled else 1


def compare(where, got, wanted, dtype):
    for name, g, w in zip(("the variable", "the first slot", "the second slot", "the third slot"), got, wanted):
        cases.equal(f"{where}: {name}", g, w, TYPES[dtype])


# ---- The ops ----

for dtype in TYPES:
    scalar = lambda x: typed(x, dtype)
    rounded = lambda x: wide(typed(x, dtype))  # the formulas start from what the type can hold
    rate, keep, b1, b2, eps = map(rounded, (0.0625, 0.75, 0.875, 0.9375, 2.0 ** -10))
    for shape in SHAPES:
        where = f"{np.dtype(dtype)} {shape}"
        start, gradients = rounded(rng.normal(size=shape)), [rounded(rng.normal(size=shape)) for _ in range(STEPS)]
        w = start.copy()
        t = Training("ResourceApplyGradientDescent", dtype, [start], [scalar(rate), np.dtype(dtype)])
        for g in gradients:
            t.step(typed(g, dtype))
            gradient_descent(w, g, rate)
        compare(f"ResourceApplyGradientDescent {where}", t.values(), [w], dtype)
        for nesterov in (False, True):
            w, m = start.copy(), np.zeros(shape)
            t = Training("ResourceApplyMomentum", dtype, [w, m], [scalar(rate), np.dtype(dtype), scalar(keep)], use_nesterov=nesterov)
            for g in gradients:
                t.step(typed(g, dtype))
                momentum(w, m, g, rate, keep, nesterov)
            compare(f"ResourceApplyMomentum nesterov {nesterov} {where}", t.values(), [w, m], dtype)

            w, m, v = start.copy(), np.zeros(shape), np.zeros(shape)
            inputs = [np.dtype(dtype), np.dtype(dtype), scalar(rate), scalar(b1), scalar(b2), scalar(eps), np.dtype(dtype)]
            t = Training("ResourceApplyAdam", dtype, [w, m, v], inputs, use_nesterov=nesterov)
            for i, g in enumerate(gradients, 1):
                # In the short types the powers are rounded before the op sees them, as a program's would be.
                p1, p2 = rounded(b1 ** i), rounded(b2 ** i)
                t.step(typed(p1, dtype), typed(p2, dtype), typed(g, dtype))
                alpha = rate * np.sqrt(1 - p2) / (1 - p1)
                m += (g - m) * (1 - b1)
                v += (g * g - v) * (1 - b2)
                w -= alpha * (b1 * m + (1 - b1) * g if nesterov else m) / (np.sqrt(v) + eps)
            compare(f"ResourceApplyAdam nesterov {nesterov} {where}", t.values(), [w, m, v], dtype)

    for index in (np.int32, np.int64):
        for nesterov in (False, True):
            start = rounded(rng.normal(size=(40, 5)))
            w, m = start.copy(), np.zeros((40, 5))
            t = Training("ResourceSparseApplyMomentum", dtype, [w, m],
                         [scalar(rate), np.dtype(dtype), np.dtype(index), scalar(keep)], use_nesterov=nesterov)
            for i in range(STEPS):
                rows = rng.integers(0, 40, 12 if i else 0)
                if len(rows):
                    rows[-1] = rows[0]  # a row that is named twice is updated twice
                g = rounded(rng.normal(size=(len(rows), 5)))
                t.step(typed(g, dtype), rows.astype(index))
                for row, part in zip(rows, g):
                    momentum(w[row], m[row], part, rate, keep, nesterov)
            compare(f"ResourceSparseApplyMomentum nesterov {nesterov} {np.dtype(index)} {np.dtype(dtype)}", t.values(), [w, m], dtype)


def short(dtype, number):
    return float(wide(typed(np.float64(number), dtype)))


# op, formula, first values of its slots, factors in the op's order, where the gradient stands among them, attributes, what the formula takes
# besides. Factors are numbers that every type holds.
FACTORS = {"lr": 0.0625, "rho": 0.875, "momentum": 0.75, "epsilon": 2.0 ** -10, "l1": 0.125, "l2": 0.25, "l2_shrinkage": 0.0625}
OPS = [
    ("Adagrad", adagrad, [0.125], ["lr"], 1, {}, {}),
    ("Adagrad", adagrad, [2.0], ["lr"], 1, {"update_slots": False}, {"update_slots": False}),
    ("AdagradV2", adagrad, [0.0], ["lr", "epsilon"], 2, {}, {}),
    ("AdagradV2", adagrad, [0.5], ["lr", "epsilon"], 2, {"update_slots": False}, {"update_slots": False}),
    ("Adadelta", adadelta, [0.0, 0.0], ["lr", "rho", "epsilon"], 3, {}, {}),
    ("Adadelta", adadelta, [0.5, 0.25], ["lr", "rho", "epsilon"], 3, {}, {}),
    ("RMSProp", rmsprop, [1.0, 0.0], ["lr", "rho", "momentum", "epsilon"], 4, {}, {}),
    ("CenteredRMSProp", centered_rmsprop, [0.0, 1.0, 0.0], ["lr", "rho", "momentum", "epsilon"], 4, {}, {}),
    ("Ftrl", ftrl, [0.125, 0.0], ["lr", "l1", "l2", -0.5], 0, {}, {}),
    ("Ftrl", ftrl, [0.125, 0.0], ["lr", "l1", "l2", -0.75], 0, {"multiply_linear_by_lr": True}, {"scaled": True}),
    ("FtrlV2", ftrl, [0.5, 0.25], ["lr", "l1", "l2", "l2_shrinkage", -0.5], 0, {"multiply_linear_by_lr": True}, {"scaled": True}),
    ("FtrlV2", ftrl, [0.125, 0.0], ["lr", "l1", "l2", "l2_shrinkage", -0.25], 0, {}, {}),
]
for (op, formula, slots, names, at, attrs, more), dtype in itertools.product(OPS, TYPES):
    factors = [FACTORS.get(n, n) for n in names]
    taken = list(factors)
    if op == "Ftrl":
        taken.insert(3, 0.0)
    constants = [typed(np.float64(f), dtype) for f in factors]
    for shape in SHAPES:
        variables = [short(dtype, 0.5) * wide(typed(rng.normal(size=shape), dtype))] + [np.full(shape, s) for s in slots]
        t = Training("ResourceApply" + op, dtype, variables, constants[:at] + [np.dtype(dtype)] + constants[at:], **attrs)
        wanted = t.values()  # as rounded to the type
        for _ in range(STEPS):
            g = wide(typed(rng.normal(size=shape), dtype))
            t.step(typed(g, dtype))
            formula(*wanted, g, *taken, **more)
        compare(f"ResourceApply{op} {attrs} {np.dtype(dtype)} {shape}", t.values(), wanted, dtype)
    for index in (np.int32, np.int64):
        variables = [wide(typed(rng.normal(size=(40, 5)), dtype))] + [np.full((40, 5), s) for s in slots]
        gradient = [np.dtype(dtype), np.dtype(index)]
        t = Training("ResourceSparseApply" + op, dtype, variables,
                     constants[:at] + gradient + constants[at:], **attrs)
        wanted = t.values()
        for i in range(STEPS):
            rows = rng.integers(0, 40, 12 if i else 0)
            if len(rows):
                rows[-1] = rows[0]
            g = wide(typed(rng.normal(size=(len(rows), 5)), dtype))
            t.step(typed(g, dtype), rows.astype(index))
            for row, part in zip(rows, g):
                formula(*(v[row] for v in wanted), part, *taken, **more)
        compare(f"ResourceSparseApply{op} {attrs} {np.dtype(index)} {np.dtype(dtype)}", t.values(), wanted, dtype)

for dtype, shape in itertools.product(TYPES, SHAPES):
    constants = [typed(np.float64(x), dtype) for x in (0.0625, 0.875, 0.9375, 2.0 ** -10)]
    t = Training("ResourceApplyAdaMax", dtype, [rng.normal(size=shape), np.zeros(shape), np.zeros(shape)],
                 [np.dtype(dtype)] + constants + [np.dtype(dtype)])
    wanted = t.values()
    for i in range(1, STEPS + 1):
        power, g = short(dtype, 0.875 ** i), wide(typed(rng.normal(size=shape), dtype))
        t.step(typed(np.float64(power), dtype), typed(g, dtype))
        ada_max(*wanted, g, power, 0.0625, 0.875, 0.9375, 2.0 ** -10)
    compare(f"ResourceApplyAdaMax {np.dtype(dtype)} {shape}", t.values(), wanted, dtype)

# ---- The optimizers, with dense and sparse gradients ----

RATE, KEEP, B1, B2, EPS = 0.05, 0.8, 0.9, 0.99, 1e-6
OPTIMIZERS = {"sgd": lambda nesterov: SGD(RATE), "momentum": lambda nesterov: Momentum(RATE, KEEP, nesterov),
              "adam": lambda nesterov: Adam(RATE, B1, B2, EPS, nesterov)}


def build(optimizer, nesterov, sparse):
    """A loss 0.5 sum (w - target)^2 over all of a variable or over some of its rows, and a train step. Runs STEPS of them."""
    start = rng.normal(size=(6, 3))
    with thalweg.Graph() as graph:
        w = thalweg.Variable(start, name=next(fresh))
        target, rows = thalweg.placeholder("float64"), thalweg.placeholder("int32")
        picked = thalweg.ops.resource_gather(w, rows, dtype="float64") if sparse else w
        loss = thalweg.ops.l2_loss(picked - target)
        gradient = thalweg.gradients(loss, w)
        cases.holds(f"{optimizer}: the gradient is sparse", isinstance(gradient, thalweg.SparseGradient) == sparse)
        train = OPTIMIZERS[optimizer](nesterov).apply([gradient], [w])
    session = thalweg.Session(graph, **tw.SESSION)
    session.run(graph.initializer())
    values, m, v = start.copy(), np.zeros((6, 3)), np.zeros((6, 3))
    for i in range(1, STEPS + 1):
        at = np.array([4, 1, 5] if i % 2 else [0, 1, 3], np.int32)
        goal = rng.normal(size=(3, 3) if sparse else (6, 3))
        feeds = {target: goal, rows: at} if sparse else {target: goal}
        session.run(train, feeds)
        if sparse:
            g = np.zeros((6, 3))
            g[at] = values[at] - goal
        else:
            g = values - goal
        if optimizer == "sgd":
            gradient_descent(values, g, RATE)
        elif optimizer == "momentum":
            for row in at if sparse else range(6):  # rows that are not named keep their momentum
                momentum(values[row], m[row], g[row], RATE, KEEP, nesterov)
        else:
            adam(values, m, v, g, i, RATE, B1, B2, EPS, nesterov)
    cases.equal(f"{optimizer} nesterov {nesterov} {'sparse' if sparse else 'dense'}", session.run(w), values,
                1e-5 if optimizer == "adam" else 1e-11)  # Adam keeps the powers of beta in float


for sparse in (False, True):
    build("sgd", False, sparse)
    for nesterov in (False, True):
        build("momentum", nesterov, sparse)
        build("adam", nesterov, sparse)

# ---- What is refused, and that nothing has changed after ----

two, three, one = np.ones(2), np.ones(3), np.float64(1)
for op, slots, inputs, parts in (
        ("ResourceApplyGradientDescent", [two], [one, three], ["[2]", "[3]"]),
        ("ResourceApplyGradientDescent", [two], [two, two], ["alpha", "[2]"]),
        ("ResourceApplyMomentum", [two, three], [one, two, one], ["[3]", "[2]"]),
        ("ResourceApplyMomentum", [two, two], [two, two, one], ["lr", "[2]"]),
        ("ResourceApplyMomentum", [two, two], [one, two, two], ["momentum", "[2]"]),
        ("ResourceApplyAdam", [two, two, three], [one] * 6 + [two], ["[3]", "[2]"]),
        ("ResourceApplyAdam", [two, two, two], [one] * 5 + [two, two], ["epsilon", "[2]"]),
        ("ResourceSparseApplyMomentum", [two, two], [one, two, np.array([0, 2], np.int32), one], ["indices", "2"]),
        ("ResourceSparseApplyMomentum", [two, two], [one, two, np.array([-1, 0], np.int64), one], ["indices", "-1"]),
        ("ResourceSparseApplyMomentum", [two, two], [one, two, np.array([2**63 - 1, 0], np.int64), one], ["indices", str(2**63 - 1)]),
        ("ResourceSparseApplyMomentum", [two, two], [one, three, np.array([0, 1], np.int32), one], ["[3]"]),
        ("ResourceSparseApplyMomentum", [one, one], [one, two, np.array([0, 0], np.int32), one], ["[]"]),
        ("ResourceApplyAdagrad", [two, three], [one, two], ["[3]", "[2]"]),
        ("ResourceApplyAdagrad", [two, two], [two, two], ["lr", "[2]"]),
        ("ResourceApplyAdagradV2", [two, two], [one, two, two], ["epsilon", "[2]"]),
        ("ResourceSparseApplyAdagrad", [two, two], [one, two, np.array([0, 2], np.int32)], ["indices", "2"]),
        ("ResourceSparseApplyAdagrad", [one, one], [one, two, np.array([0, 0], np.int32)], ["[]"]),
        ("ResourceSparseApplyAdagradV2", [two, two], [one, one, two, np.array([-1, 0], np.int64)], ["indices", "-1"]),
        ("ResourceApplyAdadelta", [two, two, three], [one, one, one, two], ["[3]", "[2]"]),
        ("ResourceApplyAdadelta", [two, two, two], [one, two, one, two], ["rho", "[2]"]),
        ("ResourceSparseApplyAdadelta", [two, two, three], [one, one, one, two, np.array([0, 1], np.int32)], ["[3]"]),
        ("ResourceApplyRMSProp", [two, two, three], [one] * 4 + [two], ["[3]", "[2]"]),
        ("ResourceApplyRMSProp", [two, two, two], [one, one, two, one, two], ["momentum", "[2]"]),
        ("ResourceSparseApplyRMSProp", [two, two, two], [one] * 4 + [three, np.array([0, 1], np.int32)], ["[3]"]),
        ("ResourceApplyCenteredRMSProp", [two, three, two, two], [one] * 4 + [two], ["[3]", "[2]"]),
        ("ResourceSparseApplyCenteredRMSProp", [two] * 4, [one] * 4 + [two, np.array([7, 1], np.int64)], ["indices", "7"]),
        ("ResourceApplyAdaMax", [two, three, two], [one] * 5 + [two], ["[3]", "[2]"]),
        ("ResourceApplyAdaMax", [two, two, two], [two] + [one] * 4 + [two], ["beta1_power", "[2]"]),
        ("ResourceApplyFtrl", [two, two, three], [two, one, one, one, -one], ["[3]", "[2]"]),
        ("ResourceApplyFtrl", [two, two, two], [two, -one, one, one, -one], ["lr is -1"]),
        ("ResourceApplyFtrl", [two, two, two], [two, 0 * one, one, one, -one], ["lr is 0"]),
        ("ResourceApplyFtrl", [two, two, two], [two, one, -one, one, -one], ["l1 is -1"]),
        ("ResourceApplyFtrl", [two, two, two], [two, one, one, one, one], ["lr_power is 1"]),
        ("ResourceApplyFtrlV2", [two, two, two], [two, one, one, one, -one, -one], ["l2_shrinkage is -1"]),
        ("ResourceSparseApplyFtrl", [two, two, two], [two, np.array([0, 5], np.int32), one, one, one, -one], ["indices", "5"]),
        ("ResourceSparseApplyFtrlV2", [two, two, two], [two, np.array([0, 1], np.int32), one, one, -one, one, -one], ["l2 is -1"])):
    where = f"{op} {[np.asarray(x).tolist() for x in slots + inputs]}"
    made = []

    def attempt():
        made.append(Training(op, np.float64, slots, inputs))
        made[0].step()

    cases.refuses(where, attempt, f"{op} 'op'", *parts)
    for got, wanted in zip(made[0].values() if made else (), slots):
        cases.equal(f"the variables after {where}", got, wanted)
graph = tw.Graph()
empty = graph.op("VarHandleOp", dtype=np.float64, shape=None, shared_name=next(fresh))
update = graph.add("ResourceApplyGradientDescent", empty, graph.constant(one), graph.constant(two), name="op")
cases.refuses("a variable without a value", lambda: graph.session().run([], targets=[update]), "ResourceApplyGradientDescent 'op'")

cases.finish()
