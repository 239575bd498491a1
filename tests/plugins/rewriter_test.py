"""The example squares.c rewrites the plans of programs that know nothing of it: in inference, in training, in functions and for every shape,
with the results of the plans that it does not touch."""
import os
import pathlib

import numpy as np
import pytest

import thalweg as tw

SQUARES = pathlib.Path(os.environ["THALWEG_BINARY_DIR"]) / "examples/plugins/libsquares.so"


@pytest.fixture(scope="module", autouse=True)
def squares():
    tw.load_plugin(SQUARES)


def plan(session, fetches, feeds):
    return session.plan(fetches, {value: np.shape(feed) for value, feed in feeds.items()})


def both(graph, fetches, feeds):
    """Returns the results without and with the rewriter, and the plan's substitutions."""
    with tw.Session(graph, disable_pass="rewrite") as plain:
        want = plain.run(fetches, feeds)
    with tw.Session(graph) as session:
        return want, session.run(fetches, feeds), plan(session, fetches, feeds)["rewrites"]


def test_a_product_of_a_value_with_itself_is_a_square():
    graph = tw.Graph()
    with graph:
        x = tw.placeholder(tw.float32, [None, 3])
        y = x * x
        z = x * y
    feed = np.arange(6, dtype="f").reshape(2, 3)
    want, got, rewrites = both(graph, [y, z], {x: feed})
    assert [(r["rule"], r["added"], r["refused"]) for r in rewrites] == [("x * x is Square(x)", ["Square"], "")]
    for a, b in zip(want, got):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(got[1], feed ** 3)
    with tw.Session(graph, compilers="off") as session:
        assert sorted(node["op"] for node in plan(session, [y, z], {x: feed})["nodes"]) == ["Mul", "Square"]
        for rows in (1, 5, 0):  # the same plan serves other shapes
            part = np.full([rows, 3], 2, "f")
            np.testing.assert_array_equal(session.run(z, {x: part}), part ** 3)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "int64", "uint8", "complex64"])
def test_every_type_gives_the_same(dtype):
    graph = tw.Graph()
    with graph:
        x = tw.placeholder(dtype, [4])
        y = x * x
    feed = np.arange(4).astype(dtype)
    want, got, rewrites = both(graph, y, {x: feed})
    np.testing.assert_array_equal(want, got)
    np.testing.assert_array_equal(got, feed * feed)
    assert len(rewrites) == 1


def test_training_has_the_same_losses():
    def losses(**options):
        graph = tw.Graph()
        rng = np.random.default_rng(3)
        xs, ys = rng.normal(size=[64, 4]).astype("f"), rng.normal(size=[64, 1]).astype("f")
        with graph:
            x, y = tw.placeholder(tw.float32, [None, 4]), tw.placeholder(tw.float32, [None, 1])
            w = tw.Variable(np.ones([4, 1], "f"))
            error = x @ w - y
            loss = tw.ops.mean(error * error, [0, 1])
            step = tw.train.SGD(0.1).minimize(loss)
        with tw.Session(graph, **options) as session:
            session.run(graph.initializer())
            for _ in range(20):
                yield session.run([loss, step], {x: xs, y: ys})[0]
            assert bool(plan(session, [loss, step], {x: xs, y: ys})["rewrites"]) == (not options)
    np.testing.assert_array_equal(list(losses()), list(losses(disable_pass="rewrite")))


def test_bodies_of_functions_and_loops_are_rewritten_too():
    graph = tw.Graph()
    with graph:
        x = tw.placeholder(tw.float32, [])
        y = tw.while_loop(lambda i, v: i < 3, lambda i, v: [i + 1, v * v], [tw.constant(0), x])[1]
    want, got, _ = both(graph, y, {x: np.float32(1.5)})
    assert want == got == np.float32(1.5) ** 8
