"""The example engine.c: calls that a thread of the plugin computes end in the order of its timeline, beside other work, and a session
that closes or a step that fails leaves nothing behind."""
import os
import pathlib
import threading

import numpy as np
import pytest

import thalweg as tw

ENGINE = pathlib.Path(os.environ["THALWEG_BINARY_DIR"]) / "examples/plugins/libengine.so"


@pytest.fixture(scope="module", autouse=True)
def engine():
    tw.load_plugin(ENGINE)


def scaled(x, by):
    return tw.ops.engine_scale(x, tw.constant(by, tw.float32))


def test_calls_of_one_step_give_what_numpy_gives():
    graph = tw.Graph()
    with graph:
        x = tw.placeholder(tw.float32, [None])
        ys = [scaled(x, i) for i in range(20)]
        y = ys[0]
        for other in ys[1:]:
            y = y + scaled(other, 0.5)
    for options in ({}, {"threads": 1}, {"engine": "counted"}):
        with tw.Session(graph, **options) as session:
            for n in (0, 1, 5000):
                value = np.arange(n, dtype="f")
                np.testing.assert_allclose(session.run(y, {x: value}), value * sum(i * 0.5 for i in range(1, 20)), rtol=1e-6)


def test_steps_of_several_threads_share_the_engine():
    graph = tw.Graph()
    with graph:
        x = tw.placeholder(tw.float32, [None])
        y = scaled(scaled(x, 3), 2)
    wrong = []
    with tw.Session(graph) as session:
        def run(number):
            value = np.full(1000, number, "f")
            for _ in range(50):
                if not np.array_equal(session.run(y, {x: value}), 6 * value):
                    wrong.append(number)
        threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not wrong


def test_a_step_that_fails_waits_for_the_engine():
    graph = tw.Graph()
    with graph:
        x = tw.placeholder(tw.float32, [None])
        bad = tw.ops.gather_v2(x, np.int32([1 << 21]), 0)
        y = scaled(x, 3)
    value = np.ones(1 << 20, "f")
    with tw.Session(graph) as session:
        for _ in range(20):
            with pytest.raises(tw.InvalidArgumentError, match="2097152"):
                session.run([y, bad], {x: value})
        np.testing.assert_array_equal(session.run(y, {x: value}), 3 * value)
