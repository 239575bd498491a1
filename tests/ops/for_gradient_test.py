"""Tests gradients of For: random programs (for_programs.py) are compared with NumPy in float64. NumPy's derivatives are complex-step
derivatives, which are exact except for rounding; second derivatives are differences of these. Programs run with one thread and several,
directly and after they were written and read."""
import sys

import numpy as np

import cases
import for_programs
import thalweg
from thalweg import flow, ops
from tw import SESSION, runtime


class InNumPy:
    sin, tanh, float_of = staticmethod(np.sin), staticmethod(np.tanh), staticmethod(float)

    @staticmethod
    def loop(start, limit, delta, body, values):
        for i in range(start, limit, delta):
            values = body(i, values)
        return values

    @staticmethod
    def choose(at, then, otherwise, values):
        return then(values) if values[at].real.sum() > 0 else otherwise(values)


class InGraph:
    sin, tanh = staticmethod(ops.sin), staticmethod(ops.tanh)

    @staticmethod
    def float_of(number):
        return number.astype("float64")

    @staticmethod
    def loop(start, limit, delta, body, values):
        graph = values[0].graph
        kinds = [(thalweg.as_dtype("int32"), ())] + [(v.dtype, tuple(v.shape)) for v in values]
        f = flow.Traced(graph, lambda i, *v: body(i, v), kinds, "`body`")
        bounds = [graph.constant(np.int32(n)) for n in (start, limit, delta)]
        given = graph.op("For", *bounds, values, body=f.add("for_body", []))
        return [given[k] for k in range(len(values))]

    @staticmethod
    def choose(at, then, otherwise, values):
        return list(thalweg.cond(ops.sum(values[at], 0) > 0, lambda: then(values), lambda: otherwise(values)))


def total(statements, values):
    return sum(v.sum() for v in for_programs.run(statements, values, InNumPy))


def slope(statements, values, h=1e-20):
    """Returns the derivatives of the sum of all results of the program."""
    found = np.zeros_like(values)
    for at in np.ndindex(values.shape):
        stepped = values.astype(complex)
        stepped[at] += 1j * h
        found[at] = total(statements, list(stepped)).imag / h
    return found


def bend(statements, values, h=1e-5):
    """Returns the derivatives of the sum of the first derivatives."""
    found = np.zeros_like(values)
    for at in np.ndindex(values.shape):
        up, down = values.copy(), values.copy()
        up[at], down[at] = values[at] + h, values[at] - h
        found[at] = (slope(statements, up).sum() - slope(statements, down).sum()) / (2 * h)
    return found


def gradients_of(ys, xs):
    return [x * 0 if g is None else g for g, x in zip(thalweg.gradients(ys, xs), xs)]


def build(count, statements, runtime):
    """Returns the graph, its inputs, the results of the program, and the first and second derivatives."""
    with thalweg.Graph(runtime) as graph:
        xs = [thalweg.placeholder("float64", [2]) for _ in range(count)]
        ys = [ops.identity(y) for y in for_programs.run(statements, xs, InGraph)]
        first = gradients_of(ys, xs)
        return graph, xs, ys, first, gradients_of(first, xs)


def check(seed):
    count, statements = for_programs.program(seed)
    rng = np.random.default_rng(seed)
    values = [rng.uniform(-1.5, 1.5, (count, 2)) for _ in range(2)]
    for threads in (1, 4):
        graph, *named = build(count, statements, runtime(threads=threads))
        again = thalweg.Graph.from_bytes(graph.to_bytes(), graph.runtime)
        for g, what in ((graph, "as it is"), (again, "written and read")):
            xs, ys, first, second = named if g is graph else [[again[v.name] for v in some] for some in named]
            with thalweg.Session(g, **SESSION) as session:
                for at in values:
                    fed = dict(zip(xs, at))
                    where = f"program {seed} with {threads} threads, {what}, at {at.tolist()}"
                    cases.equal(f"the values of {where}", np.array(session.run(ys, fed)),
                                np.array(for_programs.run(statements, list(at), InNumPy)), 1e-10)
                    ours = [np.array(d) for d in session.run([*first, *second], fed)]
                    cases.equal(f"the derivatives of {where}", np.array(ours[:count]), slope(statements, at), 1e-9)
                    cases.equal(f"the second derivatives of {where}", np.array(ours[count:]), bend(statements, at), 1e-5)


if __name__ == "__main__":
    programs, seed = (int(a) for a in sys.argv[1:]) if len(sys.argv) == 3 else (40, 1)
    for seed in range(seed, seed + programs):
        if cases.sampled("program"):
            check(seed)
    cases.finish()
