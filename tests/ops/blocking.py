"""What tests of ops that wait have in common: a graph and a session of its own, steps that are started, and how they end."""
import itertools
import time

import cases
import thalweg
from thalweg import ops

names = map("blocking{}".format, itertools.count())


class Place:
    """A graph and a session of two threads, so that any number of steps wait without one."""

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


def waits(where, future):
    time.sleep(0.05)  # what is cancelled before it stands in line is told without its op
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
