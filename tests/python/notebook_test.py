"""What a cell of a notebook does when it is run again, and what happens after things were closed or mixed up."""
import numpy as np
import pytest

import thalweg as tw

X = np.ones((4, 2), np.float32)


def cell():
    """A model with names, made in the current graph: (placeholder, loss, step)."""
    x = tw.placeholder("float32", [None, 2], name="x")
    with tw.name_scope("dense"):
        w = tw.Variable(np.zeros((2, 1), np.float32), name="w")
        h = tw.ops.mat_mul(x, w, name="product")
    table = tw.ShardedTable(6, 2, 2, name="words")
    loss = (((h - 1) ** 2).mean() + (table.lookup([1, 2]) ** 2).mean()).named("loss")
    return x, loss, tw.train.Momentum(tw.schedules.exponential(0.1, 10, 0.5)).minimize(loss)


@tw.function
def twice(x):
    return x * 2


def test_a_cell_with_a_graph_of_its_own_runs_again():
    losses = []
    for _ in range(2):
        with tw.Graph() as g:
            x, loss, step = cell()
            double = twice(loss)
        with tw.Session(g) as s:
            s.run(g.initializer())
            s.run(step, {x: X})
            losses.append(s.run([loss, double], {x: X})[0] > 0)
            assert [v.name for v in g.variables()][0] == "dense/w" and g["loss"] is loss
    assert losses == [True, True]


def test_a_cell_that_adds_to_the_same_graph_runs_again(tmp_path):
    with tw.Graph() as g:
        first, second = cell(), cell()
    assert [(x.name, loss.name) for x, loss, _ in (first, second)] == [("x:0", "loss:0"), ("x_1:0", "loss_1:0")]
    names = [v.name for v in g.variables()]
    assert len(set(names)) == len(names) and {"dense/w", "dense_1/w", "words/part_0", "words_1/part_1"} <= set(names)
    with tw.Session(g) as s:
        s.run(g.initializer())
        for x, _, step in (first, second):
            s.run(step, {x: X})
        with g:
            tw.Saver().save(s, tmp_path / "model")
            kept = s.run(g.variables())
            s.run(g.initializer())
            tw.Saver().restore(s, tmp_path / "model")
        for a, b in zip(kept, s.run(g.variables())):
            np.testing.assert_array_equal(a, b)


def test_after_close_every_use_says_so(graph):
    x = tw.placeholder("float32", [], name="x")
    s = tw.Session(graph)
    y = x * 2
    step, parts = s.callable(y, [x]), s.partial_run([y], [x])
    s.close()
    for use in (lambda: s.run(x * 2, {x: 1}), lambda: s.run(x * 3, {"x": 1}), lambda: step(1), lambda: s.run_async(x * 2, {x: 1}).result(),
                lambda: s.callable(x * 4, [x])(1), lambda: parts.run([y], {x: 1}), lambda: s.partial_run([y], [x]).run([y], {x: 1})):
        with pytest.raises((tw.FailedPreconditionError, tw.InvalidArgumentError), match="closed"):
            use()


def test_values_of_another_graph_are_one_clear_error(graph):
    x = tw.placeholder("float32", [], name="x")
    with tw.Graph() as other:
        y = tw.placeholder("float32", [], name="y")
    s, told = tw.Session(graph), r"<Output '(y|Cast):0' \w+ \[\]> is (of another|a value of another|not of the session's) graph"
    for use in (lambda: x + y, lambda: x == y, lambda: s.run(y), lambda: s.run(x, {y: 1}), lambda: s.run([x, y], {x: 1}), lambda: tw.ops.add_n([x, y]),
                lambda: s.callable(x, [y]), lambda: tw.gradients(x * 2, y), lambda: tw.gradients(x * 2, [x], dys=[y]), lambda: tw.group(x, y),
                lambda: tw.cond(x > 0, lambda: x, lambda: y), lambda: tw.Variable(x).assign(y), lambda: x[y.astype("int32")]):
        with pytest.raises(ValueError, match=told):
            use()
    assert len(other) <= 2
