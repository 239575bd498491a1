"""What the tests of functions, conditions and loops share: one run in a session, numeric gradients, and one of each kind to
differentiate."""
import os

import numpy as np

import thalweg as tw
from thalweg import flow

FAKE = os.environ["THALWEG_BINARY_DIR"] + "/tests/devices/libfake.so"


def run(fetches, feeds=None, **options):
    graph = (fetches[0] if isinstance(fetches, (list, tuple)) else fetches).graph
    with tw.Session(graph, **options) as s:
        return s.run(fetches, feeds or {})


def numeric(f, x, h=1e-6):
    """The gradient of the sum of what f gives, by differences."""
    x = np.array(x, np.float64)
    found = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[i], down[i] = x[i] + h, x[i] - h
        found[i] = (np.sum(f(up)) - np.sum(f(down))) / (2 * h)
    return found


def powers(x, n=3):
    return tw.while_loop(lambda i, y: i < n, lambda i, y: [i + 1, y * x + tw.ops.sin(y)], [0, x])[1]


def x_of(i, y):
    """The number in the type of the variable."""
    return i.astype(y.dtype) + 1


def for_loop(x, start, limit, delta, body):
    """A For of one variable."""
    graph = x.graph
    f = flow.Traced(graph, body, [(tw.int32, ()), (x.dtype, tuple(x.shape))], "`body`")
    bounds = [graph.constant(np.int32(v)) for v in (start, limit, delta)]
    return graph.op("For", *bounds, [x], body=f.add("for_body", []))[0]


BUILDERS = {
    "a condition": lambda x: tw.cond(x.sum() > 0, lambda: tw.ops.exp(x) * x, lambda: tw.ops.sin(x)),
    "a condition that holds nothing for one input": lambda x: x * x + tw.cond(x.sum() < 0, lambda: x * 0, lambda: tw.constant(np.zeros(2))),
    "one of several": lambda x: tw.switch_case(tw.constant(1), [lambda: x, lambda: tw.ops.tanh(x * x), lambda: -x]),
    "a function": lambda x: tw.function(lambda a: tw.ops.exp(tw.ops.sin(a)) * a)(x),
    "a function of a function": lambda x: tw.function(lambda a: tw.function(lambda b: b * tw.ops.exp(b))(a) + a)(x * x),
    "a loop": powers,
    "a loop without iterations": lambda x: powers(x, 0) * x,
    "a loop in a condition": lambda x: tw.cond(x.sum() > 0, lambda: powers(x), lambda: x),
    "a condition in a loop": lambda x: tw.while_loop(
        lambda i, y: i < 4, lambda i, y: [i + 1, tw.cond(y.sum() > 1, lambda: tw.ops.sin(y) * x, lambda: y * y + x)], [0, x])[1],
    "a loop in a loop": lambda x: tw.while_loop(
        lambda i, y: i < 3,
        lambda i, y: [i + 1, tw.while_loop(lambda j, z: j < i, lambda j, z: [j + 1, tw.ops.tanh(z) * x + z], [0, y])[1]], [0, x])[1],
    "a for": lambda x: for_loop(x, 0, 3, 1, lambda i, y: tw.ops.sin(y) * x_of(i, y) + y),
    "a for that counts down": lambda x: for_loop(x, 7, 0, -3, lambda i, y: tw.ops.tanh(y) * x_of(i, y)),
    "a for without iterations": lambda x: for_loop(x, 3, 3, 1, lambda i, y: y * y) * x,
    "a for in a for": lambda x: for_loop(x, 0, 3, 1, lambda i, y: for_loop(y, 0, 2, 1, lambda j, z: tw.ops.sin(z) * z + z)),
    "a loop that grows": lambda x: tw.while_loop(lambda i, y: i < 3, lambda i, y: [i + 1, tw.ops.concat_v2([y * y, x], 0)], [0, x],
                                                 shape_invariants=[[], [None]])[1],
}
