"""Tests variables of several tasks that are read and assigned together: atomic_test.py THALWEG TRANSPORT [TEST...]

A session in between (Between) stops a writer before any of its steps, or lets others act there, so that the tests need no luck: readers
look between all steps of all writers."""
import sys
import threading

import numpy as np

import thalweg as tw
from local_cluster import local_cluster
from running import run_tests

THALWEG, TRANSPORT = sys.argv[1:3]
PS = [f"/job:ps/task:{k}" for k in range(2)]
STEPS = 4  # of an assignment
tw.load_plugin(TRANSPORT)


class State:
    """Three variables on two tasks, and the values that a test gives them: all elements are the number of the transaction."""
    shapes = {"a": [2, 3], "b": [], "c": [5]}

    def __init__(self):
        with tw.Graph() as self.graph:
            self.all = tw.AtomicVariables(self.values(0), name="state", devices={"a": PS[0], "b": PS[1], "c": PS[1]})
            snapshot = self.all.snapshot()
            self.more = self.all.writer({n: v + 1 for n, v in snapshot.values.items()})
            self.begin = tw.initializer()

    def values(self, number):
        return {n: np.full(shape, number, np.float32) for n, shape in self.shapes.items()}

    def look(self, session):
        """Returns (version, number of the transaction), after a look at all elements."""
        version, values = self.all.read(session)
        assert list(values) == list(self.shapes)
        numbers = {float(x) for n, value in values.items() for x in np.ravel(value)}
        assert len(numbers) == 1 and all(np.shape(values[n]) == tuple(s) for n, s in self.shapes.items()), values
        return version, numbers.pop()


def cluster():
    return local_cluster(THALWEG, TRANSPORT, ps=2)


class Stopped(Exception):
    pass


class Between:
    """A session that calls before(n) before its step n, counted from 0."""

    def __init__(self, session, before=lambda n: None):
        self.session, self.before, self.steps = session, before, 0

    def run(self, *what, **how):
        self.before(self.steps)
        self.steps += 1
        return self.session.run(*what, **how)


def stop_at(step):
    def before(n):
        if n >= step:  # as a process that is gone: it does not leave its place either
            raise Stopped
    return before


def test_all_are_read_and_assigned_together_at_the_stated_cost():
    with cluster() as c:
        state = State()
        with c.session(state.graph) as session:
            session.run(state.begin)
            counted = Between(session)
            assert state.look(counted) == (0, 0) and counted.steps == 1
            for k in range(1, 4):
                counted.steps = 0
                assert state.all.assign(counted, state.values(10 * k)) == k and counted.steps == STEPS
                assert state.look(session) == (k, 10 * k)
            assert state.all.assign(session, state.values(40), version=3) == 4
            with_wrong_version(state, session, 3, 4)
            assert state.more.run(session) == 5 and state.look(session) == (5, 41)
            # Another program, with a graph of its own, sees the same.
            other = State()
            with c.session(other.graph) as second:
                assert other.look(second) == (5, 41) and other.more.run(second, version=5) == 6
            assert state.look(session) == (6, 42)


def with_wrong_version(state, session, wrong, latest):
    try:
        state.all.assign(session, state.values(-1), version=wrong)
        raise AssertionError("the version was another")
    except tw.AbortedError as e:
        assert f"the latest version is {latest}, not {wrong}" in str(e), e
    assert state.look(session)[0] == latest


def test_a_writer_that_dies_at_any_point_changes_nothing_and_holds_nobody_up():
    with cluster() as c:
        state = State()
        with c.session(state.graph) as session:
            session.run(state.begin)
            version, number = 0, 0
            for step in range(STEPS):
                try:
                    state.all.assign(Between(session, stop_at(step)), state.values(-1))
                    raise AssertionError("it was to die")
                except Stopped:
                    pass
                assert state.look(session) == (version, number)
                version, number = version + 1, 100 + step
                assert state.all.assign(session, state.values(number), patience=0) == version
                assert state.look(session) == (version, number)


def test_a_writer_waits_for_another_as_long_as_it_is_patient():
    with cluster() as c:
        state = State()
        with c.session(state.graph) as session:
            session.run(state.begin)
            try:
                state.all.assign(Between(session, stop_at(2)), state.values(-1))  # has its turn, and dies
            except Stopped:
                pass
            counted = Between(session)
            try:
                state.all.assign(counted, state.values(1), patience=1000, timeout=0.2)
                raise AssertionError("it was to wait")
            except tw.DeadlineExceededError as e:
                assert "atomic variables 'state'" in str(e) or "deadline" in str(e).lower(), e
            assert counted.steps > 1 and state.look(session) == (0, 0)


def test_a_writer_that_was_thought_dead_changes_nothing_of_those_that_came_after_it():
    """A slow writer continues after others have made one version, or two, so that it meets its own slots or the other ones."""
    with cluster() as c:
        for step in range(1, STEPS):
            for others in (1, 2):
                for only in (None, 0):  # the slow writer may do its step anew, or only for the version that it knows
                    slow_writer(c, step, others, only)


def slow_writer(c, step, others, only):
    state = State()
    with c.session(state.graph) as session, c.session(state.graph) as own:
        session.run(state.begin)
        latest = [(0, 0)]

        def before(n):
            assert state.look(session) == latest[0], (step, others, only, n)
            if n == step:
                for k in range(others):
                    version = state.all.assign(session, state.values(50 + k), patience=0)
                    latest[0] = (version, 50 + k)
                    assert state.look(session) == latest[0]

        slow = Between(own, before)
        if only is None:
            assert state.all.assign(slow, state.values(7)) == others + 1
            assert state.look(session) == (others + 1, 7)
        else:
            try:
                state.all.assign(slow, state.values(7), version=only)
                raise AssertionError("the version was another")
            except tw.AbortedError:
                pass
            assert state.look(session) == latest[0]
        assert state.all.assign(session, state.values(8), patience=1000, timeout=20) == state.look(session)[0]


def test_a_transaction_that_reached_one_task_only_is_never_seen():
    with cluster() as c:
        state = State()
        with c.session(state.graph) as session:
            session.run(state.begin)
            writer = state.all._writer

            class OneTask(Between):
                def run(self, what, feeds=None, **how):
                    if self.steps == 2:  # fills the slots: those of the first task only
                        self.session.run(writer._fill[1][0], feeds, **how)
                        raise Stopped
                    return super().run(what, feeds, **how)

            try:
                state.all.assign(OneTask(session, stop_at(3)), state.values(-1))
                raise AssertionError("it was to die")
            except Stopped:
                pass
            assert state.look(session) == (0, 0)
            assert state.all.assign(session, state.values(5), patience=0) == 1 and state.look(session) == (1, 5)


def test_many_writers_and_readers_lose_no_assignment_and_see_no_mix():
    writers, each = 3, 12
    with cluster() as c:
        state = State()
        with c.session(state.graph) as session:
            session.run(state.begin)
            failures, over = [], threading.Event()

            def guarded(body):
                try:
                    with c.session(state.graph) as own:
                        body(own)
                except BaseException as e:  # told below
                    failures.append(e)

            def write(own):
                for _ in range(each):
                    state.more.run(own, patience=60)

            def read(own):
                last = 0
                while not over.is_set():
                    version, number = state.look(own)
                    assert version == number and version >= last, (version, number, last)
                    last = version

            readers = [threading.Thread(target=guarded, args=[read]) for _ in range(2)]
            threads = [threading.Thread(target=guarded, args=[write]) for _ in range(writers)]
            for t in readers + threads:
                t.start()
            for t in threads:
                t.join()
            over.set()
            for t in readers:
                t.join()
            assert not failures, failures
            assert state.look(session) == (writers * each, writers * each)


def test_a_task_that_is_lost_is_named_and_no_part_of_the_values_is_shown():
    with cluster() as c:
        state = State()
        with c.session(state.graph, target_timeout_ms=500) as session:  # for a task that is not there
            session.run(state.begin)

            def before(n):
                if n == 2:
                    c.kill("ps", 1)

            try:
                state.all.assign(Between(session, before), state.values(3))
                raise AssertionError("a task was lost")
            except (tw.UnavailableError, tw.AbortedError) as e:
                assert PS[1] in str(e), e
            c.start("ps", 1)
            for attempt in range(10):
                try:
                    state.look(session)
                    raise AssertionError("its variables are lost")
                except tw.FailedPreconditionError as e:
                    assert PS[1] in str(e), e
                    break
                except (tw.UnavailableError, tw.AbortedError):
                    assert attempt < 9
            session.run(state.begin)
            assert state.look(session) == (0, 0)


def test_wrong_uses_are_told():
    def fails(f, *words):
        try:
            f()
            raise AssertionError(words)
        except ValueError as e:
            assert all(w in str(e) for w in words), (e, words)

    with tw.Graph():
        fails(lambda: tw.AtomicVariables({}, name="none"), "atomic variables 'none'", "there are none")
        fails(lambda: tw.AtomicVariables({"a": 1.0}, name="x", devices={"b": PS[0]}), "devices names ['b']", "['a']")
        state = tw.AtomicVariables({"a": np.float32([1, 2]), "b": np.int64(3)}, name="x")
        fails(lambda: state.writer({"a": np.float32([1, 2])}), "missing are ['b']", "unknown []")
        fails(lambda: state.writer({"a": np.float32([1, 2]), "b": np.int64(1), "z": 1}), "missing are []", "unknown ['z']")
        fails(lambda: state.writer({"a": np.float32([1, 2, 3]), "b": np.int64(1)}), "the value for 'a' is float32 (3,)", "(2,)")
        fails(lambda: state.writer({"a": np.float32([1, 2]), "b": np.float32(1)}), "the value for 'b' is float32", "int64")
        assert repr(state) == "<AtomicVariables 'x' of a, b>"


if __name__ == "__main__":
    run_tests(globals(), sys.argv[3:])
