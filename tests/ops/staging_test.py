"""Tests of staging areas: first in, first out; capacity in elements and in bytes; waiting ops, and their harmless ends."""
import numpy as np

import cases
import thalweg
from blocking import SOON, Place, fails, waits

FLOAT, INT64, STRING = thalweg.float32, thalweg.int64, thalweg.string


class Area(Place):
    def __init__(self, types=(FLOAT,), **attrs):
        super().__init__()
        self.types, self.attrs = list(types), dict(attrs, shared_name=self.name)

    def put(self, *values):
        return self.do("Stage", [self.constant(x, t) for x, t in zip(values, self.types)], **self.attrs)

    def take(self):
        return self._taken("Unstage")

    def peek(self, i):
        return self._taken("StagePeek", i)

    def _taken(self, op, *inputs):
        values = self.do(op, *inputs, dtypes=self.types, **self.attrs)
        return values if len(values) > 1 else values[0]

    def size(self):
        return int(self.run(self.do("StageSize", dtypes=self.types, **self.attrs)))

    def clear(self):
        self.run(self.do("StageClear", dtypes=self.types, **self.attrs))


a = Area((FLOAT, STRING))
a.run(a.put([1.0, 2.0], "one"), a.put([[3.0]], "two"))
cases.equal("size", a.size(), 2)
x, text = a.run(a.peek(1))
cases.equal("the second, read", x, np.float32([[3]]))
cases.holds("its text", text == b"two", str(text))
x, text = a.run(a.take())
cases.equal("first in, first out", x, np.float32([1, 2]))
cases.equal("one is left", a.size(), 1)
a.clear()
cases.equal("cleared", a.size(), 0)

a = Area()
taker, second, far = (waits("empty", a.start(step)) for step in (a.take(), a.take(), a.peek(1)))
a.run(a.put(1.0))
cases.equal("who came first", float(taker.result()), 1)
waits("the second", second)
a.run(a.put(2.0))
cases.equal("who came second", float(second.result()), 2)
waits("place 1 is empty", far)
a.run(a.put(3.0), a.put(4.0))
cases.equal("place 1", float(far.result()), 4)
cases.equal("reading takes nothing", a.size(), 2)

a = Area(capacity=2)
a.run(a.put(1.0), a.put(2.0))
third, fourth = waits("full", a.start(a.put(3.0))), waits("full", a.start(a.put(4.0)))
cases.equal("room for one", float(a.run(a.take())), 1)
third.result()
waits("full again", fourth)
a.clear()
fourth.result()
cases.equal("what was put in last", float(a.run(a.take())), 4)

a = Area(memory_limit=16)
a.run(a.put([1.0, 2.0]))
waiting = waits("too few bytes", a.start(a.put([1.0, 2.0, 3.0])))
fails("more than all", "RESOURCE_EXHAUSTED", lambda: a.run(a.put([0.0] * 5)), a.name, "16 bytes at most", "20")
a.run(a.take())
waiting.result()
cases.equal("bytes made room", a.run(a.take()), np.float32([1, 2, 3]))

for where, end, code in (("cancel", lambda s: s.cancel(), "CANCELLED"), ("deadline", lambda s: None, "DEADLINE_EXCEEDED")):
    a = Area(capacity=1)
    timeout = SOON if where == "deadline" else None
    taker = waits(where, a.start(a.take(), timeout=timeout))
    end(taker)
    fails(f"{where} of one that takes", code, taker.result, "Unstage")
    a.run(a.put(1.0))
    putter, behind = waits(where, a.start(a.put(2.0), timeout=timeout)), waits(where, a.start(a.put(3.0)))
    end(putter)
    fails(f"{where} of one that lays down", code, putter.result, "Stage")
    cases.equal(f"{where}: what was there", float(a.run(a.take())), 1)
    behind.result()
    cases.equal(f"{where}: who came next", float(a.run(a.take())), 3)

a = Area(capacity=3)
steps = [a.start(a.take()) for _ in range(300)] + [a.start(a.put(float(k))) for k in range(300)]
cases.equal("300 of each", sorted(float(s.result()) for s in steps[:300]), np.arange(300.0))

a = Area((FLOAT, INT64))
a.run(a.put(1.0, 2))
fails("numbers of tensors", "INVALID_ARGUMENT", lambda: a.run(a.do("Unstage", dtypes=[FLOAT], **a.attrs)[0]), a.name, "lists of 2 tensors, not 1")
fails("types", "INVALID_ARGUMENT", lambda: a.run(a.do("Unstage", dtypes=[FLOAT, FLOAT], **a.attrs)), "tensor 1", "is int64, not float")
fails("a negative place", "INVALID_ARGUMENT", lambda: a.run(a.peek(-1)), "index")
cases.equal("refused ones take nothing", a.size(), 1)
a.run(a.take())
closing = waits("empty", a.start(a.take()))
a.session.close()
fails("the session closes", "CANCELLED", closing.result, "the session was closed")
cases.finish()
