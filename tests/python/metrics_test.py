"""Metrics over many batches against NumPy."""
import numpy as np
import pytest

import thalweg as tw

rng = np.random.default_rng(8)
ROWS, CLASSES, BATCHES = 41, 5, 4


def data(dtype=np.float32):
    scores = [rng.random((ROWS + i, CLASSES)).astype(dtype) for i in range(BATCHES)]
    labels = [rng.integers(0, CLASSES, len(s)) for s in scores]
    weights = [rng.integers(0, 3, len(s)).astype(np.float32) for s in scores]
    return scores, labels, weights


def measured(build, scores, labels, weights):
    """The value after the batches, twice, and the number of operations before and after."""
    with tw.Graph() as g:
        s = tw.placeholder("float32", [None, *scores[0].shape[1:]])
        y, w = tw.placeholder("int64", [None]), tw.placeholder("float32", [None])
        metric = build(s, y, w)
        start = g.initializer()
    before = len(g.operations())
    with tw.Session(g) as session:
        session.run(start)
        for _ in range(2):
            session.run(metric.reset)
            for batch in zip(scores, labels, weights):
                session.run(metric.update, dict(zip((s, y, w), batch)))
            value = session.run(metric.value)
    assert len(g.operations()) == before and all(not v.trainable for v in g.variables())
    return value


@pytest.mark.parametrize("weighted", [False, True])
def test_accuracy_and_top_k(weighted):
    scores, labels, weights = data()
    s, y = np.concatenate(scores), np.concatenate(labels)
    w = np.concatenate(weights) if weighted else np.ones(len(y))
    for k in (1, 3):
        rank = (s > s[np.arange(len(y)), y][:, None]).sum(1)
        wanted = np.average(rank < k, weights=w)
        assert 0 < wanted < 1
        got = measured(lambda a, b, c: tw.metrics.top_k(a, b, k, weights=c if weighted else None), scores, labels, weights)
        assert got == pytest.approx(wanted, abs=1e-12)
        if k == 1:
            got = measured(lambda a, b, c: tw.metrics.accuracy(a, b, c if weighted else None), scores, labels, weights)
            assert got == pytest.approx(wanted, abs=1e-12)


def test_precision_recall_and_auc():
    scores, labels, weights = data()
    scores, labels = [s[:, 0] for s in scores], [(s[:, 0] + rng.normal(size=len(s)) * 0.4 > 0.5).astype(np.int64) for s in scores]
    s, y, w = (np.concatenate(x).astype(np.float64) for x in (scores, labels, weights))
    hits = w * (s > np.float32(0.3)) * (y == 1)
    got = measured(lambda a, b, c: tw.metrics.precision(a, b, np.float32(0.3), c), scores, labels, weights)
    assert got == pytest.approx(hits.sum() / (w * (s > np.float32(0.3))).sum(), abs=1e-12)
    got = measured(lambda a, b, c: tw.metrics.recall(a, b, np.float32(0.3), c), scores, labels, weights)
    assert got == pytest.approx(hits.sum() / (w * (y == 1)).sum(), abs=1e-12)
    won = ((s[:, None] > s[None, :]) + 0.5 * (s[:, None] == s[None, :])) * (w * (y == 1))[:, None] * (w * (y == 0))[None, :]
    exact = won.sum() / ((w * (y == 1)).sum() * (w * (y == 0)).sum())
    got = measured(lambda a, b, c: tw.metrics.auc(a, b, 1_000_000, c), scores, labels, weights)
    assert 0.6 < exact < 0.95 and got == pytest.approx(exact, abs=1e-6)  # so many buckets hardly ever hold two scores


def test_mean_perplexity_and_confusion():
    scores, labels, weights = data()
    s, y, w = np.concatenate(scores), np.concatenate(labels), np.concatenate(weights).astype(np.float64)
    got = measured(lambda a, b, c: tw.metrics.mean(a), scores, labels, weights)
    assert got == pytest.approx(s.astype(np.float64).mean(), abs=1e-12)
    flat = [x[:, 1] for x in scores]
    got = measured(lambda a, b, c: tw.metrics.perplexity(a, c), flat, labels, weights)
    assert got == pytest.approx(np.exp(np.average(np.concatenate(flat).astype(np.float64), weights=w)), abs=1e-12)
    wanted = np.zeros((CLASSES, CLASSES))
    np.add.at(wanted, (y, s.argmax(1)), w)
    got = measured(lambda a, b, c: tw.metrics.confusion(a, b, CLASSES, c), scores, labels, weights)
    assert np.array_equal(got, wanted)


def test_nan_of_weight_0_does_not_count():
    got = measured(lambda a, b, c: tw.metrics.mean(a, c), [np.array([1, np.nan, 3], np.float32)], [np.zeros(3, np.int64)],
                   [np.array([1, 0, 1], np.float32)])
    assert got == 2


def test_names_are_numbered_and_wrong_uses_refused(graph):
    y = tw.placeholder("int64", [None])
    first, second = tw.metrics.accuracy(y, y), tw.metrics.accuracy(y, y)
    assert [v.name for v in graph.variables()] == ["accuracy/total", "accuracy/count", "accuracy_1/total", "accuracy_1/count"]
    assert first.value is not second.value
    with pytest.raises(tw.InvalidArgumentError, match=r"labels have shape \[\?, 1\]"):
        tw.metrics.accuracy(y, y.reshape(-1, 1))
    with pytest.raises(tw.InvalidArgumentError, match="labels are float"):
        tw.metrics.accuracy(y, tw.placeholder("float32", [None]))
