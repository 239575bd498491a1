"""Tests of tensor arrays: reads return what was written, in the order of flows and control inputs; gradients against central differences;
errors; and no array of one step exists in the next."""
import numpy as np

import cases
import tw
from thalweg import gradients

rng = np.random.default_rng(9)
i32 = lambda *v: np.array(v, np.int32)


class Arrays(tw.Graph):
    """One array. Its flow orders its ops."""

    def __init__(self, dtype=np.float64, size=3, **more):
        super().__init__()
        self.dtype = dtype
        self.handle, self.flow = self.add("TensorArrayV3", self.value(np.int32(size)), dtype=dtype, **more).outputs

    def value(self, x):
        return self.constant(x) if isinstance(x, (np.ndarray, np.generic)) else x

    def write(self, i, x):
        self.flow = self.op("TensorArrayWriteV3", self.handle, self.value(np.int32(i)), self.value(x), self.flow)
        return self

    def scatter(self, places, x):
        self.flow = self.op("TensorArrayScatterV3", self.handle, self.value(i32(*places)), self.value(x), self.flow)
        return self

    def split(self, x, lengths):
        self.flow = self.op("TensorArraySplitV3", self.handle, self.value(x), self.value(np.int64(lengths)), self.flow)
        return self

    def read(self, i, dtype=None):
        return self.op("TensorArrayReadV3", self.handle, self.value(np.int32(i)), self.flow, dtype=dtype or self.dtype)

    def gather(self, places, **more):
        return self.op("TensorArrayGatherV3", self.handle, self.value(i32(*places)), self.flow, dtype=self.dtype, **more)

    def concat(self, **more):
        return self.add("TensorArrayConcatV3", self.handle, self.flow, dtype=self.dtype, **more).outputs

    def size(self):
        return self.op("TensorArraySizeV3", self.handle, self.flow)

    def run(self, *fetches, feeds=None, **options):
        return self.session(**options).run(list(fetches), feeds)


def holds(where, build, *wanted):
    for options in (dict(), dict(optimize="false"), dict(engine="counted", threads=3)):
        try:
            for k, (got, want) in enumerate(zip(build(options), wanted)):
                cases.equal(f"{where}, result {k} on {options}", got, want)
        except tw.Error as error:
            cases.holds(f"{where} on {options}", False, error)


x = np.arange(6, dtype=np.float64).reshape(3, 2)


def written_and_read(options):
    a = Arrays().write(2, x[2]).write(0, x[0])
    return a.run(a.read(2), a.read(0), a.size(), **options)


def scattered_and_gathered(options):
    a = Arrays(clear_after_read=False).scatter((2, 0, 1), x)
    return a.run(a.gather((0, 0, 1, 2)), a.read(1), **options)


def split_and_joined(options):
    a = Arrays(dynamic_size=True, size=0).split(x, (1, 0, 2))
    return a.run(*a.concat(), a.size(), **options)


def unwritten(options):
    a = Arrays(element_shape=(2,)).write(1, x[1])
    return a.run(a.gather((0, 1, 2)), **options)


def grown(options):
    a = Arrays(dynamic_size=True, size=0, dtype=tw.string).write(4, np.array(b"end", object)).write(0, np.array(b"start", object))
    return a.run(a.read(4), a.read(0), a.size(), **options)


holds("written and read", written_and_read, x[2], x[0], np.int32(3))
holds("scattered and gathered", scattered_and_gathered, x[[1, 1, 2, 0]], x[2])
holds("split and joined", split_and_joined, x, np.int64([1, 0, 2]), np.int32(3))
holds("never written", unwritten, [[0, 0], x[1], [0, 0]])
holds("grown", grown, np.array(b"end", object), np.array(b"start", object), np.int32(5))
a = Arrays(dtype=np.float32, size=0, element_shape=(4,))
holds("an empty array", lambda options: a.run(a.gather(()), *a.concat(element_shape_except0=()), **options),
      np.zeros((0, 4)), np.zeros(0), np.zeros(0, np.int64))

# One session with many steps: every step has an array and a stack of its own.
a = Arrays(clear_after_read=True)
at = a.placeholder(np.float64, (2,))
a.write(0, at)
y, session = a.read(0), a.session()
for k in range(5):
    cases.equal(f"step {k}", session.run([y], {at: x[k % 3]})[0], x[k % 3])


def refuses(where, build, *parts):
    cases.refuses(where, lambda: build(), *parts)


def array(**more):
    return Arrays(clear_after_read=more.pop("clear_after_read", True), **more)


def twice():
    a = array().write(0, x[0])
    return a.run(a.read(0), a.read(0))


refuses("written twice", lambda: (lambda a: a.run(a.size()))(array().write(0, x[0]).write(0, x[1])), "before", "0")
refuses("read twice", twice, "clear_after_read", "0")
refuses("read beyond the end", lambda: (lambda a: a.run(a.read(3)))(array()), "3")
refuses("read before the start", lambda: (lambda a: a.run(a.read(-1)))(array()), "-1")
refuses("written beyond the end", lambda: (lambda a: a.run(a.size()))(array().write(3, x[0])), "3", "dynamic")
refuses("written before the start", lambda: (lambda a: a.run(a.size()))(array(dynamic_size=True).write(-1, x[0])), "-1")
refuses("read and never written", lambda: (lambda a: a.run(a.read(1)))(array()), "never written", "unknown")
refuses("written with another shape", lambda: (lambda a: a.run(a.size()))(array(element_shape=(3,)).write(0, x[0])), "[3]", "[2]")
refuses("written with two shapes", lambda: (lambda a: a.run(a.size()))(array(identical_element_shapes=True).write(0, x[0]).write(1, x)),
        "[2]", "[3, 2]")
refuses("written with another type", lambda: (lambda a: a.run(a.size()))(array().write(0, np.float32(1))), "double", "float")
refuses("read as another type", lambda: (lambda a: a.run(a.read(0, np.int32)))(array()), "double", "int32")
refuses("gathered from two shapes", lambda: (lambda a: a.run(a.gather((0, 1))))(array().write(0, x[0]).write(1, x)), "[3, 2]", "[2]")
refuses("joined scalars", lambda: (lambda a: a.run(*a.concat()))(array(size=1).write(0, np.float64(1))), "[]")
refuses("split into too many", lambda: (lambda a: a.run(a.size()))(array().split(x, (1, 2))), "3", "2", "dynamic")
refuses("split into wrong lengths", lambda: (lambda a: a.run(a.size()))(array().split(x, (1, 1, 2))), "3")
refuses("scattered with too few indices", lambda: (lambda a: a.run(a.size()))(array().scatter((0, 1), x)), "3", "2")
refuses("a negative size", lambda: (lambda a: a.run(a.size()))(array(size=-1)), "-1")


def closed():
    a = array().write(0, x[0])
    close = a.add("TensorArrayCloseV3", a.handle, after=[a.flow.operation])
    return a.run(a.op("TensorArraySizeV3", a.handle, a.flow, after=[close]))


refuses("a closed array", closed, "closed")

# ---- Gradients ----


def by_writes(g, v):
    rows = g.add("Unpack", v, num=3).outputs
    for k in (2, 0, 1):
        g.write(k, rows[k])
    return [g.read(k) for k in (0, 1, 2)]


BUILDS = {
    "written and read": (dict(), by_writes),
    "scattered and gathered": (dict(clear_after_read=False), lambda g, v: [g.scatter((2, 0, 1), v).gather((0, 1, 1)), g.gather((2,))]),
    "split and joined": (dict(), lambda g, v: g.split(v, (1, 0, 2)).concat()[:1]),
    "read in part": (dict(element_shape=(2,)), lambda g, v: [g.scatter((0, 1, 2), v).read(1)]),
}
for name, (more, build) in BUILDS.items():
    for known in ((3, 2), None):
        where = f"gradient of what is {name}, known: {known}"
        try:
            g = Arrays(**more)
            v = g.placeholder(np.float64, known)
            ys = [g.op("Square", y) for y in build(g, v)]
            [dv], [again] = gradients(ys, [v]), gradients(ys, [v])  # each call has an array of its own
            session, at = g.session(), rng.normal(size=(3, 2))
            total = lambda p: sum(y.sum() for y in session.run(ys, {v: p}))
            wanted = np.zeros_like(at)
            for k in np.ndindex(at.shape):
                step = np.zeros_like(at)
                step[k] = 1e-5
                wanted[k] = (total(at + step) - total(at - step)) / 2e-5
            for got in session.run([dv, again], {v: at}):
                cases.equal(where, got, wanted, 1e-6)
        except tw.Error as error:
            cases.holds(where, False, error)

# There is one gradient array per source. It adds up the writes, and has the axes that are put in front.
g = Arrays(clear_after_read=False).scatter((0, 1, 2), x)
first, flow = g.add("TensorArrayGradV3", g.handle, g.flow, source="one").outputs
same, flow = g.add("TensorArrayGradV3", g.handle, flow, source="one").outputs
other, _ = g.add("TensorArrayGradV3", g.handle, flow, source="two").outputs
flow = g.op("TensorArrayWriteV3", first, g.constant(np.int32(0)), g.constant(x[0]), flow)
flow = g.op("TensorArrayWriteV3", same, g.constant(np.int32(0)), g.constant(x[1]), flow)
read = g.op("TensorArrayReadV3", first, g.constant(np.int32(0)), flow, dtype=np.float64)
cases.equal("a sum in an array of gradients", g.run(read)[0], x[0] + x[1])
elsewhere = g.op("TensorArrayReadV3", other, g.constant(np.int32(0)), flow, dtype=np.float64)
cases.refuses("another source", lambda: g.run(elsewhere), "two", "never written")
g = Arrays(element_shape=(2,))
wide, flow = g.add("TensorArrayGradWithShape", g.handle, g.flow, g.constant(i32(4)), source="wide").outputs
read = g.op("TensorArrayReadV3", wide, g.constant(np.int32(1)), flow, dtype=np.float64)
cases.equal("with axes before", g.run(read)[0], np.zeros((4, 2)))
cases.finish()
