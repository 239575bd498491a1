"""Compares lists of tensors with Python's lists: random programs; the errors of every op; gradients against central differences; lists that
are fed, fetched, passed on and added up; and the time that pushing takes."""
import gzip
import json
import os
import pathlib
import tempfile
import time

import numpy as np

import cases
import list_programs
import tw
from thalweg import gradients

rng = np.random.default_rng(5)
i32 = lambda *v: np.array(v, np.int32)
ANY = np.int32(-1)
OPS = set("EmptyTensorList TensorListReserve TensorListPushBack TensorListPopBack TensorListGetItem TensorListSetItem TensorListLength "
          "TensorListResize TensorListElementShape TensorListStack TensorListFromTensor TensorListGather TensorListScatter "
          "TensorListScatterV2 TensorListScatterIntoExistingList TensorListConcat TensorListConcatV2 TensorListSplit TensorListConcatLists "
          "TensorListPushBackBatch".split())
covered = set()


class Lists(tw.Graph):
    """Ops on lists of one element type, with constants for arrays."""

    def __init__(self, dtype=np.float64):
        super().__init__()
        self.dtype = dtype

    def value(self, x):
        return self.constant(x) if isinstance(x, (np.ndarray, np.generic)) else x

    def do(self, op, *inputs, **attrs):
        """Adds an op and returns all outputs. op: its name without TensorList."""
        name = op if op.startswith("Empty") else "TensorList" + op
        covered.add(name)
        about = {a["name"] for a in tw.ops()[name]["attrs"]}
        if "element_dtype" in about:
            attrs.setdefault("element_dtype", self.dtype)
        return self.add(name, *map(self.value, inputs), name=attrs.pop("name", "op_" + str(self.graph_size())), **attrs).outputs

    def graph_size(self):
        self.made = getattr(self, "made", 0) + 1
        return self.made

    def __getattr__(self, op):
        if not op[0].isupper():
            raise AttributeError(op)

        def call(*inputs, **attrs):
            outputs = self.do(op, *inputs, **attrs)
            return outputs[0] if len(outputs) == 1 else outputs
        return call

    def contents(self, handle, n, shapes):
        """Returns the fetches for a list of n elements."""
        kinds = np.int32, np.int64
        return [self.Length(handle)] + [self.GetItem(handle, np.int32(k), np.array(shapes[k], kinds[k % 2])) for k in range(n)]

    def run(self, fetches, feeds=None, **options):
        return self.session(**options).run(fetches, feeds)


# ---- Random programs ----


def program(seed, options):
    """Changes a list and its model by one op after the other. Then reads every earlier list: none has changed since it was made."""
    r = np.random.default_rng(seed)
    dtype = [np.float32, np.float64, np.int32, np.int64, np.bool_, tw.string][r.integers(6)]
    shape = [(), (2,), (2, 3)][r.integers(3)]
    g, feeds = Lists(dtype), {}

    def element(*more):
        values = r.integers(0, 9, more + shape)
        texts = np.array([b"%d" % v for v in values.ravel()] + [None], object)[:-1].reshape(values.shape)
        array = texts if dtype is tw.string else values.astype(dtype)
        if r.integers(2):
            return g.constant(array), array
        fed = g.placeholder(dtype, [None, array.shape][r.integers(2)])
        feeds[fed] = array
        return fed, array

    told = ANY if r.integers(2) else i32(*shape)
    handle, model = g.EmptyTensorList(told, ANY, shape_type=np.int32), []
    met = [(handle, list(model))]
    zero = b"" if dtype is tw.string else dtype(0)
    for _ in range(r.integers(1, 15)):
        step = r.integers(9)
        at = np.int32(r.integers(len(model))) if model else None
        if step < 3 or not model:
            x, array = element()
            handle, model = g.PushBack(handle, x), model + [array]
        elif step == 3:
            handle, _ = g.PopBack(handle, i32(*shape))
            model = model[:-1]
        elif step == 4:
            x, array = element()
            handle, model = g.SetItem(handle, at, x), model[:at] + [array] + model[at + 1:]
        elif step == 5:
            n = int(r.integers(len(model) + 3))
            handle, model = g.Resize(handle, np.int32(n)), (model + [None] * n)[:n]
        elif step == 6:
            x, array = element(2)
            places = r.choice(len(model) + 1, 2, replace=False).astype(np.int32)
            handle, model = g.ScatterIntoExistingList(handle, x, places), model + [None] * (max(places) + 1 - len(model))
            for place, row in zip(places, array):
                model[place] = row
        elif step == 7:
            x, array = element(3)
            handle, model = g.FromTensor(x, told, shape_type=np.int32), list(array)
        else:
            handle, model = g.ConcatLists(handle, handle), model + model
            if len(model) > 40:
                handle, model = g.Resize(handle, np.int32(3)), model[:3]
        met.append((handle, list(model)))
    fetches, wanted = [], []
    for handle, model in met:
        whole = [np.full(shape, zero, dtype) if x is None else np.asarray(x, dtype) for x in model]
        fetches += [g.Length(handle), g.Stack(handle, i32(*shape))]
        wanted += [np.int32(len(model)), np.stack(whole) if whole else np.zeros((0, *shape), dtype)]
        if model:
            places = r.integers(0, len(model), 4).astype(np.int32)
            fetches += [g.Gather(handle, places, i32(*shape)), g.GetItem(handle, places[0], i32(*shape))]
            wanted += [np.stack([whole[p] for p in places]), whole[places[0]]]
        if model and shape:
            fetches += g.ConcatV2(handle, i32(*shape), np.zeros(0, np.int64), shape_type=np.int32)
            wanted += [np.concatenate(whole), np.full(len(model), shape[0], np.int64)]
    where = f"program {seed} on {options}"
    try:
        for k, (got, want) in enumerate(zip(g.run(fetches, feeds, **options), wanted)):
            cases.equal(f"{where}, result {k}", got, want)
    except tw.Error as error:
        cases.holds(where, False, error)


for seed in range(120):
    program(seed, [dict(), dict(optimize="false"), dict(engine="counted", threads=3, optimize="false")][seed % 3])

# ---- TensorFlow's results (list_peer.py) ----


class Ours(Lists):
    """The same methods as list_peer.Ops."""

    def __init__(self, about):
        super().__init__(np.dtype(about["dtype"]).type)
        self.shape = np.array(about["shape"], np.int32)

    def array(self, x):
        return np.asarray(x, self.dtype)

    def Empty(self, told):
        return self.do("EmptyTensorList", ANY if told is None else np.array(told, np.int32), ANY, shape_type=np.int32)[0]

    def PushBack(self, handle, x):
        return self.do("PushBack", handle, self.array(x))[0]

    def PopBack(self, handle):
        return self.do("PopBack", handle, self.shape)[0]

    def SetItem(self, handle, at, x):
        return self.do("SetItem", handle, np.int32(at), self.array(x))[0]

    def Resize(self, handle, n):
        return self.do("Resize", handle, np.int32(n))[0]

    def ScatterIntoExistingList(self, handle, rows, places):
        return self.do("ScatterIntoExistingList", handle, self.array(rows), i32(*places))[0]

    def ScatterV2(self, handle, rows, places, n):
        return self.do("ScatterV2", self.array(rows), i32(*places), self.shape, np.int32(n), shape_type=np.int32)[0]

    def sum(self, x, y):
        return self.op("AddN", x, y, N=2)

    def Stack(self, handle):
        return self.do("Stack", handle, self.shape)[0]

    def ElementShape(self, handle):
        return self.do("ElementShape", handle, shape_type=np.int32)[0]


golden = json.loads(gzip.decompress((pathlib.Path(__file__).parent / "goldens" / "lists.json.gz").read_bytes()))
for seed in list_programs.SEEDS:
    about = list_programs.program(seed)
    g = Ours(about)
    try:
        for k, (got, want) in enumerate(zip(g.run(list_programs.results(about, g)), golden[str(seed)])):
            want = np.array(want, got.dtype)
            cases.equal(f"TensorFlow's program {seed}, result {k}", got, want.reshape(got.shape) if want.size == got.size else want)
    except tw.Error as error:
        cases.holds(f"TensorFlow's program {seed}", False, error)

# ---- Results of single ops ----

g = Lists(np.float32)
rows = np.arange(12, dtype=np.float32).reshape(6, 2)
pieces = g.Split(rows, ANY, np.int64([1, 0, 3, 2]), shape_type=np.int32)
got = g.run([*g.ConcatV2(pieces, ANY, np.zeros(0, np.int64), shape_type=np.int32), *g.Concat(pieces, element_shape=(-1, 2)),
             g.GetItem(pieces, np.int32(2), ANY), g.ElementShape(pieces, shape_type=np.int64),
             g.ElementShape(g.Reserve(i32(-1, 2), np.int32(3), shape_type=np.int32), shape_type=np.int32)])
for k, want in enumerate([rows, np.int64([1, 0, 3, 2]), rows, np.int64([1, 0, 3, 2]), rows[1:4], np.int64(-1), i32(-1, 2)]):
    cases.equal(f"pieces, result {k}", got[k], want)
unset = g.Reserve(i32(-1, 2), np.int32(2), shape_type=np.int32)
one = g.SetItem(unset, np.int32(1), rows[:3])
got = g.run([*g.ConcatV2(one, i32(-1, 2), np.int64([2, 9]), shape_type=np.int32), g.GetItem(one, np.int32(0), ANY),
             g.Length(g.SetItem(unset, np.int32(4), rows[:1], resize_if_index_out_of_bounds=True)),
             g.Stack(g.ScatterV2(rows[:2], i32(3, 1), i32(2), np.int32(5), shape_type=np.int32), i32(2)),
             g.Stack(g.Scatter(rows[:2], i32(2, 0), i32(2), shape_type=np.int32), i32(2)),
             g.Stack(g.Reserve(i32(0), np.int32(0), shape_type=np.int32), i32(3) * 0)])
for k, want in enumerate([np.concatenate([np.zeros((2, 2)), rows[:3]]), np.int64([2, 3]), np.zeros((3, 2)), np.int32(5),
                          np.stack([0 * rows[0], rows[1], 0 * rows[0], rows[0], 0 * rows[0]]), np.stack([rows[1], 0 * rows[0], rows[0]]),
                          np.zeros((0, 0))]):
    cases.equal(f"elements that were never set, result {k}", got[k], want)

# Many lists in one tensor.
def pack(g, *handles):
    return g.op("Pack", *handles, N=len(handles))


g = Lists(np.float32)
both = pack(g, g.FromTensor(rows[:2], i32(2), shape_type=np.int32), g.EmptyTensorList(i32(2), ANY, shape_type=np.int32))
longer = g.PushBackBatch(both, rows[4:])
first, second = g.add("Unpack", longer, num=2).outputs
got = g.run([g.Stack(first, ANY), g.Stack(second, ANY), g.Stack(g.add("Unpack", g.ConcatLists(longer, longer), num=2).outputs[1], ANY)])
for k, want in enumerate([rows[[0, 1, 4]], rows[[5]], rows[[5, 5]]]):
    cases.equal(f"lists in one tensor, result {k}", got[k], want)

# Lists of lists.
outer = Lists(tw.thalweg.as_dtype("variant"))
inner = [outer.FromTensor(rows[:n], i32(2), shape_type=np.int32, element_dtype=np.float32) for n in (1, 3)]
nested = outer.PushBack(outer.PushBack(outer.EmptyTensorList(i32(), ANY, shape_type=np.int32), inner[0]), inner[1])
got = outer.run([outer.Stack(outer.GetItem(nested, np.int32(1), i32()), ANY, element_dtype=np.float32)])
cases.equal("a list of lists", got[0], rows[:3])

# ---- Passed on, fed, fetched, added up ----

g = Lists(np.float32)
x = g.placeholder(np.float32)
a, b = (g.FromTensor(v, i32(2), shape_type=np.int32) for v in (x, g.op("Neg", x)))
same = g.op("Identity", g.op("StopGradient", a))
sum_ = g.op("AddN", a, same, g.Resize(g.Resize(b, np.int32(1)), np.int32(6)), N=3)
zeros = g.op("ZerosLike", a)
handle = g.placeholder(tw.thalweg.as_dtype("variant"), ())
read = [g.Stack(handle, i32(2)), g.Length(g.PushBack(handle, rows[0]))]
session = g.session()
total, zero = session.run([g.Stack(sum_, i32(2)), g.Stack(zeros, i32(2))], {x: rows})
cases.equal("a sum of lists", total, np.concatenate([rows[:1], 2 * rows[1:]]))
cases.equal("a zero of a list", zero, np.zeros((6, 2)))
[fetched] = tw.thalweg.Session.run(session, [same], {x: rows}, as_tensors=True)
cases.holds("a fetched list is a variant", fetched.dtype.name == "variant" and fetched.shape == (), f"{fetched.dtype} {fetched.shape}")
for _ in range(2):
    stacked, length = [tw.to_array(t) for t in tw.thalweg.Session.run(session, read, {handle: fetched}, as_tensors=True)]
    cases.equal("a list that is fed", stacked, rows)
    cases.equal("pushing to a list that is fed leaves it alone", length, np.int32(7))
del session
[again] = tw.thalweg.Session.run(g.session(), read[:1], {handle: fetched}, as_tensors=True)
cases.equal("a list outlives its session", tw.to_array(again), rows)
texts = [np.array(x, object) for x in (os.path.join(tempfile.gettempdir(), "lists").encode(), [b"list"], [b""])]
save = g.add("SaveV2", *map(g.constant, texts), a, dtypes=[tw.thalweg.as_dtype("variant")])
cases.refuses("a list in a checkpoint", lambda: g.session().run([], {x: rows}, [save]), "variant")
cases.refuses("a list as text", lambda: g.session().run([g.op("AsString", a)], {x: rows}), "variant")
uneven = g.op("AddN", a, g.Resize(b, np.int32(2)), N=2)
cases.refuses("a sum of lists of two lengths", lambda: g.session().run([g.Stack(uneven, ANY)], {x: rows}), "AddN", "6", "2")
alone = g.Length(g.op("ZerosLike", g.placeholder(tw.thalweg.as_dtype("variant"))))
cases.refuses("a variant that is not fed", lambda: g.session().run([alone], {}), "fed")

# ---- Memory ----

g = Lists(np.float32)
x = g.placeholder(np.float32, (1000,))
handle = g.EmptyTensorList(ANY, ANY, shape_type=np.int32)
for _ in range(40):
    handle = g.PushBack(handle, g.op("Neg", x))
limited = g.session(memory_limit=str(100 << 10), disable_pass="cse")
long, short = g.Length(handle), g.Length(g.PushBack(g.EmptyTensorList(ANY, ANY, shape_type=np.int32), g.op("Neg", x)))
cases.refuses("a list of more than the session may hold", lambda: limited.run([long], {x: np.zeros(1000, np.float32)}), "memory_limit")
cases.equal("a list of less", limited.run([short], {x: np.zeros(1000, np.float32)})[0], np.int32(1))
for huge in (g.Reserve(ANY, np.int32(2**31 - 1), shape_type=np.int32), g.Resize(handle, np.int32(2**31 - 1)),
             g.SetItem(handle, np.int32(2**31 - 1), np.float32(1), resize_if_index_out_of_bounds=True),
             g.ScatterV2(rows, np.arange(6, dtype=np.int32), ANY, np.int32(2**31 - 1), shape_type=np.int32),
             g.Scatter(rows[:1], i32(2**31 - 1), ANY, shape_type=np.int32)):
    cases.refuses("a list of very many elements", lambda: limited.run([g.Length(huge)], {x: np.zeros(1000, np.float32)}), "memory_limit")

# ---- Errors ----


def refuses(op, *inputs, parts=(), dtype=np.float32, **attrs):
    """Checks that the op fails while the graph is built or, if it can be built, while it runs with everything fed."""
    def attempt(optimize):
        g, feeds = Lists(dtype), {}
        values = []
        for v in inputs:
            if callable(v):
                v = v(g)
            if isinstance(v, (np.ndarray, np.generic)) and not optimize:
                p = g.placeholder(v.dtype)
                feeds[p] = np.asarray(v)
                v = p
            values.append(v)
        outputs = g.do(op, *values, **attrs)
        return g.session(optimize=str(optimize).lower()).run([], feeds, [outputs[0].operation])
    for optimize in (True, False):
        cases.refuses(f"{op} {attrs}, optimize={optimize}", lambda: attempt(optimize), op, *map(str, parts))


def listed(n=3, shape=(2,), told=ANY):
    return lambda g: g.FromTensor(np.zeros((n, *shape), np.float32), told, shape_type=np.int32, element_dtype=np.float32)


def reserved(n=3, told=ANY):
    return lambda g: g.Reserve(told, np.int32(n), shape_type=np.int32, element_dtype=np.float32)


two = np.zeros(2, np.float32)
refuses("GetItem", listed(), np.int32(3), ANY, parts=("3", "index"))
refuses("GetItem", listed(), np.int32(-1), ANY, parts=("-1",))
refuses("GetItem", listed(), np.int32(0), ANY, parts=("float", "int32"), dtype=np.int32)
refuses("GetItem", listed(told=i32(2)), np.int32(0), i32(3), parts=("[3]", "[2]"))
refuses("GetItem", listed(), np.int32(0), i32(3), parts=("[3]", "[2]"))
refuses("PopBack", listed(), i32(3), parts=("[3]", "[2]"))
refuses("GetItem", reserved(), np.int32(0), i32(-1, 2), parts=("never set", "[?, 2]"))
refuses("GetItem", listed(), i32(0), ANY, parts=("index", "[1]"))
refuses("SetItem", listed(), np.int32(3), two, parts=("3",))
refuses("SetItem", listed(), np.int32(-1), two, parts=("-1",), resize_if_index_out_of_bounds=True)
refuses("SetItem", listed(told=i32(2)), np.int32(0), np.zeros(3, np.float32), parts=("[3]", "[2]"))
refuses("PushBack", listed(told=i32(2)), np.zeros(3, np.float32), parts=("[3]", "[2]"))
refuses("PushBack", listed(), np.int32(3), parts=("float", "int32"), dtype=np.int32)
refuses("PushBack", lambda g: g.EmptyTensorList(ANY, np.int32(0), shape_type=np.int32), two, parts=("full", "0"))
refuses("PopBack", lambda g: g.EmptyTensorList(ANY, ANY, shape_type=np.int32), ANY, parts=("empty",))
refuses("PopBack", reserved(), ANY, parts=("never set",))
refuses("Stack", listed(), ANY, parts=("3", "4"), num_elements=4)
refuses("Stack", listed(), ANY, parts=("-2",), num_elements=-2)
refuses("Stack", reserved(), ANY, parts=("unknown",))
refuses("Stack", reserved(0), i32(-1), parts=("[?]",))
refuses("Stack", lambda g: g.SetItem(listed()(g), np.int32(1), np.zeros(3, np.float32)), ANY, parts=("1", "[3]", "[2]"))
refuses("Gather", listed(), i32(0, 3), ANY, parts=("3",))
refuses("Gather", listed(), np.int32(0), ANY, parts=("indices", "[]"))
refuses("Gather", reserved(), i32(0), ANY, parts=("unknown",))
refuses("Reserve", ANY, np.int32(-1), parts=("-1",), shape_type=np.int32)
refuses("Resize", listed(), np.int32(-1), parts=("-1",))
for shape, part in ((np.int32(2), "2"), (i32(-2), "-2"), (np.zeros((1, 1), np.int32), "[1, 1]")):
    refuses("Reserve", shape, np.int32(1), parts=("element_shape", part), shape_type=np.int32)
    refuses("EmptyTensorList", shape, np.int32(1), parts=("element_shape", part), shape_type=np.int32)
refuses("FromTensor", np.float32(1), ANY, parts=("scalar",), shape_type=np.int32)
refuses("FromTensor", two, i32(1), parts=("[]",), shape_type=np.int32)
refuses("Scatter", two, i32(0), ANY, parts=("1", "2"), shape_type=np.int32)
refuses("ScatterV2", two, i32(0, -1), ANY, np.int32(3), parts=("-1",), shape_type=np.int32)
refuses("ScatterV2", two, i32(0, 3), ANY, np.int32(3), parts=("3",), shape_type=np.int32)
refuses("ScatterV2", two, i32(0, 3), ANY, np.int32(-2), parts=("-2",), shape_type=np.int32)
refuses("ScatterIntoExistingList", listed(told=i32(2)), np.zeros((1, 3), np.float32), i32(0), parts=("[3]", "[2]"))
refuses("Split", two, ANY, np.int64([1, 2]), parts=("2",), shape_type=np.int32)
refuses("Split", two, ANY, np.int64([1]), parts=("1", "2"), shape_type=np.int32)
refuses("Split", two, ANY, np.int64([3, -1]), parts=("3",), shape_type=np.int32)
refuses("Split", two, i32(1), np.int64([2]), parts=("[1]", "[2]"), shape_type=np.int32)
refuses("ConcatV2", listed(shape=()), ANY, np.int64([]), parts=("scalar",), shape_type=np.int32)
refuses("ConcatV2", reserved(1, i32(-1, 2)), ANY, np.int64([]), parts=("leading_dims",), shape_type=np.int32)
refuses("ConcatV2", reserved(1), ANY, np.int64([1]), parts=("unknown",), shape_type=np.int32)
refuses("ConcatV2", reserved(1, i32(-1, 2)), ANY, np.int64([-5]), parts=("-5",), shape_type=np.int32)
refuses("Concat", lambda g: g.SetItem(listed(shape=(2, 3))(g), np.int32(1), np.zeros((2, 4), np.float32)),
        parts=("[2, 4]",), element_shape=None)
refuses("ConcatLists", lambda g: pack(g, listed()(g)), listed(), parts=("[1]", "[]"))
refuses("ConcatLists", listed(told=i32(2)), listed(), parts=("[2]", "unknown"))
refuses("PushBackBatch", lambda g: pack(g, listed()(g)), two, parts=("2", "1"))
refuses("PushBackBatch", lambda g: pack(g, listed(told=i32(2))(g)), two[:1], parts=("[]", "[2]"))
refuses("ElementShape", lambda g: pack(g, listed()(g)), parts=("[1]",), shape_type=np.int32)

# ---- Gradients ----


def pushed(g, x):
    handle = g.EmptyTensorList(i32(2), ANY, shape_type=np.int32)
    for row in g.add("Unpack", x, num=3).outputs:
        handle = g.PushBack(handle, row)
    return handle


def rows_of(g, x):
    return g.FromTensor(x, i32(2), shape_type=np.int32)


def popped(g, x):
    rest, last = g.PopBack(rows_of(g, x), i32(2))
    return [g.Stack(rest, i32(2)), last]


def only_the_rest(g, x):
    return [g.Stack(g.PopBack(pushed(g, x), i32(2))[0], i32(2))]


def only_the_last(g, x):
    return [g.PopBack(rows_of(g, x), i32(2))[1]]


def replaced(grows):
    def build(g, x):
        item = g.GetItem(pushed(g, x), np.int32(2), i32(2))
        handle = g.SetItem(rows_of(g, x), np.int32(4 if grows else 1), item, resize_if_index_out_of_bounds=grows)
        return [g.Stack(handle, i32(2)), g.GetItem(handle, np.int32(1), i32(2))]
    return build


def pieces_of(g, x):
    handle = g.Split(x, i32(-1, 2), np.int64([1, 0, 1, 1]), shape_type=np.int32)
    again = g.SetItem(handle, np.int32(3), g.op("Square", g.GetItem(handle, np.int32(0), i32(1, 2))))
    return [g.ConcatV2(again, i32(-1, 2), np.int64([]), shape_type=np.int32)[0], g.Concat(handle, element_shape=(-1, 2))[0]]


BUILDS = {
    "pushed and stacked": lambda g, x: [g.Stack(pushed(g, x), i32(2))],
    "popped": popped, "only the rest": only_the_rest, "only the last": only_the_last,
    "set": replaced(False), "set beyond the end": replaced(True),
    "read twice": lambda g, x: [g.GetItem(h, np.int32(k), i32(2)) for h in [rows_of(g, x)] for k in (0, 2, 0)],
    "gathered": lambda g, x: [g.Gather(pushed(g, x), i32(2, 0, 2), i32(2))],
    "scattered": lambda g, x: [g.Stack(g.Scatter(x, i32(3, 0, 1), i32(2), shape_type=np.int32), i32(2))],
    "scattered into so many": lambda g, x: [g.Stack(g.ScatterV2(x, i32(3, 0, 1), i32(2), np.int32(6), shape_type=np.int32), i32(2))],
    "scattered into a list": lambda g, x: [g.Stack(g.ScatterIntoExistingList(rows_of(g, x), g.op("Square", x), i32(3, 0, 1)), i32(2))],
    "pieces": pieces_of,
    "resized": lambda g, x: [g.Stack(g.Resize(h, np.int32(n)), i32(2)) for h in [rows_of(g, x)] for n in (2, 5)],
}


def values_and_slopes(build, known):
    g = Lists()
    x = g.placeholder(np.float64, known)
    ys = [g.op("Square", y) for y in build(g, x)]
    [dx] = gradients(ys, [x])
    [ddx] = gradients([g.op("Square", dx)], [x])
    session = g.session()
    return lambda at: session.run([*ys, dx, ddx], {x: at})


for name, build in BUILDS.items():
    for known in ((3, 2), (-1, 2), None):
        where, at = f"gradient of what is {name}, known: {known}", rng.normal(size=(3, 2))
        try:
            run = values_and_slopes(build, known)
            total = lambda p: sum(y.sum() for y in run(p)[:-2])
            squares = lambda p: (run(p)[-2]**2).sum()
            *_, dx, ddx = run(at)
            for what, slope, f in (("first", dx, total), ("second", ddx, squares)):
                wanted = np.zeros_like(at)
                for k in np.ndindex(at.shape):
                    step = np.zeros_like(at)
                    step[k] = 1e-5
                    wanted[k] = (f(at + step) - f(at - step)) / 2e-5
                cases.equal(f"{what} {where}", slope, wanted, 1e-5)
        except tw.Error as error:
            cases.holds(where, False, error)
for op in ("ConcatLists", "Length", "ElementShape", "PushBackBatch"):
    g = Lists()
    x = g.placeholder(np.float64, (1, 2))
    handle = pack(g, rows_of(g, x))
    if op == "ConcatLists":
        cases.refuses(f"gradient of {op}", lambda: gradients([g.Stack(g.op("Squeeze", g.ConcatLists(handle, handle)), i32(2))], [x]), op)

# ---- In place ----


def seconds(n):
    """Returns the time of a step that pushes n times and then sets every element."""
    g = Lists(np.float32)
    x = g.placeholder(np.float32, (1,))
    handle = g.EmptyTensorList(i32(1), ANY, shape_type=np.int32)
    for _ in range(n):
        handle = g.PushBack(handle, x)
    for k in range(n):
        handle = g.SetItem(handle, np.int32(k), x)
    step = g.session(engine="fixed").step([g.Length(handle)], [x])
    step([np.zeros(1, np.float32)])
    times = []
    for _ in range(5):
        start = time.process_time()
        [length] = step([np.zeros(1, np.float32)])
        times.append(time.process_time() - start)
    cases.equal(f"{n} elements", length, np.int32(n))
    return min(times)


# A copy of 4000 pointers for each of 8000 ops takes 100 ms at least; in place it is linear. Time is the processor's, which others do not
# add to.
few, many = seconds(400), seconds(4000)
cases.holds("pushing and setting are in place", many < 40 * few, f"{few:.4f} s for 400, {many:.4f} s for 4000")


def seconds_of_a_loop(n):
    """Returns the time of a loop that pushes n times and of one that sets every element."""
    t = tw.thalweg
    with t.Graph() as graph:
        more = lambda i, handle: i < n
        push = lambda i, handle: (i + 1, t.ops.tensor_list_push_back(handle, t.ops.cast(i, DstT="float32")))
        put = lambda i, handle: (i + 1, t.ops.tensor_list_set_item(handle, i, t.ops.cast(2 * i, DstT="float32")))
        handle = t.ops.empty_tensor_list([], -1, element_dtype="float32", shape_type="int32")
        _, handle = t.while_loop(more, push, [0, handle])
        _, handle = t.while_loop(more, put, [0, handle])
        total = t.ops.tensor_list_stack(handle, [], element_dtype="float32")
        session, times = t.Session(graph), []
        for _ in range(3):
            start = time.process_time()
            [got] = session.run([total])
            times.append(time.process_time() - start)
        cases.equal(f"a loop over {n} elements", got, 2 * np.arange(n, dtype=np.float32))
    return min(times)


few, many = seconds_of_a_loop(500), seconds_of_a_loop(10000)
cases.holds("pushing and setting in a loop are in place", many < 60 * few, f"{few:.4f} s for 500, {many:.4f} s for 10000")
cases.holds("every op", covered == OPS, covered ^ OPS)
cases.finish()
