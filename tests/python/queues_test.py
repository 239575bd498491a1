"""Queues as objects: what each kind gives, and how steps wait for each other."""
import numpy as np
import pytest

import thalweg as tw


def test_components_come_out_as_they_went_in(run):
    queue = tw.FIFOQueue(10, ["float32", "string"], [[2], []])
    session = run.session
    session.run(queue.enqueue([1, 2], "one"))
    session.run(queue.enqueue_many([[3, 4], [5, 6]], ["two", "three"]))
    assert session.run(queue.size()) == 3
    x, text = session.run(queue.dequeue())
    assert x.tolist() == [1, 2] and text == b"one"
    x, text = session.run(queue.dequeue_many(2))
    assert x.tolist() == [[3, 4], [5, 6]] and text.tolist() == [b"two", b"three"]


def test_a_value_of_the_graph_goes_in(run):
    queue = tw.FIFOQueue(10, ["float32"])
    x = tw.placeholder("float32", name="x")
    session = run.session
    session.run(queue.enqueue(x * 2), {x: [1, 2]})
    assert session.run(queue.dequeue()).tolist() == [2, 4]


def test_a_step_that_was_started_waits_for_another(run):
    queue = tw.FIFOQueue(1, ["float32"], [[]])
    session = run.session
    total = session.run_async(queue.dequeue() + queue.dequeue())
    session.run(queue.enqueue_many([20.0, 22.0]))
    assert total.result() == 42


def test_a_closed_queue_gives_what_is_left(run):
    queue = tw.FIFOQueue(10, ["float32"], [[]])
    session = run.session
    session.run(queue.enqueue_many([1.0, 2.0]))
    assert not session.run(queue.is_closed())
    session.run(queue.close())
    assert session.run(queue.is_closed())
    assert session.run(queue.dequeue_up_to(5)).tolist() == [1, 2]
    with pytest.raises(tw.OutOfRangeError, match="closed and has insufficient elements"):
        session.run(queue.dequeue())
    with pytest.raises(tw.CancelledError, match="nothing can be put into it"):
        session.run(queue.enqueue(3.0))


def test_the_other_kinds(run):
    shuffled = tw.RandomShuffleQueue(100, 0, ["int32"], [[]], seed=3)
    padded = tw.PaddingFIFOQueue(-1, ["float32"], [[None]])
    ordered = tw.PriorityQueue(-1, ["string"], [[]])
    session = run.session
    session.run([shuffled.enqueue_many(np.arange(20)), padded.enqueue([1.0]), ordered.enqueue_many([2, 1], ["b", "a"])])
    session.run(padded.enqueue([2.0, 3.0]))
    assert sorted(session.run(shuffled.dequeue_many(20))) == list(range(20))
    assert session.run(padded.dequeue_many(2)).tolist() == [[1, 0], [2, 3]]
    priorities, texts = session.run(ordered.dequeue_many(2))
    assert priorities.tolist() == [1, 2] and texts.tolist() == [b"a", b"b"]


def test_graphs_share_a_queue_by_name():
    sessions, queues = [], []
    for _ in range(2):
        with tw.Graph() as g:
            queues.append(tw.FIFOQueue(3, ["int64"], [[]], shared_name="queue of two graphs"))
        sessions.append(tw.Session(g))
    sessions[0].run(queues[0].enqueue(7))
    assert sessions[1].run(queues[1].dequeue()) == 7


def test_functions_wait_while_other_steps_go_on():
    with tw.Graph() as g:
        queue = tw.FIFOQueue(100, ["float32"], [[]], shared_name="queue of functions")

        @tw.function
        def take(x):
            return x + tw.FIFOQueue(100, ["float32"], [[]], shared_name="queue of functions").dequeue()

        taken = [take(tw.constant(float(k))) for k in range(12)]
        put = queue.enqueue_many(np.full(12, 100, np.float32))
    session = tw.Session(g, max_async_runs=100)
    waiting = [session.run_async(x) for x in taken]
    session.run_async(put).result()
    assert sorted(float(step.result()) for step in waiting) == [100 + k for k in range(12)]
