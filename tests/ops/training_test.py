"""Compares the optimizers that tw_train_... builds with their formulas in float64, twenty steps each, with dense and sparse gradients; and
tests the errors of their ops."""
import itertools

import numpy as np

import cases
import thalweg
import tw
from thalweg.train import SGD, Adam, Momentum

rng = np.random.default_rng(17)
fresh = map("training{}".format, itertools.count())
STEPS = 20


def typed(array, dtype):
    return tw.to_bfloat16(array) if dtype == tw.bfloat16 else np.asarray(array, dtype)


def wide(array):
    return (tw.from_bfloat16(array) if array.dtype == tw.bfloat16 else array).astype(np.float64)


class Training:
    """Variables with initial values, and one op on them whose other inputs are fed."""

    def __init__(self, op, dtype, slots, inputs, **attrs):
        """slots: initial values. inputs: arrays, or the type of a feed of each step."""
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


# ---- The optimizers, with dense and sparse gradients ----

RATE, KEEP, B1, B2, EPS = 0.05, 0.8, 0.9, 0.99, 1e-6
OPTIMIZERS = {"sgd": lambda nesterov: SGD(RATE), "momentum": lambda nesterov: Momentum(RATE, KEEP, nesterov),
              "adam": lambda nesterov: Adam(RATE, B1, B2, EPS, nesterov)}


def build(optimizer, nesterov, sparse):
    """Builds a loss 0.5 sum (w - target)^2 over all of a variable or some of its rows, and a train step. Runs STEPS steps."""
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
            for row in at if sparse else range(6):  # rows without a gradient keep their momentum
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

# ---- Errors, after which nothing has changed ----

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
        ("ResourceApplyKerasMomentum", [two, three], [one, two, one], ["[3]", "[2]"]),
        ("ResourceApplyKerasMomentum", [two, two], [one, two, two], ["momentum", "[2]"]),
        ("ResourceSparseApplyKerasMomentum", [two, two], [one, two, np.array([0, 2], np.int32), one], ["indices", "2"]),
        ("ResourceApplyAdamWithAmsgrad", [two, two, two, three], [one] * 6 + [two], ["[3]", "[2]"]),
        ("ResourceApplyAdamWithAmsgrad", [two] * 4, [one] * 5 + [two, two], ["epsilon", "[2]"]),
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
