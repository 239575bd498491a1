"""What is fetched together with an update is read before it, whatever the graph's order of adding and whatever is ready first."""
import numpy as np
import pytest

import thalweg as tw

N = 200


@pytest.fixture(params=["1", "4"], ids=["one thread", "threads"])
def session(graph, request):
    return tw.Session(graph, threads=int(request.param), container=f"reads first {request.param}")


def slow_zeros():
    """Whole zeros that are there late: an update that does not wait for who reads at them comes first."""
    x = tw.placeholder("float32", [N, N], name="slow")
    y = x
    for _ in range(4):
        y = y @ x
    return (y[0, :1] * 0).astype("int32")


def test_a_metric_is_of_the_weights_before_the_step(graph, session):
    v, slow = tw.Variable([1.0, 2.0], name="v"), slow_zeros()
    early = (v.read() * 1).named("early")
    step = tw.train.SGD(1.0).minimize((v * [1.0, 1.0]).sum())
    late, gathered = v.sum(), tw.ops.resource_gather(v, slow, dtype="float32")
    branch = tw.cond(tw.ops.gather_v2(tw.constant([1.0]), slow)[0] > 0, lambda: v.sum(), lambda: 0.0)
    mapped = tw.map_fn(lambda row: row + v[0], tw.constant([0.0, 1.0]))
    with tw.control_dependencies([step]):
        after = v.read()
    session.run(graph.initializer())
    want = np.float32([1, 2])
    for _ in range(10):
        found = session.run([v, early, late, gathered, branch, mapped, after, step], {"slow:0": np.ones((N, N), np.float32) / N})
        for got, wanted in zip(found, [want, want, want.sum(), want[:1], want.sum(), [want[0], want[0] + 1], want - 1]):
            np.testing.assert_array_equal(got, wanted)
        want = want - 1


@pytest.mark.parametrize("make", [lambda: tw.train.Adam(0.5, weight_decay=0.1), lambda: tw.train.LossScale(tw.train.Momentum(0.5)),
                                  lambda: tw.train.SGD(tw.schedules.exponential(0.25, 1, 0.5))], ids=["Adam", "LossScale", "schedule"])
def test_so_it_is_with_every_optimizer(graph, session, make):
    v, slow = tw.Variable([1.0, 2.0], name="v"), slow_zeros()
    step = make().minimize((v * v).sum())
    late = tw.ops.resource_gather(v, slow, dtype="float32")
    session.run(graph.initializer())
    for _ in range(5):
        before = session.run(v)
        _, got, whole = session.run([step, late, v], {"slow:0": np.ones((N, N), np.float32) / N})
        assert got[0] == before[0] and whole.tolist() == before.tolist() and session.run(v)[0] != before[0]


def test_assignments_are_read_around_too(graph, session):
    v, w = tw.Variable(1.0, name="v"), tw.Variable(2.0, name="w")
    swap = [v.assign(w), w.assign(v)]
    grow = v.assign_add(10)
    session.run(graph.initializer())
    for i in range(6):
        assert session.run([v, w, *swap])[:2] == ([1, 2] if i % 2 == 0 else [2, 1])
    assert [session.run([grow, v])[1] for _ in range(3)] == [1, 11, 21]


def test_initial_values_may_read_other_variables(graph, session):
    v = tw.Variable(3.0, name="v")
    w = tw.Variable(v * 2, name="w")
    session.run(graph.initializer())
    assert session.run(w) == 6
