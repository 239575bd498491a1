import numpy as np
import pytest

import thalweg as tw

rng = np.random.default_rng(4)
CLASSES, N, BATCH = 20, 4, 6
WEIGHTS, BIASES, INPUTS = (rng.normal(size=shape).astype(np.float32) for shape in ((CLASSES, N), (CLASSES,), (BATCH, N)))


def drawn(labels, num_sampled, **seeds):
    how = dict(num_true=labels.shape[1], num_sampled=num_sampled, unique=True, range_max=CLASSES)
    return tw.ops.log_uniform_candidate_sampler(labels, **how, **seeds)


def logits(labels, sampled, true_count, sampled_count, keep_hits):
    right = (INPUTS[:, None] * WEIGHTS[labels]).sum(-1) + BIASES[labels] - np.log(true_count)
    others = INPUTS @ WEIGHTS[sampled].T + BIASES[sampled] - np.log(sampled_count)
    hit = (labels[:, :, None] == sampled).any(1) & (not keep_hits)
    return right.astype(np.float64), np.where(hit, -np.inf, others.astype(np.float64))


def softmax_loss(right, others):
    whole = np.concatenate([right, others], 1)
    return np.log(np.exp(whole).sum(1)) - right.mean(1)


def logistic_loss(right, others):
    return np.log1p(np.exp(right)).sum(1) - right.mean(1) + np.log1p(np.exp(others)).sum(1)


@pytest.mark.parametrize("num_true", [1, 3])
@pytest.mark.parametrize("keep_hits", [False, True])
@pytest.mark.parametrize("build, formula", [(tw.losses.sampled_softmax, softmax_loss), (tw.losses.nce, logistic_loss)])
def test_losses_follow_their_formulas(run, graph, num_true, keep_hits, build, formula):
    labels = rng.integers(0, CLASSES, (BATCH, num_true))
    candidates = drawn(graph.constant(labels), 8, seed=3)
    loss = build(WEIGHTS, BIASES, graph.constant(labels), INPUTS, candidates=candidates[0], keep_hits=keep_hits)
    got, sampled, true_count, sampled_count = run([loss, *candidates])
    assert len(set(sampled)) == 8
    np.testing.assert_allclose(got, formula(*logits(labels, sampled, true_count, sampled_count, keep_hits)), rtol=2e-5)


@pytest.mark.parametrize("build, keep_hits, golden", [
    (tw.losses.sampled_softmax, False, [1.304129, 2.613876, 1.288001]), (tw.losses.sampled_softmax, True, [1.304129, 2.684567, 1.858696]),
    (tw.losses.nce, False, [5.125891, 3.900426, 3.20712]), (tw.losses.nce, True, [5.125891, 4.299541, 6.290458])])
def test_losses_are_tensorflows(run, graph, build, keep_hits, golden):
    """sampled_softmax_loss and nce_loss of TensorFlow 2.21 with these sampled_values."""
    weights, biases = ((np.arange(14).reshape(7, 2) % 5 - 2) / 4).astype(np.float32), (np.arange(7) / 8).astype(np.float32)
    inputs, labels = np.array([[1, .5], [-.5, 2], [0, -1]], np.float32), np.array([[1, 6], [2, 2], [5, 0]])
    counts = np.array([[.5, .25], [.75, .75], [.3, .9]], np.float32), np.array([.9, .75, .3], np.float32)
    candidates = tw.ops.identity_n([graph.constant(x) for x in (np.array([0, 2, 5]), *counts)])
    loss = build(weights, biases, graph.constant(labels), inputs, candidates=candidates[0], keep_hits=keep_hits)
    np.testing.assert_allclose(run(loss), golden, rtol=2e-6)


def test_a_loss_draws_for_itself(run, graph):
    labels = graph.constant(rng.integers(0, CLASSES, (BATCH, 1)).astype(np.int32))
    loss, same = (tw.losses.sampled_softmax(WEIGHTS, BIASES, labels, INPUTS, 8, seed=seed) for seed in (5, 5))
    np.testing.assert_array_equal(*run([loss, same]))
    assert not np.array_equal(run(loss), run(loss))


@pytest.mark.parametrize("build", [tw.losses.sampled_softmax, tw.losses.nce])
def test_gradients_follow_differences(run, graph, build):
    labels = rng.integers(0, CLASSES, (BATCH, 2))
    places = [tw.placeholder("float32", x.shape) for x in (WEIGHTS, BIASES, INPUTS)]
    counts = np.full((BATCH, 2), 0.25, np.float32), np.full(5, 0.5, np.float32)
    candidates = [graph.constant(x) for x in (np.array([0, 3, 7, 9, 12]), *counts)]
    picked = tw.ops.identity_n(candidates)
    total = tw.ops.sum(build(places[0], places[1], graph.constant(labels), places[2], candidates=picked[0]), 0)
    values = [WEIGHTS, BIASES, INPUTS]
    found = tw.gradients(total, places)
    got = [tw.ops.identity(g if isinstance(g, tw.Output) else tw.ops.unsorted_segment_sum(g.values, g.rows, x.shape[0]))
           for g, x in zip(found, values)]
    slopes = run(got, dict(zip(places, values)))
    for k, (x, slope) in enumerate(zip(values, slopes)):
        assert abs(slope).max() > 0.01
        for _ in range(10):
            at, ends = tuple(rng.integers(0, n) for n in x.shape), []
            for side in (0.01, -0.01):
                moved = x.copy()
                moved[at] += side
                ends.append(run(total, dict(zip(places, values[:k] + [moved] + values[k + 1:]))))
            np.testing.assert_allclose(slope[at], (ends[0] - ends[1]) / 0.02, atol=5e-3)


def test_training_by_drawn_classes_finds_the_right_ones(run, graph):
    """Classes are the regions around as many points."""
    points = rng.normal(size=(CLASSES, 8)).astype(np.float32) * 2
    x, labels = tw.placeholder("float32", [None, 8]), tw.placeholder("int64", [None, 1])
    w, b = (tw.Variable(np.zeros(shape, np.float32), name=name) for shape, name in (((CLASSES, 8), "w"), ((CLASSES,), "b")))
    loss = tw.ops.mean(tw.losses.sampled_softmax(w, b, labels, x, num_sampled=5, seed=2), 0)
    step = tw.train.SGD(0.3).minimize(loss)
    said = tw.ops.arg_max(tw.ops.mat_mul(x, w, transpose_b=True) + b, 1)
    run(graph.initializer())
    for _ in range(300):
        right = rng.integers(0, CLASSES, (64, 1))
        run(step, {x: points[right[:, 0]] + 0.3 * rng.normal(size=(64, 8)).astype(np.float32), labels: right})
    right = rng.integers(0, CLASSES, 400)
    assert (run(said, {x: points[right]}) == right).mean() > 0.95


def test_what_is_refused(graph):
    labels = graph.constant(np.zeros((BATCH, 1), np.int64))
    with pytest.raises(tw.InvalidArgumentError, match="num_sampled is 0"):
        tw.losses.nce(WEIGHTS, BIASES, labels, INPUTS, 0)
    with pytest.raises(tw.InvalidArgumentError, match="num_sampled is 21"):
        tw.losses.sampled_softmax(WEIGHTS, BIASES, labels, INPUTS, 21)
    with pytest.raises(tw.InvalidArgumentError, match="labels must be"):
        tw.losses.nce(WEIGHTS, BIASES, tw.placeholder("int64", [None, None]), INPUTS)


@pytest.mark.parametrize("dtype, smoothing", [("float32", 0.1), ("float64", 0.25), ("float64", 0)])
def test_smoothed_labels_follow_their_formula(run, graph, dtype, smoothing):
    scores, labels = rng.normal(size=(BATCH, 5)).astype(dtype), np.arange(BATCH) % 5
    fixed = tw.losses.smoothed_softmax(tw.constant(scores), labels, smoothing)
    p = tw.placeholder(dtype, [None, 5])
    loss = tw.losses.smoothed_softmax(p, labels.astype(np.int32), smoothing)
    got, slope = run([loss, tw.gradients(loss.sum(), [p])[0]], {p: scores})
    logs = scores - np.log(np.exp(scores.astype(np.float64)).sum(1, keepdims=True))
    wanted = (1 - smoothing) * -logs[np.arange(BATCH), labels] - smoothing * logs.mean(1)
    share = (1 - smoothing) * np.eye(5)[labels] + smoothing / 5
    near = dict(rtol=1e-5, atol=1e-6) if dtype == "float32" else dict(rtol=1e-12, atol=1e-13)
    assert loss.dtype == dtype and loss.shape == (BATCH,)
    np.testing.assert_allclose(got, wanted, **near)
    np.testing.assert_allclose(slope, np.exp(logs) - share, **near)
    np.testing.assert_allclose(run(fixed), wanted, **near)


def test_smoothed_labels_compute_at_once():
    scores = rng.normal(size=(3, 5)).astype(np.float32)
    loss = tw.losses.smoothed_softmax(tw.constant(scores), [4, 0, 2], 0.5)
    logs = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    np.testing.assert_allclose(loss.numpy(), -0.5 * logs[[0, 1, 2], [4, 0, 2]] - 0.5 * logs.mean(1), rtol=1e-5)


def test_wrong_smoothing_is_told(graph):
    with pytest.raises(ValueError, match="smoothing is 1; it must be 0 or more, and less than 1"):
        tw.losses.smoothed_softmax(tw.placeholder("float32", [None, 5]), [1], 1)
    with pytest.raises(ValueError, match="the last axis of .* must be known"):
        tw.losses.smoothed_softmax(tw.placeholder("float32", [None, None]), [1])
