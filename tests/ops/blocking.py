"""Shared by tests of ops that wait: a graph and a session of its own, steps that are started, and checks of their end."""
import itertools
import pathlib
import threading
import time

import cases
import thalweg
from thalweg import ops

names = map("blocking{}".format, itertools.count())
SOON = 1  # seconds to the deadline of a step that must reach it, also on a busy machine


class Place:
    """A graph and a session of two threads. Any number of steps wait in it, because a waiting step holds no thread."""

    def __init__(self, **options):
        self.name, self.graph = next(names), thalweg.Graph()
        self.session = thalweg.Session(self.graph, max_async_runs=1000, **options)

    def do(self, op, *inputs, **attrs):
        with self.graph:
            return getattr(ops, op)(*inputs, **attrs)

    def constant(self, value, dtype):
        with self.graph:
            return thalweg.constant(value, dtype)

    def run(self, *steps):
        return [self.session.run(step) for step in steps][-1]

    def start(self, step, **options):
        return self.session.run_async(step, **options)


def others_rest():
    """Returns whether every other thread of this process sleeps."""
    for task in pathlib.Path("/proc/self/task").iterdir():
        try:
            state = (task / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:  # the thread has ended meanwhile
            continue
        if int(task.name) != threading.get_native_id() and state != "S":
            return False
    return True


def waits(where, future):
    """Waits until the op is enqueued. A step that is cancelled earlier fails without naming its op, and a later step could overtake it."""
    time.sleep(0.05)
    until = time.monotonic() + 60
    for _ in range(3):
        while not others_rest() and time.monotonic() < until:
            time.sleep(0.005)
        time.sleep(0.002)
    cases.holds(f"{where}: it waits", not future.done())
    return future


def fails(where, code, action, *parts):
    try:
        action()
    except thalweg.Error as error:
        cases.holds(f"{where}: {error.code_name}", error.code_name == code, str(error))
        cases.holds(f"{where}: message", all(part in str(error) for part in parts), str(error))
        return
    cases.holds(where, False, "no error")
