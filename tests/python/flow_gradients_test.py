"""Gradients of functions, conditions and loops, against differences."""
import numpy as np
import pytest

import thalweg as tw
from thalweg import flow

from flow_cases import BUILDERS, numeric, powers, run


def check_gradient(graph, build, data, second=True, **options):
    """First and second derivatives of build(x) at data against differences."""
    x = tw.placeholder("float64", np.shape(data))
    y = build(x)
    dx = tw.gradients(y, x)
    with tw.Session(graph, **options) as s:
        np.testing.assert_allclose(s.run(dx, {x: data}), numeric(lambda v: s.run(y, {x: v}), data), rtol=1e-5, atol=1e-7)
        if second:
            ddx = tw.gradients(dx, x)
            np.testing.assert_allclose(s.run(ddx, {x: data}), numeric(lambda v: s.run(dx, {x: v}), data), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("what", BUILDERS)
def test_first_and_second_derivatives_are_those_of_differences(graph, what):
    check_gradient(graph, BUILDERS[what], [0.3, 0.8])


@pytest.mark.parametrize("threads", [1, 8])
def test_the_gradient_has_the_same_bits_on_any_number_of_threads(graph, threads):
    x = tw.placeholder("float32", [64])
    dx = tw.gradients(powers(x, 5), x)
    data = np.linspace(-1, 1, 64, dtype=np.float32)
    assert run(dx, {x: data}, threads=threads).tobytes() == run(dx, {x: data}, engine="fixed", threads=1).tobytes()


def test_random_values_of_a_loop_are_drawn_once(graph):
    x = tw.placeholder("float32", [5])
    _, y = tw.while_loop(lambda i, y: i < 4, lambda i, y: [i + 1, y * tw.ops.random_uniform([5], dtype="float32")], [0, x])
    dx = tw.gradients(y, x)
    with tw.Session(graph) as s:
        for _ in range(3):
            value, gradient = s.run([y, dx], {x: np.full(5, 2, np.float32)})
            np.testing.assert_allclose(gradient, value / 2, rtol=1e-6)


@pytest.mark.parametrize("how", ["as it is", "written and read"])
def test_effects_happen_once_where_the_gradient_is_fetched_too(graph, how):
    x, v = tw.placeholder("float32", []), tw.Variable(np.float32(0))

    def body(i, y):
        v.assign_add(1.0)
        return [i + 1, y * y]

    _, y = tw.while_loop(lambda i, y: i < 3, body, [0, x])
    check_effects(graph, x, y, v, how)


def written_and_read(graph):
    return tw.Graph.from_bytes(graph.to_bytes())


@pytest.mark.parametrize("how", ["as it is", "written and read"])
def test_effects_of_a_for_happen_once_where_the_gradient_is_fetched_too(graph, how):
    x, v = tw.placeholder("float32", []), tw.Variable(np.float32(0))

    def body(i, handle, y):
        tw.ops.assign_add_variable_op(handle, tw.constant(np.float32(1)))
        return [handle, y * y]

    f = flow.Traced(graph, body, [(tw.int32, ()), (tw.resource, ()), (tw.float32, ())], "`body`")
    bounds = [tw.constant(np.int32(n)) for n in (0, 3, 1)]
    y = graph.op("For", *bounds, [v.handle, x], body=f.add("body", []))[1]
    check_effects(graph, x, y, v, how)


def check_effects(graph, x, y, v, how):
    """A loop that adds 1 to v three times, and its gradient."""
    dx, now, init = tw.gradients(y, x), v.read(), graph.initializer(name="init")
    if how == "written and read":
        other = written_and_read(graph)
        assert other.to_bytes() == graph.to_bytes()
        x, y, dx, now = (other[value.name] for value in (x, y, dx, now))
        graph, init = other, other.operation("init")
    with tw.Session(graph) as s:
        s.run(init)
        for fetches, count in (([y, dx], 3), (dx, 6), (y, 9)):
            s.run(fetches, {x: 1.1})
            assert s.run(now) == count


def test_a_variable_in_a_loop_is_trained(graph):
    x = tw.placeholder("float32", [None, 3])
    w = tw.Variable(np.eye(3, dtype=np.float32) * 0.5)
    _, y = tw.while_loop(lambda i, y: i < 3, lambda i, y: [i + 1, tw.ops.tanh(y @ w)], [0, x])
    dw = tw.gradients((y * y).sum(), w)
    data = np.random.default_rng(3).standard_normal((4, 3)).astype(np.float32)
    h = data.astype(np.float64)

    def loss(weights):
        y = h
        for _ in range(3):
            y = np.tanh(y @ weights)
        return (y * y).sum()

    with tw.Session(graph) as s:
        s.run(graph.initializer())
        np.testing.assert_allclose(s.run(dw, {x: data}), numeric(loss, np.eye(3) * 0.5), rtol=1e-3, atol=1e-5)


def test_a_recurrent_net_learns_through_a_loop(graph):
    x, wanted = tw.placeholder("float32", [8, 5, 2]), tw.placeholder("float32", [8, 1])
    rng = np.random.default_rng(0)
    w, u, out = (tw.Variable(rng.standard_normal(s).astype(np.float32) * 0.4) for s in ((2, 6), (6, 6), (6, 1)))

    def body(t, h):
        step = tw.ops.gather_v2(x, t, 1)
        return [t + 1, tw.ops.tanh(step @ w + h @ u)]

    _, h = tw.while_loop(lambda t, h: t < 5, body, [0, np.zeros((8, 6), np.float32)])
    loss = ((h @ out - wanted) * (h @ out - wanted)).mean()
    train = tw.train.Adam(0.03).minimize(loss)
    data = rng.standard_normal((8, 5, 2)).astype(np.float32)
    feeds = {x: data, wanted: data.sum((1, 2))[:, None]}
    with tw.Session(graph) as s:
        s.run(graph.initializer())
        before = s.run(loss, feeds)
        for _ in range(150):
            s.run(train, feeds)
        assert s.run(loss, feeds) < before / 20


def test_what_has_no_gradient_in_a_body_is_told_with_its_node(graph, x):
    z = tw.cond(x > 0, lambda: tw.ops.bitcast(x, type="float32"), lambda: x)
    with pytest.raises(tw.FailedPreconditionError, match="gradient of StatelessIf .*Bitcast .*not differentiable"):
        tw.gradients(z, x)


def test_the_gradient_of_a_function_that_calls_itself_is_refused(graph, x):
    @tw.function(results=["float32"])
    def factorial(n):
        return tw.cond(n > 1, lambda: n * factorial(n - 1), lambda: 1.0)

    y = factorial(x)
    with pytest.raises(tw.UnimplementedError, match="function 'factorial.*' calls itself"):
        tw.gradients(y, x)
    assert run(y, {x: 4}) == 24
