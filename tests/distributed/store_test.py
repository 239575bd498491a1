"""Tests clusters of processes that use leases in etcd instead of heartbeats: store_test.py THALWEG TRANSPORT [TEST...]"""
import contextlib
import pathlib
import signal
import sys
import tempfile
import threading
import time

import numpy as np

import thalweg as tw
from addresses import free_port
from etcd_store import INSTALLED, Etcd
from local_cluster import local_cluster
from running import run_tests

THALWEG, TRANSPORT = sys.argv[1:3]
PS, W0, W1 = "/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"
if not INSTALLED:
    print("skipped: there is no etcd")
    sys.exit(77)
with contextlib.suppress(tw.AlreadyExistsError):
    tw.load_plugin(TRANSPORT)


@contextlib.contextmanager
def cluster():
    """Starts a cluster and its etcd; yields both."""
    with tempfile.TemporaryDirectory() as folder:
        store = Etcd(pathlib.Path(folder) / "etcd", f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}")
        try:
            with local_cluster(THALWEG, TRANSPORT, ps=1, workers=2, membership=f"etcd:{store.client}/team") as c:
                yield c, store
        finally:
            store.stop()


class Work:
    """A step that waits at a queue of the task `on`; a node on another task needs the value."""

    def __init__(self, on):
        self.graph = tw.Graph()
        with self.graph:
            with tw.device(on):
                queue = tw.ops.fifo_queue_v2(component_types=[np.float32])
                element = tw.ops.queue_dequeue_v2(queue, component_types=[np.float32])[0]
                self.put = tw.ops.queue_enqueue_v2(queue, [tw.constant(np.float32(3))])
                self.plain = tw.ops.neg(tw.constant(np.float32(1)))
            with tw.device(W0 if on != W0 else W1):
                self.waits = tw.ops.neg(element)


def later(seconds, f):
    timer = threading.Timer(seconds, f)
    timer.start()
    return timer


def failure(f):
    """Returns the error that f raises, and the seconds that it took."""
    began = time.monotonic()
    try:
        f()
    except (tw.UnavailableError, tw.AbortedError) as e:
        return str(e), time.monotonic() - began
    raise AssertionError("the step was to fail")


def patiently(f):
    for attempt in range(60):
        try:
            return f()
        except (tw.UnavailableError, tw.AbortedError, tw.DeadlineExceededError):
            if attempt == 59:
                raise
            time.sleep(0.5)


def test_who_is_killed_is_named_within_two_seconds_and_who_stands_still_within_fifteen():
    with cluster() as (c, _):
        for job, task, on in [("ps", 0, PS), ("worker", 1, W1)]:
            work = Work(on)
            with c.session(work.graph, target_timeout_ms=60000) as session:
                assert session.run(work.plain) == -1
                process = c.processes[job, task]
                timer = later(0.3, lambda: process.send_signal(signal.SIGSTOP))
                text, seconds = failure(lambda: session.run(work.waits))
                timer.join()
                assert f"task {on} at {c.address[job][task]}" in text and seconds < 15, (text, seconds)
                process.send_signal(signal.SIGCONT)
                assert patiently(lambda: session.run(work.plain)) == -1
                for _ in range(3):  # a busy machine may delay any of the processes
                    timer = later(0.3, lambda: c.kill(job, task))
                    text, seconds = failure(lambda: session.run(work.waits))
                    timer.join()
                    assert f"task {on} at {c.address[job][task]}" in text and seconds < 15, (text, seconds)
                    c.start(job, task)
                    assert patiently(lambda: session.run(work.plain)) == -1
                    if seconds < 2.3:
                        break
                assert seconds < 2.3, seconds


def test_who_stands_still_for_a_second_is_not_taken_for_dead():
    work = Work(PS)
    with cluster() as (c, _), c.session(work.graph) as session:
        assert session.run(work.plain) == -1
        step = session.run_async(work.waits)
        for _ in range(3):
            c.processes["ps", 0].send_signal(signal.SIGSTOP)
            time.sleep(1)
            c.processes["ps", 0].send_signal(signal.SIGCONT)
            time.sleep(0.5)
        session.run(work.put)
        assert step.result() == -3


def test_a_store_that_goes_and_comes_back_fails_no_step_and_hides_no_death():
    work = Work(PS)
    with cluster() as (c, store), c.session(work.graph, target_timeout_ms=60000) as session:
        assert session.run(work.plain) == -1
        step = session.run_async(work.waits)
        store.stop()
        time.sleep(9)  # longer than the leases
        assert session.run(work.plain) == -1
        store.start()
        time.sleep(4)
        session.run(work.put)
        assert step.result() == -3
        store.stop()
        timer = later(0.3, lambda: c.kill("ps", 0))
        text, seconds = failure(lambda: session.run(work.waits))
        timer.join()
        assert f"task {PS} at {c.address['ps'][0]}" in text and seconds < 5, (text, seconds)


if __name__ == "__main__":
    run_tests(globals(), sys.argv[3:])
