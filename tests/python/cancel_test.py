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


def test_a_handler_of_the_program_runs_after_the_step(graph):
    x, came = tw.placeholder("float32", [300, 300]), []
    y = x
    for _ in range(100):
        y = y @ x
    s = tw.Session(graph)
    before = signal.signal(signal.SIGINT, lambda *_: came.append(True))
    try:
        interrupting(0.02)()
        assert s.run(y, {x: np.zeros((300, 300), np.float32)}).shape == (300, 300)
        until = time.monotonic() + 60
        while not came and time.monotonic() < until:
            time.sleep(0.01)
    finally:
        signal.signal(signal.SIGINT, before)
    assert came == [True]


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
