"""Tests a cluster whose tasks are in network namespaces of their own, over gRPC with certificates, and training by all-reduce there.
usage: network_test.py THALWEG TRANSPORT [TEST...]

The client is on a bridge, each task at the end of a veth pair. No packet leaves the machine, and nothing is left when the test ends. The
test detaches cables from the bridge, gives neighbours wrong addresses so that packets are lost one way, and limits the bandwidth or the
packet size of cables. It needs iproute2 and the right to make namespaces (root, or user namespaces); without them it is skipped.
THALWEG_BLACKHOLES=N: every link, N times."""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

INSIDE = "THALWEG_NETWORK_TEST"
NOWHERE = "02:00:00:00:00:99"


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def enter():
    """Restarts this program in a network namespace of its own."""
    for tool in ("ip", "unshare", "nsenter"):
        if not shutil.which(tool):
            skip(f"there is no program `{tool}`")
    new = ["unshare", "-Urn", "--kill-child"]
    tried = subprocess.run([*new, "sh", "-c", "ip link add va type veth peer name vb && unshare -n true"], capture_output=True, text=True)
    if tried.returncode:
        skip(f"network namespaces are not permitted here: {tried.stderr.strip()}")
    os.execvpe("unshare", [*new, sys.executable, "-B", *sys.argv], {**os.environ, INSIDE: "1"})


if os.environ.get(INSIDE) != "1":
    enter()

import numpy as np

import thalweg as tw
from etcd_store import INSTALLED, Etcd
from running import run_tests

THALWEG, TRANSPORT = sys.argv[1:3]
CYCLES = int(os.environ.get("THALWEG_BLACKHOLES", "0"))
PS, W0, W1 = "/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"
TASKS = [("ps", 0), ("worker", 0), ("worker", 1)]
CLIENT = "10.77.0.1"
with contextlib.suppress(tw.AlreadyExistsError):
    tw.load_plugin(TRANSPORT)


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, f"`{' '.join(words)}`: {done.stderr.strip()}"


class Place:
    """A namespace, its cable, and the task in it."""

    def __init__(self, number):
        self.cable, self.ip, self.process = f"v{number}", f"10.77.0.{10 + number}", None
        # cat ends when its input closes, so it ends with this test, even if the test is killed.
        self.holder = subprocess.Popen(["unshare", "-n", "cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)

    def connect(self):
        own = os.readlink("/proc/self/ns/net")
        for _ in range(500):
            if os.readlink(f"/proc/{self.holder.pid}/ns/net") != own:
                break
            time.sleep(0.01)
        else:
            raise AssertionError("no namespace after 5 s")
        run("ip", "link", "add", self.cable, "type", "veth", "peer", "name", "eth0", "netns", str(self.holder.pid))
        self.do("ip", "addr", "add", f"{self.ip}/24", "dev", "eth0")
        self.do("ip", "link", "set", "lo", "up")
        self.do("ip", "link", "set", "eth0", "up")
        self.plug(True)
        run("ip", "link", "set", self.cable, "up")

    def within(self, *words):
        return ["nsenter", "-t", str(self.holder.pid), "-n", *words]

    def do(self, *words):
        run(*self.within(*words))

    def plug(self, on):
        run("ip", "link", "set", self.cable, *(("master", "br0") if on else ("nomaster",)))

    def lose_to(self, ip, on):
        """Makes this place lose all packets that it sends to `ip`."""
        self.do("ip", "neigh", *(("replace", ip, "lladdr", NOWHERE, "nud", "permanent") if on else ("del", ip)), "dev", "eth0")

    def close(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
        # The kernel removes a namespace some time after its last process. Deletes the cable now, because the next cluster needs its name.
        subprocess.run(["ip", "link", "del", self.cable], capture_output=True)
        self.holder.stdin.close()
        self.holder.wait()


class Cluster:
    def __init__(self, with_store):
        self.with_store, self.store = with_store, None
        self.places = {task: Place(i) for i, task in enumerate(TASKS)}
        self.address = {task: f"grpc:{place.ip}:7000" for task, place in self.places.items()}

    def start(self, folder):
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "br0", "type", "bridge")
        run("ip", "addr", "add", f"{CLIENT}/24", "dev", "br0")
        run("ip", "link", "set", "br0", "up")
        for place in self.places.values():
            place.connect()
        file = pathlib.Path(folder) / "cluster.json"
        tasks = {job: [a for (j, _), a in self.address.items() if j == job] for job in ("ps", "worker")}
        if self.with_store:
            self.store = Etcd(pathlib.Path(folder) / "etcd", f"{CLIENT}:2379", f"{CLIENT}:2380")
        file.write_text(json.dumps({"cluster": tasks, "membership": f"etcd:{CLIENT}:2379/team"} if self.store else tasks))
        self.keys = pathlib.Path(folder) / "keys"
        run(THALWEG, "cluster", "init", "--cluster", str(file), "--out", str(self.keys), "--client", "ann")
        for (job, task), place in self.places.items():
            place.process = subprocess.Popen(
                place.within(THALWEG, "worker", "--plugin", TRANSPORT, "--cluster", str(file), "--job", job, "--task", str(task),
                             "--threads", "1", "--credentials", str(self.keys / f"{job}-{task}")), stdout=subprocess.PIPE, text=True)
        for task, place in self.places.items():
            line = place.process.stdout.readline()
            assert line == f"listening at {self.address[task]}\n", line

    def session(self, graph):
        return tw.Session(graph, target=self.address["worker", 0], credentials=str(self.keys / "client-ann"), target_timeout_ms=30000)

    def close(self):
        if self.store:
            self.store.stop()
        for place in self.places.values():
            place.close()
        subprocess.run(["ip", "link", "del", "br0"], capture_output=True)


@contextlib.contextmanager
def cluster(with_store=False):
    with tempfile.TemporaryDirectory() as folder:
        all = Cluster(with_store)
        try:
            all.start(folder)
            yield all
        finally:
            all.close()


class Work:
    """y goes from ps to both workers and back; a waiting step waits at a queue of ps."""

    def __init__(self):
        self.graph = tw.Graph()
        with self.graph:
            self.x = tw.placeholder(np.float32, [None], name="x")
            with tw.device(PS):
                a = tw.ops.sin(self.x)
                queue = tw.ops.fifo_queue_v2(component_types=[np.float32])
                element = tw.ops.queue_dequeue_v2(queue, component_types=[np.float32])[0]
                self.put = tw.ops.queue_enqueue_v2(queue, [tw.constant(np.float32(3))])
            with tw.device(W0):
                b, self.waits = tw.ops.tanh(a), tw.ops.neg(element)
            with tw.device(W1):
                c = tw.ops.exp(a)
            with tw.device(PS):
                self.y = tw.ops.mul(b, c)

    def step(self, session, i, n=30_000):
        return session.run(self.y, {self.x: np.sin(np.arange(n, dtype=np.float32) + i)})


def same_values(c, work, session, steps, expected):
    for i in range(steps):
        assert np.array_equal(work.step(session, i), expected[i]), i


def test_narrow_cables_and_small_packets_change_no_value():
    work = Work()
    with cluster() as c, c.session(work.graph) as session:
        expected = [work.step(session, i) for i in range(6)]
        for place in c.places.values():
            run("tc", "qdisc", "add", "dev", place.cable, "root", "tbf", "rate", "20mbit", "burst", "32k", "latency", "400ms")
        same_values(c, work, session, 6, expected)
        for place in c.places.values():
            run("tc", "qdisc", "del", "dev", place.cable, "root")
        # Tests this in the middle of a session and at the start of one.
        for mtu in ("1280", "576"):
            for place in c.places.values():
                place.do("ip", "link", "set", "eth0", "mtu", mtu)
                run("ip", "link", "set", place.cable, "mtu", mtu)
            same_values(c, work, session, 6, expected)
            with c.session(work.graph) as other:
                same_values(c, work, other, 2, expected)


def patiently(f):
    """Calls f until no task is lost any more. Returns its result."""
    for attempt in range(40):
        try:
            return f()
        except (tw.UnavailableError, tw.AbortedError, tw.DeadlineExceededError):
            if attempt == 39:
                raise
            time.sleep(0.5)


def lost(c, work, session, who, harm):
    """Calls harm(True) while a step waits and harm(False) afterwards: the step ends in time with an error that names the task, and the next
    steps succeed."""
    patiently(lambda: work.step(session, 0, 10))
    waiting = session.run_async(work.waits)
    time.sleep(0.3)
    began = time.monotonic()
    harm(True)
    try:
        waiting.result()
        raise AssertionError("nothing was to be had")
    except (tw.UnavailableError, tw.AbortedError) as e:
        seconds = time.monotonic() - began
        assert any(f"task /job:{job}/task:{task} at {c.address[job, task]}" in str(e) for job, task in who), e
        assert seconds < 15, (seconds, e)
    harm(False)
    patiently(lambda: work.step(session, 0, 10))
    session.run(work.put)
    assert session.run(work.waits) == -3


def links(c, of_workers=CYCLES > 0):
    """Yields the links to harm, and the tasks that the error may name."""
    ps, w0 = c.places["ps", 0], c.places["worker", 0]

    def lose_forth(on):
        run("ip", "neigh", *(("replace", ps.ip, "lladdr", NOWHERE, "nud", "permanent") if on else ("del", ps.ip)), "dev", "br0")
    yield "ps is cut off", [("ps", 0)], lambda on: ps.plug(not on)
    yield "what ps says does not reach the client", [("ps", 0)], lambda on: ps.lose_to(CLIENT, on)
    yield "what the client says does not reach ps", [("ps", 0)], lose_forth
    if of_workers:
        yield "what ps says does not reach a worker", [("ps", 0), ("worker", 0)], lambda on: ps.lose_to(w0.ip, on)
        yield "what a worker says does not reach ps", [("ps", 0), ("worker", 0)], lambda on: w0.lose_to(ps.ip, on)
        yield "a worker is cut off", [("worker", 0)], lambda on: w0.plug(not on)


def test_who_is_cut_off_is_named_within_fifteen_seconds_and_takes_part_again():
    work = Work()
    with cluster() as c, c.session(work.graph) as session:
        for _ in range(CYCLES or 1):
            for what, who, harm in links(c):
                try:
                    lost(c, work, session, who, harm)
                except Exception as e:
                    raise AssertionError(f"{what}: {e}") from e


def test_the_same_where_leases_in_etcd_stand_for_signs_of_life():
    if not INSTALLED:
        return print("  left out: there is no etcd")
    work = Work()
    with cluster(with_store=True) as c, c.session(work.graph) as session:
        for what, who, harm in links(c, of_workers=True):
            try:
                lost(c, work, session, who, harm)
            except Exception as e:
                raise AssertionError(f"{what}: {e}") from e


# ---- Collectives over the engine `ring` ----

WORKER = pathlib.Path(__file__).resolve().parent.parent / "python" / "all_reduce_worker.py"
DATA = pathlib.Path(os.environ["THALWEG_DATA_PATH"]) / "digits.csv"
LOST_AFTER = 2  # seconds


class Hosts:
    """Two namespaces on one bridge, with a worker in each that trains by all-reduce."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.places = [Place(i) for i in range(2)]

    def __enter__(self):
        run("ip", "link", "add", "br0", "type", "bridge")
        run("ip", "link", "set", "br0", "up")
        for place in self.places:
            place.connect()
        return self

    def start(self, rank, words, **environment):
        env = {**os.environ, "OMP_NUM_THREADS": "1", "THALWEG_OPTIONS": ";".join(
            [*filter(None, [os.environ.get("THALWEG_OPTIONS")]), f"plugin.org.thalweg.ring.lost_after_ms={LOST_AFTER * 1000}",
             f"plugin.org.thalweg.ring.host={rank}"]), **environment}  # network namespaces of one machine share its memory
        place = self.places[rank]
        place.process = subprocess.Popen(place.within(*map(str, words)), env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return place.process

    def worker(self, rank, steps):
        return [sys.executable, "-B", WORKER, DATA, self.folder / f"{rank}.npz", steps]

    def training(self):
        """Starts both workers by hand. Returns them when both are at work."""
        common = {"THALWEG_COLLECTIVE_ENGINE": "ring", "THALWEG_COLLECTIVE_STORE": str(self.folder / "store"), "THALWEG_COLLECTIVE_MEMBERS": "2"}
        workers = [self.start(rank, self.worker(rank, 10 ** 9), THALWEG_COLLECTIVE_RANK=str(rank), **common) for rank in range(2)]
        for worker in workers:
            while "step 3" not in worker.stdout.readline():
                assert worker.poll() is None, worker.stderr.read()
        return workers

    def __exit__(self, *_):
        for place in self.places:
            place.close()
        subprocess.run(["ip", "link", "del", "br0"], capture_output=True)


def told_to(worker, bound, began):
    """Returns what a worker that ends with an error says, within that many seconds."""
    _, told = worker.communicate(timeout=60)
    assert worker.returncode == 1 and time.monotonic() - began < bound, (time.monotonic() - began, told)
    return told


def test_workers_on_two_hosts_that_launch_has_started_hold_the_same_bits():
    with tempfile.TemporaryDirectory() as folder, Hosts(folder) as hosts:
        for place in hosts.places:
            run("tc", "qdisc", "add", "dev", place.cable, "root", "tbf", "rate", "50mbit", "burst", "32k", "latency", "400ms")
        meeting = pathlib.Path(folder) / "meeting"
        meeting.mkdir(mode=0o700)
        launch = [THALWEG, "launch", "--on", "mpi", "--meet", meeting, "-n", 2, "--interface", "eth0", "--"]
        started = [hosts.start(rank, [*launch, *hosts.worker(rank, 10)], OMPI_COMM_WORLD_RANK=str(rank), OMPI_COMM_WORLD_SIZE="2")
                   for rank in range(2)]
        ends = [p.communicate(timeout=120) for p in started]
        assert [p.returncode for p in started] == [0, 0], ends
        records = sorted(p.name for p in (meeting / "collective").iterdir())
        assert any("ring" in name for name in records), records
        addresses = {p.read_text().split()[-1].rsplit(":", 1)[0] for p in (meeting / "collective").iterdir() if "ring" in p.name}
        assert addresses == {place.ip for place in hosts.places}, addresses
        weights = [list(np.load(hosts.folder / f"{rank}.npz").values()) for rank in range(2)]
        assert all(a.tobytes() == b.tobytes() and a.any() for a, b in zip(*weights))


def test_a_worker_that_is_killed_on_its_host_is_named():
    with tempfile.TemporaryDirectory() as folder, Hosts(folder) as hosts:
        first, second = hosts.training()
        began = time.monotonic()
        second.kill()
        told = told_to(first, LOST_AFTER, began)
        assert f"member 1 (process {second.pid} on " in told and "is lost: its connection has ended" in told, told


# usage: broadcast.py COUNT. Member 0 sends COUNT doubles and ends at once, member 1 compares them.
BROADCAST = """
import os, sys, numpy as np, thalweg as tw
values, keys = np.arange(int(sys.argv[1]), dtype=np.float64), {"group_size": 2, "group_key": 1, "instance_key": 1}
own = int(os.environ["THALWEG_COLLECTIVE_RANK"])
with tw.Graph() as g:
    got = (tw.ops.collective_bcast_send_v2(values, **keys) if own == 0
           else tw.ops.collective_bcast_recv_v2(**keys, shape=[len(values)], T="float64"))
same = np.array_equal(tw.Session(g).run(got), values)
os._exit(0 if same else 3)
"""


def test_bytes_of_a_worker_that_has_ended_arrive_over_a_narrow_cable():
    with tempfile.TemporaryDirectory() as folder, Hosts(folder) as hosts:
        for place in hosts.places:
            place.do("tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "2mbit", "burst", "32k", "latency", "20s")  # the bytes take 8 s
        common = {"THALWEG_COLLECTIVE_ENGINE": "ring", "THALWEG_COLLECTIVE_STORE": str(hosts.folder / "store"),
                  "THALWEG_COLLECTIVE_MEMBERS": "2", "THALWEG_OPTIONS": os.environ.get("THALWEG_OPTIONS", "")}
        sender, receiver = [hosts.start(rank, [sys.executable, "-B", "-c", BROADCAST, 250_000], THALWEG_COLLECTIVE_RANK=str(rank), **common)
                            for rank in range(2)]
        assert sender.wait(timeout=60) == 0, sender.stderr.read()
        ended = time.monotonic()
        _, told = receiver.communicate(timeout=60)
        assert receiver.returncode == 0, told
        assert time.monotonic() - ended > 1.5, "the bytes did not take longer than a lost process is waited for"


def test_a_host_that_is_cut_off_is_named_to_the_workers_of_both_sides():
    with tempfile.TemporaryDirectory() as folder, Hosts(folder) as hosts:
        workers = hosts.training()
        began = time.monotonic()
        hosts.places[1].plug(False)
        for rank, worker in enumerate(workers):
            told = told_to(worker, 3 * LOST_AFTER, began)
            assert f"member {1 - rank} (process {workers[1 - rank].pid} on " in told, told
            assert f"is lost: its host has given no sign of life for {LOST_AFTER * 1000} ms" in told, told


if __name__ == "__main__":
    run_tests(globals(), sys.argv[3:])
