"""Processes that die at a point of a call, at every edge of every kind of call: failpoint_test.py THALWEG TRANSPORT FAILING [TEST...]

A task that serves the call dies, or a task or the program that makes it; see failing_transport.cc for the edges. distributed/messages.h
defines the kinds of calls; the test fails if the steps below do not make one of them. With THALWEG_FAILPOINTS=all every task dies in
turn, also at its second and third call."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import numpy as np

import thalweg as tw
from addresses import new_address
from local_cluster import local_cluster
from running import run_tests

THALWEG, TRANSPORT, FAILING = sys.argv[1:4]
os.environ["THALWEG_FAILING_TRANSPORT"] = TRANSPORT
ALL = os.environ.get("THALWEG_FAILPOINTS") == "all"
SERVES, CALLS = ("receive", "serve", "served", "answer", "sent"), ("call", "called", "answered", "over")
OF_TASKS = {"Receive", "Push"}  # calls from one task to another; clients make the other kinds
TASKS = {"ps": "/job:ps/task:0", "worker": "/job:worker/task:1", "target": "/job:worker/task:0"}
LOST = (tw.UnavailableError, tw.AbortedError)
BOUND = 10  # seconds within which a death must be reported
tw.load_plugin(FAILING)


def kinds():
    """Returns the names and numbers of all kinds of calls."""
    text = (pathlib.Path(os.environ["THALWEG_SOURCE_DIR"]) / "distributed/messages.h").read_text()
    body = text.split("enum class Method", 1)[1].split("};", 1)[0]
    found = {name: int(number) for name, number in re.findall(r"^\s*k(\w+) = (\d+)", body, re.MULTILINE)}
    assert sorted(found.values()) == list(range(1, len(found) + 1)), found
    return found


class Work:
    """Steps that make every kind of call to the task `on`, which has state, and let it make every kind that tasks make."""

    def __init__(self, on, beside):
        self.graph = tw.Graph()
        with self.graph:
            x = tw.placeholder(np.float32, [], name="x")
            wide = tw.placeholder(np.float32, [None], name="wide")  # its size is unknown, so the receiver requests it; it is not pushed
            with tw.device(on):
                v = tw.Variable(np.float32(2), name="v")
                queue = tw.ops.fifo_queue_v2(component_types=[np.float32])
                element = tw.ops.queue_dequeue_v2(queue, component_types=[np.float32])[0]
            with tw.device(beside):
                there = tw.ops.mul(x, v)
                waits, turned = tw.ops.neg(element), tw.ops.neg(wide)
            with tw.device(on):
                back = tw.ops.add_v2(there, tw.constant(np.float32(1)))
                others = [tw.ops.neg(back) for _ in range(3)]
                asked = tw.ops.neg(turned)
            with tw.device(beside):
                asked = tw.ops.neg(asked)
            self.begin = tw.initializer()
        self.x, self.wide, self.back, self.asked, self.waits, self.others = x, wide, back, asked, waits, others

    def open(self, target):
        return tw.Session(self.graph, target=target, max_plans=2, progress_timeout_ms=1500, target_timeout_ms=500)

    def value(self, session, **how):
        assert session.run(self.back, {self.x: np.float32(3)}, **how) == 7

    def wait(self, session):
        """Waits in a step. Meanwhile the client asks for the task's progress; at the end it tells the task that the step is over."""
        try:
            session.run(self.waits, timeout=0.5)
        except tw.DeadlineExceededError:
            pass

    def parts(self):
        """Yields the parts of the work in their order; each takes the session."""
        yield lambda session: session.run(self.begin)
        yield self.value
        yield lambda session: self.value(session, stats=tw.StepStats())
        yield lambda session: session.run(self.asked, {self.wide: np.ones(3, np.float32)})
        yield self.wait
        yield lambda session: session.reset("of nobody")
        for other in self.others:
            yield lambda session, other=other: session.run(other, {self.x: np.float32(3)})


def cluster():
    return local_cluster(THALWEG, FAILING, ps=1, workers=2, addresses=lambda: "failing:" + new_address(TRANSPORT).split(":", 1)[1])


def failpoint(kind, edge, nth):
    return {"THALWEG_FAILPOINT": f"{kinds()[kind]} {edge} {nth}"}


def dead(process, nth):
    """Returns whether the process died at a failpoint. Every kind has a first call, but not always a second."""
    try:
        return process.wait(10 if nth == 1 else 2) == -signal.SIGKILL
    except subprocess.TimeoutExpired:
        return False


def one_failure(f, who, where):
    """Calls f, which may fail once, within BOUND and with an error that names the task and its address; then it must succeed."""
    began = time.monotonic()
    try:
        return f()
    except LOST as e:
        assert f"task {who} at {where}" in str(e) or f"target {where}" in str(e), e
        assert time.monotonic() - began < BOUND, e
    return None


def kill_task(c, job, task, who, kind, edge, nth):
    """Lets a task die at that point of a call. Returns False if the point was not reached."""
    c.kill(job, task)
    c.start(job, task, **failpoint(kind, edge, nth))
    process, where = c.processes[job, task], c.address[job][task]
    work = Work(who, TASKS["target"] if who != TASKS["target"] else TASKS["ps"])
    failures, session = [], None

    def told(e, began):
        failures.append(str(e))
        assert f"task {who} at {where}" in str(e) or f"target {where}" in str(e), e
        assert time.monotonic() - began < BOUND, (e, time.monotonic() - began)

    for part in [lambda _: work.open(c.address["worker"][0]), *work.parts()]:
        began = time.monotonic()
        try:
            if session is None:
                session = part(None)
            else:
                part(session)
        except LOST as e:
            told(e, began)
            break
    else:
        session.close()  # answers the watch
        session = None
    if not dead(process, nth):
        return False
    c.start(job, task)
    for attempt in range(3):
        began = time.monotonic()
        try:
            session = session or work.open(c.address["worker"][0])
            session.run(work.begin)
            work.value(session)
            break
        except LOST as e:
            told(e, began)
    else:
        raise AssertionError(f"it does not go on: {failures}")
    assert len(failures) <= 1, failures
    session.close()
    return True


def check_tasks(c, job, task, who, table):
    missed = []
    for kind, edge in table:
        for nth in (1, 2, 3) if ALL else (1,):
            try:
                reached = kill_task(c, job, task, who, kind, edge, nth)
            except Exception as e:
                raise AssertionError(f"{who}, {kind}, {edge}, call {nth}: {e}") from e
            if not reached and nth == 1:
                missed.append((kind, edge))
    # A client asks for progress now and then; on a busy machine the step may end before.
    missed = [point for point in missed if not any(kill_task(c, job, task, who, *point, 1) for _ in range(3))]
    assert not missed, f"no step made these calls to {who}, or by it: {missed}"
    print(f"  {who}: {len(table)} points")


def victims():
    yield "ps", 0, TASKS["ps"]
    if ALL:
        yield "worker", 1, TASKS["worker"]
        yield "worker", 0, TASKS["target"]


def test_a_task_that_dies_where_it_serves_a_call_is_named_and_the_next_step_is_good():
    for victim in victims():
        with cluster() as c:
            check_tasks(c, *victim, [(kind, edge) for kind in kinds() for edge in SERVES])


def test_a_task_that_dies_where_it_calls_another_is_named_and_the_next_step_is_good():
    for victim in victims():
        with cluster() as c:
            check_tasks(c, *victim, [(kind, edge) for kind in kinds() if kind in OF_TASKS for edge in CALLS])


# ---- The program, which is the master of its session ----

def client(target):
    """Runs the client that is to die. It prints its last word only if it did not die."""
    work = Work(TASKS["ps"], TASKS["target"])
    session = work.open(target)
    for part in work.parts():
        part(session)
    tw.cluster_status(target)
    print("done", flush=True)
    sys.stdin.readline()
    session.close()


def open_sessions(c):
    return [task["sessions"] for task in tw.cluster_status(c.address["worker"][0])]


def kill_client(c, session, work, kind, edge, nth):
    """Lets a client die at that point of a call. Returns False if the point was not reached."""
    before = open_sessions(c)
    process = subprocess.Popen([sys.executable, "-B", __file__, THALWEG, TRANSPORT, FAILING, "client", c.address["worker"][0]],
                               env={**os.environ, **failpoint(kind, edge, nth)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        if process.stdout.readline() == "done\n":
            c.kill("ps", 0, signal.SIGTERM)  # the end of the task answers the watch
            reached = dead(process, nth)
            process.kill()
            c.start("ps", 0)
            one_failure(lambda: session.run(work.begin), TASKS["ps"], c.address["ps"][0])
            session.run(work.begin)
        else:
            reached = dead(process, nth)
    work.value(session)
    # A session that had not sent its watch stays for half a minute; the one before the next task's Hello does, too.
    watched = kind not in ("Open", "Watch", "Register") and (kind, nth) != ("Hello", 3)
    until = time.monotonic() + BOUND
    while watched and reached and any(now > then for now, then in zip(open_sessions(c), before)):
        assert time.monotonic() < until, (before, open_sessions(c))
        time.sleep(0.02)
    return reached


def test_a_program_that_dies_where_it_calls_leaves_nothing_and_others_go_on():
    missed, n = [], 0
    with cluster() as c:
        work = Work(TASKS["ps"], TASKS["target"])
        with work.open(c.address["worker"][0]) as session:
            session.run(work.begin)
            for kind in kinds():
                for edge in CALLS if kind not in OF_TASKS else ():
                    for nth in (1, 2, 3) if ALL else (1,):
                        n += 1
                        try:
                            reached = kill_client(c, session, work, kind, edge, nth)
                        except Exception as e:
                            raise AssertionError(f"{kind}, {edge}, call {nth}: {e}") from e
                        if not reached and nth == 1:
                            missed.append((kind, edge))
            # A task that ends answers a watch and may cut the answer short; on a busy machine it does so every other time.
            missed = [point for point in missed if not any(kill_client(c, session, work, *point, 1) for _ in range(12))]
    assert not missed, f"the client makes no such calls: {missed}"
    print(f"  {n} points")


if __name__ == "__main__":
    if sys.argv[4:5] == ["client"]:
        client(sys.argv[5])
    else:
        run_tests(globals(), sys.argv[4:])
