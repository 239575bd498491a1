"""Ctrl-C in a step, sent to this process and to others as a terminal would."""
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import thalweg as tw


@pytest.fixture
def slow(graph):
    """Fetches and feeds of a step that takes the processor half a minute at least."""
    x = tw.placeholder("float32", [600, 600])
    y = x
    for _ in range(10000):
        y = y @ x
    return y, {x: np.zeros((600, 600), np.float32)}


def interrupting(after=0.2):
    """What begins the time after which the signal comes: a call for whoever is ready to be interrupted, for a thread takes its time to start."""
    begins = threading.Event()

    def work():
        begins.wait()
        time.sleep(after)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=work, daemon=True).start()
    return begins.set


@pytest.mark.parametrize("options", [{}, {"threads": 1}], ids=str)
@pytest.mark.parametrize("how", ["run", "callable", "with a token", "without waiting"])
def test_ctrl_c_ends_a_step_of_the_main_thread(graph, slow, options, how):
    s, (y, feeds) = tw.Session(graph, **options), slow
    step, begin = s.callable(y, list(feeds)), interrupting()
    used = time.process_time()
    with pytest.raises(KeyboardInterrupt):
        begin()
        if how == "run":
            s.run(y, feeds)
        elif how == "callable":
            step(*feeds.values())
        elif how == "with a token":
            s.run(y, feeds, cancel=tw.CancelToken())
        else:
            future = s.run_async(y, feeds)
            try:
                future.result()
            finally:
                future.cancel()
    assert time.process_time() - used < 10
    assert s.run(next(iter(feeds)).sum(), feeds) == 0  # the next step is none of its business


def test_an_interrupt_that_was_answered_does_not_stop_the_next_step(graph):
    x = tw.placeholder("float32", [200, 200])
    y = x
    for _ in range(40):
        y = y @ x
    s, feeds = tw.Session(graph), {x: np.zeros((200, 200), np.float32)}
    s.run(y, feeds)
    for _ in range(100):
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)
        assert s.run(y, feeds).shape == (200, 200)


class Waiting:
    """A step that says that it has begun and then waits to be let go; who is told of its beginning sends a signal."""

    def __init__(self, graph, number, handler, **options):
        begun, self.go = (tw.FIFOQueue(9, ["float32"], [[]]) for _ in range(2))
        with tw.control_dependencies([begun.enqueue(np.float32(1))]):
            self.step = self.go.dequeue() + 1.0
        self.let_go, self.said = self.go.enqueue(np.float32(2)), begun.dequeue()
        self.session, self.number, self.handler = tw.Session(graph, **options), number, handler
        self.other = tw.Session(graph)

    def __enter__(self):
        self.before = signal.signal(self.number, self.handler)
        self.thread = threading.Thread(target=self._signal)
        self.thread.start()
        return self

    def _signal(self):
        self.other.run(self.said, timeout=60)
        os.kill(os.getpid(), self.number)

    def __exit__(self, *_):
        self.thread.join()
        signal.signal(self.number, self.before)


@pytest.mark.parametrize("options", [{}, {"threads": 1}], ids=str)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGCHLD], ids=str)
def test_a_handler_runs_while_a_step_waits_which_goes_on(graph, number, options):
    threads = []

    def handler(*_):
        threads.append(threading.get_ident())
        waiting.other.run(waiting.let_go)

    time.sleep(0.06)  # handlers of unusual signals are looked for so often
    with Waiting(graph, number, handler, **options) as waiting:
        assert waiting.session.run(waiting.step, timeout=60) == 3
        assert threads == [threading.main_thread().ident]


class Stop(BaseException):
    pass


@pytest.mark.parametrize("how", ["run", "callable", "a token", "in parts"])
def test_a_handler_that_raises_cancels_the_step(graph, how):
    def handler(*_):
        raise Stop

    with Waiting(graph, signal.SIGTERM, handler) as waiting:
        s, step, token, begin = waiting.session, waiting.step, tw.CancelToken(), time.monotonic()
        with pytest.raises(Stop):
            if how == "run":
                s.run(step, timeout=60)
            elif how == "callable":
                s.callable(step)(timeout=60)
            elif how == "a token":
                s.run(step, timeout=60, cancel=token)
            else:
                s.partial_run(step).run(step, timeout=60)
        assert time.monotonic() - begin < 50  # and not after its time was over
        assert token.cancelled == (how == "a token")
        s.run(waiting.let_go)
        assert s.run(waiting.go.dequeue()) == 2  # the step took nothing


def test_a_handler_runs_while_a_server_is_joined():
    main = threading.main_thread().ident

    def handler(*_):
        server.stop()

    def work():
        while sys._current_frames()[main].f_code.co_name != "join":
            os.sched_yield()
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, handler)
    try:
        server = tw.Server({"worker": ["grpc:127.0.0.1:0"]}, "worker", 0)
        threading.Thread(target=work).start()
        begin = time.monotonic()
        server.join(60)
        assert time.monotonic() - begin < 50
    finally:
        signal.signal(signal.SIGTERM, before)


def test_long_calls_give_what_they_give_beside_too(graph, tmp_path):
    v, s = tw.Variable(np.float32(3)), tw.Session(graph)
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        s.run(graph.initializer())
        tw.Saver().save(s, tmp_path / "c")
        s.run(v.assign(1.0))
        tw.Saver().restore(s, tmp_path / "c")
        assert s.run(v) == 3
        with pytest.raises(tw.NotFoundError):
            tw.Saver().restore(s, tmp_path / "none")
        with pytest.raises(tw.InvalidArgumentError):
            s.run(graph.op("Reshape", v, graph.placeholder("int32", [1], name="shape")), {"shape:0": [7]})
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_wakeup_descriptor_of_the_program_stays(graph):
    x, s = tw.placeholder("float32", []), tw.Session(graph)
    r, w = os.pipe()
    os.set_blocking(w, False)
    signal.set_wakeup_fd(w)
    try:
        for _ in range(3):
            s.run(x * 2, {x: 1})
            time.sleep(0.06)
        assert signal.set_wakeup_fd(w) == w
    finally:
        signal.set_wakeup_fd(-1)
        os.close(r)
        os.close(w)


def test_a_token_works_on_any_thread(graph, slow):
    token, s, found = tw.CancelToken(), tw.Session(graph), []

    def work():
        try:
            s.run(*slow, cancel=token)
        except tw.Error as e:
            found.append(type(e))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    time.sleep(0.1)
    token.cancel()
    for t in threads:
        t.join(100)
    assert found == [tw.CancelledError] * 3 and token.cancelled
    with pytest.raises(tw.CancelledError):
        s.run(*slow, cancel=token)


def test_a_program_at_a_terminal_ends_by_ctrl_c_and_so_does_its_fork():
    text = """
import os, numpy as np, thalweg as tw
with tw.Graph() as g:
    x = tw.placeholder("float32", [600, 600])
    y = x
    for _ in range(10000):
        y = y @ x
s, feeds = tw.Session(g), {x: np.zeros((600, 600), np.float32)}
s.run(x.sum(), feeds)
child = os.fork()
try:
    os.write(1, b"ready\\n")
    s.run(y, feeds)
except KeyboardInterrupt:
    os.write(1, b"parent\\n" if child else b"child\\n")
if child:
    os.wait()
"""
    with subprocess.Popen([sys.executable, "-B", "-c", text], stdout=subprocess.PIPE, text=True, start_new_session=True) as p:
        assert [p.stdout.readline(), p.stdout.readline()] == ["ready\n"] * 2
        time.sleep(0.3)
        os.killpg(p.pid, signal.SIGINT)
        assert sorted(p.stdout.read().split()) == ["child", "parent"] and p.wait(60) == 0
