"""Tests of staging areas with keys: whole lists and parts of them; capacity in elements and in bytes; waiting ops, and their harmless
ends."""
import time

import numpy as np

import cases
import thalweg
from blocking import SOON, Place, fails, waits

FLOAT, INT64, STRING = thalweg.float32, thalweg.int64, thalweg.string
MAP = "MapStage MapUnstage MapUnstageNoKey MapPeek MapSize MapIncompleteSize MapClear".split()
ORDERED = ("OrderedMapStage OrderedMapUnstage OrderedMapUnstageNoKey OrderedMapPeek OrderedMapSize OrderedMapIncompleteSize "
           "OrderedMapClear").split()


class Area(Place):
    def __init__(self, types=(FLOAT,), form=MAP, **attrs):
        super().__init__()
        self.types, self.form, self.attrs = list(types), form, dict(attrs, shared_name=self.name)

    def put(self, key, *values, indices=None):
        """Puts all tensors, or those of the indices."""
        indices = list(range(len(self.types))) if indices is None else indices
        made = [self.constant(x, self.types[i] if i < len(self.types) else FLOAT) for i, x in zip(indices, values)]
        return self.do(self.form[0], self.key(key), self.indices(indices), made, dtypes=self.types, **self.attrs)

    def key(self, key):
        return self.constant(key, INT64)

    def indices(self, indices):
        return self.constant(indices, thalweg.int32)

    def take(self, key, indices=None, types=None):
        return self._taken(self.form[1], indices, types, self.key(key))

    def peek(self, key, indices=None, types=None):
        return self._taken(self.form[3], indices, types, self.key(key))

    def take_any(self, indices=None):
        """Takes any complete entry. Returns its key and values."""
        indices = list(range(len(self.types))) if indices is None else indices
        key, values = self.do(self.form[2], self.indices(indices), dtypes=[self.types[i] for i in indices], **self.attrs)
        return [key, *values]

    def _taken(self, op, indices, types, *inputs):
        indices = list(range(len(self.types))) if indices is None else indices
        types = types or [self.types[i] for i in indices]
        values = self.do(op, *inputs, self.indices(indices), dtypes=types, **self.attrs)
        return values if len(values) > 1 else values[0]

    def sizes(self):
        """Returns the numbers of complete and of incomplete entries."""
        return [int(self.run(self.do(op, dtypes=self.types, **self.attrs))) for op in self.form[4:6]]

    def clear(self):
        self.run(self.do(self.form[6], dtypes=self.types, **self.attrs))


for form in (MAP, ORDERED):
    a = Area((FLOAT, STRING), form)
    a.run(a.put(7, [1.0, 2.0], "seven"), a.put(-3, [[3.0]], "minus three"), a.put(np.iinfo(np.int64).min, 0.0, "least"))
    cases.equal("whole lists", a.sizes(), [3, 0])
    x, text = a.run(a.peek(-3))
    cases.equal("read", x, np.float32([[3]]))
    cases.holds("its text", text == b"minus three", str(text))
    x, text = a.run(a.take(7))
    cases.equal("taken", x, np.float32([1, 2]))
    cases.equal("two are left", a.sizes(), [2, 0])
    a.run(a.take(np.iinfo(np.int64).min))
    key, x, text = a.run(a.take_any())
    cases.holds("the last, and its key", key == -3 and key.shape == () and text == b"minus three", f"{key} {text}")

    a.run(a.put(1, "one", indices=[1]), a.put(2, 2.0, indices=[0]))
    cases.equal("two lack a tensor", a.sizes(), [0, 2])
    waiting = waits("half of it", a.start(a.take(1)))
    a.run(a.put(1, 1.0, indices=[0]))
    x, text = waiting.result()
    cases.holds("both halves", x == 1 and text == b"one", f"{x} {text}")
    a.run(a.put(2, "two", indices=[1]))
    cases.holds("a part taken", a.run(a.take(2, [1])) == b"two")
    cases.equal("the rest stays", a.sizes(), [1, 0])
    fails("a part twice", "INVALID_ARGUMENT", lambda: a.run(a.take(2, [1])), a.name, "tensor 1 under key 2", "taken already")
    cases.equal("the other part", float(a.run(a.peek(2, [0]))), 2)
    cases.equal("the other part, taken", float(a.run(a.take(2, [0]))), 2)
    cases.equal("none is left", a.sizes(), [0, 0])
    a.run(a.put(1, 1.0, "a"), a.put(2, 2.0, indices=[0]))
    a.clear()
    cases.equal("cleared", a.sizes(), [0, 0])

a = Area(form=ORDERED)
for key in (5, -1, 9, 3):
    a.run(a.put(key, float(key)))
cases.equal("by key", [int(a.run(a.take_any())[0]) for _ in range(4)], [-1, 3, 5, 9])
a, other = Area(), Area(form=ORDERED)
for area in (a, other):
    area.session = thalweg.Session(area.graph, max_async_runs=1000, container="one name for both")
a.run(a.put(1, 1.0))
other.attrs["shared_name"] = a.name
fails("one name for both kinds", "INVALID_ARGUMENT", other.sizes, a.name, "choose another shared_name")

a = Area()
a.run(a.put(1, 1.0), a.put(1, 2.0))
cases.equal("what is there first stays", [float(a.run(a.take(1))), *a.sizes()], [1, 0, 0])

# ---- Waiting ----

a = Area()
first, second, other, some = (waits("empty", a.start(step)) for step in (a.take(1), a.take(1), a.take(2), a.take_any()))
a.run(a.put(3, 3.0))
cases.equal("any", [float(x) for x in some.result()], [3, 3])
waits("not its key", first)
a.run(a.put(2, 2.0))
cases.equal("its key", float(other.result()), 2)
a.run(a.put(1, 1.0))
while not first.done() and not second.done():  # a value for a key that exists is dropped
    time.sleep(0.001)
a.run(a.put(1, 11.0))
cases.equal("two of one key", sorted(float(s.result()) for s in (first, second)), [1, 11])
readers = [waits("nothing to read", a.start(a.peek(4))) for _ in range(3)]
a.run(a.put(4, 4.0))
cases.equal("all read it", [float(s.result()) for s in readers], [4, 4, 4])

a = Area((FLOAT, FLOAT), capacity=1)
a.run(a.put(1, 1.0, 1.5), a.put(2, 2.0, indices=[0]))
whole, third = waits("full", a.start(a.put(3, 3.0, 3.5))), waits("full", a.start(a.put(4, 4.0, 4.5)))
a.run(a.put(2, 2.5, indices=[1]))
cases.equal("parts need no place", a.sizes(), [2, 0])
cases.equal("one goes, one is too many", a.run(a.take(2)), [2, 2.5])
waits("full still", whole)
a.run(a.take(1, [0]))
waits("half of it is there still", whole)
a.run(a.take(1, [1]))
whole.result()
waits("full again", third)
a.clear()
third.result()
cases.equal("who came next", a.run(a.take(4)), [4, 4.5])

a = Area((FLOAT, FLOAT), memory_limit=16)
a.run(a.put(1, [1.0, 1.0], 1.0))
whole, part = waits("too few bytes", a.start(a.put(2, 2.0, 2.0))), waits("too few bytes", a.start(a.put(3, [3.0, 3.0], indices=[0])))
fails("more than all", "RESOURCE_EXHAUSTED", lambda: a.run(a.put(4, [0.0] * 5, indices=[1])), a.name, "16 bytes at most", "20")
a.run(a.peek(1))
waits("reading makes no room", part)
a.run(a.take(1))
whole.result(), part.result()
cases.equal("bytes made room", [a.run(a.take(2)), a.sizes()], [[2, 2], [0, 1]])

limited = Area(memory_limit=8)
limited.run(limited.put(1, 1.0), limited.put(1, 1.0), limited.put(2, 2.0))
cases.equal("what goes at once costs nothing", limited.sizes(), [2, 0])

# ---- Ends that leave the area as it was ----

for where, end, code in (("cancel", lambda s: s.cancel(), "CANCELLED"), ("deadline", lambda s: None, "DEADLINE_EXCEEDED")):
    a = Area(capacity=1)
    timeout = SOON if where == "deadline" else None
    for op, step in (("MapUnstage", a.take(1)), ("MapPeek", a.peek(1)), ("MapUnstageNoKey", a.take_any())):
        taker = waits(where, a.start(step, timeout=timeout))
        end(taker)
        fails(f"{where} of {op}", code, taker.result, op)
    a.run(a.put(1, 1.0))
    putter, behind = waits(where, a.start(a.put(2, 2.0), timeout=timeout)), waits(where, a.start(a.put(3, 3.0)))
    end(putter)
    fails(f"{where} of MapStage", code, putter.result, "MapStage")
    cases.equal(f"{where}: what was there", float(a.run(a.take(1))), 1)
    behind.result()
    cases.equal(f"{where}: who came next", [float(a.run(a.take(3))), *a.sizes()], [3, 0, 0])

a = Area(capacity=3)
steps = [a.start(a.take(k)) for k in range(300)] + [a.start(a.put(k, float(k))) for k in range(300)]
cases.equal("300 of each", [float(s.result()) for s in steps[:300]], np.arange(300.0))

a = Area()
closing = [waits("empty", a.start(step)) for step in (a.take(1), a.take_any())]
a.session.close()
for step in closing:
    fails("the session closes", "CANCELLED", step.result, "the session was closed")

# ---- Errors ----

a = Area((FLOAT, INT64))
a.run(a.put(1, 1.0, 1), a.put(2, 2.0, indices=[0]))
INVALID = (
    ("keys", lambda: a.do("MapStage", a.key([1, 2]), a.indices([0, 1]), [1.0, a.key(1)], dtypes=a.types, **a.attrs),
     ("key must be one number", "[2]")),
    ("no key", lambda: a.do("MapUnstage", a.key([]), a.indices([0]), dtypes=[FLOAT], **a.attrs)[0], ("key must be one number",)),
    ("order", lambda: a.do("MapStage", a.key(3), a.indices([1, 0]), [a.key(1), 1.0], dtypes=a.types, **a.attrs),
     ("must go up", "0 comes behind 1")),
    ("order of what is taken", lambda: a.take(1, [1, 0])[0], ("must go up",)),
    ("counts", lambda: a.do("MapStage", a.key(3), a.indices([0]), [1.0, a.key(1)], dtypes=a.types, **a.attrs),
     ("1 indices for 2 tensors",)),
    ("counts taken", lambda: a.do("MapUnstage", a.key(1), a.indices([0]), dtypes=a.types, **a.attrs)[0], ("1 indices for 2 tensors",)),
    ("index", lambda: a.put(3, 1.0, indices=[2]), ("index 2 is out of range", "2 tensors")),
    ("index taken", lambda: a.peek(1, [2], [FLOAT]), ("index 2 is out of range", a.name)),
    ("a negative index", lambda: a.take(1, [-1], [FLOAT]), ("index -1 is out of range",)),
    ("type", lambda: a.do("MapStage", a.key(3), a.indices([1]), [1.0], dtypes=a.types, **a.attrs), ("tensor 1", "is int64, not float")),
    ("type taken", lambda: a.take(1, [1], [FLOAT]), ("tensor 1", "is int64, not float")),
    ("twice", lambda: a.put(2, 3.0, indices=[0]), ("key 2 of", "has tensor 0 already")),
    ("other types", lambda: a.do("MapStage", a.key(3), a.indices([0]), [1.0], dtypes=[FLOAT], **a.attrs), (a.name, "float, int64", "dtypes says float")),
)
for where, make, parts in INVALID:
    fails(where, "INVALID_ARGUMENT", lambda make=make: a.run(make()), *parts)
cases.equal("refused ones change nothing", a.sizes(), [1, 1])
x, n = a.run(a.take(1))
cases.equal("nor what is there", [float(x), int(n)], [1, 1])
cases.finish()
