"""Many threads on one of everything."""
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import thalweg as tw


def in_threads(n, work):
    """Runs work(i) in n threads at once; raises the first failure."""
    failures = []

    def guarded(i):
        try:
            work(i)
        except BaseException as e:  # reported below, by the thread that waits
            failures.append(e)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failures:
        raise failures[0]


def test_four_threads_run_one_session_and_one_callable(graph):
    x = tw.placeholder("float32", [None, 50])
    w = tw.Variable(np.arange(2500, dtype=np.float32).reshape(50, 50) / 2500, name="w")
    y, count = x @ w, tw.Variable(0, name="count")
    step = count.assign_add(1)
    s = tw.Session(graph)
    s.run(graph.initializer())
    f, matrix = s.callable(y, feeds=[x], targets=[step]), s.run(w)

    def work(i):
        random = np.random.default_rng(i)
        for n in range(100):
            array = random.normal(size=(1 + n % 3 * 200, 50)).astype(np.float32)
            for got in (f(array), s.run(y, {x: array})):
                np.testing.assert_allclose(got, array @ matrix, rtol=1e-4, atol=1e-4)

    in_threads(4, work)
    assert s.run(count) == 400


def test_one_array_fed_by_all_at_once(graph):
    x = tw.placeholder("float32", [None])
    y, s, array = x.sum(), tw.Session(graph), np.ones(50000, np.float32)

    def work(_):
        for _ in range(100):
            assert s.run(y, {x: array}) == 50000

    in_threads(4, work)


def test_other_threads_go_on_while_a_step_runs(graph):
    x = tw.placeholder("float32", [700, 700])
    y = x
    for _ in range(60):
        y = y @ x
    s, ticks, done = tw.Session(graph, threads=1), [], threading.Event()

    def run():
        s.run(y.sum(), {x: np.zeros((700, 700), np.float32)})
        done.set()

    thread = threading.Thread(target=run)
    thread.start()
    while not done.is_set():
        ticks.append(time.monotonic())
        time.sleep(0.001)
    thread.join()
    assert len(ticks) > 20  # one step takes some hundred milliseconds, in which this loop must not stand still


def test_threads_build_graphs_of_their_own_and_one_together():
    shared = tw.Graph()

    def work(i):
        with tw.Graph() as mine:
            with tw.name_scope(f"thread{i}"):
                x = tw.placeholder("float32", [], name="x")
                for _ in range(50):
                    x = x + 1
            assert tw.current_graph() is mine and all(o.name.startswith(f"thread{i}/") for o in mine.operations())
        with shared, tw.name_scope("s"):
            for _ in range(50):
                tw.ops.no_op()
        with tw.Session(mine) as s:
            assert s.run(x, {f"thread{i}/x": i}) == i + 50

    in_threads(4, work)
    names = [o.name for o in shared.operations()]
    assert len(names) == len(set(names)) == 200 and {n.split("/")[0] for n in names} == {"s", "s_1", "s_2", "s_3"}


ENDING = """
import threading, time
import numpy as np
import thalweg as tw
with tw.Graph(tw.Runtime(threads=2)) as g:
    x = tw.placeholder("float32", [None])
    v, y = tw.Variable(np.zeros(100000, np.float32), name="v"), x * 2
    assign = v.assign(x)
s = tw.Session(g)
def work():
    while True:
        s.run([y, assign], {x: np.ones(100000, np.float32)})
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
"""


def test_a_program_may_end_while_threads_run_steps():
    for _ in range(3):
        done = subprocess.run([sys.executable, "-B", "-c", ENDING], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_step_is_cancelled_from_another_thread(graph):
    x = tw.placeholder("float32", [500, 500])
    y = x
    for _ in range(2000):
        y = y @ x
    token, s = tw.CancelToken(), tw.Session(graph)
    timer = threading.Timer(0.1, token.cancel)
    timer.start()
    with pytest.raises(tw.CancelledError):  # and the step has not gone on to its end
        s.run(y, {x: np.zeros((500, 500), np.float32)}, cancel=token)
    timer.join()


def test_threads_that_take_one_name_each_get_one(graph):
    made, start = [], threading.Barrier(4)

    def work():
        start.wait(30)
        with graph:
            for _ in range(50):
                made.extend([tw.constant(1.0, name="c").name, tw.Variable(1.0, name="v").name])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert len(made) == len(set(made)) == 400
