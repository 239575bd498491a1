"""Compares hash tables with Python's dicts: random programs, every type of keys, errors, files, and many threads on one table."""
import os
import tempfile
import threading

import numpy as np

import cases
import tw

rng = np.random.default_rng(3)
text = lambda *t: np.array(t, object)
KEYS = [np.int32, np.int64, np.int8, np.uint16, np.float32, np.float64, np.bool_, tw.string]
VALUES = [np.float32, np.int64, tw.string, np.bool_, np.complex64, np.int8]


class Tables(tw.Graph):
    """A graph whose tables have unique names, and one session on it."""
    made = 0

    def __init__(self):
        super().__init__()
        Tables.made += 1
        self.name, self.now = f"table {Tables.made}", None

    def table(self, key, value, op="MutableHashTableV2", inputs=(), **more):
        self.types = dict(key_dtype=key, value_dtype=value)
        return self.op(op, *map(self.constant, inputs), shared_name=self.name, **self.types, **more)

    def run(self, op, *inputs, **attrs):
        """Runs one op now."""
        operation = self.add(op, *[self.constant(x) if isinstance(x, (np.ndarray, np.generic)) else x for x in inputs], name=None, **attrs)
        self.now = self.now or self.session()
        outputs = operation.outputs
        return self.now.run(outputs, targets=[] if outputs else [operation])

    def find(self, table, keys, default):
        return self.run("LookupTableFindV2", table, keys, default)[0]

    def export(self, table):
        keys, values = self.run("LookupTableExportV2", table, Tkeys=self.types["key_dtype"], Tvalues=self.types["value_dtype"])
        return keys, values


def drawn(dtype, shape):
    """Draws values, of which only few are different."""
    n = rng.integers(0, 30, shape)
    if dtype is tw.string:
        return np.array([*(b"key " * (v % 3) + b"%d" % v for v in np.ravel(n)), None], object)[:-1].reshape(shape)
    return np.asarray(n, np.int64).astype(dtype)


def key_of(array):
    return tuple(np.ravel(array).tolist())


def check(where, g, table, model, keys_shape, default):
    probe = drawn(g.types["key_dtype"], (40, *keys_shape))
    wanted = np.array([*(model.get(key_of(k), default) for k in probe)], default.dtype).reshape(40, *default.shape)
    cases.equal(f"{where}: find", g.find(table, probe, default), wanted)
    cases.equal(f"{where}: size", g.run("LookupTableSizeV2", table)[0], np.int64(len(model)))
    keys, values = g.export(table)
    found = {key_of(k): v for k, v in zip(keys, values)}
    same = found.keys() == model.keys() and all(np.array_equal(found[k], model[k]) for k in found)
    cases.holds(f"{where}: export", same and len(keys) == len(model), f"{found} is not {model}")


def program(kind, key, value):
    g, key_shape, value_shape, more, inputs = Tables(), (), (), {}, ()
    if kind != "MutableHashTableV2":
        value_shape = [(), (3,), (2, 2)][rng.integers(3)]
        more = dict(value_shape=value_shape)
    if kind == "MutableDenseHashTableV2":
        key_shape = [(), (2,)][rng.integers(2)]
        inputs = [np.full(key_shape, b"%d" % n, object) if key is tw.string else np.full(key_shape, n).astype(key) for n in (120, 121)]
    table, model = g.table(key, value, kind, inputs, **more), {}
    where = f"{kind} of {np.dtype(key)} and {np.dtype(value)}, {key_shape} and {value_shape}"
    default = drawn(value, value_shape)
    try:
        for step in range(8):
            shape = [(5,), (2, 3), (), (0,), (300,)][rng.integers(5)]
            keys, values = drawn(key, shape + key_shape), drawn(value, shape + value_shape)
            flat = list(zip(keys.reshape(-1, *key_shape), values.reshape(-1, *value_shape)))
            if step % 4 == 2:
                g.run("LookupTableRemoveV2", table, keys)
                for k, _ in flat:
                    model.pop(key_of(k), None)
            elif step % 4 == 3 and rng.integers(2):
                g.run("LookupTableImportV2", table, keys, values)
                model = {key_of(k): np.array(v) for k, v in flat}
            else:
                g.run("LookupTableInsertV2", table, keys, values)
                model.update((key_of(k), np.array(v)) for k, v in flat)
            check(f"{where}, step {step}", g, table, model, key_shape, default)
    except tw.Error as error:
        cases.holds(where, False, error)


for key in KEYS:
    for value in VALUES:
        program("MutableHashTableV2", key, value)
    program("MutableHashTableOfTensorsV2", key, VALUES[rng.integers(len(VALUES))])
for key in (np.int32, np.int64, np.int16, np.float32, tw.string):
    for value in (np.float32, tw.string):
        program("MutableDenseHashTableV2", key, value)

# ---- Tables that are filled once ----

g = Tables()
table = g.table(np.int64, tw.string, "HashTableV2")
cases.refuses("a table before its initializer", lambda: g.find(table, np.int64([1]), np.array(b"?", object)), "FindV2", "initialise")
fill = lambda keys, values: g.run("InitializeTableV2", table, np.int64(keys), text(*values))
cases.refuses("a key with two values", lambda: fill([1, 2, 1], [b"a", b"b", b"c"]), "2", "before")
cases.refuses("more keys than values", lambda: fill([1, 2], [b"a"]), "[2]", "[1]")
fill([1, 2, 1], [b"a", b"b", b"a"])
fill([2, 1], [b"b", b"a"])  # the same entries again
cases.equal("a table that is filled", g.find(table, np.int64([[1, 2, 3]]), np.array(b"?", object)), text(b"a", b"b", b"?").reshape(1, 3))
cases.equal("an own default for each key", g.find(table, np.int64([1, 3, 4]), text(b"x", b"y", b"z")), text(b"a", b"y", b"z"))
cases.refuses("a table filled twice", lambda: fill([1], [b"a"]), "before")
cases.refuses("a table filled with others", lambda: fill([1, 2], [b"a", b"c"]), "before")
cases.refuses("inserting into it", lambda: g.run("LookupTableInsertV2", table, np.int64([9]), text(b"z")),
              "HashTableV2", "MutableHashTableV2")
cases.refuses("removing from it", lambda: g.run("LookupTableRemoveV2", table, np.int64([1])), "HashTableV2")
cases.refuses("importing others into it", lambda: g.run("LookupTableImportV2", table, np.int64([1]), text(b"z")), "before")
g.run("LookupTableImportV2", table, np.int64([2, 1]), text(b"b", b"a"))  # the same entries again
cases.equal("its size after all that", g.run("LookupTableSizeV2", table)[0], np.int64(2))

# An import also initializes a table; TensorFlow restores such a table in this way.
g = Tables()
table = g.table(np.int64, tw.string, "HashTableV2")
cases.refuses("importing a key with two values", lambda: g.run("LookupTableImportV2", table, np.int64([5, 5]), text(b"a", b"b")), "before")
g.run("LookupTableImportV2", table, np.int64([5, 6]), text(b"five", b"six"))
cases.equal("a table that was filled by an import", g.find(table, np.int64([6, 5, 4]), np.array(b"?", object)), text(b"six", b"five", b"?"))
cases.refuses("filling it with others", lambda: g.run("InitializeTableV2", table, np.int64([5]), text(b"x")), "before")

# ---- Errors ----

g = Tables()
table = g.table(np.int64, np.float32, "MutableHashTableOfTensorsV2", value_shape=(2,))
one, pair = np.int64([1]), np.float32([[1, 2]])
cases.refuses("keys of another type", lambda: g.run("LookupTableInsertV2", table, np.int32([1]), pair), "int32", "int64")
cases.refuses("values of another type", lambda: g.run("LookupTableInsertV2", table, one, np.float64(pair)), "double", "float")
cases.refuses("values of another shape", lambda: g.run("LookupTableInsertV2", table, one, np.float32([1])), "[1]", "[1, 2]")
cases.refuses("a default of another shape", lambda: g.find(table, one, np.float32(0)), "[]", "[2]")
cases.refuses("a default of another type", lambda: g.find(table, one, np.int32([0, 0])), "int32", "float")
cases.refuses("an export as other types", lambda: g.run("LookupTableExportV2", table, Tkeys=np.int32, Tvalues=np.float32), "int32", "int64")
cases.refuses("an initializer", lambda: g.run("InitializeTableV2", table, one, np.float32([1])), "Initialize")
cases.equal("the table after all that", g.run("LookupTableSizeV2", table)[0], np.int64(0))
dense = Tables()
whole = lambda **more: dense.table(np.int64, np.float32, "MutableDenseHashTableV2", [np.int64(-1), np.int64(-2)], **more)
table = whole()
for k, name in ((-1, "empty_key"), (-2, "deleted_key")):
    cases.refuses(f"the {name} as a key", lambda: dense.run("LookupTableInsertV2", table, np.int64([5, k]), np.float32([1, 2])), name)
    cases.refuses(f"looking for the {name}", lambda: dense.find(table, np.int64([k]), np.float32(0)), name)
cases.equal("all or none", dense.run("LookupTableSizeV2", table)[0], np.int64(0))
for more, part in ((dict(initial_num_buckets=3), "3"), (dict(initial_num_buckets=0), "0"), (dict(max_load_factor=1.0), "1"),
                   (dict(value_shape=None), "unknown")):
    cases.refuses(f"a table with {more}", lambda: dense.run("LookupTableSizeV2", whole(**more)), "MutableDenseHashTableV2", part)
    dense.now = None
g = Tables()
table = g.table(np.int64, np.float32, "MutableDenseHashTableV2", [np.int64(1)] * 2)
cases.refuses("two marks that are one", lambda: g.run("LookupTableSizeV2", table), "equal")
g = Tables()
table = g.table(np.int64, tw.thalweg.as_dtype("variant"))
cases.refuses("a table of variants", lambda: g.run("LookupTableSizeV2", table), "variant")
g = Tables()
v = g.op("VarHandleOp", dtype=np.float32, shape=(), shared_name=g.name)
cases.refuses("a variable in place of a table", lambda: g.run("LookupTableSizeV2", v), "lookup_table", "variable")
g = Tables()
table = g.table(np.float32, np.int32)
g.run("LookupTableInsertV2", table, np.float32([0.0, 1.0]), np.int32([3, 4]))
cases.equal("-0 is 0", g.find(table, np.float32([-0.0]), np.int32(-1)), np.int32([3]))

# ---- Shapes that are known before a step ----

g = tw.Graph()
table = g.op("MutableHashTableOfTensorsV2", key_dtype=np.int64, value_dtype=np.float32, value_shape=(2, 3), shared_name="shapes")
found = g.op("LookupTableFindV2", table, g.placeholder(np.int64, (7, -1)), g.placeholder(np.float32))
cases.holds("the shape of what is found", found.shape == (7, None, 2, 3) or found.shape == (7, -1, 2, 3), f"{found.shape}")

# ---- From files ----


def from_file(content, key=tw.string, value=np.int64, key_index=-2, value_index=-1, **more):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "words")
        with open(path, "wb") as file:
            file.write(content)
        g = Tables()
        table = g.table(key, value, "HashTableV2")
        g.run("InitializeTableFromTextFileV2", table, np.array(path.encode(), object), key_index=key_index, value_index=value_index, **more)
        keys, values = g.export(table)
        return dict(zip(keys.tolist(), values.tolist()))


for content, more, wanted in (
        (b"a\nb\r\nc", {}, {b"a": 0, b"b": 1, b"c": 2}), (b"a\nb\nc\n", dict(vocab_size=2), {b"a": 0, b"b": 1}), (b"", {}, {}),
        (b"a\nb\n", dict(offset=5), {b"a": 5, b"b": 6}),
        (b"x 7\ny -8\n", dict(key_index=0, value_index=1, delimiter=" "), {b"x": 7, b"y": -8}),
        (b"3,0.5,z\n4,1e2,w\n", dict(key=np.int32, value=np.float32, key_index=0, value_index=1, delimiter=","), {3: 0.5, 4: 100}),
        (b"p\tq\n", dict(key=np.int64, value=tw.string, key_index=-1, value_index=-2), {0: b"p\tq"})):
    try:
        got = from_file(content, **more)
        cases.holds(f"a table from {content} {more}", got == wanted, f"{got} is not {wanted}")
    except tw.Error as error:
        cases.holds(f"a table from {content} {more}", False, error)
for content, more, parts in (
        (b"a\n\nb\n", {}, ["line 2", "empty"]), (b"a\nb\n", dict(vocab_size=3), ["2", "3"]), (b"a\na\n", {}, ["before"]),
        (b"x y\n", dict(key_index=0, value_index=1, delimiter=" "), ["'y'", "int64"]), (b"x\n", dict(value_index=2), ["column", "2"]),
        (b"1\n", dict(key=np.int32), ["-2", "int32"]), (b"a\n", dict(value=np.float32), ["-1", "float"]),
        (b"a\n", dict(key_index=-3), ["-3"]),
        (b"a\n", dict(vocab_size=0), ["vocab_size"]), (b"a\n", dict(delimiter=""), ["delimiter"]),
        (b"99999999999\n", dict(key=np.int32, key_index=0), ["99999999999"])):
    cases.refuses(f"a table from {content} {more}", lambda: from_file(content, **more), *parts)
g = Tables()
table = g.table(tw.string, np.int64, "HashTableV2")
nowhere = np.array(b"/nonexistent/words", object)
cases.refuses("a table from no file", lambda: g.run("InitializeTableFromTextFileV2", table, nowhere, key_index=-2, value_index=-1),
              "/nonexistent/words")

# ---- Saved and restored ----

for kind, key, value, inputs, more in (
        ("MutableHashTableV2", np.int64, np.float32, (), {}),
        ("MutableHashTableOfTensorsV2", tw.string, tw.string, (), dict(value_shape=(2,))),
        ("MutableDenseHashTableV2", tw.string, np.int8, (text(b"-", b"-"), text(b"=", b"=")), dict(value_shape=(3,))),
        ("HashTableV2", np.int32, tw.string, (), {})):
    try:
        g, again = Tables(), Tables()
        table, other = (x.table(key, value, kind, inputs, **more) for x in (g, again))
        key_shape, value_shape = (2,) if inputs else (), more.get("value_shape", ())
        keys, values = drawn(key, (50, *key_shape)), drawn(value, (50, *value_shape))
        values = values if kind != "HashTableV2" else text(*(b"%d" % k for k in keys))
        g.run("InitializeTableV2" if kind == "HashTableV2" else "LookupTableInsertV2", table, keys, values)
        saved = g.run("SaveResource", table)[0]
        again.run("RestoreResources", other, saved, N=1)
        for x, y, what in zip(g.export(table), again.export(other), ("keys", "values")):
            cases.equal(f"{what} of a {kind} that was saved and restored", y, x)
        harmed = 0
        for k in range(200):  # changed or missing bytes
            parts = bytearray(saved[2])
            if k % 2:
                del parts[rng.integers(len(parts)):]
            else:
                parts[rng.integers(len(parts))] = rng.integers(256)
            try:
                again.run("RestoreResources", other, text(*saved[:2], bytes(parts)), N=1)
            except tw.Error as error:
                harmed += 1
                cases.holds(f"a damaged {kind}", error.code_name == "DATA_LOSS", f"{error.code_name}: {error}")
        cases.holds(f"most damage to a {kind} is noticed", harmed > 100, harmed)
    except tw.Error as error:
        cases.holds(f"a {kind} that is saved and restored", False, error)

# ---- Many threads ----

g = tw.Graph()
table = g.op("MutableHashTableV2", key_dtype=np.int64, value_dtype=np.int64, shared_name="of many")
keys, values = g.placeholder(np.int64), g.placeholder(np.int64)
insert = g.add("LookupTableInsertV2", table, keys, values)
remove = g.add("LookupTableRemoveV2", table, keys)
find, size = g.op("LookupTableFindV2", table, keys, g.constant(np.int64(-1))), g.op("LookupTableSizeV2", table)
session, wrong = g.session(), []


def work(thread):
    """A thread always finds its own thousand keys, or never; the keys of other threads have their values or none."""
    own = np.arange(1000, dtype=np.int64) * 16 + thread
    every = np.arange(16000, dtype=np.int64)
    for turn in range(20):
        session.run([], {keys: own, values: own * 3}, targets=[insert])
        if not np.array_equal(session.run([find], {keys: own})[0], own * 3):
            wrong.append(f"thread {thread} does not find its keys")
        seen = session.run([find], {keys: every})[0]
        if not np.all((seen == -1) | (seen == every * 3)):
            wrong.append(f"thread {thread} finds what nobody inserted")
        for other in range(16):  # each batch is inserted as a whole
            if other != thread and len(set((seen[other::16] == -1).tolist())) != 1:
                wrong.append(f"thread {thread} sees half of a batch")
        if turn < 19:
            session.run([], {keys: own}, targets=[remove])
            if np.any(session.run([find], {keys: own})[0] != -1):
                wrong.append(f"thread {thread} finds what it removed")


threads = [threading.Thread(target=work, args=(k,)) for k in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
cases.holds("16 threads on one table", not wrong, wrong[:3])
cases.equal("its size then", session.run([size])[0], np.int64(16000))
cases.finish()
