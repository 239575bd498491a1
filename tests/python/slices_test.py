"""map_fn, foldl, foldr and scan, against NumPy and differences."""
import numpy as np
import pytest

import thalweg as tw

DATA = np.random.default_rng(3).standard_normal((4, 3))


@pytest.fixture(params=[[4, 3], [None, 3], [None, None], None], ids=["known", "open", "rank", "nothing"])
def x(graph, request):
    return tw.placeholder("float64", request.param, name="x")


def run(fetches, feeds=None, **options):
    graph = (fetches[0] if isinstance(fetches, (list, tuple)) else fetches).graph
    with tw.Session(graph, **options) as s:
        return s.run(fetches, feeds or {})


def folded(data, reverse=False, start=np.zeros(3)):
    """What a fold of 0.5 * a + v * v has after each slice."""
    found, a = np.zeros_like(data), start
    for i in range(len(data))[::-1 if reverse else 1]:
        found[i] = a = 0.5 * a + data[i] * data[i]
    return found


def step(a, v):
    return 0.5 * a + v * v


def test_map_gives_the_function_of_each_slice(graph, x):
    y, both = tw.map_fn(lambda v: v * v, x), tw.map_fn(lambda v: [v.sum(), v + 1], x)
    found = run([y, *both], {x: DATA})
    for a, b in zip(found, [DATA * DATA, DATA.sum(1), DATA + 1]):
        np.testing.assert_allclose(a, b)


def test_map_takes_several_values_and_changes_types(graph):
    a, b = tw.constant(np.arange(4)), tw.constant(np.arange(8.0).reshape(4, 2))
    y = tw.map_fn(lambda pair: (pair[1] * pair[0].astype("float64")).astype("float32"), [a, b])
    assert y.dtype == tw.float32 and y.shape == (4, 2)
    np.testing.assert_allclose(run(y), np.arange(4)[:, None] * np.arange(8.0).reshape(4, 2))


def test_map_and_folds_of_no_slices(graph):
    x = tw.placeholder("float32", [None, 3])
    y, total, sums = tw.map_fn(lambda v: v * 2, x), tw.foldl(lambda a, v: a + v, x, np.ones(3, np.float32)), \
        tw.scan(lambda a, v: a + v, x, np.ones(3, np.float32))
    found = run([y, total, sums], {x: np.zeros((0, 3), np.float32)})
    assert [f.shape for f in found] == [(0, 3), (3,), (0, 3)] and found[1].tolist() == [1, 1, 1]


@pytest.mark.parametrize("options", [dict(threads=1), dict(threads=2, engine="counted")], ids=str)
def test_folds_and_scans_go_in_order(graph, options):
    x, start = tw.placeholder("float64", [None, 3]), tw.constant(np.ones(3))
    made = [tw.foldl(step, x, start), tw.foldr(step, x, start), tw.scan(step, x, start), tw.scan(step, x, start, reverse=True)]
    ones = np.ones(3)
    wanted = [folded(DATA, False, ones)[-1], folded(DATA, True, ones)[0], folded(DATA, False, ones), folded(DATA, True, ones)]
    for a, b in zip(run(made, {x: DATA}, **options), wanted):
        np.testing.assert_allclose(a, b)


def test_without_an_initializer_the_first_slice_is_it(graph):
    x = tw.placeholder("float64", [None, 3])
    made = [tw.foldl(step, x), tw.foldr(step, x), tw.scan(step, x), tw.scan(step, x, reverse=True)]
    down = np.concatenate([folded(DATA[:-1], True, DATA[-1]), DATA[-1:]])
    up = np.concatenate([DATA[:1], folded(DATA[1:], False, DATA[0])])
    for a, b in zip(run(made, {x: DATA}), [up[-1], down[0], up, down]):
        np.testing.assert_allclose(a, b)


def test_several_values_go_on_together(graph):
    n = tw.constant(np.arange(1, 7, dtype=np.int32))
    a, b = tw.scan(lambda state, v: [state[1], state[0] + state[1] + v * 0], n, [0, 1])
    assert [v.tolist() for v in run([a, b])] == [[1, 1, 2, 3, 5, 8], [1, 2, 3, 5, 8, 13]]


def test_functions_are_values(graph):
    halved = tw.function(lambda v: v / 2, name="halved")
    total = tw.function(lambda a, v: a + v, name="total")
    x = tw.constant(np.array([1.0, 2.0, 3.0]))
    y, z = tw.map_fn(halved, x), tw.foldl(total, x)
    assert graph.functions().count("halved") == 1 and "total" in graph.functions()
    assert run([y, z])[0].tolist() == [0.5, 1, 1.5] and run(z) == 6


def test_folds_lie_within_maps_and_loops(graph):
    x = tw.constant(np.arange(6.0).reshape(2, 3))
    y = tw.map_fn(lambda row: tw.foldl(lambda a, v: a * 10 + v, row), x)
    _, z = tw.while_loop(lambda i, t: i < 2, lambda i, t: [i + 1, t + tw.scan(lambda a, v: a + v, x[0])], [0, np.zeros(3)])
    found = run([y, z])
    assert found[0].tolist() == [12, 345] and found[1].tolist() == [0, 2, 6]


def test_assignments_run_for_every_slice(graph):
    v, x = tw.Variable(np.float64(0)), tw.constant(np.array([1.0, 2.0, 4.0]))

    def add(slice_):
        v.assign_add(slice_)
        return slice_

    y = tw.map_fn(add, x)
    with tw.Session(graph, container="slices") as s:
        s.run(graph.initializer())
        s.run(y)
        assert s.run(v.read()) == 7


BUILDERS = {
    "map": lambda x: tw.map_fn(lambda v: tw.ops.sin(v) * v, x),
    "map of a list": lambda x: tw.map_fn(lambda pair: pair[0] * tw.ops.exp(pair[1]), [x, x * 2]),
    "foldl": lambda x: tw.foldl(lambda a, v: tw.ops.tanh(a * v + v), x, x[0]),
    "foldr": lambda x: tw.foldr(lambda a, v: tw.ops.tanh(a * v + v), x),
    "scan": lambda x: tw.scan(lambda a, v: tw.ops.sin(a) * v, x),
    "scan backwards": lambda x: tw.scan(lambda a, v: tw.ops.sin(a) * v, x, x[1], reverse=True),
    "a fold in a map": lambda x: tw.map_fn(lambda row: tw.foldl(lambda a, v: a * v, row), x),
}


@pytest.mark.parametrize("what", BUILDERS)
def test_derivatives_are_those_of_differences(graph, what):
    x = tw.placeholder("float64", [None, 3])
    y = BUILDERS[what](x)
    dx = tw.gradients(y, x)
    ddx = tw.gradients(dx, x)
    with tw.Session(graph) as s:
        for value, slope in ((y, dx), (dx, ddx)):
            found, h = np.zeros_like(DATA), 1e-6
            for i in np.ndindex(DATA.shape):
                up, down = DATA.copy(), DATA.copy()
                up[i] += h
                down[i] -= h
                found[i] = (s.run(value, {x: up}).sum() - s.run(value, {x: down}).sum()) / (2 * h)
            np.testing.assert_allclose(s.run(slope, {x: DATA}), found, rtol=1e-5, atol=1e-7)


def test_what_does_not_fit_is_told(graph):
    a, b = tw.placeholder("float32", [3, 2], name="a"), tw.placeholder("float32", [4])
    with pytest.raises(ValueError, match=r"map_fn: elems\[0\] is a scalar, which has no slices"):
        tw.map_fn(lambda v: v, 1.0)
    with pytest.raises(ValueError, match="map_fn: elems have 3 and 4 slices; their first sizes must be the same"):
        tw.map_fn(lambda v: v[0], [a, b])
    with pytest.raises(ValueError, match="scan: there are no elems"):
        tw.scan(lambda v: v, [])
    with pytest.raises(ValueError, match=r"foldl: value 0 \('.*'\) has shape \[\] at first, but the function makes it \[2\]"):
        tw.foldl(lambda s, v: s + v, a, 0.0)
    with pytest.raises(TypeError, match=r"foldl: value 0 \('.*'\) is int32 at first, but the function makes it float32"):
        tw.foldl(lambda s, v: v.sum(), a, 0)
    with pytest.raises(TypeError, match="scan: the function gives 2 values, but goes on from 1"):
        tw.scan(lambda s, v: [s, s], b, 0.0)


def test_slices_of_other_numbers_fail_their_step_and_the_session_goes_on(graph):
    a, b = tw.placeholder("float32", [None]), tw.placeholder("float32", [None])
    y = tw.map_fn(lambda pair: pair[0] * pair[1], [a, b])
    with tw.Session(graph) as s:
        with pytest.raises(tw.InvalidArgumentError, match="TensorListGetItem"):
            s.run(y, {a: [1, 2, 3], b: [1, 2]})
        assert s.run(y, {a: [1, 2], b: [3, 4]}).tolist() == [3, 8]
