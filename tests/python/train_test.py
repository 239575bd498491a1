import sys

import numpy as np
import pytest

import thalweg as tw

X = np.random.default_rng(0).normal(size=(64, 3)).astype(np.float32)
Y = X @ np.array([1, -2, 3], np.float32)


@pytest.mark.parametrize("optimizer", [tw.train.SGD(0.1), tw.train.Momentum(0.02), tw.train.Momentum(0.02, nesterov=True),
                                       tw.train.Adam(0.1), tw.train.Adam(0.1, nesterov=True)], ids=lambda o: type(o).__name__)
def test_optimizers_fit_a_line(run, graph, optimizer):
    x, y, w = tw.placeholder("float32", [None, 3]), tw.placeholder("float32", [None]), tw.Variable(np.zeros(3, np.float32), name="w")
    loss = ((x @ w - y) ** 2).mean()
    step = optimizer.minimize(loss)
    run(graph.initializer())
    for _ in range(300):
        run(step, {x: X, y: Y})
    np.testing.assert_allclose(run(w), [1, -2, 3], atol=0.01)


def test_one_step_of_each_rule(run, graph):
    a, b, c = (tw.Variable([1.0, 2], name=n) for n in "abc")
    steps = [tw.train.SGD(0.1).minimize((a * a).sum(), [a]), tw.train.Momentum(0.1, momentum=0.5).minimize((b * b).sum(), [b]),
             tw.train.Adam(0.1).minimize((c * c).sum(), [c])]
    run(graph.initializer())
    run(steps)
    run(steps[1])
    np.testing.assert_allclose(run(a), [0.8, 1.6], rtol=1e-6)
    np.testing.assert_allclose(run(b), np.array([0.8, 1.6]) - 0.1 * (0.5 * np.array([2, 4]) + 2 * np.array([0.8, 1.6])), rtol=1e-6)
    np.testing.assert_allclose(run(c), [0.9, 1.9], rtol=1e-5)


def test_a_learning_rate_may_be_a_value(run, graph):
    rate, v = tw.placeholder("float32", []), tw.Variable(1.0, name="v")
    step = tw.train.SGD(rate).minimize(v * 1)
    run(graph.initializer())
    run(step, {rate: 0.25})
    assert run(v) == 0.75


def test_minimize_takes_what_is_trainable_and_matters(run, graph):
    v, fixed, unused = tw.Variable(1.0, name="v"), tw.Variable(1.0, name="f", trainable=False), tw.Variable(1.0, name="u")
    count = tw.Variable(0, name="count")
    step = tw.train.SGD(0.5).minimize(v * fixed)
    run(graph.initializer())
    run(step)
    assert run([v, fixed, unused, count]) == [0.5, 1, 1, 0]
    with pytest.raises(ValueError, match="depends on none of the variables: v, u"):
        tw.train.SGD(0.5).minimize(tw.placeholder("float32", []))


def test_gradients_may_be_changed_before_they_are_applied(run, graph):
    v, u = tw.Variable([1.0, 2, 3], name="v"), tw.Variable(np.ones((3, 2), np.float32), name="u")
    rows = tw.ops.resource_gather(u, [1], dtype="float32")
    found = tw.gradients((v * v).sum() + rows.sum(), [v, u])
    step = tw.train.SGD(1.0).apply([tw.ops.minimum(found[0], 3.0), found[1], None], [v, u, v])
    run(graph.initializer())
    run(step)
    np.testing.assert_array_equal(run(v), [-1, -1, 0])
    np.testing.assert_array_equal(run(u), [[1, 1], [0, 0], [1, 1]])
    with pytest.raises(ValueError, match="no gradients"):
        tw.train.SGD(1.0).apply([None], [v])


def test_wrong_options_are_refused(graph):
    v = tw.Variable(1.0, name="v")
    with pytest.raises(tw.InvalidArgumentError):
        tw.train.Adam(0.1, beta1=2.0).minimize(v * v)


def test_batches_hold_every_row_once_an_epoch():
    a, b = np.arange(10), np.arange(10) * 10
    batches = tw.train.Batches(a, b, size=4, epochs=2, seed=3)
    found = list(batches)
    assert len(batches) == len(found) == 6 and [len(x) for x, _ in found] == [4, 4, 2] * 2
    for epoch in (found[:3], found[3:]):
        assert sorted(np.concatenate([x for x, _ in epoch])) == list(range(10))
    assert all((x * 10 == y).all() for x, y in found)
    assert [x.tolist() for x, _ in batches] == [x.tolist() for x, _ in found]
    assert not np.array_equal(np.concatenate([x for x, _ in found[:3]]), np.concatenate([x for x, _ in found[3:]]))
    assert next(iter(tw.train.Batches(a, size=3))).shape == (3,)


@pytest.mark.parametrize("arrays, size", [((), 1), ((np.zeros(3), np.zeros(4)), 1), ((np.zeros(0),), 1), ((np.zeros(3),), 0)])
def test_wrong_batches_are_refused(arrays, size):
    with pytest.raises(ValueError):
        tw.train.Batches(*arrays, size=size)


def test_progress_shows_a_bar_and_values(capsys):
    bar = tw.train.progress(range(3), mininterval=0)
    seen = []
    for i in bar:
        bar.set_postfix(loss=i)
        seen.append(i)
    error = capsys.readouterr().err
    assert seen == [0, 1, 2] and "3/3" in error and "loss=" in error


def test_progress_goes_on_without_tqdm(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    bar = tw.train.progress([1, 2])
    for _ in bar:
        bar.set_postfix(loss=1)
    assert len(bar) == 2 and list(bar) == [1, 2] and capsys.readouterr().err == ""
