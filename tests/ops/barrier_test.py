"""Tests of barriers: components are inserted one by one and elements are taken complete, in the order of the batches in which they began.
Error codes are those of TensorFlow 2.21."""
import numpy as np

import cases
import thalweg
from blocking import SOON, Place, fails, waits

FLOAT, INT64, STRING = thalweg.float32, thalweg.int64, thalweg.string
FIRST = np.iinfo(np.int64).min  # the number of the first batch


BY_REFERENCE = "Barrier BarrierInsertMany BarrierTakeMany BarrierClose BarrierReadySize BarrierIncompleteSize".split()
BY_HANDLE = ("ResourceBarrier ResourceBarrierInsertMany ResourceBarrierTakeMany ResourceBarrierClose ResourceBarrierReadySize "
             "ResourceBarrierIncompleteSize").split()  # the ops that run in their place


class Barrier(Place):
    def __init__(self, types=(FLOAT, STRING), shapes=((), ()), form=BY_REFERENCE, **attrs):
        super().__init__()
        self.types, self.form = list(types), form
        self.handle = self.do(form[0], component_types=self.types, shapes=[list(s) for s in shapes], shared_name=self.name, **attrs)

    def put(self, component, keys, values):
        return self.do(self.form[1], self.handle, self.constant(keys, STRING),
                       self.constant(values, self.types[component] if component < len(self.types) else FLOAT), component_index=component)

    def take(self, n, small=False):
        return list(self.do(self.form[2], self.handle, n, component_types=self.types, allow_small_batch=small))

    def close(self, cancel=False):
        return self.do(self.form[3], self.handle, cancel_pending_enqueues=cancel)

    def sizes(self):
        return [int(self.run(self.do(op, self.handle))) for op in self.form[4:]]


def flat(result):
    indices, keys, values = result[0], result[1], result[2] if isinstance(result[2], (list, tuple)) else result[2:]
    return indices.tolist(), list(keys), [list(v) for v in values]


for form in (BY_REFERENCE, BY_HANDLE):
    b = Barrier(form=form)
    b.run(b.put(0, ["a", "b"], [1.0, 2.0]))
    cases.equal("none is whole", b.sizes(), [0, 2])
    b.run(b.put(1, ["b", "c"], ["two", "three"]))
    cases.equal("one is whole", b.sizes(), [1, 2])
    b.run(b.put(1, ["a"], ["one"]))
    indices, keys, values = flat(b.run(b.take(2)))
    cases.holds("in the order of batches", indices == [FIRST, FIRST] and sorted(keys) == [b"a", b"b"], f"{indices} {keys}")
    cases.holds("values of their keys", dict(zip(keys, zip(*values))) == {b"a": (1.0, b"one"), b"b": (2.0, b"two")}, str(values))
    b.run(b.put(0, ["c"], [3.0]))
    indices, keys, values = flat(b.run(b.take(1)))
    cases.holds("of the second batch", (indices, keys, values) == ([FIRST + 1], [b"c"], [[3.0], [b"three"]]), f"{indices} {keys} {values}")
    b.run(b.close())

b = Barrier((FLOAT,), ((2,),))
many, one = waits("too few", b.start(b.take(3))), waits("behind", b.start(b.take(1)))
b.run(b.put(0, ["x", "y"], [[1.0, 2.0], [3.0, 4.0]]))
waits("one is missing", many)
b.run(b.put(0, ["z", "w"], [[5.0, 6.0], [7.0, 8.0]]))
indices, keys, values = many.result()[0], many.result()[1], many.result()[2]
cases.equal("rows", np.sort(np.asarray(values).reshape(-1))[:4], np.float32([1, 2, 3, 4]))
cases.equal("who came next", [len(one.result()[1]), *b.sizes()], [1, 0, 0])

for where, end, code in (("cancel", lambda s: s.cancel(), "CANCELLED"), ("deadline", lambda s: None, "DEADLINE_EXCEEDED")):
    b = Barrier((FLOAT,), ((),))
    b.run(b.put(0, ["a"], [1.0]))
    step, behind = waits(where, b.start(b.take(2), timeout=SOON if where == "deadline" else None)), waits(where, b.start(b.take(1)))
    end(step)
    fails(where, code, step.result, "BarrierTakeMany")
    cases.equal(f"{where}: none is lost", len(behind.result()[1]), 1)

b = Barrier()
b.run(b.put(0, ["a", "b"], [1.0, 2.0]), b.put(1, ["a"], ["one"]), b.close())
fails("a new key after the end", "CANCELLED", lambda: b.run(b.put(0, ["c"], [3.0])), b.name, "is closed", "1 of the keys are new")
whole = waits("closed, and one may still be whole", b.start(b.take(2)))
b.run(b.put(1, ["b"], ["two"]))
cases.equal("what was begun", sorted(whole.result()[1].tolist()), [b"a", b"b"])
fails("too few", "OUT_OF_RANGE", lambda: b.run(b.take(1)), b.name, "insufficient elements", "1 were asked for, 0 are left")
fails("close again", "CANCELLED", lambda: b.run(b.close()), "already closed")
b.run(b.close(cancel=True))
fails("close after that", "CANCELLED", lambda: b.run(b.close(cancel=True)), "already closed")

b = Barrier()
b.run(b.put(0, ["a", "b"], [1.0, 2.0]), b.put(1, ["a"], ["one"]))
pending = waits("two", b.start(b.take(2)))
b.run(b.close(cancel=True))
fails("nothing more comes", "OUT_OF_RANGE", pending.result, "2 were asked for, 1 are left")
cases.equal("incomplete ones are gone", b.sizes(), [1, 0])
fails("nothing is put in", "CANCELLED", lambda: b.run(b.put(1, ["b"], ["two"])), "is closed")
cases.equal("up to", len(b.run(b.take(5, small=True))[1]), 1)
fails("up to of nothing", "OUT_OF_RANGE", lambda: b.run(b.take(5, small=True)), "0 are left")

b = Barrier()
INVALID = (
    ("component", lambda: b.put(2, ["a"], [1.0]), ("has 2 components", "component_index is 2")),
    ("type", lambda: b.do("BarrierInsertMany", b.handle, ["a"], b.constant([1], INT64), component_index=0), ("component 0", "is float, not int64")),
    ("rows", lambda: b.put(0, ["a", "b"], [1.0]), ("a row for each of the 2 keys",)),
    ("shape", lambda: b.put(0, ["a"], [[1.0]]), ("component 0", "has shape [], not [1]")),
    ("twice at once", lambda: b.put(0, ["a", "a"], [1.0, 2.0]), ("key 'a'", "has component 0 already")),
    ("types taken", lambda: list(b.do("BarrierTakeMany", b.handle, 1, component_types=[FLOAT])), ("has elements of float, string",)),
    ("a negative number", lambda: b.take(-1), ("num_elements is -1",)),
)
for where, make, parts in INVALID:
    fails(where, "INVALID_ARGUMENT", lambda make=make: b.run(make()), *parts)
b.run(b.put(0, ["a"], [1.0]))
fails("twice", "INVALID_ARGUMENT", lambda: b.run(b.put(0, ["b", "a"], [1.0, 2.0])), "key 'a'", "has component 0 already")
cases.equal("refused ones change nothing", b.sizes(), [0, 1])
fails("a capacity", "INVALID_ARGUMENT", lambda: Barrier(capacity=3).sizes(), "capacity is 3", "only -1")
fails("shapes", "INVALID_ARGUMENT", lambda: Barrier(shapes=((),)).sizes(), "component_types has length 2, but shapes has length 1; give each component a shape")
cases.finish()
