"""Tests of sparse conditional accumulators, and of accumulators by reference: rows by index, means over the gradients that have the row,
waiting takes, errors."""
import numpy as np

import cases
import thalweg
from blocking import SOON, Place, fails, waits

FLOAT, INT64 = thalweg.float32, thalweg.int64
FLOATS = (thalweg.float16, thalweg.bfloat16, thalweg.float32, thalweg.float64)


# Handle, apply, take and count: the ops by reference, and the ops that run in their place.
BY_REFERENCE = "SparseConditionalAccumulator SparseAccumulatorApplyGradient SparseAccumulatorTakeGradient AccumulatorNumAccumulated".split()
BY_HANDLE = ("ResourceSparseConditionalAccumulator ResourceSparseAccumulatorApplyGradient ResourceSparseAccumulatorTakeGradient "
             "ResourceAccumulatorNumAccumulated").split()


class Accumulator(Place):
    def __init__(self, shape=(4, 2), dtype=FLOAT, form=BY_REFERENCE, **attrs):
        super().__init__()
        self.dtype, self.form = dtype, form
        self.handle = self.do(form[0], dtype=dtype, shape=shape, shared_name=self.name, **attrs)

    def apply(self, indices, values, step=0, shape=()):
        values = self.do("Cast", self.constant(values, thalweg.float64), DstT=self.dtype)
        self.run(self.do(self.form[1], self.handle, self.constant(step, INT64), self.constant(indices, INT64), values,
                         self.constant(shape, INT64), has_known_shape=len(shape) > 0))

    def taking(self, n):
        indices, values, shape = self.do(self.form[2], self.handle, n, dtype=self.dtype)
        return [indices, self.do("Cast", values, DstT=thalweg.float64), shape]

    def take(self, n):
        return self.run(self.taking(n))

    def count(self):
        return int(self.run(self.do(self.form[3], self.handle)))


for dtype in FLOATS:
    for form in (BY_REFERENCE, BY_HANDLE):
        a = Accumulator(dtype=dtype, form=form)
        a.apply([0, 2], [[1.0, 2.0], [3.0, 4.0]])
        a.apply([2, 3], [[5.0, 8.0], [7.0, 8.0]], shape=(4, 2))
        cases.equal(f"{dtype}: count", a.count(), 2)
        indices, values, shape = a.take(2)
        cases.equal(f"{dtype}: indices", indices, np.int64([0, 2, 3]))
        cases.equal(f"{dtype}: mean of those that have the row", values, np.float64([[1, 2], [4, 6], [7, 8]]))
        cases.equal(f"{dtype}: shape", shape, np.int64([4, 2]))
        a.apply([0], [[9.0, 9.0]])
        cases.equal(f"{dtype}: too old", a.count(), 0)
        a.apply([1], [[9.0, 9.0]], step=1)
        cases.equal(f"{dtype}: in time", a.take(1)[0], np.int64([1]))
    # A gradient that is applied again, and has a row several times, changes no bit, also beside the rows of another gradient.
    rows = np.random.default_rng(3).standard_normal((5, 2)) * [[1], [1000], [1], [1e-3], [1]]
    means = []
    for times in (1, 2, 3):
        a = Accumulator(dtype=dtype)
        for _ in range(times):
            a.apply([2, 1, 2, 2, 0], rows)
        means.append(a.take(1)[1])
        cases.equal(f"{dtype}: the same {times} times", means[-1], means[0])
    a = Accumulator(dtype=dtype)
    for _ in range(3):
        a.apply([1], [[1.5, 2.5]])
    a.apply([1, 3], [[3.5, 6.5], [1.0, 1.0]])
    cases.equal(f"{dtype}: the same three times and another", a.take(1)[1], np.float64([[2, 3.5], [1, 1]]))
    a = Accumulator(dtype=dtype, reduction_type="SUM")
    a.apply([1], [[1.0, 2.0]])
    a.apply([1, 0], [[3.0, 4.0], [5.0, 6.0]])
    indices, values, _ = a.take(1)
    cases.equal(f"{dtype}: in order", indices, np.int64([0, 1]))
    cases.equal(f"{dtype}: sum", values, np.float64([[5, 6], [4, 6]]))

a = Accumulator(shape=None)
a.apply([5, 5], [[1.0], [2.0]])
a.apply([5], [[6.0]])
indices, values, shape = a.take(2)
cases.equal("a row twice counts once", values, np.float64([[4.5]]))
cases.equal("no shape", shape, np.int64([-1, 1]))
a.apply([], np.zeros((0, 3)), step=1)
cases.equal("no rows", a.take(1)[1], np.zeros((0, 3)))

a = Accumulator()
first, second = waits("empty", a.start(a.taking(2))), waits("empty", a.start(a.taking(1)))
a.apply([0], [[1.0, 1.0]])
waits("one is not enough", first)
a.apply([0], [[3.0, 5.0]])
cases.equal("who came first", first.result()[1], np.float64([[2, 3]]))
a.apply([1], [[4.0, 4.0]], step=1)
cases.equal("who came second", second.result()[0], np.int64([1]))

for where, end, code in (("cancel", lambda s: s.cancel(), "CANCELLED"), ("deadline", lambda s: None, "DEADLINE_EXCEEDED")):
    a = Accumulator()
    a.apply([0], [[1.0, 1.0]])
    step, behind = waits(where, a.start(a.taking(3), timeout=SOON if where == "deadline" else None)), a.start(a.taking(1))
    end(step)
    fails(where, code, step.result, "SparseAccumulatorTakeGradient")
    cases.equal(f"{where}: nothing was taken", behind.result()[1], np.float64([[1, 1]]))

a = Accumulator()
a.apply([0], [[1.0, 1.0]])
INVALID = (
    ("rows", lambda: a.apply([0, 1], [[1.0, 1.0]]), ("1 rows, but there are 2 indices",)),
    ("row shape", lambda: a.apply([0], [[1.0]]), ("size 1 of the gradient is 1", "[4, 2]")),
    ("rank", lambda: a.apply([0], [1.0]), ("rank 1", "[4, 2]")),
    ("index", lambda: a.apply([4], [[1.0, 1.0]]), ("index 4 at 0 is not a row of 4",)),
    ("a negative index", lambda: a.apply([-1], [[1.0, 1.0]]), ("index -1",)),
    ("its shape", lambda: a.apply([0], [[1.0, 1.0]], shape=(5, 2)), ("size 0 of the gradient is 5",)),
    ("ranks", lambda: a.apply([0], [[1.0, 1.0]], shape=(4,)), ("gradient_shape has 1 sizes",)),
    ("none required", lambda: a.take(0), ("num_required is 0",)),
    ("dense", lambda: a.run(a.do("AccumulatorTakeGradient", a.handle, 1, dtype=FLOAT)), ("the accumulator is sparse",)),
)
for where, action, parts in INVALID:
    fails(where, "INVALID_ARGUMENT", action, *parts)
cases.equal("refused ones change nothing", a.count(), 1)

# Dense accumulators by reference.
p = Place()
handle = p.do("ConditionalAccumulator", dtype=FLOAT, shape=[2], shared_name=p.name)
p.run(p.do("AccumulatorSetGlobalStep", handle, p.constant(3, INT64)))
for step, gradient in ((2, [9.0, 9.0]), (3, [1.0, 2.0]), (4, [3.0, 4.0])):
    p.run(p.do("AccumulatorApplyGradient", handle, p.constant(step, INT64), p.constant(gradient, FLOAT)))
cases.equal("by reference: count", int(p.run(p.do("AccumulatorNumAccumulated", handle))), 2)
cases.equal("by reference: mean", p.run(p.do("AccumulatorTakeGradient", handle, 2, dtype=FLOAT)), np.float32([2, 3]))
fails("sparse", "INVALID_ARGUMENT", lambda: p.run(*p.do("SparseAccumulatorTakeGradient", handle, 1, dtype=FLOAT)), "the accumulator is dense")

# An accumulator that exists already.
for where, attrs, part in (("type", dict(dtype=thalweg.float64, shape=[2]), "is of float, not double"),
                           ("shape", dict(dtype=FLOAT, shape=[3]), "has shape [2], not [3]")):
    fails(f"another {where}", "INVALID_ARGUMENT", lambda attrs=attrs: p.run(p.do("AccumulatorNumAccumulated", p.do("ConditionalAccumulator",
          shared_name=p.name, **attrs))), p.name, part)
fails("another kind", "INVALID_ARGUMENT", lambda: p.run(p.do("AccumulatorNumAccumulated", p.do("SparseConditionalAccumulator", dtype=FLOAT,
      shape=[2], shared_name=p.name))), "is dense, but was asked for as sparse")
cases.finish()
