"""A Problem of gradient_test without a graph: the op runs on tensors at once, a tape notes it, and a tape around that one the gradients."""
import numpy as np

import thalweg
import tw
from thalweg import SparseGradient, Tape, Value

EAGER = thalweg.Eager()


def parts(gradient):
    return () if gradient is None else tuple(gradient) if isinstance(gradient, SparseGradient) else (gradient,)


class Problem:
    """One op, its first and second gradients for the inputs in `wrt`; they are worked out anew for every point."""

    def __init__(self, op, inputs, wrt, _, second, attrs):
        self.schema, self.inputs, self.wrt, self.attrs = tw.ops()[op], inputs, wrt, attrs
        graph = tw.Graph()
        self.count = len(graph.add(op, *[graph.constant(x) for x in inputs], name="op", **attrs).outputs)
        x = [inputs[i] for i in wrt]
        self.ys, self.first, self.gs, self.second = "ys", "first", "gs", "second" if second else ""
        if second:
            dy = self.run(self.ys, x)
            self.second = "second" if self.run(self.gs, x + dy) else ""

    def compute(self, what, point):
        """Of a point: the values of the inputs, then, where they are needed, of the first cotangents, then of the second."""
        point = [EAGER.constant(a) for a in point]
        xs, dys = point[:len(self.wrt)], point[len(self.wrt):]
        values = [EAGER.constant(tw.to_tensor(x)) for x in self.inputs]
        for i, x in zip(self.wrt, xs):
            values[i] = x
        with EAGER, Tape() as outer:
            outer.watch(*xs, *dys)  # also the second cotangents, of which nothing becomes
            with Tape() as inner:
                inner.watch(*xs)
                outputs = [Value(EAGER, t) for t in EAGER._call(self.schema, values, self.attrs, self.count)]
                ys = [y for y in outputs if y.dtype.is_floating or y.dtype.is_complex]
            if what == "ys":
                return ys
            dys, vs = dys[:len(ys)], dys[len(ys):]
            first = [parts(g) for g in inner.gradient(ys, xs, dys)]
            gs = [g[0] for g in first if g]
        if what != "second":
            return first if what == "first" else gs
        return [parts(g) for g in outer.gradient(gs, xs + dys, vs)]

    def run(self, fetches, point):
        return [np.array(v.numpy()) for v in self.compute(fetches, point)]

    def gradients(self, which, point):
        return [[np.array(v.numpy()) for v in part] for part in self.compute(which, point)]
