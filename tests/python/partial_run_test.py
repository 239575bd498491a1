"""A step in parts."""
import pytest

import thalweg as tw


def test_a_part_sees_what_earlier_parts_computed(run):
    x, y = tw.placeholder("float32", []), tw.placeholder("float32", [])
    a = x + tw.ops.random_uniform(tw.constant([], "int32"), dtype="float32")
    b = a * y
    session = run.session
    for _ in range(2):
        parts = session.partial_run([a, b], feeds=[x, y])
        first = parts.run(a, {x: 1})
        assert parts.left == 1
        assert parts.run({"b": b}, {y: first})["b"] == pytest.approx(float(first) ** 2)
        assert parts.left == 0
        with pytest.raises(tw.FailedPreconditionError, match="all that the run was set up for"):
            parts.run(b)


def test_a_missing_feed_is_named(run):
    x, y = tw.placeholder("float32", [], name="x"), tw.placeholder("float32", [], name="y")
    total = tw.ops.add_v2(x, y, name="total")
    parts = run.session.partial_run(total, feeds=[x, y])
    with pytest.raises(tw.InvalidArgumentError, match="fetch 'total' needs 'y', which no part has fed yet"):
        parts.run(total, {x: 1})
    assert parts.run(total, {x: 1, y: 2}) == 3


def test_an_operation_runs_once_in_all_parts(run):
    count = tw.Variable(0.0)
    session = run.session
    session.run(tw.initializer())
    grow = count.assign_add(1.0)
    with tw.control_dependencies([grow]):
        first, second = count.read() + 0.0, count.read() * 10.0
    parts = session.partial_run([grow, first, second])
    assert parts.run(first) == 1
    assert parts.run([grow, second])[1] == 10
    assert session.run(count) == 1


def test_a_deadline_ends_the_run(run):
    queue = tw.FIFOQueue(1, ["float32"], [[]])
    taken, other = queue.dequeue(), tw.constant(1.0) + 1.0
    parts = run.session.partial_run([taken, other])
    with pytest.raises(tw.DeadlineExceededError):
        parts.run(taken, timeout=0.01)
    with pytest.raises(tw.FailedPreconditionError, match="an earlier part of the run has failed"):
        parts.run(other)
