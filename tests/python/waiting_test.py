"""Accumulators, barriers, staging areas and critical sections as objects."""
import numpy as np
import pytest

import thalweg as tw


def test_an_accumulator_gives_the_mean_of_those_that_are_in_time(run):
    sums = tw.ConditionalAccumulator("float32", [2])
    session = run.session
    for gradient in ([1, 2], [3, 4]):
        session.run(sums.apply_gradient(gradient))
    assert session.run(sums.num_accumulated()) == 2
    assert session.run(sums.take_gradient(2)).tolist() == [2, 3]
    session.run(sums.apply_gradient([9, 9], local_step=0))
    assert session.run(sums.num_accumulated()) == 0
    session.run(sums.set_global_step(5))
    waiting = session.run_async(sums.take_gradient(1))
    session.run(sums.apply_gradient([7, 7], local_step=5))
    assert waiting.result().tolist() == [7, 7]


def test_a_sparse_accumulator_adds_rows_up(run):
    sums = tw.SparseConditionalAccumulator("float32", [4, 1], reduction_type="SUM")
    session = run.session
    session.run(sums.apply_gradient([2, 0], [[1], [2]]))
    session.run(sums.apply_gradient([2], [[3]]))
    rows, values = session.run(sums.take_gradient(2))
    assert rows.tolist() == [0, 2] and values.tolist() == [[2], [4]]


def test_a_barrier_puts_elements_together(run):
    barrier = tw.Barrier(["float32", "string"], [[], []])
    session = run.session
    session.run(barrier.insert_many(0, ["a", "b"], [1, 2]))
    waiting = session.run_async(list(barrier.take_many(1)[1:]))
    session.run(barrier.insert_many(1, ["b"], ["two"]))
    keys, (x, text) = waiting.result()
    assert keys.tolist() == [b"b"] and x.tolist() == [2] and text.tolist() == [b"two"]
    assert session.run([barrier.ready_size(), barrier.incomplete_size()]) == [0, 1]
    session.run(barrier.close(cancel_pending_enqueues=True))
    with pytest.raises(tw.OutOfRangeError, match="insufficient elements"):
        session.run(barrier.take_many(1)[1])


def test_a_staging_area_is_first_in_first_out(run):
    area = tw.StagingArea(["float32", "int64"], capacity=2)
    session = run.session
    session.run(area.put(1.0, 1))
    session.run(area.put(2.0, 2))
    full = session.run_async(area.put(3.0, 3))
    assert session.run(area.peek(1)) == [2, 2]
    assert session.run(area.get()) == [1, 1]
    full.result()
    assert session.run(area.size()) == 2
    session.run(area.clear())
    assert session.run(area.size()) == 0


def test_no_update_is_lost_in_a_critical_section(run):
    count, section = tw.Variable(np.int32(0)), tw.CriticalSection()
    session = run.session
    session.run(tw.initializer())
    add = section.execute(lambda: count.assign(count.read() + 1))
    for step in [session.run_async(add) for _ in range(100)]:
        step.result()
    assert session.run(count) == 100
    assert session.run(section.execute(lambda: count.read() * 2)) == 200
    assert session.run(section.execute(lambda: [count.read(), count.read() + 1])) == [100, 101]
