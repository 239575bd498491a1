"""Gradients of branches and loops made of Switch, Merge, Enter, Exit and NextIteration: first and second derivatives against differences,
effects and random draws that happen once, and graphs without gradients. control_flow_golden_test.py has random programs."""
import itertools

import numpy as np

import cases
import thalweg
from loops import branch, loop
from thalweg import ops

X = np.array([0.3, 0.8])


def c(x):
    return thalweg.constant(np.float64(x))


def i(x):
    return thalweg.constant(np.int32(x))


def powers(x, n=3):
    return loop([i(0), x], lambda k, y, x: k < i(n), lambda k, y, x: [k + i(1), y * x + ops.sin(y)], [x])[1]


def positive(x):
    return ops.sum(x, i(0)) > c(0)


PROGRAMS = {
    "a branch that is taken": lambda x: branch(positive(x), lambda x: ops.exp(x) * x, ops.sin, x),
    "a branch that is not taken": lambda x: branch(positive(-x), lambda x: ops.exp(x) * x, ops.sin, x),
    "a branch that hands its value on": lambda x: branch(positive(x), lambda x: x, lambda x: x * x, x * x),
    "a branch in a branch": lambda x: branch(
        positive(x), lambda x: branch(positive(x - c(1)), lambda x: x * x, lambda x: ops.tanh(x) * x, x) * x, ops.sin, x),
    "one branch after the other": lambda x: branch(
        positive(x), lambda y, x: y * x, lambda y, x: y + x, branch(positive(x), lambda x: x * x, lambda x: x, x), x),
    "a loop": powers,
    "a loop without iterations": lambda x: powers(x, 0) * x,
    "one loop after the other": lambda x: powers(powers(x, 2), 2),
    "a loop whose variables grow": lambda x: loop(
        [i(0), x], lambda k, y, x: k < i(3), lambda k, y, x: [k + i(1), ops.concat_v2([y * y, x], i(0))], [x])[1],
    "a loop that its values end": lambda x: loop(x, lambda y: ops.sum(y, i(0)) < c(40), lambda y: y * y + y + c(0.5)),
    "a loop in a branch": lambda x: branch(positive(x), powers, ops.sin, x),
    "a branch in a loop": lambda x: loop(
        [i(0), x], lambda k, y, x: k < i(4),
        lambda k, y, x: [k + i(1), branch(ops.sum(y, i(0)) > c(1), lambda y, x: ops.sin(y) * x, lambda y, x: y * y + x, y, x)], [x])[1],
    "a loop in a loop": lambda x: loop(
        [i(0), x], lambda k, y, x: k < i(3), lambda k, y, x: [k + i(1), loop(
            [i(0), y], lambda j, z, k, x: j < k, lambda j, z, k, x: [j + i(1), ops.tanh(z) * x + z], [k, x])[1]], [x])[1],
    "variables that change places": lambda x: loop(
        [i(0), x, x * x], lambda k, y, z: k < i(3), lambda k, y, z: [k + i(1), z * c(0.5), y + ops.sin(z)])[1],
}


def numeric(f, x, h=1e-6):
    found = np.zeros_like(x)
    for at in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[at], down[at] = x[at] + h, x[at] - h
        found[at] = (np.sum(f(up)) - np.sum(f(down))) / (2 * h)
    return found


def derivatives(name, program, threads):
    with thalweg.Graph(thalweg.Runtime(threads=threads)) as graph:
        x = thalweg.placeholder("float64", [2])
        y = program(x)
        dx = thalweg.gradients(y, x)
        ddx = thalweg.gradients(dx, x)
    with thalweg.Session(graph) as session:
        for what, f, df in (("first", y, dx), ("second", dx, ddx)):
            wanted = numeric(lambda v: session.run(f, {x: v}), X)
            cases.equal(f"the {what} derivative of {name}", session.run(df, {x: X}), wanted, 1e-5)
        alone, together = session.run(y, {x: X}), session.run([y, dx, ddx], {x: X})
        cases.equal(f"{name}, with its gradient and without", together[0], alone)


def effects():
    with thalweg.Graph() as graph:
        x, v = thalweg.placeholder("float64", [2]), thalweg.Variable(np.float64(0))

        def body(k, y, h):
            with thalweg.control_dependencies([ops.assign_add_variable_op(h, c(1))]):
                return [k + i(1), y * y]

        k, y = loop([i(0), x], lambda k, y, h: k < i(3), body, [v.handle])
        z = branch(positive(x), lambda y, h: after(ops.assign_add_variable_op(h, c(10)), y * y), lambda y, h: y, y, v.handle)
        dx, now, init = thalweg.gradients(z, x), v.read(), graph.initializer(name="init")
    again = thalweg.Graph.from_bytes(graph.to_bytes())
    for g, what in ((graph, "effects happen once"), (again, "effects happen once in a graph that was written and read")):
        at = {value.name: value if g is graph else again[value.name] for value in (x, y, z, k, dx, now)}
        x_, y_, z_, k_, dx_, now_ = (at[value.name] for value in (x, y, z, k, dx, now))
        with thalweg.Session(g) as session:
            session.run(init if g is graph else again.operation("init"))
            for fetches, wanted in (([z_, dx_], 13), ([dx_], 26), ([z_], 39), ([k_, z_, dx_], 52), ([y_, dx_], 65)):
                session.run(fetches, {x_: X})
                cases.equal(what, np.asarray(session.run(now_)), np.float64(wanted))


def after(operation, value):
    with thalweg.control_dependencies([operation]):
        return ops.identity(value)


def draws():
    with thalweg.Graph() as graph:
        x = thalweg.placeholder("float64", [2])
        draw = lambda y: y * ops.random_uniform(thalweg.constant(np.array([2], np.int32)), dtype="float64")
        y = loop([i(0), x], lambda k, y: k < i(4), lambda k, y: [k + i(1), draw(y)])[1]
        z = branch(positive(x), draw, lambda y: y, y)
        dx = thalweg.gradients(z, x)
    with thalweg.Session(graph) as session:
        for _ in range(3):
            value, gradient = session.run([z, dx], {x: X})
            cases.equal("random values are drawn once", gradient * X, value)


def what_cannot_be():
    """Graphs that are neither conditionals nor loops run, but have no gradients; the error names the node."""
    def refused(name, build, says):
        with thalweg.Graph() as graph:
            x = thalweg.placeholder("float64", [2])
            y, z = build(x)
            cases.refuses(f"{name} has no gradient", lambda: thalweg.gradients(y, z), *says)

    def merged_at_random(x):
        a, b = ops.switch(x, positive(x), name="a"), ops.switch(x, positive(x * x), name="b")
        return ops.merge([a.output_true, b.output_false], name="both").output, x

    def crossed(x):
        a, b = ops.switch(x, positive(x), name="a"), ops.switch(x, positive(x * x), name="b")
        return ops.merge([a.output_false, ops.mul(a.output_true, b.output_true, name="met")], name="both").output, x

    def within_a_branch(x):
        a = ops.switch(x, positive(x), name="a")
        return ops.mul(a.output_true, a.output_true, name="inside"), x

    def by_what_is_in_a_loop(x):
        inner = []
        y = loop(x, lambda y: positive(c(8) - y), lambda y: inner.append(ops.identity(y * y, name="inside")) or inner[0])
        return y, inner[0]

    def entered_from_itself(x):
        inside = ops.enter(x, frame_name="itself")
        return ops.exit(ops.exit(ops.enter(inside, frame_name="itself", name="again"))), x

    refused("a frame that lies within itself", entered_from_itself, ["'again'", "'itself'", "different branches or frames"])
    refused("a Merge of two conditions", merged_at_random, ["Merge 'both", "two sides of one condition"])
    refused("a node of two conditions", crossed, ["'met'", "Merge where two conditions meet"])
    refused("a value in a branch", within_a_branch, ["'inside'", "lies in a branch"])
    refused("what lies in a loop", by_what_is_in_a_loop, ["'inside'", "lies in a loop"])


if __name__ == "__main__":
    for (name, program), threads in itertools.product(PROGRAMS.items(), (1, 4)):
        derivatives(name, program, threads)
    effects()
    draws()
    what_cannot_be()
    cases.finish()
