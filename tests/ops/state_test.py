"""Tests of variables: making, reading, assigning, updating rows, destroying, and sharing."""
import itertools

import numpy as np

import cases
import tw

rng = np.random.default_rng(13)
fresh = map("state{}".format, itertools.count())  # unique names, because sessions of one container share variables
FLOATS = [np.float16, tw.bfloat16, np.float32, np.float64]
WHOLE = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


class Variable:
    """A variable in a graph of its own, and the ops that a case runs on it."""

    def __init__(self, value, shape=None, name=None, container=None):
        value = np.asarray(value)
        self.dtype, self.graph = value.dtype, tw.Graph()
        self.handle = self.graph.op("VarHandleOp", dtype=self.dtype, shape=shape, shared_name=name or next(fresh), name="variable")
        self.session = self.graph.session(**{"container": container} if container else {})
        self.read_value = self.graph.op("ReadVariableOp", self.handle, dtype=self.dtype, name="read")

    def do(self, op, *inputs, **attrs):
        values = [self.graph.constant(x) for x in inputs]
        self.session.run([], targets=[self.graph.add(op, self.handle, *values, **attrs)])
        return self

    def assign(self, value, **attrs):
        return self.do("AssignVariableOp", np.asarray(value), dtype=self.dtype, **attrs)

    def read(self):
        return self.session.run([self.read_value])[0]

    def initialized(self):
        return bool(self.session.run([self.graph.op("VarIsInitializedOp", self.handle)])[0])


def variable(value):
    return Variable(value).assign(value)


def numbers(dtype, *shape):
    small = rng.integers(0, 5, shape)
    return tw.to_bfloat16(small) if dtype == tw.bfloat16 else small.astype(dtype)


def wide(array):
    return tw.from_bfloat16(array) if array.dtype == tw.bfloat16 else array


# ---- Life ----

v = Variable(np.float32(0))
cases.holds("a new variable has no value", not v.initialized())
cases.refuses("reading it", v.read, "ReadVariableOp 'read'", "variable")
cases.refuses("adding to it", lambda: v.do("AssignAddVariableOp", np.float32(1), dtype=np.float32), "AssignAddVariableOp")
v.assign(np.float32(3))
cases.holds("an assigned variable has one", v.initialized())
cases.equal("read", v.read(), np.float32(3))
v.assign(np.arange(4, dtype=np.float32))
cases.equal("a variable of unknown shape takes any", v.read(), np.arange(4))
mask = v.graph.placeholder(np.bool_)
found = v.graph.op("Cast", v.graph.op("Where", mask), SrcT=np.int64, DstT=np.float32)
v.session.run([], {mask: np.array([True, False, True])}, [v.graph.add("AssignVariableOp", v.handle, found, dtype=np.float32)])
cases.equal("one whose shape only the step tells, too", v.read(), [[0], [2]])
v.do("DestroyResourceOp")
cases.holds("a destroyed variable has no value", not v.initialized())
cases.refuses("reading it", v.read, "ReadVariableOp 'read'")
v.do("DestroyResourceOp")
cases.refuses("destroying it again", lambda: v.do("DestroyResourceOp", ignore_lookup_error=False), "DestroyResourceOp")
v.assign(np.float32(7))
cases.equal("a destroyed variable can be assigned", v.read(), np.float32(7))
cases.refuses("saving it as if a plugin kept it", lambda: v.session.run([v.graph.op("SaveResource", v.handle)]), "SaveResource",
              "is a variable")
saved = np.array([b"variable", b"1", b""], object)
cases.refuses("restoring it so", lambda: v.do("RestoreResources", saved), "RestoreResources", "is a variable")
cases.refuses("restoring two from one", lambda: v.graph.op("RestoreResources", v.handle, v.handle, v.graph.constant(saved)),
              "RestoreResources")
cases.refuses("restoring it from no vector", lambda: v.do("RestoreResources", np.array(b"x", object)), "RestoreResources", "rank 1")
cases.equal("which leaves it", v.read(), np.float32(7))

# ---- Every type goes in and comes out ----

for dtype in FLOATS + WHOLE + [np.bool_, np.complex64, np.complex128]:
    for shape in ((), (0, 2), (2, 3)):
        value = numbers(dtype, *shape)
        cases.equal(f"assign and read {np.dtype(dtype)} {shape}", wide(variable(value).read()), wide(value))
text = np.array([[b"one", b""], [b"with \0 zero", b"long " * 20]], object)
v = variable(text)
cases.equal("assign and read strings", v.read(), text)
passed = v.graph.constant(text[::-1])
for _ in range(2):  # the constant holds what the variable has
    v.session.run([], targets=[v.graph.add("AssignVariableOp", v.handle, passed, dtype=object)])
cases.equal("assign strings again", v.read(), text[::-1])
v.assign(text)
v.do("ResourceScatterUpdate", np.array([0], np.int32), text[1:], dtype=object)
cases.equal("scatter strings", v.read(), text[[1, 1]])
row = v.graph.op("ResourceGather", v.handle, v.graph.constant(np.int32(1)), dtype=object)
cases.equal("gather strings", v.session.run([row])[0], text[1])

# ---- Texts and NaN by index vectors ----

v = variable(text)
v.do("ResourceScatterNdUpdate", np.array([[1, 0]], np.int32), text[0, :1], T=object)
cases.equal("strings by index vectors", v.read(), [[b"one", b""], [b"one", b"long " * 20]])
v = variable(np.float32([np.nan, 1, 2]))
v.do("ResourceScatterNdMax", np.array([[0], [1]]), np.float32([5, np.nan]), T=np.float32)
cases.equal("NaN wins", v.read(), [np.nan, np.nan, 2])

# ---- Errors, after which nothing has changed ----

start = np.arange(6, dtype=np.float32).reshape(3, 2)
v = variable(start)
two = np.ones((2, 2), np.float32)
for op, inputs, attrs, parts in (
        ("AssignAddVariableOp", [np.ones(2, np.float32)], {}, ["[3, 2]", "[2]"]),
        ("AssignSubVariableOp", [np.ones((3, 1), np.float32)], {}, ["[3, 2]", "[3, 1]"]),
        ("AssignVariableOp", [np.ones(2, np.float32)], {"validate_shape": True}, ["[3, 2]", "[2]"]),
        ("ResourceScatterAdd", [np.array([0, 3], np.int32), two], {}, ["3"]),
        ("ResourceScatterAdd", [np.array([0, -1], np.int64), two], {}, ["-1"]),
        ("ResourceScatterSub", [np.array([0, 2**63 - 1], np.int64), two], {}, [str(2**63 - 1)]),
        ("ResourceScatterUpdate", [np.array([-2**63, 0], np.int64), two], {}, [str(-2**63)]),
        ("ResourceScatterUpdate", [np.array([0], np.int32), two], {}, ["[2, 2]"]),
        ("ResourceGather", [np.array([0, 3], np.int32)], {}, ["3"]),
        ("ResourceGather", [np.array([-1], np.int64)], {}, ["-1"]),
        ("ResourceGather", [np.array([0], np.int64)], {"batch_dims": -1}, ["-1"]),
        ("ResourceGather", [np.array([0], np.int64)], {"batch_dims": 2}, ["2"]),
        ("ResourceGatherNd", [np.array([[0, 3]], np.int32)], {}, ["3"]),
        ("ResourceGatherNd", [np.array([[-1]], np.int64)], {}, ["-1"]),
        ("ResourceGatherNd", [np.array([[0, 0, 0]], np.int64)], {}, ["[3, 2]"]),
        ("ResourceGatherNd", [np.int32(0)], {}, ["indices"]),
        *((f"ResourceScatterNd{name}", inputs, attrs, parts) for name in ("Update", "Add", "Sub", "Max", "Min") for inputs, attrs, parts in (
            ([np.array([[0], [3]], np.int32), two], {}, ["3"]),
            ([np.array([[0], [-1]], np.int64), two], {}, ["-1"]),
            ([np.array([[0], [2**63 - 1]], np.int64), two], {}, [str(2**63 - 1)]),
            ([np.array([[0]], np.int32), two], {}, ["[2, 2]"]),
            ([np.array([[0, 0, 0]], np.int32), two[0, :1]], {}, ["[3, 2]"]),
            ([np.int32(0), two], {}, ["indices"]),
            ([np.array([[0], [1]], np.int32), two], {"bad_indices_policy": "SHRUG"}, ["SHRUG"])))):
    where = f"{op} {[i.tolist() for i in inputs]} {attrs}"
    attrs = attrs | {"T" if "ScatterNd" in op else "dtype": np.float32}
    cases.refuses(where, lambda: v.do(op, *inputs, name="refused" + next(fresh), **attrs), op, "refused", *parts)
    cases.equal(f"the variable after {where}", v.read(), start)
cases.refuses("another type", lambda: v.do("AssignVariableOp", np.int32(1), dtype=np.int32), "AssignVariableOp", "int32", "float")
cases.refuses("a shape that the handle excludes", lambda: Variable(start, shape=(3, 2)).assign(two), "AssignVariableOp", "[3, 2]", "[2, 2]")
other = tw.Graph()
handle = other.op("VarHandleOp", dtype=np.int32, shape=None, shared_name=next(fresh))
cases.refuses("reading as another type", lambda: other.op("ReadVariableOp", handle, dtype=np.float32), "ReadVariableOp", "int32", "float")
scalar = variable(np.float32(1))
cases.refuses("rows of a scalar", lambda: scalar.do("ResourceScatterAdd", np.int32(0), np.float32(1), dtype=np.float32), "scalar")

# ---- Names, containers, sessions ----

name = next(fresh)
first, second = (Variable(np.float64(0), name=name, container="shared") for _ in range(2))
unasked = Variable(np.float64(0), name=name)
elsewhere = Variable(np.float64(0), name=name, container="elsewhere")
first.assign(np.float64(5))
cases.equal("sessions of one container share variables by name", second.read(), np.float64(5))
cases.holds("another graph has its own", not unasked.initialized())
cases.holds("another container has its own", not elsewhere.initialized())
elsewhere.assign(np.float64(6))
second.do("AssignAddVariableOp", np.float64(1), dtype=np.float64)
cases.equal("an update by another session", first.read(), np.float64(6))
cases.equal("the other container's is untouched", elsewhere.read(), np.float64(6))
wrong = Variable(np.int32(0), name=name, container="shared")
cases.refuses("the same name as another type", wrong.read, "ReadVariableOp", "double", "int32")

# ---- Order within a step, and values that were fetched ----

graph = tw.Graph()
handle = graph.op("VarHandleOp", dtype=np.int64, shape=(2,), shared_name=next(fresh))
assign = graph.add("AssignVariableOp", handle, graph.constant(np.array([1, 2])), dtype=np.int64)
before = graph.op("ReadVariableOp", handle, dtype=np.int64, after=[assign])
more = graph.add("AssignAddVariableOp", handle, graph.op("Mul", before, graph.constant(np.int64(10))), dtype=np.int64)
after = graph.op("ReadVariableOp", handle, dtype=np.int64, after=[more])
session = graph.session()
for _ in range(3):
    got = session.run([before, after])
    cases.equal("a value read before an update keeps what it was", got[0], [1, 2])
    cases.equal("a read behind a control edge sees the update", got[1], [11, 22])
v = variable(np.zeros(3))
held = v.read()
v.do("AssignAddVariableOp", np.ones(3), dtype=np.float64)
cases.equal("a fetched value does not change", held, [0, 0, 0])
held = v.read()
v.assign(np.full(3, 5.0))
cases.equal("nor when the variable is assigned", held, [1, 1, 1])
cases.equal("which has the new one then", v.read(), [5, 5, 5])
v.do("AssignAddVariableOp", np.ones(3), dtype=np.float64)
cases.equal("and what is added to that", v.read(), [6, 6, 6])
fed = graph.placeholder(np.int64)
passed = graph.add("AssignVariableOp", handle, fed, dtype=np.int64)
value = np.array([8, 9])
session.run([], {fed: value}, [passed])
value[0] = -1
cases.equal("a variable does not share the caller's memory", session.run([graph.op("ReadVariableOp", handle, dtype=np.int64)])[0], [8, 9])
graph = tw.Graph()
one, other = (graph.op("VarHandleOp", dtype=np.float32, shape=None, shared_name=next(fresh)) for _ in range(2))
fed = graph.placeholder(np.float32)
assign = graph.add("AssignVariableOp", one, fed, dtype=np.float32)
share = graph.add("AssignVariableOp", other, graph.op("ReadVariableOp", one, dtype=np.float32), dtype=np.float32)
session = graph.session(memory_limit=10_000)  # 4,000 bytes shared and 4,000 fed: none are left for a copy
session.run([], {fed: np.zeros(1000, np.float32)}, [assign])
session.run([], targets=[share])
session.run([], {fed: np.ones(1000, np.float32)}, [assign])
both = graph.session().run([graph.op("ReadVariableOp", v, dtype=np.float32) for v in (one, other)])
cases.equal("a shared value that is replaced is not copied first", [x[0] for x in both], [1, 0])

cases.finish()
