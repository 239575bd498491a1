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
    assert sorted(x for batch in tw.train.Batches([5, 6, 7], size=2) for x in batch.tolist()) == [5, 6, 7]


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


@pytest.mark.parametrize("optimizer", [tw.train.Adagrad(0.5), tw.train.Adagrad(0.5, 0, 1e-6), tw.train.Adadelta(0.5, epsilon=1e-3),
                                       tw.train.RMSProp(0.05),
                                       tw.train.RMSProp(0.02, momentum=0.5, centered=True), tw.train.AdaMax(0.1), tw.train.Ftrl(1.0),
                                       tw.train.AdamW(0.1, 1e-4)], ids=lambda o: type(o).__name__)
def test_more_optimizers_fit_a_line(run, graph, optimizer):
    # Near the end AdaDelta steps by learning_rate times the gradient, whose slope is up to 2.41 here: from 0.83 on rounding errors grow.
    x, y, w = tw.placeholder("float32", [None, 3]), tw.placeholder("float32", [None]), tw.Variable(np.zeros(3, np.float32), name="w")
    step = optimizer.minimize(((x @ w - y) ** 2).mean())
    run(graph.initializer())
    for _ in range(400):
        run(step, {x: X, y: Y})
    np.testing.assert_allclose(run(w), [1, -2, 3], atol=0.05)


def test_a_schedule_counts_the_steps_of_minimize(run, graph):
    v = tw.Variable(1.0, name="v")
    step = tw.train.SGD(tw.schedules.piecewise([0, 1], [0.5, 0.25, 0.125])).minimize(v * 1)
    run(graph.initializer())
    seen = []
    for _ in range(3):
        run(step)
        seen.append(float(run(v)))
    assert seen == [0.5, 0.25, 0.125] and run(tw.schedules.global_step()) == 3


def test_steps_are_counted_or_not_as_one_says(run, graph):
    v, count = tw.Variable(1.0, name="v"), tw.schedules.global_step()
    steps = [tw.train.SGD(0.5).minimize(v * 1, count_steps=c) for c in (None, True, False)]
    run(graph.initializer())
    counts = []
    for step in steps:
        run(step)
        counts.append(int(run(count)))
    assert counts == [1, 2, 2] and not count.trainable


@pytest.mark.parametrize("together", [True, False], ids=["one run", "two runs"])
def test_a_step_of_two_optimizers_counts_once(run, graph, together):
    rate = tw.schedules.polynomial(1.0, 4, 0.0)
    v, u = tw.Variable(0.0, name="v"), tw.Variable(0.0, name="u")
    steps = [tw.train.SGD(rate).minimize(v * 1, [v]), tw.train.SGD(rate).minimize(u * 1, [u])]
    run(graph.initializer())
    rates = []
    for _ in range(4):
        rates.append(float(run(rate)))
        for part in [steps] if together else steps:
            run(part)
    assert rates == [1, 0.75, 0.5, 0.25] and run([rate, tw.schedules.global_step()]) == [0, 4] and run(v) == -2.5


def test_an_optimizer_that_goes_on_with_variables_counts_too(run, graph):
    rate = tw.schedules.exponential(1.0, 1, 0.5)
    v, u, w = (tw.Variable(0.0, name=name) for name in "vuw")
    first = tw.train.Adam(rate, weight_decay=0.1).minimize(v * 1, [v], clip=1.0)
    again = tw.train.LossScale(tw.train.Momentum(rate)).minimize(v * u, [v, u])
    other = tw.train.Momentum(rate).minimize(w * 1, [w])    # no variable of the others
    told = tw.train.Momentum(rate).minimize(w * 1, [w], count_steps=True)
    run(graph.initializer())
    counts = []
    for step in (first, again, other, told):
        run(step)
        counts.append(int(run(tw.schedules.global_step())))
    assert counts == [1, 2, 2, 3]


def test_where_the_program_counts_no_optimizer_does(run, graph):
    v, count = tw.Variable(1.0, name="v"), tw.schedules.global_step()
    by_hand = count.assign_add(1)
    step = tw.train.SGD(tw.schedules.exponential(1.0, 1, 0.5)).minimize(v * 1)
    run(graph.initializer())
    run([step, by_hand])
    run(step)
    assert run(count) == 1


def test_a_loss_that_is_no_scalar_is_told_with_its_shape(graph):
    v, open_shape = tw.Variable([1.0, 2.0], name="v"), tw.placeholder("float32")
    for optimizer in (tw.train.SGD(0.1), tw.train.LossScale(tw.train.SGD(0.1)), tw.SyncReplicas(tw.train.SGD(0.1), 1, 0)):
        with pytest.raises(ValueError, match=r"<Output 'Mul:0' float32 \[2\]> is no loss.*its shape is \[2\].*\.mean\(\) or \.sum\(\)"):
            optimizer.minimize(graph["Mul"] if "Mul" in graph else v * v)
    tw.train.SGD(0.1).minimize(tw.ops.reshape(v.sum(), open_shape.astype("int32")))  # which only a step knows


def test_minimize_clips(run, graph):
    v, u = tw.Variable([3.0, 0.0], name="v"), tw.Variable(4.0, name="u")
    loss = (v * v).sum() / 2 + u * u / 2
    one = tw.train.SGD(1.0).minimize(loss, clip=2.5)
    two = tw.train.SGD(1.0).minimize(loss, clip=lambda gradients: tw.train.clip_by_value(gradients, -1, 1))
    run(graph.initializer())
    run(one)
    np.testing.assert_allclose([*run(v), run(u)], [1.5, 0, 2], rtol=1e-6)
    run(two)
    np.testing.assert_allclose([*run(v), run(u)], [0.5, 0, 1], rtol=1e-6)


@pytest.mark.parametrize("clip, wanted", [
    (5.0, [[0, 0], [3, 0], [0, 4]]), (lambda gradients: tw.train.clip_by_norm(gradients, 2.5), [[0, 0], [1.5, 0], [0, 2]]),
    (lambda gradients: tw.train.clip_by_value(gradients, -4, 7), [[0, 0], [6, 0], [0, 7]])], ids=["global norm", "norm", "value"])
def test_clipping_bounds_the_sum_of_rows_that_repeat(run, graph, clip, wanted):
    v = tw.Variable(np.zeros((3, 2), np.float32), name="v")
    values, rows = tw.constant([[3.0, 0], [0, 8], [3, 0]]), tw.constant([1, 2, 1])    # together [6, 0] and [0, 8], whose norm is 10
    step = tw.train.SGD(1.0).apply([tw.SparseGradient(values, rows)], [v], clip=clip)
    clipped, norm = tw.train.clip_by_global_norm([tw.SparseGradient(values, rows)], 5.0)
    run(graph.initializer())
    assert run(norm) == 10 and run(clipped[0].rows).tolist() == [1, 2]
    run(step)
    np.testing.assert_allclose(run(v), -np.float32(wanted), rtol=1e-6)


def test_weights_decay_apart_from_the_gradient(run, graph):
    v = tw.Variable([2.0, 4.0], name="v")
    step = tw.train.SGD(0.5, weight_decay=0.5).minimize(v.read().sum())
    found = tw.train.decay_gradients(tw.gradients([v.read().sum()], [v]), [v], 0.5)
    run(graph.initializer())
    np.testing.assert_allclose(run(found[0]), [2, 3])
    run(step)
    np.testing.assert_allclose(run(v), [2 - 0.5 * 0.5 * 2 - 0.5, 4 - 0.5 * 0.5 * 4 - 0.5])


def test_averages_are_swapped_in_and_out(run, graph):
    v = tw.Variable(0.0, name="v")
    averages = tw.averages.MovingAverages([v], decay=0.75)
    step = averages.update(after=v.assign(v + 1.0))
    run(graph.initializer())
    run(step)
    run(step)
    with averages.swapped(run.session):
        assert run(v) == 0.25 + (2 - 0.25) / 4
    assert run(v) == 2 and averages.names() == {"v": "v/ExponentialMovingAverage"} and not averages.averages[0].trainable
    with pytest.raises(ValueError, match="already"):
        averages.update()


def test_lbfgs_solves_a_regression(run, graph):
    x, y, w = tw.placeholder("float64", [None, 3]), tw.placeholder("float64", [None]), tw.Variable(np.zeros(3), name="w")
    loss = ((x @ w - y) ** 2).mean() + 0.01 * (w * w).sum()
    lbfgs = tw.train.LBFGS(loss, gradient_tolerance=1e-9, change_tolerance=0)
    run(graph.initializer())
    report = lbfgs.run(run.session, {x: X.astype(float), y: Y.astype(float)})
    inputs = X.astype(float)
    wanted = np.linalg.solve(inputs.T @ inputs / len(X) + 0.01 * np.eye(3), inputs.T @ Y.astype(float) / len(X))
    np.testing.assert_allclose(run(w), wanted, atol=1e-6)
    assert report.why == "gradient" and report.iterations < 20 and abs(report.loss - run(loss, {x: inputs, y: Y})) < 1e-12
    lbfgs.reset()
    assert lbfgs.run(run.session, {x: inputs, y: Y.astype(float)}, 1).iterations == 0


def test_a_number_of_updates_may_be_given_and_swaps_add_nothing(run, graph):
    v = tw.Variable([1.0, 2.0], name="v")
    averages = tw.averages.MovingAverages([v], updates=0)
    with pytest.raises(ValueError, match="call update first"):
        averages.swap()
    step = averages.update()
    run(graph.initializer())
    run(v.assign([2.0, 3.0]))
    run(step)
    np.testing.assert_allclose(run(averages.averages[0]), [1.9, 2.9], rtol=1e-6)
    with averages.swapped(run.session):
        count = len(graph)
    with averages.swapped(run.session):
        assert len(graph) == count


def test_what_an_optimizer_remembers_is_not_trained_nor_averaged(run, graph):
    v = tw.Variable(1.0, name="v")
    tw.train.Adam(0.1).minimize(v * v)
    assert [x.name for x in graph.variables() if x.trainable] == ["v"]
    assert tw.averages.MovingAverages().names() == {"v": "v/ExponentialMovingAverage"}


def test_a_rate_is_not_rounded_to_another_variables_type(run, graph):
    a, b = tw.Variable(np.array([1], np.float16), name="a"), tw.Variable(np.array([0], np.float32), name="b")
    step = tw.train.SGD(0.001).apply([tw.constant([1], "float16"), tw.constant([1], "float32")], [a, b])
    run(graph.initializer())
    run(step)
    assert run(b)[0] == np.float32(-0.001)


@pytest.mark.parametrize("optimizer", [tw.train.Adam, tw.train.AdaMax])
def test_a_correction_of_bias_has_the_digits_of_the_variable(run, graph, optimizer):
    w, g = tw.Variable(np.zeros((), np.float64), name="w"), tw.placeholder("float64", [])
    step = optimizer(0.001, epsilon=1e-300).apply([g], [w])
    run(graph.initializer())
    wanted = m = v = 0.0
    for t, gradient in enumerate([0.3, -2.0, 0.7, 0.1], 1):
        run(step, {g: gradient})
        m = 0.9 * m + (1 - 0.9) * gradient
        if optimizer is tw.train.Adam:
            v = 0.999 * v + (1 - 0.999) * gradient ** 2
            wanted -= 0.001 * (1 - 0.999 ** t) ** 0.5 / (1 - 0.9 ** t) * m / v ** 0.5
        else:
            v = max(0.999 * v, abs(gradient))
            wanted -= 0.001 / (1 - 0.9 ** t) * m / v
        np.testing.assert_allclose(run(w), wanted, rtol=1e-12)


def test_ftrl_does_not_hide_nan(run, graph):
    v, g = tw.Variable([1.0, 2.0], name="v"), tw.placeholder("float32", [2])
    step = tw.train.Ftrl(0.1, l1=1.0).apply([g], [v])
    run(graph.initializer())
    run(step, {g: [np.nan, 0.5]})
    assert np.isnan(run(v)[0]) and np.isfinite(run(v)[1])


def test_wrong_training_is_refused(graph):
    v = tw.Variable(1.0, name="v")
    for clip in (lambda gradients: [], lambda gradients: gradients * 2):
        with pytest.raises(ValueError, match="must answer one for each"):
            tw.train.SGD(1.0).minimize(v * v, clip=clip)
    for wrong in ({"history": -1}, {"max_evaluations": 0}):
        with pytest.raises(ValueError, match="at least 1"):
            tw.train.LBFGS(v * v, **wrong)
    g = tw.gradients(v * v, [v])
    with pytest.raises(ValueError, match="2 boundaries part 3 values, not 2"):
        tw.schedules.piecewise([1, 2], [1, 2])
    with pytest.raises(tw.InvalidArgumentError, match="max_norm is 0"):
        tw.train.clip_by_norm(g, 0)
    with pytest.raises(ValueError, match="no gradients"):
        tw.train.clip_by_value([None], 0, 1)
    with pytest.raises(tw.InvalidArgumentError, match="momentum is 1"):
        tw.train.RMSProp(0.1, momentum=1.0).minimize(v * v)
    with pytest.raises(tw.InvalidArgumentError, match="real scalar"):
        tw.train.LBFGS(v * np.ones(2, np.float32))
