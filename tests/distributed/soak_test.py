"""A cluster keeps running under a random schedule of faults: soak_test.py THALWEG TRANSPORT FAILING_FILES

Training runs all the time, and its numbers must be right at every step (soak_trainer.py). Meanwhile tasks are killed and stopped, clients
vanish or read slowly, tasks receive floods of connections and garbage, disks are full or fail, clocks step. ps:0 and worker:0 are never
killed, so that their resources can be observed over the whole time. Every few seconds all faults end. After a good round of training the
resources of each process are recorded ("at rest"). At the end they must be flat, by the bounds below.

THALWEG_SOAK_SECONDS: the duration (6).   THALWEG_SOAK_SEED: the seed of the schedule, which is also printed. Faults that need root,
packages or a plain build are left out, and the test prints so."""
import contextlib
import ctypes
import errno
import os
import pathlib
import random
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback

import numpy as np

import thalweg as tw
from addresses import scheme_of
from process_state import Series, State, arenas_of
from running import end_children
from soak_cluster import FAKETIME, SANITIZED, TASKS, Cluster, name_of
from soak_trainer import LOST, PATIENCE, Trainer, Trouble

THALWEG, TRANSPORT, FAILING_FILES = sys.argv[1:4]
SECONDS = float(os.environ.get("THALWEG_SOAK_SECONDS", "6"))
SEED = int(os.environ.get("THALWEG_SOAK_SEED", "0")) or int.from_bytes(os.urandom(4), "little") or 1
LONG = SECONDS > 120
CALM_EVERY = 20.0 if LONG else 2.0  # seconds
AT_ONCE = 4 if LONG else 2
CONNECTIONS = (200 if LONG else 40) if scheme_of(TRANSPORT) == "grpc" else 40  # per flood; the socket example accepts 500 in all
# A resource is flat if the line through the states at rest rises by no more than this from start to end. The line is that of a process that
# lived the whole time, by the median of all slopes. It leaves out the first quarter, in which threads, pools and the allocator reach their
# size. In a run that is too short for a line, the bounds limit the whole growth.
FLAT = {"RSS": (8 << 20, 0.05), "descriptors": (3, 0.0), "threads": (3, 0.0)}  # an absolute number, or a share of the median
SHORT = {"RSS": 96 << 20, "descriptors": 60, "threads": 40}
NAMES = {key: f"{key[0]}:{key[1]}" for key in TASKS}
OWN_SESSIONS = 3  # sessions that stay open: one of the trainer, two of the savers
MORTAL = [("ps", 1), ("worker", 1)]
tw.load_plugin(TRANSPORT)


def private_mounts():
    """Returns whether this process may mount; its mounts then end with it."""
    clone_newns, ms_rec, ms_private = 0x20000, 0x4000, 1 << 18
    libc = ctypes.CDLL(None, use_errno=True)
    return os.getuid() == 0 and libc.unshare(clone_newns) == 0 and libc.mount(None, b"/", None, ms_rec | ms_private, None) == 0


class Disk:
    """A folder whose disk can be full: a file system of its own if the test may mount one, else a limit on the size of the tasks' files."""

    def __init__(self, folder, mounts):
        self.folder, self.mounted = folder, mounts
        folder.mkdir()
        if mounts:
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(folder)], check=True)

    @contextlib.contextmanager
    def full(self, cluster):
        whole, filler = (resource.RLIM_INFINITY, resource.RLIM_INFINITY), self.folder / "filler"
        if self.mounted:
            with filler.open("wb", buffering=0) as f, contextlib.suppress(OSError):
                while f.write(bytes(1 << 16)):
                    pass
        else:
            for process in cluster.processes.values():
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        try:
            yield
        finally:
            filler.unlink(missing_ok=True)
            if not self.mounted:
                for process in cluster.processes.values():
                    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, whole)


class Saved:
    """Two variables that hold a number each and are saved to a folder by both parameter servers."""

    def __init__(self, cluster, name, folder):
        self.graph, self.folder, self.n = tw.Graph(), folder, 0
        with self.graph:
            self.number = tw.placeholder(np.float32, [], name="number")
            self.variables = []
            for k in range(2):
                with tw.device(name_of(("ps", k))):
                    self.variables.append(tw.Variable(np.zeros([50_000], np.float32), name=f"{name}/{k}"))
            self.start = tw.initializer()
            with tw.device(name_of(("ps", 0))):
                value = tw.ops.fill(tw.constant(np.array([50_000], np.int32)), self.number)
            self.assign = tw.group(*(v.assign(value) for v in self.variables))
        self.session, self.saver = cluster.session(self.graph), tw.Saver(by_task=True)

    def set(self, n):
        self.session.run(self.start, timeout=PATIENCE)
        self.session.run(self.assign, {self.number: n}, timeout=PATIENCE)

    def values(self):
        return [sorted(set(v.tolist())) for v in self.session.run(self.variables, timeout=PATIENCE)]

    def restored(self, checkpoints):
        """Returns the number in the current checkpoint; fails if the two variables have different numbers."""
        n = checkpoints.restore()
        assert self.values() == [[n], [n]], f"checkpoint {n} holds {self.values()}"
        return n

    def save(self, checkpoints):
        """Saves a new number. Returns the error, or None."""
        self.n += 1
        self.set(self.n)
        try:
            checkpoints.save(self.n)
        except LOST:
            raise
        except tw.Error as e:
            return e
        return None


def rises(series):
    """Yields the growth of each resource of FLAT and its bound; nothing for a process that was at rest only once."""
    if len(series.points) < 2:
        return
    (t0, first), (t1, last) = series.points[0], series.points[-1]
    grown = series.grown((t1 - t0) / 4) if len(series.points) >= 12 else None
    if LONG and not grown:
        return  # it was killed early: it has no line, and its time exceeds that of a short run's bounds
    for k, (what, (least, part)) in enumerate(FLAT.items()):
        middle = sorted(s[k] for _, s in series.points)[len(series.points) // 2]
        yield (what, grown[k], max(least, part * middle), "line") if grown else (what, last[k] - first[k], SHORT[what], "ends")


def check_the_bounds():
    """Checks that the bounds accept resources that oscillate and reject those that leak a little each time."""
    for name, leak in [("rests", 0), ("leaks", 1)]:
        series = Series(name, 0)
        for i in range(60):
            swing = 40 << 20 if i % 7 == 3 else 0
            series.rest(20.0 * i, State((50 << 20) + leak * i * (256 << 10) + swing, 20 + leak * i // 4, 10 + leak * i // 8))
        assert all((rise > bound) == bool(leak) for _, rise, bound, _ in rises(series)), list(rises(series))
    series = Series("short", 0)
    series.rest(0.0, State(20 << 20, 10, 10))
    series.rest(2.0, State(200 << 20, 100, 100))
    assert LONG or [rise > bound for _, rise, bound, _ in rises(series)] == [True] * 3


class Soak:
    def __init__(self, folder, left_out):
        mounts = private_mounts()
        if not mounts:
            left_out("full disk: no right to mount here, so files are limited in size instead")
        clocks, failing = FAKETIME.exists() and not SANITIZED, "" if SANITIZED else FAILING_FILES
        if not clocks:
            left_out("clock steps: skipped, " + ("a sanitizer is loaded first" if SANITIZED else "no libfaketime (Debian's package faketime)"))
        if not failing:
            left_out("EIO: skipped, a sanitizer is loaded first")
        if SANITIZED:
            left_out("what processes hold: not judged, a sanitizer keeps memory of its own")
        self.random, self.trouble, self.folder = random.Random(SEED), Trouble(), folder
        self.cluster = Cluster(THALWEG, TRANSPORT, folder, clocks, failing)
        self.disk = Disk(folder / "in" / "disk", mounts)
        self.busy, self.clients, self.events, self.done = set(), [], [], {}
        self.trainer = Trainer(self.cluster, self.trouble)
        self.on_disk, self.on_failing = Saved(self.cluster, "disk", self.disk.folder), Saved(self.cluster, "failing", self.cluster.failing)
        self.visited = self.visitor_graph()
        self.actions = [self.kill, self.stop, self.vanish, self.slow_reader, self.flood, self.garbage, self.visit, self.full_disk]
        self.actions += [self.clock_step] * clocks + [self.bad_disk] * bool(failing)
        self.deck = []

    def tell(self, what):
        self.events.append(f"{time.monotonic() - self.cluster.began:8.2f} s  {what}")

    # ---- Actions. Each is a generator that yields the seconds to wait before it continues. ----

    def kill(self):
        key = self.random.choice(MORTAL)
        if key in self.busy:
            return
        self.busy.add(key)
        with self.trouble:
            self.tell(f"kill {NAMES[key]}")
            self.cluster.kill(key)
            self.cluster.set_clock(key, "+0")
            yield self.random.uniform(0, 0.5)
            self.cluster.start(key)
            self.tell(f"{NAMES[key]} is there again, process {self.cluster.processes[key].pid}")
        self.busy.discard(key)

    def stop(self):
        key = self.random.choice(TASKS)
        if key in self.busy:
            return
        self.busy.add(key)
        with self.trouble:
            self.tell(f"stop {NAMES[key]}")
            self.cluster.stop(key)
            yield self.random.uniform(0.05, 2.5 if LONG else 0.5)
            self.cluster.go_on(key)
            self.tell(f"{NAMES[key]} goes on")
        self.busy.discard(key)

    def client(self, mode):
        """Starts a client process, which prints `ready` when its steps run."""
        client = subprocess.Popen([sys.executable, "-B", str(pathlib.Path(__file__).with_name("soak_client.py")), TRANSPORT,
                                   self.cluster.address["worker"][0], self.cluster.options().get("credentials", ""), mode],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.cluster.log, text=True)
        self.clients.append(client)
        return client

    def heard(self, client):
        """A generator whose result is a line of the client's output, "" at its end. Meanwhile the schedule goes on, because the client may
        wait for a stopped task."""
        until = time.monotonic() + PATIENCE
        while not select.select([client.stdout], [], [], 0)[0]:
            assert time.monotonic() < until, f"client {client.pid} says nothing for {PATIENCE} s"
            yield 0.05
        return client.stdout.readline()

    def gone(self, client):
        client.kill()
        client.wait()
        client.stdin.close()
        client.stdout.close()
        self.clients.remove(client)

    def vanish(self):
        began, client = time.monotonic(), self.client("vanish")
        if (yield from self.heard(client)) != "ready\n":
            assert self.trouble.excuses(began), f"a client could not begin; {self.cluster.tail()}"
        if self.random.random() < 0.5:
            client.send_signal(signal.SIGSTOP)
            self.tell(f"client {client.pid} stands still")
            yield self.random.uniform(0.2, 3 if LONG else 0.5)
        self.tell(f"client {client.pid} vanishes")
        self.gone(client)

    def slow_reader(self):
        began, client = time.monotonic(), self.client("slow")
        ready = (yield from self.heard(client)) == "ready\n"
        client.send_signal(signal.SIGSTOP)
        self.tell(f"client {client.pid} reads nothing")
        yield self.random.uniform(0.2, 5 if LONG else 0.5)
        client.send_signal(signal.SIGCONT)
        if ready and self.random.random() < 0.7:
            with contextlib.suppress(BrokenPipeError):
                client.stdin.write("\n")
                client.stdin.flush()
            ready = (yield from self.heard(client)) == "good\n"
        assert ready or self.trouble.excuses(began), f"a slow client did not get its values; {self.cluster.tail()}"
        self.gone(client)

    def connection(self, key):
        """Opens a bare connection to that task, from another address than that of the honest clients. Returns None if it is refused."""
        address = self.cluster.address[key[0]][key[1]].split(":", 1)[1]
        if scheme_of(TRANSPORT) == "grpc":
            host, port = address.rsplit(":", 1)
            s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            s.bind((f"127.0.0.{self.random.randrange(2, 250)}", 0))
            to = (host, int(port))
        else:
            s, to = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET), "\0" + address
        s.settimeout(0.2)
        try:
            s.connect(to)
            return s
        except OSError:
            s.close()
            return None

    def flood(self):
        key = self.random.choice([k for k in TASKS if k not in self.busy] or TASKS)
        connections = [s for s in (self.connection(key) for _ in range(CONNECTIONS)) if s]
        self.tell(f"{len(connections)} silent connections to {NAMES[key]}")
        yield self.random.uniform(0.1, 8 if LONG else 0.5)
        for s in connections:
            if self.random.random() < 0.5:  # half of them end with a reset
                with contextlib.suppress(OSError):
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.close()

    def garbage(self):
        key = self.random.choice([k for k in TASKS if k not in self.busy] or TASKS)
        size = 4096 if LONG else 1024
        starts = [b"", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", bytes(16)]
        self.tell(f"garbage for {NAMES[key]}")
        for _ in range(CONNECTIONS // 4):
            if s := self.connection(key):
                with contextlib.suppress(OSError):
                    for _ in range(self.random.randrange(1, 6)):
                        s.sendall(self.random.choice(starts) + self.random.randbytes(self.random.randrange(size)))
                s.close()
        yield 0

    @staticmethod
    def visitor_graph():
        graph = tw.Graph()
        with graph:
            x = tw.placeholder(np.float32, [None], name="x")
            with tw.device(name_of(("ps", 0))):
                y = tw.ops.mul(x, x)
            with tw.device(name_of(("worker", 1))):
                z = tw.ops.neg(y)
        return graph, x, z

    def visit(self):
        """Runs a new honest client in a thread of its own, because it may have to wait for a stopped task."""
        sizes, error = [self.random.randrange(300_000) for _ in range(self.random.randrange(1, 5))], []

        def work():
            (graph, x, z), began = self.visited, time.monotonic()
            try:
                with self.cluster.session(graph) as session:
                    for n in sizes:
                        value = np.arange(n, dtype=np.float32)
                        assert np.array_equal(session.run(z, {x: value}, timeout=PATIENCE), -value * value), "a visitor got other numbers"
            except BaseException as e:
                if not isinstance(e, LOST) or not self.trouble.excuses(began):
                    error.append(e)
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        while thread.is_alive():
            yield 0.02
        if error:
            raise error[0]

    def full_disk(self):
        if self.busy & set(TASKS):
            return
        saved, began = self.on_disk, time.monotonic()
        try:
            with tw.Checkpointer(saved.session, saved.folder, saved.saver, keep_last=1) as checkpoints:
                assert (e := saved.save(checkpoints)) is None, e
                good = saved.n
                with self.disk.full(self.cluster):
                    e = saved.save(checkpoints)
                self.tell(f"a full disk: {e}")
                assert isinstance(e, (tw.ResourceExhaustedError, tw.UnknownError)) and "/job:ps/" in str(e), f"a save to a full disk: {e!r}"
                assert (n := saved.restored(checkpoints)) == good, f"checkpoint {n} is there after a failed save, and was to be {good}"
                assert (e := saved.save(checkpoints)) is None, e
        except LOST:
            if not self.trouble.excuses(began):
                raise
        yield 0

    def bad_disk(self):
        if self.busy & set(TASKS):
            return
        saved, began = self.on_failing, time.monotonic()
        try:
            with tw.Checkpointer(saved.session, saved.folder, saved.saver, keep_last=2) as checkpoints:
                assert (e := saved.save(checkpoints)) is None, e
                possible, failed = {saved.n}, self.cluster.faults.failed()
                for _ in range(4):
                    every = self.random.randrange(1, 12)
                    self.cluster.faults.set(every, errno.EIO)
                    e = saved.save(checkpoints)
                    self.cluster.faults.set(0)
                    self.tell(f"one of {every} calls fails: {e}")
                    # A call that fails after the files are renamed also leaves the new checkpoint, which is complete.
                    possible = {saved.n} if e is None else possible | {saved.n}
                    assert e is None or "/job:ps/" in str(e), e
                assert self.cluster.faults.failed() > failed, "no call failed"
                assert (n := saved.restored(checkpoints)) in possible, f"checkpoint {n} is there and was to be one of {possible}"
                assert (e := saved.save(checkpoints)) is None, e
                assert saved.restored(checkpoints) == saved.n
        except LOST:
            if not self.trouble.excuses(began):
                raise
        finally:
            self.cluster.faults.set(0)
        yield 0

    def clock_step(self):
        key = self.random.choice(TASKS)
        step = self.random.choice([-600, -60, -1, 1, 3600, 86400, 86400 * 200])
        self.tell(f"the clock of {NAMES[key]} is off by {step} s")
        # Existing connections are not affected. A new one may meet certificates that are not valid yet.
        with self.trouble if step < 0 and self.cluster.credentials else contextlib.nullcontext():
            self.cluster.set_clock(key, f"{step:+d}")
            yield self.random.uniform(1, 6 if LONG else 1.5)
            self.cluster.set_clock(key, "+0")

    # ---- The schedule ----

    def draw(self):
        """Returns the next action. A round has every action once, each round in another order."""
        if not self.deck:
            self.deck = self.random.sample(self.actions, len(self.actions))
        return self.deck.pop()

    def run_for(self, seconds):
        """Starts actions for that long, and runs the started ones to their end."""
        until, running, begin_at = time.monotonic() + seconds, [], 0.0
        while running or time.monotonic() < until:
            now = time.monotonic()
            for entry in [e for e in running if e[0] <= now]:
                try:
                    entry[0] = time.monotonic() + next(entry[1])
                except StopIteration:
                    running.remove(entry)
            if now < until and now >= begin_at and len(running) < AT_ONCE:
                action = self.draw()
                self.done[action.__name__] = self.done.get(action.__name__, 0) + 1
                running.append([now, action()])
                begin_at = now + self.random.uniform(0, 0.4)
            self.cluster.see()
            self.cluster.check_alive()
            self.trainer.check()
            time.sleep(max(0.005, min([0.1, *(e[0] - time.monotonic() for e in running)])))

    def calm(self):
        """Waits without faults until a new round of training succeeds and the sessions of ended clients are closed, then records the
        resources of the processes. The sessions of a client that vanished before it sent its watch stay for half a minute, for which a
        short run has no time."""
        wanted, until = self.trainer.rounds + 2, time.monotonic() + PATIENCE
        while self.trainer.rounds < wanted:
            self.trainer.check()
            self.cluster.check_alive()
            assert time.monotonic() < until, f"no two rounds of training within {PATIENCE} s of calm"
            time.sleep(0.01)
        while LONG and max(open_now := self.cluster.open_sessions()) > OWN_SESSIONS:
            assert time.monotonic() < until, f"sessions of clients that are gone are open still: {open_now}; {OWN_SESSIONS} are ours"
            time.sleep(0.05)
        self.cluster.rest(0.2 if LONG else 0.05)

    def run(self):
        self.calm()
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            self.run_for(min(CALM_EVERY, end - time.monotonic()))
            self.calm()
            if LONG and len(self.cluster.series["ps", 0].points) % 10 == 0:
                self.report()
        self.trainer.end()
        assert self.trainer.rounds > 0
        self.report()
        if not SANITIZED:
            self.check_flat()

    def report(self):
        print(f"  {time.monotonic() - self.cluster.began:.0f} s: {self.trainer.steps} steps in {self.trainer.rounds} rounds, "
              f"{self.trainer.recoveries} recoveries; {', '.join(f'{n} {what}' for what, n in sorted(self.done.items()))}; "
              f"{self.cluster.faults.failed()} calls failed")
        for series in self.cluster.series.values():
            if series.points:
                print(f"    {series}")
        sys.stdout.flush()

    def check_flat(self):
        for series in [*self.cluster.ended, *self.cluster.series.values()]:
            for what, rise, bound, by in rises(series):
                if by == "line":
                    print(f"    {series.name} (process {series.pid}): {what} rose by {rise:.1f}; bound {bound:.1f}")
                assert rise <= bound, f"{what} of {series} rose by {rise:.1f}; the bound is {bound:.1f}"
        if "MALLOC_ARENA_MAX" not in os.environ:  # free memory stays in the arena that it came from, so a server has few
            for key, process in self.cluster.processes.items():
                assert (n := arenas_of(process.pid)) < os.cpu_count(), f"{NAMES[key]} has {n} arenas beside the main one"

    def close(self):
        for client in list(self.clients):
            self.gone(client)
        self.cluster.close()


def main():
    check_the_bounds()
    print(f"seed {SEED}: THALWEG_SOAK_SEED={SEED} THALWEG_SOAK_SECONDS={SECONDS:g}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        soak = None
        try:
            soak = Soak(pathlib.Path(folder), lambda what: print(f"  {what}", flush=True))
            soak.run()
        except BaseException:
            traceback.print_exc()
            print(f"FAILED with seed {SEED}; the schedule's last events:", *(soak.events[-40:] if soak else []), sep="\n  ", flush=True)
            if soak:
                print(soak.cluster.tail(), flush=True)
            end_children()
            os._exit(1)
        finally:
            if soak:
                soak.close()
            if soak and soak.disk.mounted:
                subprocess.run(["umount", str(soak.disk.folder)], check=True)
    print(f"soak over {scheme_of(TRANSPORT)}: good")


if __name__ == "__main__":
    main()
