"""Steps that are started without waiting: what their futures give, back-pressure, an end of the program or a fork in their midst."""
import asyncio
import concurrent.futures
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import thalweg as tw


@pytest.fixture
def slow(graph):
    """A step of seconds: (its value, feeds)."""
    x = tw.placeholder("float32", [400, 400])
    y = x
    for _ in range(3000):
        y = y @ x
    return y, {x: np.zeros((400, 400), np.float32)}


def test_results_have_the_form_of_the_fetches(graph):
    x = tw.placeholder("float32", [None])
    y, s = x * 2, tw.Session(graph)
    found = s.run_async({"y": y, "parts": (x[0], [x.sum()])}, {x: [1, 2]}).result(60)
    assert found["y"].tolist() == [2, 4] and found["parts"] == (1, [3])
    assert isinstance(s.run_async(y, {x: [1]}, as_tensors=True).result(60), tw.Tensor)
    f = s.callable([y], [x], targets=[tw.ops.no_op()])
    assert f.run_async([5]).result(60)[0] == 10 and f.run_async([6], as_tensors=True).result(60)[0].shape == (1,)


def test_hundreds_are_under_way_at_once(graph):
    x = tw.placeholder("float32", [None])
    y, s = x + 1, tw.Session(graph, max_async_runs=4)
    futures = [s.run_async(y, {x: np.full(3, i)}) for i in range(300)]
    assert sorted(f.result()[0] for f in concurrent.futures.as_completed(futures, 60)) == list(range(1, 301))


def test_asyncio_awaits_them(graph):
    x = tw.placeholder("float32", [])
    y, s = x * x, tw.Session(graph)

    async def main():
        return await asyncio.gather(*(asyncio.wrap_future(s.run_async(y, {x: i})) for i in range(5)))

    assert asyncio.run(main()) == [0, 1, 4, 9, 16]


def test_fed_arrays_may_be_written_to_at_once(graph):
    x = tw.placeholder("float32", [None])
    y, s, array, futures = x.min() + x.max(), tw.Session(graph), np.empty(1 << 20, np.float32), []
    for i in range(20):
        array[:] = i
        futures.append(s.run_async(y, {x: array}))
    assert [f.result(60) for f in futures] == [2 * i for i in range(20)]


def test_variables_are_updated_whoever_waits(graph):
    v = tw.Variable(0.0, name="count")
    add, s = v.assign_add(1.0), tw.Session(graph, container="future")
    s.run(graph.initializer())
    done, _ = concurrent.futures.wait([s.run_async(add) for _ in range(50)], 60)
    assert len(done) == 50 and s.run(v) == 50


def test_a_session_of_one_thread_ends_the_step_before_it_returns(graph):
    x, here = tw.placeholder("float32", []), []
    future = tw.Session(graph, threads=1).run_async(x * 2, {x: 4})
    future.add_done_callback(lambda f: here.append((threading.get_ident(), f.result())))
    assert future.done() and here == [(threading.get_ident(), 8)]


def test_callbacks_may_start_further_steps(graph):
    x = tw.placeholder("float32", [])
    y, s, last, ended = x + 1, tw.Session(graph), [], threading.Event()

    def go_on(future):
        if future.result() < 30:
            s.run_async(y, {x: future.result()}).add_done_callback(go_on)
        else:
            last.append(future.result())
            ended.set()

    s.run_async(y, {x: 0}).add_done_callback(go_on)
    assert ended.wait(60) and last == [30]


def test_what_is_wrong_is_raised_at_once_or_by_the_future(graph):
    x = tw.placeholder("float32", [None, 2], name="x")
    y, s = tw.ops.mat_mul(x, x, name="mm"), tw.Session(graph)
    with pytest.raises(TypeError, match="'x:0'"):
        s.run_async(y, {x: "text"})
    with pytest.raises(TypeError, match="takes 1 feeds, not 2"):
        s.callable(y, [x]).run_async([[1, 2]], 3)
    with pytest.raises(TypeError, match="is a value of a graph"):
        s.run_async(y, {x: x})
    future = s.run_async(y, {x: np.ones((3, 2))})
    with pytest.raises(tw.InvalidArgumentError, match="mm") as e:
        future.result(60)
    assert e.value.operation == "mm" and e.value.line.file == __file__
    s.close()
    with pytest.raises(tw.FailedPreconditionError):
        s.run_async(y, {x: np.ones((2, 2))})


def test_cancel_stops_the_step(graph, slow):
    s, started = tw.Session(graph), time.monotonic()
    future = s.run_async(*slow)
    assert future.running() and future.cancel()
    with pytest.raises(tw.CancelledError):
        future.result(60)
    assert time.monotonic() - started < 10 and not future.cancel()
    with pytest.raises(tw.DeadlineExceededError):
        s.run_async(*slow, timeout=0.05).result(60)


def test_a_session_may_go_while_its_steps_run(graph, slow):
    x = tw.placeholder("float32", [])
    s = tw.Session(graph)
    quick, long = s.run_async(x * 2, {x: 1}), s.run_async(*slow)
    threading.Timer(0.1, long.cancel).start()
    del s
    assert quick.result(60) == 2 and isinstance(long.exception(60), tw.CancelledError)


def program(text):
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-B", "-c", BEGIN + text], capture_output=True, text=True, check=False, timeout=100)
    return done.returncode, done.stdout, done.stderr, time.monotonic() - started


BEGIN = """
import os, signal, threading, time
import numpy as np
import thalweg as tw
with tw.Graph() as g:
    x = tw.placeholder("float32", [300, 300])
    y = x
    for _ in range(100):
        y = y @ x
s, feeds = tw.Session(g), {x: np.zeros((300, 300), np.float32)}
"""


def test_the_end_of_the_program_waits_for_what_is_under_way():
    code, out, err, _ = program("""
f = s.run_async(y, feeds)
f.add_done_callback(lambda f: print("ended", f.result().shape, flush=True))
""")
    assert (code, out, err) == (0, "ended (300, 300)\n", "")


def test_daemon_threads_that_start_steps_do_not_hinder_the_end():
    for _ in range(3):
        code, _, err, _ = program("""
def work():
    try:
        while True:
            s.run_async(x * 2, feeds)
    except RuntimeError as e:
        assert "the program is ending" in str(e)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
""")
        assert (code, err) == (0, "")


def test_the_child_of_a_fork_ends_without_its_parents_steps():
    code, out, err, _ = program("""
assert s.run(x.sum(), feeds) == 0
f = s.run_async(y, feeds)
f.result()
if os.fork() == 0:
    print("child", s.run(x.sum() + 1, feeds), s.run_async(x.max() + 2, feeds).result(60), flush=True)
else:
    print("parent", os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
""")
    assert (code, out, err) == (0, "child 1.0 2.0\nparent 0\n", "")
