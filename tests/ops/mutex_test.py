"""Tests of mutexes: one holder at a time, in order of arrival; a lock is released with its value, however the value is destroyed."""
import numpy as np

import cases
import thalweg
from blocking import SOON, Place, fails, waits
from thalweg import ops

FLOAT = thalweg.float32


class Mutex(Place):
    def __init__(self, **options):
        super().__init__(**options)
        self.handle = self.do("MutexV2", shared_name=self.name)
        self.queue = self.do("FIFOQueueV2", component_types=[FLOAT], shapes=[[]], shared_name=self.name + " queue")

    def held(self):
        """A step that takes the lock and holds it until a value is enqueued, which it returns."""
        with self.graph:
            lock = ops.MutexLock(self.handle)
            with thalweg.control_dependencies([lock]):
                value = ops.QueueDequeueV2(self.queue, component_types=[FLOAT])[0]
            with thalweg.control_dependencies([value]):
                end = ops.ConsumeMutexLock(lock)
            with thalweg.control_dependencies([end]):
                return ops.identity(value)

    def lock(self):
        """A step that takes the lock and releases it."""
        with self.graph:
            return ops.ConsumeMutexLock(ops.MutexLock(self.handle))

    def put(self, value):
        with self.graph:
            self.run(ops.QueueEnqueueV2(self.queue, [thalweg.constant(value, FLOAT)]))


m = Mutex()
m.run(m.lock(), m.lock())
first = waits("the holder waits for the queue", m.start(m.held()))
second, third = waits("held", m.start(m.held())), waits("held", m.start(m.lock()))
m.put(1.0)
cases.equal("the first holder", first.result(), np.float32(1))
waits("the second has it now", third)
m.put(2.0)
cases.equal("the second holder", second.result(), np.float32(2))
third.result()
m.run(m.lock())

for where, end, code in (("cancel", lambda s: s.cancel(), "CANCELLED"), ("deadline", lambda s: None, "DEADLINE_EXCEEDED")):
    m = Mutex()
    holder = waits("the holder", m.start(m.held()))
    late, behind = waits(where, m.start(m.lock(), timeout=SOON if where == "deadline" else None)), m.start(m.lock())
    end(late)
    fails(f"{where} of one that waits", code, late.result, "MutexLock")
    waits("it did not get the lock", behind)
    end(holder) if where == "cancel" else m.put(0.0)
    holder.exception()
    behind.result()  # a step releases its locks at any kind of end
    m.run(m.lock())

# A step that fails elsewhere releases its lock.
m = Mutex()
with m.graph:
    lock = ops.MutexLock(m.handle)
    with thalweg.control_dependencies([lock]):
        wrong = ops.check_numerics(thalweg.constant(np.nan, FLOAT), message="on purpose")
    with thalweg.control_dependencies([wrong]):
        failing = ops.ConsumeMutexLock(lock)
fails("a step that fails", "INVALID_ARGUMENT", lambda: m.run(failing), "on purpose")
m.run(m.lock())

# A fetched lock is held until the fetched value is destroyed.
m = Mutex()
with m.graph:
    lock = ops.MutexLock(m.handle)
value = m.session.run(lock, as_tensors=True)
waiting = waits("fetched", m.start(m.lock()))
del value
waiting.result()

# Steps that read, wait and write, one after the other: no update is lost. More steps than there are threads.
m = Mutex()
with m.graph:
    count = thalweg.Variable(np.int32(0), name="count")
    lock = ops.MutexLock(m.handle)
    with thalweg.control_dependencies([lock]):
        read = count.read()
    with thalweg.control_dependencies([count.assign(read + 1)]):
        add = ops.ConsumeMutexLock(lock)
    init = thalweg.initializer()
m.run(init)
for step in [m.start(add) for _ in range(500)]:
    step.result()
cases.equal("500 steps", int(m.run(count.read())), 500)

# Two locks of one step with control flow, whose engine releases values under its own lock: the second lock is still granted.
m = Mutex()
with m.graph:
    go = thalweg.placeholder(thalweg.bool_, [])
    ends = [ops.ConsumeMutexLock(ops.MutexLock(m.handle)) for _ in range(3)]
    taken = ops.Merge(list(ops.Switch(thalweg.constant(3.0), go)))[0]
for _ in range(20):
    cases.equal("three turns in one step", m.session.run([taken, *ends], {go: True}, timeout=10)[0], np.float32(3))

m = Mutex()
holder, closing = waits("the holder", m.start(m.held())), waits("held", m.start(m.lock()))
m.session.close()
fails("the session closes", "CANCELLED", closing.result, "the session was closed")
holder.exception()

m = Mutex()
fails("no lock", "INVALID_ARGUMENT", lambda: m.run(m.do("ConsumeMutexLock", m.do("EmptyTensorList", [1], 3, element_dtype=FLOAT))), "mutex_lock")
fails("no mutex", "INVALID_ARGUMENT", lambda: m.run(m.do("ConsumeMutexLock", m.do("MutexLock", m.queue))), "org.thalweg.mutex")
cases.finish()
