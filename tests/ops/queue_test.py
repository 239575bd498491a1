"""Tests of queues: values and their order, waiting ops, closing, and ends of waiting calls that do not harm the queue. Error codes are
those of TensorFlow 2.21."""
import numpy as np

import cases
import thalweg
from blocking import SOON, Place, fails, waits
from thalweg import ops

FLOAT, INT64, STRING = thalweg.float32, thalweg.int64, thalweg.string


class Queue(Place):
    """A queue. `kind` has the suffix of its ops' names."""

    def __init__(self, kind="FIFOQueueV2", types=(FLOAT,), shapes=((),), **attrs):
        super().__init__()
        self.types, self.name = list(types), attrs.pop("name", None) or self.name
        self.by_reference = not kind.endswith("V2")
        made = [t for k, t in enumerate(types) if k or not kind.startswith("PriorityQueue")]
        self.handle = self.do(kind, component_types=made, shapes=[list(s) for s in shapes], shared_name=self.name, **attrs)

    def _do(self, op, *inputs, **attrs):
        return self.do(op.removesuffix("V2") if self.by_reference else op, self.handle, *inputs, **attrs)

    def put(self, *components):
        return self._do("QueueEnqueueV2", [self._constant(x, k) for k, x in enumerate(components)])

    def put_many(self, *components):
        return self._do("QueueEnqueueManyV2", [self._constant(x, k) for k, x in enumerate(components)])

    def _constant(self, x, k):
        return self.constant(x, self.types[k])

    def take(self):
        return self._taken("QueueDequeueV2")

    def take_many(self, n):
        return self._taken("QueueDequeueManyV2", n)

    def take_up_to(self, n):
        return self._taken("QueueDequeueUpToV2", n)

    def _taken(self, op, *n):
        components = self._do(op, *n, component_types=self.types)
        return components if len(components) > 1 else components[0]

    def close(self, cancel=False):
        return self._do("QueueCloseV2", cancel_pending_enqueues=cancel)

    def size(self):
        return int(self.run(self._do("QueueSizeV2")))

    def closed(self):
        return bool(self.run(self._do("QueueIsClosedV2")))


# ---- Values and order ----

q = Queue()
q.run(q.put(1.0), q.put(2.0), q.put_many([3.0, 4.0]))
cases.equal("size", q.size(), 4)
cases.equal("first in, first out", [float(q.run(q.take())) for _ in range(3)], [1.0, 2.0, 3.0])
cases.equal("what is left", q.run(q.take_many(1)), np.float32([4]))

q = Queue(types=(FLOAT, STRING, INT64), shapes=((2,), (), ()))
q.run(q.put([1.0, 2.0], b"one", 1), q.put_many([[3.0, 4.0], [5.0, 6.0]], [b"two", b"three"], [2, 3]))
x, text, n = q.run(q.take())
cases.equal("a component", x, np.float32([1, 2]))
cases.holds("a text", text == b"one" and n == 1, f"{text} {n}")
x, text, n = q.run(q.take_many(2))
cases.equal("rows joined", x, np.float32([[3, 4], [5, 6]]))
cases.holds("texts joined", list(text) == [b"two", b"three"] and list(n) == [2, 3], f"{text} {n}")

q = Queue(shapes=())
q.run(q.put([1.0, 2.0]), q.put([[3.0]]), q.put_many(np.float32([[7], [8]])))
cases.equal("of any shape", q.run(q.take()), np.float32([1, 2]))
cases.equal("of another shape", q.run(q.take()), np.float32([[3]]))
cases.equal("a row", q.run(q.take()), np.float32([7]))
fails("many without shapes", "INVALID_ARGUMENT", lambda: q.run(q.take_many(1)), "FIFOQueue", q.name, "does not know the shapes")

q = Queue()
q.run(q.put_many(np.float32([])))
cases.equal("no rows", q.size(), 0)
cases.equal("none of nothing", q.run(q.take_many(0)), np.float32([]))

q = Queue("PaddingFIFOQueueV2", types=(FLOAT, STRING), shapes=((None, 2), (None,)))
q.run(q.put([[1.0, 2.0]], [b"a"]), q.put([[3.0, 4.0], [5.0, 6.0]], [b"b", b"c"]), q.put(np.zeros((0, 2), np.float32), np.array([], object)))
x, text = q.run(q.take_many(3))
cases.equal("padded with zeros", x, np.float32([[[1, 2], [0, 0]], [[3, 4], [5, 6]], [[0, 0], [0, 0]]]))
cases.holds("padded with empty texts", text.tolist() == [[b"a", b""], [b"b", b"c"], [b"", b""]], str(text))

q = Queue("PriorityQueueV2", types=(INT64, STRING), shapes=((),))
q.run(q.put(5, b"five"), q.put_many([3, 9, 3], [b"three", b"nine", b"also three"]), q.put(-1, b"first"))
n, text = q.run(q.take_many(5))
cases.equal("by priority", n, np.int64([-1, 3, 3, 5, 9]))
cases.holds("equal ones in order", list(text) == [b"first", b"three", b"also three", b"five", b"nine"], str(text))


def shuffled(seed):
    q = Queue("RandomShuffleQueueV2", min_after_dequeue=2, capacity=100, seed=seed)
    q.run(q.put_many(np.arange(50, dtype=np.float32)))
    first = q.run(q.take_many(48))
    rest = waits("the least that stays", q.start(q.take()))
    q.run(q.close())
    return np.concatenate([first, [rest.result()], q.run(q.take_up_to(9))])


one, same, other = shuffled(7), shuffled(7), shuffled(8)
cases.equal("shuffled: all of them, once", np.sort(one), np.arange(50, dtype=np.float32))
cases.holds("shuffled: not in order", not np.array_equal(one, np.sort(one)))
cases.equal("shuffled: the same for one seed", same, one)
cases.holds("shuffled: others for another seed", not np.array_equal(one, other))

# ---- By reference, as in graphs older than handles ----

ONE = "QueueEnqueue QueueDequeue QueueSize QueueIsClosed QueueClose".split()
MANY = "QueueEnqueueMany QueueDequeueMany QueueDequeueUpTo".split()
q = Queue("FIFOQueue", capacity=3)
q.run(q.put(1.0), q.put_many([2.0, 3.0]))
cases.equal("by reference", [q.size(), float(q.run(q.take())), *q.run(q.take_many(2))], [3, 1, 2, 3])
waiting = waits("by reference", q.start(q.take()))
q.run(q.put(4.0))
cases.equal("by reference, who waited", float(waiting.result()), 4)
for where, end, code in (("cancel", lambda s: s.cancel(), "CANCELLED"), ("deadline", lambda s: None, "DEADLINE_EXCEEDED")):
    waiting = waits(where, q.start(q.take(), timeout=SOON if where == "deadline" else None))
    end(waiting)
    fails(f"{where} by reference", code, waiting.result, "QueueDequeue")
same = Queue(capacity=3, name=q.name)
same.run(same.put(5.0))
q.run(q.close())
cases.holds("one queue, by both", same.closed() and q.closed())
cases.equal("what is left", q.run(q.take_up_to(9)), np.float32([5]))
fails("put into a closed one, by reference", "CANCELLED", lambda: q.run(q.put(6.0)), "QueueEnqueue ", q.name, "is closed")
fails("another kind, by reference", "INVALID_ARGUMENT", lambda: Queue("RandomShuffleQueue", capacity=3, name=q.name).size(), q.name,
      "FIFOQueue")
made = {op.type for op in q.graph.operations()}
cases.holds("the ops of the graph are those without V2", made >= {"FIFOQueue", *ONE, *MANY} and not any(op.endswith("V2") for op in made))

q = Queue("RandomShuffleQueue", min_after_dequeue=1, seed=3)
q.run(q.put_many([1.0, 2.0, 3.0]))
cases.holds("shuffled by reference", set(q.run(q.take_many(2))) < {1, 2, 3})
waits("the least that stays, by reference", q.start(q.take()))
q = Queue("PaddingFIFOQueue", shapes=((None,),))
q.run(q.put([1.0]), q.put([2.0, 3.0]))
cases.equal("padded by reference", q.run(q.take_many(2)), np.float32([[1, 0], [2, 3]]))
q = Queue("PriorityQueue", types=(INT64, STRING), shapes=((),))
q.run(q.put(5, b"five"), q.put(3, b"three"))
cases.equal("by priority, by reference", q.run(q.take())[0], 3)

# ---- Waiting ----

q = Queue()
first, second, third = (waits("empty", q.start(step)) for step in (q.take(), q.take_many(2), q.take()))
q.run(q.put_many([1.0, 2.0, 3.0]))
cases.equal("who came first", [float(first.result()), *second.result()], [1, 2, 3])
waits("nothing is left for the third", third)
q.run(q.put(4.0))
cases.equal("the third", float(third.result()), 4)

q = Queue(capacity=2)
q.run(q.put_many([1.0, 2.0]))
full, more = waits("full", q.start(q.put(3.0))), waits("full", q.start(q.put_many([4.0, 5.0, 6.0])))
cases.equal("full", q.size(), 2)
cases.equal("room for the first", float(q.run(q.take())), 1)
full.result()
waits("room for one only", more)
cases.equal("the rest", [float(q.run(q.take())) for _ in range(5)], [2, 3, 4, 5, 6])
more.result()

q = Queue(capacity=2)
many = waits("more than the capacity", q.start(q.take_many(5)))
q.run(q.put(1.0), q.put_many([2.0, 3.0]))
cases.equal("what is promised is not counted", q.size(), 0)
q.run(q.put_many([4.0, 5.0, 6.0]))
cases.equal("more than the capacity", many.result(), np.float32([1, 2, 3, 4, 5]))
cases.equal("and one stays", q.size(), 1)

q = Queue(capacity=1)
steps = [q.start(q.take()) for _ in range(300)] + [q.start(q.put(float(k))) for k in range(300)]
cases.equal("300 of each", sorted(float(s.result()) for s in steps[:300]), np.arange(300.0))

q = Queue()
with q.graph:
    value = ops.QueueDequeueV2(q.handle, component_types=[FLOAT])
    both = ops.add_v2(value[0], ops.QueueDequeueV2(q.handle, component_types=[FLOAT])[0])
total = waits("two in one step", q.start(both))
q.run(q.put(20.0))
waits("one of two", total)
q.run(q.put(22.0))
cases.equal("two in one step", float(total.result()), 42)

# ---- Closing ----

q = Queue(capacity=2)
q.run(q.put_many([1.0, 2.0]))
late, close = waits("before the end", q.start(q.put(3.0))), q.start(q.close())
waits("closing comes behind those who wait", close)
cases.holds("not closed yet", not q.closed())
cases.equal("one out, one in", float(q.run(q.take())), 1)
late.result(), close.result()
cases.holds("closed", q.closed())
fails("put into a closed one", "CANCELLED", lambda: q.run(q.put(4.0)), "FIFOQueue", q.name, "is closed")
fails("put many into a closed one", "CANCELLED", lambda: q.run(q.put_many([4.0])), "is closed")
fails("close again", "CANCELLED", lambda: q.run(q.close()), "already closed")
fails("too many", "OUT_OF_RANGE", lambda: q.run(q.take_many(3)), "closed and has insufficient elements", "3 were asked for, 2 are left")
cases.equal("up to", q.run(q.take_up_to(3)), np.float32([2, 3]))
fails("nothing left", "OUT_OF_RANGE", lambda: q.run(q.take()), "1 were asked for, 0 are left")
fails("nothing left, up to", "OUT_OF_RANGE", lambda: q.run(q.take_up_to(3)))
q.run(q.close(cancel=True))

q = Queue(capacity=1)
q.run(q.put(1.0))
pending = [waits("no room", q.start(step)) for step in (q.put(2.0), q.put_many([3.0]), q.close())]
q.run(q.close(cancel=True))
for step in pending:
    fails("cancelled by the close", "CANCELLED", step.result, q.name)
cases.equal("what was in there", float(q.run(q.take())), 1)

q = Queue()
q.run(q.put(1.0))
many, one, few = (waits("too few", q.start(step)) for step in (q.take_many(2), q.take(), q.take_up_to(4)))
q.run(q.close())
fails("too few at the end", "OUT_OF_RANGE", many.result, "2 were asked for, 1 are left")
cases.equal("the next gets it", float(one.result()), 1)
fails("nothing for the last", "OUT_OF_RANGE", few.result)

# ---- Ends that leave the queue as it was ----

for where, end, code in (("cancel", lambda s: s.cancel(), "CANCELLED"), ("deadline", lambda s: None, "DEADLINE_EXCEEDED")):
    q = Queue(capacity=4)
    q.run(q.put_many([1.0, 2.0]))
    step = waits(where, q.start(q.take_many(9), timeout=SOON if where == "deadline" else None))
    behind = waits(where, q.start(q.take()))
    end(step)
    fails(where, code, step.result, "QueueDequeueManyV2")
    cases.equal(f"{where}: none is lost", [float(behind.result()), q.size(), float(q.run(q.take()))], [1, 1, 2])
    q.run(q.put_many([1.0, 2.0, 3.0, 4.0]))
    step = q.start(q.put(5.0), timeout=SOON if where == "deadline" else None)
    waits(where, step)
    end(step)
    fails(f"{where} of a put", code, step.result, "QueueEnqueueV2")
    cases.equal(f"{where} of a put: the queue", q.run(q.take_many(4)), np.float32([1, 2, 3, 4]))

q = Queue()
step = waits("session", q.start(q.take()))
q.session.close()
fails("the session closes", "CANCELLED", step.result, "the session was closed")
other = thalweg.Session(q.graph)
other.run(q.put(3.0))
cases.equal("another session", float(other.run(q.take())), 3)
fails("a run that waits for itself", "DEADLINE_EXCEEDED", lambda: other.run(q.take(), timeout=0.01))

# ---- Errors ----

q = Queue(types=(FLOAT, INT64), shapes=((2,), ()))
INVALID = (
    ("components", lambda: q.put([1.0, 2.0]), ("has elements of 2 components, not 1",)),
    ("type", lambda: q._do("QueueEnqueueV2", [q._constant([1, 2], 1), q._constant(1, 1)]),
     ("component 0", "is float, not int64")),
    ("shape", lambda: q.put([1.0, 2.0, 3.0], 1), ("component 0", "has shape [2], not [3]")),
    ("rows", lambda: q.put_many([[1.0, 2.0]], [1, 2]), ("component 1", "has 2 rows, but component 0 has 1")),
    ("no rows", lambda: q.put_many([[1.0, 2.0]], 1), ("component 1", "is a scalar")),
    ("types taken", lambda: q._do("QueueDequeueV2", component_types=[FLOAT, FLOAT]), ("has elements of float, int64, not float, float",)),
    ("a negative n", lambda: q.take_many(-1), ("n is -1",)),
    ("timeout_ms", lambda: q._do("QueueDequeueV2", component_types=q.types, timeout_ms=5), ("timeout_ms is 5",)),
)
for where, make, parts in INVALID:
    fails(where, "INVALID_ARGUMENT", lambda make=make: q.run(make()), *parts)
cases.equal("nothing was put in", q.size(), 0)

for where, make, parts in (
        ("an unknown shape", lambda: Queue(shapes=((None,),)), ("FIFOQueueV2", "shapes[0] is [?], but must be fully known")),
        ("numbers of shapes", lambda: Queue(shapes=((), ())), ("component_types has length 1, but shapes has length 2",)),
        ("padding without shapes", lambda: Queue("PaddingFIFOQueueV2", shapes=()), ("needs the shapes",)),
        ("more than the capacity", lambda: Queue("RandomShuffleQueueV2", capacity=3, min_after_dequeue=3), ("less than the capacity 3",)),
        ("a negative least", lambda: Queue("RandomShuffleQueueV2", min_after_dequeue=-1), ("min_after_dequeue is -1",))):
    fails(where, "INVALID_ARGUMENT", lambda make=make: make().size(), *parts)
try:
    Queue(shapes=((), ())).size()
except thalweg.Error as error:
    cases.equal("a queue that cannot be made is named once", str(error).count("FIFOQueue"), 2)  # the op, and the node of its name

q = Queue("FIFOQueue")
fails("a reference has no value", "FAILED_PRECONDITION", lambda: q.run(q.handle), f"the org.thalweg.queue '{q.name}', which is no variable",
      "it has no value to read, fetch or assign")

# ---- A queue that exists already ----

q = Queue("RandomShuffleQueueV2", capacity=5, min_after_dequeue=1, seed=3)
q.run(q.put(1.0))
SAME = dict(kind="RandomShuffleQueueV2", capacity=5, min_after_dequeue=1, seed=3, name=q.name)
cases.equal("the same one", Queue(**SAME).size(), 1)
for where, attrs, parts in (
        ("kind", dict(kind="FIFOQueueV2", capacity=5, name=q.name), ("RandomShuffleQueue", "a FIFOQueue was asked for")),
        ("capacity", SAME | dict(capacity=6), ("has capacity 5, but 6 was asked for",)),
        ("types", SAME | dict(types=(INT64,)), ("component types", "float", "int64")),
        ("shapes", SAME | dict(shapes=((2,),)), ("shapes", "[2]")),
        ("least", SAME | dict(min_after_dequeue=2), ("min_after_dequeue 1, but 2 was asked for",)),
        ("seed", SAME | dict(seed=4), ("another seed",))):
    fails(f"another {where}", "INVALID_ARGUMENT", lambda attrs=attrs: Queue(**attrs).size(), q.name, *parts)

cases.finish()
