"""Tests of variables by reference, as in graphs older than handles: the order of reads, sharing, errors, and the same numbers as the ops
with handles."""
import itertools

import numpy as np

import cases
import thalweg
import tw

rng = np.random.default_rng(29)
fresh = map("reference{}".format, itertools.count())  # unique names, because sessions of one container share variables
FLOATS = [np.float16, tw.bfloat16, np.float32, np.float64]
WHOLE = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
ENGINES = ({}, {"engine": "fixed"}, {"engine": "counted"}, {"optimize": False})


class Variable:
    """A variable by reference, in a graph of its own."""

    def __init__(self, value, shape=None, name=None, op="VariableV2", **attrs):
        value = np.asarray(value)
        self.dtype, self.graph, self.name = value.dtype, tw.Graph(), name or next(fresh)
        self.ref = self.graph.op(op, dtype=self.dtype, shape=shape, name=self.name, **attrs)
        self.session = self.graph.session(container="reference")

    def add(self, op, *inputs, **attrs):
        """Adds an op on the variable and these constants. Returns its output 0."""
        return self.graph.op(op, self.ref, *(x if isinstance(x, tw.Output) else self.graph.constant(x) for x in inputs), **attrs)

    def do(self, op, *inputs, **attrs):
        """Runs the op. Returns the value that its output refers to at that time."""
        return self.session.run([self.add(op, *inputs, **attrs)])[0]

    def read(self):
        return self.session.run([self.ref])[0]

    def initialized(self):
        return bool(self.do("IsVariableInitialized"))


def variable(value, **more):
    v = Variable(value, **more)
    v.do("Assign", value)
    return v


def numbers(dtype, *shape):
    small = rng.integers(0, 5, shape)
    return tw.to_bfloat16(small) if dtype == tw.bfloat16 else small.astype(dtype)


def wide(array):
    return tw.from_bfloat16(array) if array.dtype == tw.bfloat16 else array


# ---- Life ----

v = Variable(np.float32(0))
cases.holds("a new variable has no value", not v.initialized())
cases.refuses("fetching it", v.read, v.name, "not initialised")
identity = v.graph.op("Identity", v.ref, name="reader")
cases.refuses("reading it", lambda: v.session.run([identity]), "Identity 'reader'", f"'{v.name}' is not initialised")
cases.refuses("adding to it", lambda: v.do("AssignAdd", np.float32(1), name="sum"), "AssignAdd 'sum'", "no value")
cases.equal("what an assignment hands on", v.do("Assign", np.float32(3)), np.float32(3))
cases.holds("an assigned variable has a value", v.initialized())
cases.equal("fetched", v.read(), np.float32(3))
cases.equal("read", v.session.run([identity])[0], np.float32(3))
other = Variable(np.float32(0), name=v.name)
cases.equal("another graph's node of that name", other.read(), np.float32(3))
other.do("AssignAdd", np.float32(1))
handle = other.graph.op("VarHandleOp", dtype=np.float32, shape=None, shared_name=v.name)
cases.equal("a handle of that name", other.session.run([other.graph.op("ReadVariableOp", handle, dtype=np.float32)])[0], np.float32(4))
cases.holds("another container has its own", not Variable(np.float32(0), name=v.name, container="elsewhere").initialized())
shared = Variable(np.float32(0), name=next(fresh), shared_name=v.name)
cases.equal("shared_name comes before the node's name", shared.read(), np.float32(4))
old = Variable(np.float32(0), shape=(), op="Variable")
cases.equal("in the older op [] is any shape", old.do("Assign", np.float32([1, 2])), [1, 2])
cases.holds("a new op of that name has no value in another container",
            not Variable(np.float32(0), name=old.name, container="elsewhere").initialized())

for engine in ENGINES:
    v = variable(np.float32(0), shape=())
    v.session = v.graph.session(container="reference", **engine)
    v.do("Assign", np.float32([1, 2, 3]), validate_shape=False)
    cases.equal(f"a scalar that became a vector is read as one, {engine}", v.read(), np.float32([1, 2, 3]))
    cases.equal(f"and what is computed of it has its shape, {engine}", v.do("Neg"), np.float32([-1, -2, -3]))
    cases.equal(f"also the shape itself, {engine}", v.do("Shape"), np.int32([3]))

# ---- Every type goes in and comes out; updates against NumPy ----

for dtype in FLOATS + WHOLE + [np.bool_, np.complex64, np.complex128]:
    for shape in ((), (0, 2), (2, 3)):
        value = numbers(dtype, *shape)
        v = Variable(value, shape=shape)
        cases.equal(f"assign and read {np.dtype(dtype)} {shape}", wide(v.do("Assign", value)), wide(value))
        cases.equal(f"fetch {np.dtype(dtype)} {shape}", wide(v.read()), wide(value))
text = np.array([[b"one", b""], [b"with \0 zero", b"long " * 20]], object)
v = variable(text)
cases.equal("strings", v.do("ScatterUpdate", np.array([0], np.int32), text[1:]), text[[1, 1]])
for dtype in FLOATS + WHOLE:
    for shape in ((), (3,), (2, 0), (33, 65)):
        x, y = numbers(dtype, *shape), numbers(dtype, *shape)
        for op, f in (("AssignAdd", np.add), ("AssignSub", np.subtract)):
            cases.equal(f"{op} {np.dtype(dtype)} {shape}", wide(variable(x).do(op, y)), f(wide(x), wide(y)))
    for index in (np.int32, np.int64):
        ids, x, y = np.array([2, 0, 2], index), numbers(dtype, 5, 4), numbers(dtype, 3, 4)
        for op, f in (("ScatterAdd", np.add), ("ScatterSub", np.subtract)):
            wanted = wide(x).copy()
            f.at(wanted, ids, wide(y))
            cases.equal(f"{op} {np.dtype(dtype)} {np.dtype(index)}", wide(variable(x).do(op, ids, y)), wanted)
        wanted = wide(x).copy()
        for i, row in zip(ids, wide(y)):
            wanted[i] = row
        cases.equal(f"ScatterUpdate {np.dtype(dtype)} {np.dtype(index)}", wide(variable(x).do("ScatterUpdate", ids, y)), wanted)

# ---- A reference is read when the node that wants its value starts ----

for options in ENGINES:
    graph = tw.Graph()
    ref = graph.op("VariableV2", dtype=np.float64, shape=(2,), name=next(fresh))
    const = lambda *values: graph.constant(np.float64(values))  # noqa: E731
    start = graph.op("Assign", ref, const(1, 2), name="start")
    first = graph.op("Mul", ref, const(10, 10), after=[graph.graph.operation("start")], name="first")
    update = graph.op("AssignAdd", ref, const(1, 1), after=[graph.graph.operation("first")], name="update")
    second = graph.op("Mul", ref, const(10, 10), after=[graph.graph.operation("update")])
    alike = graph.op("Mul", ref, const(10, 10), after=[graph.graph.operation("update")])
    passed = graph.op("Identity", ref, after=[graph.graph.operation("update")])
    given = graph.op("Mul", update, const(10, 10))
    shown = graph.op("Mul", graph.op("Identity", ref), const(10, 10), after=[graph.graph.operation("update")])
    row = graph.op("ExpandDims", ref, graph.constant(np.int32(0)))
    flat = graph.op("Reshape", graph.op("Identity", row), graph.constant(np.int32([-1])))
    renamed = graph.op("Mul", graph.op("EnsureShape", flat, shape=(2,)), const(10, 10), after=[graph.graph.operation("update")])
    several = graph.add("IdentityN", graph.constant(np.int32(0)), graph.op("Squeeze", row), T=[np.int32, np.float64])
    second_of = graph.op("Mul", several.outputs[1], const(10, 10), after=[graph.graph.operation("update")])
    late = graph.op("AddV2", ref, graph.op("Mul", update, const(0, 0)))  # waits for the update by its other input
    both = graph.op("AddV2", ref, update)
    twice = graph.op("Mul", ref, ref, after=[graph.graph.operation("update")])
    session = graph.session(**options)
    for _ in range(3):
        wanted = [[10, 20], [20, 30], [20, 30], [2, 3], [20, 30], [2, 3], [4, 6], [4, 9], [2, 3], [20, 30], [20, 30], [20, 30]]
        got = session.run([first, second, alike, passed, given, late, both, twice, update, shown, renamed, second_of])
        for what, g, w in zip("first second alike passed given late both twice update shown renamed second_of".split(), got, wanted):
            cases.equal(f"{what} with {options}", g, w)

    chain = graph.op("Assign", ref, const(0, 0), name="zeros")
    for k in range(4):
        chain = graph.op("AssignAdd", chain, const(k, 1))
    chain = graph.op("ScatterUpdate", chain, graph.constant(np.int32([0])), const(7))
    cases.equal(f"ops on what other ops hand on, with {options}", session.run([chain])[0], [7, 4])
    squares = graph.op("Assign", ref, graph.op("Square", ref), name="squares")
    cases.equal(f"a variable becomes what follows from it, with {options}", session.run([squares])[0], [49, 16])
    before = session.run([ref])[0]
    session.run([], targets=[graph.graph.operation("zeros")])
    cases.equal(f"a fetched value does not change, with {options}", before, [49, 16])

many = tw.Graph()
refs = [many.op("VariableV2", dtype=np.float32, shape=(), name=next(fresh)) for _ in range(100)]
filled = [many.op("Assign", ref, many.constant(np.float32(k))) for k, ref in enumerate(refs)]
cases.equal("one node reads a hundred", many.session().run([many.op("AddN", *filled, N=100)])[0], np.float32(4950))

# ---- Feeding ----

v = variable(np.float64([1, 2]), shape=(2,))
doubled = v.graph.op("AddV2", v.ref, v.ref)
got = v.session.run([doubled, v.ref], {v.ref: np.float64([5, 6])})
cases.equal("a fed reference is a value", got[0], [10, 12])
cases.equal("also when it is fetched", got[1], [5, 6])
cases.equal("which the variable does not see", v.read(), [1, 2])
update = v.add("AssignAdd", np.float64([1, 1]), name="update")
cases.refuses("updating what is fed", lambda: v.session.run([update], {v.ref: np.float64([5, 6])}), "AssignAdd 'update'", v.name, "fed")
cases.refuses("feeding another shape", lambda: v.session.run([doubled], {v.ref: np.zeros(3)}), "[3]", "[2]")
cases.equal("feeding what an op hands on", v.session.run([v.graph.op("Neg", update)], {update: np.float64([1, 1])})[0], [-1, -1])
cases.equal("does nothing to the variable", v.read(), [1, 2])

# ---- Errors, after which nothing has changed ----

start = np.arange(6, dtype=np.float32).reshape(3, 2)
v = variable(start, shape=(3, 2))
two = np.ones((2, 2), np.float32)
for op, inputs, attrs, parts in (
        ("Assign", [two], {}, ["[3, 2]", "[2, 2]"]),
        ("Assign", [np.ones((3, 2), np.int32)], {}, ["float", "int32"]),
        ("AssignAdd", [np.ones(2, np.float32)], {}, ["[3, 2]", "[2]"]),
        ("AssignSub", [np.ones((3, 1), np.float32)], {}, ["[3, 2]", "[3, 1]"]),
        ("ScatterAdd", [np.array([0, 3], np.int32), two], {}, ["3"]),
        ("ScatterSub", [np.array([0, -1], np.int64), two], {}, ["-1"]),
        ("ScatterUpdate", [np.array([0], np.int32), two], {}, ["[2, 2]"])):
    where = f"{op} {[i.tolist() for i in inputs]}"
    cases.refuses(where, lambda: v.do(op, *inputs, name="refused" + next(fresh), **attrs), op, "refused", *parts)
    cases.equal(f"the variable after {where}", v.read(), start)
value = v.graph.constant(start)
cases.refuses("a value for a reference", lambda: v.graph.op("AssignAdd", value, value, name="op"), "AssignAdd 'op'", "'ref' is a value")
passed = v.graph.op("Identity", v.ref)
cases.refuses("what was read for a reference", lambda: v.graph.op("Assign", passed, value, name="op"), "Assign 'op'", "'ref' is a value")
handle = v.graph.op("VarHandleOp", dtype=np.float32, shape=None)
cases.refuses("a handle for a reference", lambda: v.graph.op("Assign", handle, value, name="op"), "Assign 'op'", "'ref' is a value")
cases.refuses("a reference for a handle", lambda: v.graph.op("AssignVariableOp", v.ref, value, name="op"), "AssignVariableOp 'op'",
              "must be resource", "float_ref")
cases.refuses("a type that is a reference", lambda: v.graph.op("Identity", v.ref, T=thalweg.DType(101, "float_ref"), name="op"), "Identity 'op'", "float_ref")
wrong = Variable(np.int32(0), name=v.name)
cases.refuses("the same name as another type", wrong.read, v.name, "float", "int32")
rows = Variable(np.float32([1, 2]), name=v.name, shape=(2,))
cases.refuses("the same name with another shape", rows.read, v.name, "[3, 2]", "[2]")
v = variable(np.float64(1))
cases.equal("of unknown shape it takes any", v.do("Assign", np.float64([1, 2]), validate_shape=False), [1, 2])
fixed = variable(start, shape=(3, 2))
total = fixed.graph.op("Sum", fixed.graph.op("Identity", fixed.ref), fixed.graph.constant(np.int32([0])))
cases.equal("a declared shape is what plans go by", fixed.session.run([total])[0], start.sum(0))
fed = fixed.graph.placeholder(np.float32)
for other in (two, np.float32([[1, 2, 3]]), start):
    changed = fixed.graph.op("Assign", fixed.ref, fed, validate_shape=False)
    cases.equal("until an assignment may change it", fixed.session.run([changed], {fed: other})[0], other)
    again = fixed.graph.op("Sum", fixed.ref, fixed.graph.constant(np.int32([0])))
    cases.equal("to any other", fixed.session.run([again])[0], other.sum(0))
    cases.equal("also where it was planned before", fixed.session.run([total])[0], other.sum(0))
cases.refuses("unless shapes are compared", lambda: v.do("Assign", np.float64([1, 2, 3])), "Assign", "[2]", "[3]")

# ---- Gradients, like those of any value ----

w = rng.normal(size=(3, 2))
v = variable(w, shape=(3, 2))
x = v.graph.constant(rng.normal(size=(4, 3)))
loss = v.graph.op("L2Loss", v.graph.op("MatMul", x, v.ref))
gradient, = thalweg.gradients([loss], [v.ref])
product = v.session.run([x])[0]
cases.equal("the gradient for a reference", v.session.run([gradient])[0], product.T @ product @ w, 1e-12)
row = v.graph.op("L2Loss", v.graph.op("GatherV2", v.ref, v.graph.constant(np.int32([1, 1])), v.graph.constant(np.int32(0))))
sparse, = thalweg.gradients([row], [v.ref])
cases.holds("a sparse gradient stays sparse", isinstance(sparse, thalweg.SparseGradient))
nothing = v.graph.op("L2Loss", v.add("AssignAdd", w))
cases.refuses("through an update", lambda: thalweg.gradients([nothing], [v.ref]), "AssignAdd", "not differentiable")

# ---- Optimizers: the same bits as with handles ----

SLOTS = {"GradientDescent": (0, 1), "Momentum": (1, 1), "Adagrad": (1, 1), "Adadelta": (2, 3), "RMSProp": (2, 4), "Adam": (2, 6), "Ftrl": (2, 0)}
FACTORS = {"GradientDescent": [0.5], "Momentum": [0.5, 0.75], "Adagrad": [0.5], "Adadelta": [0.5, 0.875, 0.25], "Ftrl": [0.5, 0.125, 0.25, -0.5],
           "RMSProp": [0.5, 0.875, 0.75, 0.25], "Adam": [0.75, 0.5, 0.0625, 0.875, 0.9375, 0.25]}
for (name, (slots, at)), dtype in itertools.product(SLOTS.items(), FLOATS):
    typed = tw.to_bfloat16 if dtype == tw.bfloat16 else lambda a: np.asarray(a, dtype)  # noqa: E731
    graph, starts = tw.Graph(), [typed(rng.uniform(0.5, 1, (3, 4))) for _ in range(1 + slots)]
    session, fed = graph.session(), graph.placeholder(dtype)
    refs = [graph.op("VariableV2", dtype=dtype, shape=(3, 4), name=next(fresh)) for _ in starts]
    handles = [graph.op("VarHandleOp", dtype=dtype, shape=(3, 4), shared_name=next(fresh)) for _ in starts]
    factors = [graph.constant(typed(f)) for f in FACTORS[name]]
    factors.insert(at, fed)
    session.run([graph.op("Assign", ref, graph.constant(x)) for ref, x in zip(refs, starts)],
                targets=[graph.add("AssignVariableOp", h, graph.constant(x), dtype=dtype) for h, x in zip(handles, starts)])
    by_reference = graph.op("Apply" + name, *refs, *factors)
    by_handle = graph.add("ResourceApply" + name, *handles, *factors)
    for _ in range(20):
        g = typed(rng.normal(size=(3, 4)))
        changed = session.run([by_reference], {fed: g}, [by_handle])[0]
    wanted = session.run([graph.op("ReadVariableOp", h, dtype=dtype) for h in handles])
    got = session.run(refs)
    cases.equal(f"what Apply{name} {np.dtype(dtype)} hands on", wide(changed), wide(wanted[0]))
    for k, (a, b) in enumerate(zip(got, wanted)):
        cases.holds(f"Apply{name} {np.dtype(dtype)}: variable {k}", a.tobytes() == b.tobytes(), f"{a}, by handle {b}")
cases.refuses("slots of another shape", lambda: v.graph.op(
    "ApplyMomentum", v.ref, v.graph.op("VariableV2", dtype=np.float64, shape=(2,)), v.graph.constant(np.float64(1)), v.graph.constant(w),
    v.graph.constant(np.float64(1)), name="op"), "ApplyMomentum 'op'", "[2]", "[3, 2]")

# ---- In the binding ----

v = variable(np.float64([1, 2]), shape=(2,))
found, = v.graph.graph.variables()
cases.holds("the binding lists it", found.name == v.name and found.dtype.name == "float64" and found.shape == (2,))
cases.equal("it stands for its value", np.asarray(v.session.run([found + 1])[0]), [2, 3])
v.session.run([], targets=[found.assign(v.graph.constant(np.float64([5, 6])))])
v.session.run([], targets=[found.assign_add(v.graph.constant(np.float64([1, 1])))])
v.session.run([], targets=[found.assign_sub(v.graph.constant(np.float64([2, 2])))])
cases.equal("assigned and updated", v.session.run([found.read()])[0], [4, 5])
cases.holds("it has a value", bool(v.session.run([found.initialized()])[0]))

# ---- As a GraphDef ----

v = variable(np.float64([1, 2]), shape=(2,))
v.add("AssignAdd", np.float64([1, 1]), name="update")
v.graph.op("Neg", v.graph.graph.output("update"), name="negated")
again = thalweg.Graph.from_bytes(v.graph.graph.to_bytes())
session = tw.Session(again, container="reference")
cases.equal("a graph that was written and read", session.run([again.output("negated")])[0], [-2, -3])
cases.equal("works on the same variable", v.read(), [2, 3])
cases.holds("written again it is the same", again.to_bytes() == v.graph.graph.to_bytes())

cases.finish()
