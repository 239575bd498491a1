"""Tests clusters of real processes, some of which die: process_test.py THALWEG TRANSPORT TWICE"""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

import thalweg as tw
from addresses import new_address, scheme_of
from running import run_tests

THALWEG, TRANSPORT, TWICE = sys.argv[1:4]
LAUNCH = [THALWEG, "launch", "--scheme", scheme_of(TRANSPORT), "--plugin", TRANSPORT]
PS, W0, W1 = "/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"
tw.load_plugin(TRANSPORT)


class Cluster:
    """One parameter server and two workers, each a process."""
    count = 0

    def __init__(self, folder, options):
        Cluster.count += 1
        self.folder, self.options = folder, [word for o in options for word in ("--server-option", o.format(folder=folder))]
        self.name = f"p{os.getpid()}-{Cluster.count}"
        self.address = {"ps": [new_address(TRANSPORT)], "worker": [new_address(TRANSPORT), new_address(TRANSPORT)]}
        (pathlib.Path(folder) / "in").mkdir()
        self.file = pathlib.Path(folder) / f"{self.name}.json"
        self.file.write_text(json.dumps(self.address))
        self.processes = {}
        for job, task in [("worker", 1), ("ps", 0), ("worker", 0)]:
            self.start(job, task)

    def start(self, job, task):
        process = subprocess.Popen([THALWEG, "worker", "--plugin", TRANSPORT, "--cluster", str(self.file), "--job", job, "--task", str(task),
                                    "--threads", "2", *self.options], stdout=subprocess.PIPE, text=True)
        self.processes[job, task] = process
        line = process.stdout.readline()
        assert line == f"listening at {self.address[job][task]}\n", line

    def kill(self, job, task, how=signal.SIGKILL):
        self.processes[job, task].send_signal(how)
        if how == signal.SIGSTOP:
            os.waitid(os.P_PID, self.processes[job, task].pid, os.WSTOPPED)  # all its threads have stopped

    def session(self, graph, **options):
        return tw.Session(graph, target=self.address["worker"][0], **options)

    def close(self):
        for process in self.processes.values():
            process.kill()
            process.wait()
            process.stdout.close()


@contextlib.contextmanager
def cluster(*options):
    with tempfile.TemporaryDirectory() as folder:
        all = Cluster(folder, options)
        try:
            yield all
        finally:
            all.close()


def failure(f, kind):
    """Returns the text of the error that f raises, and the seconds that it took."""
    began = time.monotonic()
    try:
        f()
    except kind as e:
        return str(e), time.monotonic() - began
    raise AssertionError(f"{kind} was to be raised")


def later(seconds, f):
    timer = threading.Timer(seconds, f)
    timer.start()
    return timer


def model(ps, worker):
    """Builds a training step, its loss and the initializer. The weights are on ps, the rest is on worker."""
    graph = tw.Graph()
    with graph:
        x, y = tw.placeholder(np.float32, [None, 4], name="x"), tw.placeholder(np.float32, [None, 1], name="y")
        with tw.device(ps):
            w = tw.Variable(np.linspace(-1, 1, 4, dtype=np.float32).reshape(4, 1), name="w")
        with tw.device(worker):
            loss = tw.ops.mean(tw.ops.squared_difference(tw.ops.tanh(tw.ops.mat_mul(x, w)), y), [0, 1])
        step = tw.train.SGD(0.5).minimize(loss)
        start = tw.initializer()
    return graph, x, y, w, loss, step, start


def train(session, parts, steps=15):
    _, x, y, w, loss, step, start = parts
    session.run(start)
    random = np.random.default_rng(3)
    losses = []
    for _ in range(steps):
        batch = random.standard_normal((8, 4)).astype(np.float32)
        losses.append(session.run([loss, step], {x: batch, y: batch[:, :1] > 0})[0])
    return np.array(losses), session.run(w)


def test_training_over_processes_is_the_same_as_in_one():
    here = model("", "")
    expected = train(tw.Session(here[0]), here)
    with cluster() as c:
        parts = model(PS, W1)
        with c.session(parts[0]) as session:
            losses, weights = train(session, parts)
    assert np.array_equal(losses, expected[0]) and np.array_equal(weights, expected[1])
    assert losses[-1] < losses[0]


def waiting_graph(on):
    """Builds a dequeue on that task, which waits until a value is enqueued, and a node on another task that uses the value."""
    graph = tw.Graph()
    with graph:
        with tw.device(on):
            queue = tw.ops.fifo_queue_v2(component_types=[np.float32])
            element = tw.ops.queue_dequeue_v2(queue, component_types=[np.float32])[0]
        with tw.device(W0 if on != W0 else W1):
            out = tw.ops.neg(element)
        with tw.device(on):
            plain = tw.ops.neg(tw.constant(np.float32(1)))
    return graph, out, plain


def test_a_process_that_is_killed_is_named_within_two_seconds():
    with cluster() as c:
        for job, task, on in [("ps", 0, PS), ("worker", 1, W1)]:
            graph, out, plain = waiting_graph(on)
            with c.session(graph) as session:
                for attempt in range(3):  # a busy machine may delay any of the processes
                    assert session.run(plain) == -1
                    timer = later(0.3, lambda: c.kill(job, task))
                    text, seconds = failure(lambda: session.run(out), tw.UnavailableError)
                    timer.join()
                    assert f"task {on} at {c.address[job][task]}" in text and seconds < 15, (text, seconds)
                    if attempt == 0:
                        nobody_is_there(c, graph, plain, f"task {on} at {c.address[job][task]} cannot be reached")
                    c.start(job, task)
                    assert session.run(plain) == -1
                    if seconds < 2.3:
                        break
                assert seconds < 2.3, seconds


def nobody_is_there(c, graph, plain, told):
    """A run fails when its deadline passes, and not later. On a busy machine the session's own target sometimes takes longer."""
    for patience in (300, 2000, 10000):
        text, seconds = failure(lambda ms=patience: c.session(graph, target_timeout_ms=ms).run(plain),
                                (tw.UnavailableError, tw.DeadlineExceededError))
        if told in text:
            break
    assert told in text and seconds < 3 + patience / 500, (text, seconds)


def test_a_parameter_server_that_is_killed_and_started_again_takes_part_again():
    parts = model(PS, W1)
    with cluster() as c:
        with c.session(parts[0]) as session:
            expected = train(session, parts)
            for _ in range(3):
                c.kill("ps", 0)
                c.processes["ps", 0].wait()
                c.start("ps", 0)
                # The task's variables are lost, and a step that uses them fails with that error; the other tasks are unchanged.
                text, seconds = failure(lambda: session.run(parts[3]), (tw.UnavailableError, tw.AbortedError, tw.FailedPreconditionError))
                assert PS in text and seconds < 3, (text, seconds)
                again = train(session, parts)
                assert np.array_equal(again[0], expected[0]) and np.array_equal(again[1], expected[1])


def test_training_goes_on_after_kills_at_any_moment():
    kills = int(os.environ.get("THALWEG_KILLS", "6"))
    parts, random = model(PS, W1), np.random.default_rng(1)
    good = (tw.UnavailableError, tw.AbortedError, tw.FailedPreconditionError)
    with cluster() as c, c.session(parts[0]) as session:
        expected = train(session, parts)
        for i in range(kills):
            job, task = [("ps", 0), ("worker", 1)][i % 2]

            def end(key=(job, task)):
                c.kill(*key)
                c.processes[key].wait()
                c.start(*key)
            timer, failed = later(random.uniform(0, 0.05), end), False
            while timer.is_alive() or not failed:
                began = time.monotonic()
                try:
                    train(session, parts, 3)
                    if not timer.is_alive():
                        break  # it died between two runs
                except good as e:
                    failed = True
                    assert "task /job:" in str(e), e
                assert time.monotonic() - began < 10
            timer.join()
            again = train(session, parts)
            assert np.array_equal(again[0], expected[0]) and np.array_equal(again[1], expected[1])


def test_a_process_that_stands_still_for_a_second_is_not_taken_for_dead():
    parts = model(PS, W1)
    with cluster() as c:
        with c.session(parts[0]) as session:
            expected = train(session, parts)
            timers = [later(0.05, lambda: c.kill("ps", 0, signal.SIGSTOP)), later(1.1, lambda: c.kill("ps", 0, signal.SIGCONT))]
            again = train(session, parts, 15)
            for t in timers:
                t.join()
            again = train(session, parts)
            assert np.array_equal(again[0], expected[0])


def test_a_process_that_stands_still_for_ever_is_given_up():
    graph, out, plain = waiting_graph(PS)
    with cluster() as c, c.session(graph) as session:
        assert session.run(plain) == -1
        timer = later(0.3, lambda: c.kill("ps", 0, signal.SIGSTOP))
        text, seconds = failure(lambda: session.run(out), tw.UnavailableError)
        timer.join()
        assert f"task {PS} at {c.address['ps'][0]}" in text and seconds < 15, (text, seconds)
        c.kill("ps", 0, signal.SIGCONT)
        for _ in range(300):
            try:
                assert session.run(plain) == -1
                break
            except (tw.UnavailableError, tw.AbortedError):
                time.sleep(0.1)
        else:
            raise AssertionError("it does not take part again")


def test_a_process_that_is_told_to_end_does_so_and_tells_its_clients():
    with cluster() as c:
        graph, out, plain = waiting_graph(PS)
        with c.session(graph) as session:
            assert session.run(plain) == -1
            timer = later(0.3, lambda: c.kill("ps", 0, signal.SIGTERM))
            text, seconds = failure(lambda: session.run(out), tw.UnavailableError)
            timer.join()
            assert PS in text and seconds < 5, (text, seconds)
            assert c.processes["ps", 0].wait(20) == 0, c.processes["ps", 0].returncode
        for key in [("worker", 0), ("worker", 1)]:
            c.kill(*key, signal.SIGINT)
            assert c.processes[key].wait(20) == 0


def memory_of(c, *tasks):
    """Returns bytes by job and task number."""
    for _ in range(30):  # on a busy machine some tasks may not answer in time
        found = {(t["job"], t["task"]): t.get("memory_bytes") for t in tw.cluster_status(c.address["worker"][0], timeout=1)}
        if all(found[t] for t in tasks):
            return [found[t] for t in tasks]
    raise AssertionError(found)


def own_memory():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_memory_does_not_grow_with_steps():
    if "LD_PRELOAD" in os.environ:
        return print("  left out: a sanitizer keeps memory of its own")
    steps, tasks = int(os.environ.get("THALWEG_SOAK", "2000")), [("ps", 0), ("worker", 0), ("worker", 1)]
    graph = tw.Graph()
    with graph:
        x = tw.placeholder(np.float32, [None], name="x")
        with tw.device(PS):
            constant, v = tw.constant(np.arange(100, dtype=np.float32)), tw.ops.neg(x)
        with tw.device(W1):
            moved, fails = tw.ops.exp(v), tw.ops.check_numerics(tw.ops.log(v), message="as it should")
        with tw.device(W0):
            back = tw.ops.add_v2(moved, v)
    with cluster() as c, c.session(graph) as session:
        value = np.ones(500, np.float32)

        def turns(n):
            for i in range(n):
                session.run(constant)
                session.run(back, {x: value})
                if i % 20 == 0:
                    failure(lambda: session.run(fails, {x: value}), tw.InvalidArgumentError)

        turns(500)
        for _ in range(4):  # a new thread allocates memory once; memory that each step leaks grows every time
            before = [*memory_of(c, *tasks), own_memory()]
            turns(steps)
            grown = [b - a for a, b in zip(before, [*memory_of(c, *tasks), own_memory()])]
            print("  grown by KiB:", [n >> 10 for n in grown])
            if max(grown) < (2 << 20) + 50 * steps:
                break
        else:
            raise AssertionError(grown)


def test_memory_that_large_requests_took_is_returned_while_their_session_is_open():
    if "LD_PRELOAD" in os.environ:
        return print("  left out: a sanitizer keeps memory of its own")
    graph = tw.Graph()
    with graph:
        x = tw.placeholder(np.float32, [None], name="x")
        with tw.device(PS):
            total = tw.ops.sum(x, [0])
    with cluster() as c, c.session(graph) as session:
        value, held = np.ones(6 << 20, np.float32), []  # 24 MiB: pools and glibc's heap keep so much for later
        for _ in range(4):
            assert session.run(total, {x: value}) == value.size
            held += memory_of(c, ("ps", 0))
        until = time.monotonic() + 60
        while memory_of(c, ("ps", 0))[0] > max(held) - (12 << 20):
            assert time.monotonic() < until, f"the server holds {memory_of(c, ('ps', 0))[0] >> 20} MiB, and held {[n >> 20 for n in held]}"
            time.sleep(0.5)  # the server is idle meanwhile
        assert session.run(total, {x: value}) == value.size


def test_a_task_that_stands_still_makes_others_keep_no_more_than_the_limit():
    graph, limit, size = tw.Graph(), 8 << 20, 1 << 18
    with graph:
        x = tw.placeholder(np.float32, [], name="x")
        with tw.device(PS):
            large = tw.ops.fill(tw.constant(np.array([size], np.int32)), x)
        with tw.device(W1):
            total = tw.ops.sum(large, [0])
    with cluster() as c, c.session(graph, memory_limit=limit, max_async_runs=40) as session:
        assert session.run(total, {x: 1}) == size
        before, = memory_of(c, ("ps", 0))
        c.kill("worker", 1, signal.SIGSTOP)
        steps = [session.run_async(total, {x: i}, timeout=3) for i in range(40)]
        time.sleep(1)
        held, = memory_of(c, ("ps", 0))
        ends = [type(step.exception(10)) for step in steps]
        c.kill("worker", 1, signal.SIGCONT)
        assert set(ends) <= {tw.DeadlineExceededError, tw.ResourceExhaustedError} and tw.ResourceExhaustedError in ends, ends
        assert "LD_PRELOAD" in os.environ or held - before < 2 * limit, (before, held)  # 40 MiB were requested; a sanitizer uses more
        for i in range(3):
            assert session.run(total, {x: i}) == i * size


def test_values_from_other_tasks_count_where_they_come():
    graph, limit, size = tw.Graph(), 8 << 20, 5 << 18  # 5 MiB each: one fits, two do not
    # The account of a step may still hold a value of the step before, which the transport has sent and not released yet. The two steps
    # that succeed therefore send a value that fits beside one of 5 MiB.
    small = 1 << 19
    with graph:
        x, sums = tw.placeholder(np.float32, [], name="x"), []
        for task in (PS, W0):
            with tw.device(task):
                sums.append(tw.ops.fill(tw.constant(np.array([size], np.int32)), x))
        with tw.device(PS):
            one = tw.ops.fill(tw.constant(np.array([small], np.int32)), x)
        with tw.device(W1):
            total = tw.ops.sum(tw.ops.concat_v2(sums, tw.constant(np.int32(0))), [0])
            one = tw.ops.sum(one, [0])
    with cluster() as c, c.session(graph, memory_limit=limit) as session:
        assert session.run(one, {x: 1}) == small
        text, _ = failure(lambda: session.run(total, {x: 1}, timeout=20), tw.ResourceExhaustedError)
        assert "value '" in text and "the session holds" in text, text
        assert session.run(one, {x: 1}) == small


def test_checkpoints_are_written_where_the_servers_allow_it_and_nowhere_else():
    graph = tw.Graph()
    with graph:
        with tw.device(PS):
            v = tw.Variable(np.arange(6, dtype=np.float32), name="v")
        start, saver, add = tw.initializer(), tw.Saver([v]), v.assign_add(np.ones(6, np.float32))
    with cluster("allow_files={folder}") as c, c.session(graph) as session:
        session.run(start)
        saver.save(session, c.folder + "/model")
        session.run(add)
        assert np.array_equal(session.run(v), np.arange(1, 7))
        saver.restore(session, c.folder + "/model")
        assert np.array_equal(session.run(v), np.arange(6))
        text, _ = failure(lambda: saver.save(session, c.folder + "/../model"), tw.PermissionDeniedError)
        assert W0 in text, text
    with cluster() as c, c.session(graph) as session:
        session.run(start)
        failure(lambda: saver.save(session, c.folder + "/model"), tw.PermissionDeniedError)


def test_files_of_clients_stay_beneath_the_folder_that_the_server_allows():
    graph = tw.Graph()
    with graph, tw.device(PS):
        name, text = tw.placeholder(tw.string, [], name="name"), tw.placeholder(tw.string, [], name="text")
        write, read, found = tw.ops.write_file(name, text), tw.ops.read_file(name), tw.ops.matching_files(name)
    with tempfile.TemporaryDirectory() as outside, cluster("allow_files={folder}/in") as c, c.session(graph) as session:
        inside = pathlib.Path(c.folder) / "in"
        (pathlib.Path(outside) / "secret").write_text("secret")
        (inside / "leaf").symlink_to(pathlib.Path(outside) / "secret")
        (inside / "way").symlink_to(outside)
        os.link(pathlib.Path(outside) / "secret", inside / "hard")
        os.mkfifo(inside / "fifo")
        session.run(write, {name: b"a", text: b"mine"})
        assert session.run(read, {name: b"a"}) == b"mine" and session.run(read, {name: str(inside / "a").encode()}) == b"mine"
        assert (inside / "a").read_text() == "mine"
        escapes = [f"{outside}/secret", "../secret", f"{inside}/../../secret", "way/secret", "leaf", f"{inside}/way/secret", "/etc/hostname",
                   "a/../../secret", "/proc/self/environ"]
        for path in [*escapes, "hard"]:
            failure(lambda path=path: session.run(read, {name: path.encode()}), tw.PermissionDeniedError)
        failure(lambda: session.run(read, {name: b"fifo"}), tw.InvalidArgumentError)
        for path in [f"{outside}/new", "../new", "way/new", f"{inside}/../new", f"{inside}/way/new", "/tmp/thalweg-new"]:
            failure(lambda path=path: session.run(write, {name: path.encode(), text: b"x"}), tw.PermissionDeniedError)
            failure(lambda path=path: session.run(found, {name: (path + "*").encode()}), tw.PermissionDeniedError)
        # A write to a link replaces the link by a file.
        session.run(write, {name: b"leaf", text: b"x"})
        assert (pathlib.Path(outside) / "secret").read_text() == "secret" and os.listdir(outside) == ["secret"]
    with cluster() as c, c.session(graph) as session:
        failure(lambda: session.run(read, {name: b"a"}), tw.PermissionDeniedError)


def thalweg(*words):
    done = subprocess.run([THALWEG, *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


@contextlib.contextmanager
def cluster_with_certificates(*clients):
    """Starts one parameter server and two workers; the folders of tasks and clients are in `keys`."""
    with tempfile.TemporaryDirectory() as folder:
        address = {"ps": [new_address(TRANSPORT)], "worker": [new_address(TRANSPORT), new_address(TRANSPORT)]}
        file = pathlib.Path(folder) / "cluster.json"
        file.write_text(json.dumps(address))
        keys = pathlib.Path(folder) / "keys"
        for client in clients:  # the second time members are added
            thalweg("cluster", "init", "--cluster", str(file), "--out", str(keys), "--client", client)
        processes = [subprocess.Popen([THALWEG, "worker", "--plugin", TRANSPORT, "--cluster", str(file), "--job", job, "--task", str(task),
                                       "--credentials", str(keys / f"{job}-{task}")], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                     for job, task in (("ps", 0), ("worker", 0), ("worker", 1))]
        try:
            for process in processes:
                assert process.stdout.readline().startswith(b"listening at ")
            yield address["worker"][0], keys
        finally:
            for process in processes:
                process.kill()
                process.wait()
                process.stdout.close()


def square_and_negative():
    graph = tw.Graph()
    with graph:
        x = tw.placeholder(tw.float32, [None], name="x")
        with tw.device(PS):
            y = tw.ops.mul(x, x)
        with tw.device(W1):
            z = tw.ops.neg(y)
    return graph, x, z


def test_a_cluster_with_certificates_serves_its_clients_and_nobody_else():
    if scheme_of(TRANSPORT) != "grpc":
        return
    graph, x, z = square_and_negative()
    with cluster_with_certificates("ann", "bob") as (target, keys):
        assert sorted(os.listdir(keys)) == ["authority", "client-ann", "client-bob", "ps-0", "worker-0", "worker-1"]
        assert all(p.stat().st_mode & 0o077 == 0 for p in keys.rglob("*"))
        for client in ("ann", "bob"):
            with tw.Session(graph, target=target, credentials=str(keys / f"client-{client}")) as session:
                value = np.arange(300_000, dtype=np.float32)
                assert np.array_equal(session.run(z, {x: value}), -value * value)
        refused, seconds = failure(lambda: tw.Session(graph, target=target, target_timeout_ms=500), tw.Error)
        assert target in refused and seconds < 5, refused


def test_whose_certificate_the_command_revokes_is_ended_and_others_go_on():
    if scheme_of(TRANSPORT) != "grpc":
        return
    graph, x, z = square_and_negative()
    value = np.arange(3, dtype=np.float32)
    with cluster_with_certificates("ann", "bob", "carl") as (target, keys):
        session_of = lambda client: tw.Session(graph, target=target, target_timeout_ms=3000, credentials=str(keys / f"client-{client}"))
        with session_of("ann") as ann, session_of("bob") as bob:
            assert np.array_equal(bob.run(z, {x: value}), -value * value)
            text = thalweg("cluster", "revoke", "client/bob", "--out", str(keys))
            assert "revoked " in text and "read it within a second" in text, text

            def until_bob_is_ended():
                began = time.monotonic()
                while time.monotonic() - began < 20:
                    assert np.array_equal(ann.run(z, {x: value}), -value * value)
                    bob.run(z, {x: value})
            failure(until_bob_is_ended, (tw.UnavailableError, tw.PermissionDeniedError, tw.AbortedError))
            # Bob is rejected, with his open session and with a new one; Ann's open session goes on.
            for again in (lambda: bob.run(z, {x: value}), lambda: session_of("bob")):
                text, _ = failure(again, tw.PermissionDeniedError)
                assert "the certificate of client/bob is revoked" in text, text
            assert np.array_equal(ann.run(z, {x: value}), -value * value)
        with session_of("carl") as carl:
            assert np.array_equal(carl.run(z, {x: value}), -value * value)
        assert "was revoked before" in thalweg("cluster", "revoke", "client/bob", "--out", str(keys))
        # The certificate is revoked by its serial number, as openssl prints it.
        serial = (keys / "authority" / "revoked").read_text().split()[0]
        assert "was revoked before" in thalweg("cluster", "revoke", "--serial", serial.upper(), "--out", str(keys))


def test_an_op_that_a_task_has_not_is_named_with_both_versions():
    tw.load_plugin(TWICE)
    graph = tw.Graph()
    with graph, tw.device(W1):
        y = tw.ops.twice(tw.constant(np.float32(1)))
        other = tw.ops.neg(tw.constant(np.float32(1)))
    with cluster() as c, c.session(graph) as session:
        text, _ = failure(lambda: session.run(y), tw.NotFoundError)
        assert W1 in text and "Twice" in text and f"the task runs version {tw.version()}" in text, text
        assert session.run(other) == -1


def launch(*words, program="", **how):
    return subprocess.Popen([*LAUNCH, *words, "--", sys.executable, "-c", program], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)


CLIENT = f"""
import os, json, sys, time, numpy as np, thalweg as tw
tw.load_plugin({TRANSPORT!r})
index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
graph = tw.Graph()
with graph:
    with tw.device("/job:ps/task:0"):
        v = tw.Variable(np.float32(0), name="shared")
    start = tw.initializer()
    add = v.assign_add(np.float32(1))
session = tw.Session(graph, target=os.environ["THALWEG_TARGET"])
"""


def test_launch_runs_a_program_for_each_worker_and_ends_the_servers():
    with launch("-n", "2", "--ps", "1", program=CLIENT + """
if index == 0:
    session.run(start)
while True:
    try:
        session.run(add)
        break
    except tw.FailedPreconditionError:
        time.sleep(0.02)
while session.run(v) < 2:
    time.sleep(0.02)
print("done", index, session.run(v))
""") as p:
        out, error = p.communicate(timeout=60)
    assert p.returncode == 0, (out, error)
    for i in range(2):
        assert f"[client/{i}] done {i} 2.0\n" in out and f"[worker/{i}] listening at {scheme_of(TRANSPORT)}:" in out, out
    assert f"[ps/0] listening at {scheme_of(TRANSPORT)}:" in out


def test_launch_ends_all_when_one_ends_badly():
    began = time.monotonic()
    with launch("-n", "2", program=CLIENT.split("graph =")[0] + """
if index == 1:
    sys.exit(7)
time.sleep(60)
""") as p:
        out, error = p.communicate(timeout=60)
    assert p.returncode == 7 and "client/1 ended with status 7; ending all" in error, (out, error)
    assert time.monotonic() - began < 20


def test_workers_of_the_example_learn_digits_together():
    data = pathlib.Path(os.environ["THALWEG_DATA_PATH"]) / "digits.csv"
    example = pathlib.Path(os.environ["THALWEG_SOURCE_DIR"]) / "distributed/examples/digits_async.py"
    with subprocess.Popen([*LAUNCH, "-n", "2", "--ps", "2", "--", sys.executable, "-B", str(example),
                           "--data", str(data), "--plugin", TRANSPORT, "--steps", "300"], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as p:
        out, error = p.communicate(timeout=60)
    assert p.returncode == 0, (out, error)
    found = [float(line.split("accuracy ")[1].split()[0]) for line in out.splitlines() if "accuracy" in line]
    assert len(found) == 2 and min(found) > 0.8, out


def test_launch_passes_signals():
    with launch("-n", "1", program="""
import os, signal, time, sys
signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b"told to end\\n"), sys.exit(0)))  # print may be under way
print("ready", flush=True)
time.sleep(60)
""") as p:
        for line in p.stdout:
            if "ready" in line:
                break
        p.send_signal(signal.SIGTERM)
        out, error = p.communicate(timeout=30)
    assert "[client/0] told to end\n" in out and p.returncode == 1, (out, error)


if __name__ == "__main__":
    run_tests(globals(), sys.argv[4:])
