"""Tests of conditional accumulators: means and sums, stale gradients, waiting takes, and rejected uses."""
import numpy as np

import cases
import thalweg
from blocking import SOON, Place, fails, waits
from thalweg import ops

FLOATS = (thalweg.float16, thalweg.bfloat16, thalweg.float32, thalweg.float64)


class Accumulator(Place):
    def __init__(self, shape=(2,), dtype=thalweg.float32, **attrs):
        super().__init__()
        self.dtype = dtype
        self.handle = self.do("ResourceConditionalAccumulator", dtype=dtype, shape=shape, shared_name=self.name, **attrs)

    def apply(self, gradient, step=0, dtype=None):
        cast = self.do("cast", self.constant(gradient, thalweg.float64), DstT=dtype or self.dtype)
        self.run(self.do("ResourceAccumulatorApplyGradient", self.handle, self.constant(step, thalweg.int64), cast))

    def taking(self, n):
        with self.graph:
            return ops.cast(ops.ResourceAccumulatorTakeGradient(self.handle, n, dtype=self.dtype), DstT=thalweg.float64)

    def take(self, n):
        return self.run(self.taking(n))

    def taken_later(self, n, **options):
        return waits(f"{n} are not there", self.start(self.taking(n), **options))

    def count(self):
        return int(self.run(self.do("ResourceAccumulatorNumAccumulated", self.handle)))

    def set_step(self, step):
        self.run(self.do("ResourceAccumulatorSetGlobalStep", self.handle, self.constant(step, thalweg.int64)))


for dtype in FLOATS:
    a = Accumulator(dtype=dtype)
    for gradient in ([1.0, 2.0], [3.0, 4.5], [5.0, 7.0]):
        a.apply(gradient)
    cases.equal(f"{dtype}: count", a.count(), 3)
    cases.equal(f"{dtype}: mean of all", a.take(2), np.float64([3, 4.5]))
    cases.equal(f"{dtype}: taken", a.count(), 0)
    a.apply([9.0, 9.0])  # a gradient of step 0, while the accumulator is at step 1
    cases.equal(f"{dtype}: too old", a.count(), 0)
    a.apply([8.0, 6.0], step=1)
    cases.equal(f"{dtype}: in time", a.take(1), np.float64([8, 6]))
    a = Accumulator(dtype=dtype, reduction_type="SUM")
    for gradient in ([1.0, 2.0], [3.0, 4.0]):
        a.apply(gradient)
    cases.equal(f"{dtype}: sum", a.take(1), np.float64([4, 6]))

# A gradient that a client applies again after a retry changes no bit of the mean; a rounded sum of three would.
for dtype, numpy in ((thalweg.float16, np.float16), (thalweg.float32, np.float32), (thalweg.float64, np.float64)):
    given, other = (np.random.default_rng(k).standard_normal(64).astype(numpy) for k in (1, 2))
    assert any((given + given + given) / numpy(3) != given)
    for times in (2, 3, 5):
        a = Accumulator(shape=(64,), dtype=dtype)
        for _ in range(times):
            a.apply(given)
        cases.equal(f"{dtype}: the same {times} times", a.take(1), np.float64(given))
    for _ in range(3):
        a.apply(given, step=1)
    a.apply(other, step=1)
    wide = np.float32 if numpy is np.float16 else numpy
    total = given
    for one in (given, given, other):
        total = (wide(total) + wide(one)).astype(numpy)
    cases.equal(f"{dtype}: the same three times and another", a.take(1), np.float64((wide(total) / wide(4)).astype(numpy)))
    a = Accumulator(shape=(64,), dtype=dtype, reduction_type="SUM")
    for _ in range(3):
        a.apply(given)
    cases.equal(f"{dtype}: a sum counts each", a.take(1), np.float64(((wide((wide(given) + wide(given)).astype(numpy))) + wide(given)).astype(numpy)))

a = Accumulator(shape=None)
a.apply([[1.0]])
cases.refuses("another shape than before", lambda: a.apply([1.0]), "gradient has shape [1], but the accumulator has [1, 1]")
cases.equal("of any shape", a.take(1), np.float64([[1]]))
a.apply([1.0, 2.0, 3.0], step=1)
cases.equal("of another shape", a.take(1), np.float64([1, 2, 3]))
a = Accumulator(shape=(0,))
a.apply(np.zeros(0, np.float32))
cases.equal("of nothing", a.take(1), np.zeros(0))

a = Accumulator()
first, second = a.taken_later(2), a.taken_later(1)
a.apply([1.0, 1.0])
cases.equal("one is not enough", a.count(), 1)
a.apply([3.0, 5.0])
cases.equal("who came first", first.result(), np.float64([2, 3]))
a.apply([4.0, 4.0], step=1)
cases.equal("who came second", second.result(), np.float64([4, 4]))

a = Accumulator()
late, cancelled, behind = a.taken_later(2, timeout=SOON), a.taken_later(3), a.taken_later(1)
cancelled.cancel()
fails("deadline", "DEADLINE_EXCEEDED", late.result)
fails("cancel", "CANCELLED", cancelled.result)
a.apply([7.0, 7.0])
cases.equal("who is left", behind.result(), np.float64([7, 7]))

a = Accumulator()
a.set_step(10)
a.apply([1.0, 1.0], step=9)
a.apply([1.0, 1.0, 1.0], step=9)  # the value is not read any more
a.apply([2.0, 2.0], step=10)
cases.equal("from step 10 on", a.take(1), np.float64([2, 2]))

cases.refuses("another type", lambda: a.apply([1.0, 2.0], step=20, dtype=thalweg.float64), "float", "double")
cases.refuses("another shape", lambda: a.apply([1.0, 2.0, 3.0], step=20), "[3]", "[2]")
cases.refuses("another rank", lambda: a.apply([[1.0, 2.0]], step=20), "gradient", "rank 1")
cases.refuses("none required", lambda: a.take(0), "num_required is 0")
cases.equal("refused ones change nothing", a.count(), 0)
cases.finish()
