"""Trains all examples on two machines that share nothing but a folder: two_machines_test.py THALWEG [TEST...]

Each machine is a chroot with network, mount, IPC, UTS and process namespaces of its own, and its own /dev/shm and /tmp. The clocks of the
tasks on both are minutes apart (libfaketime). Programs of Python have the right time, because their sleep fails under libfaketime. The
cable between the machines carries 1 Gbit/s, and each packet takes 5 ms. The test itself is the cable, so it needs no netem, which many
kernels lack. Members have certificates, which `thalweg launch` makes. The test needs iproute2, libfaketime, /dev/net/tun and the right
to make namespaces; without them it is skipped."""
import contextlib
import ctypes
import fcntl
import glob
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time

INSIDE = "THALWEG_TWO_MACHINES_TEST"
FAKETIME = next(iter(sorted(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1"))), None)
DELAY = 0.005  # seconds, one way
CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def enter():
    """Restarts this program in a network namespace of its own."""
    for tool in ("ip", "tc", "unshare", "nsenter", "chroot", "mount"):
        if not shutil.which(tool):
            skip(f"there is no program `{tool}`")
    if not FAKETIME:
        skip("libfaketime is not installed")
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        skip("/dev/net/tun may not be opened")
    new = ["unshare", "-Urn", "--kill-child"]
    probe = "unshare -nmiup --fork sh -c 'mount -t tmpfs none /mnt && mount -t proc proc /proc && hostname a'"
    tried = subprocess.run([*new, "sh", "-c", f"ip tuntap add dev ta mode tap && {probe}"], capture_output=True, text=True)
    if tried.returncode:
        skip(f"namespaces are not permitted here: {tried.stderr.strip()}")
    os.execvpe("unshare", [*new, sys.executable, "-B", *sys.argv], {**os.environ, INSIDE: "1"})


if os.environ.get(INSIDE) != "1":
    enter()

import numpy as np

from running import run_tests

THALWEG = sys.argv[1]
SOURCE = pathlib.Path(os.environ["THALWEG_SOURCE_DIR"])
EXAMPLES = SOURCE / "distributed/examples"
DATA = pathlib.Path(os.environ["THALWEG_DATA_PATH"])
LAG = {"alpha": 240, "beta": -240}  # seconds by which the clock of a machine is wrong

MACHINE = """
set -e
root=$1; hostname "$2"; shared=$3; shift 3
mount --make-rprivate /
mount -t tmpfs none "$root"
for d in "$@"; do
  if [ -L "/$d" ]; then cp -P "/$d" "$root/$d"; elif [ -d "/$d" ]; then mkdir "$root/$d"; mount --rbind "/$d" "$root/$d"; fi
done
mkdir -p "$root/proc" "$root/dev/shm" "$root/tmp" "$root/shared"
chmod 1777 "$root/tmp"
mount -t proc proc "$root/proc"
mount -t tmpfs none "$root/dev/shm"
for n in null zero full random urandom; do touch "$root/dev/$n"; mount --bind "/dev/$n" "$root/dev/$n"; done
mount --bind "$shared" "$root/shared"
echo ready
exec chroot "$root" cat
"""


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"`{' '.join(words)}`: {done.stderr.strip()}"
    return done.stdout


class Machine:
    def __init__(self, name, number, folder):
        self.name, self.ip = name, f"10.78.0.{number}"
        root = folder / f"root-{name}"
        root.mkdir()
        # The folders of the system, and of this tree, its data and its Python.
        seen = {pathlib.Path(p).resolve().parts[1] for p in (SOURCE, DATA, THALWEG, sys.executable, *os.environ["PYTHONPATH"].split(":"))}
        folders = sorted(({"usr", "bin", "sbin", "lib", "lib32", "lib64", "etc", "opt", "var", "root"} | seen) - {"tmp", "proc", "dev"})
        # cat ends when its input closes, so the machine ends with this test, even if the test is killed.
        self.holder = subprocess.Popen(["unshare", "-nmiup", "--fork", "--kill-child", "sh", "-c", MACHINE, "sh", str(root), name,
                                        str(folder / "shared"), *folders], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self.holder.stdout.readline()
        assert line == "ready\n", f"machine {name} was not made"
        children = pathlib.Path(f"/proc/{self.holder.pid}/task/{self.holder.pid}/children").read_text().split()
        self.first = int(children[0])

    def within(self, *words):
        return ["nsenter", "-t", str(self.first), "-n", "-m", "-i", "-u", "-p", "-r", "-w", *map(str, words)]

    def environment(self):
        return {**os.environ, "LD_PRELOAD": FAKETIME, "FAKETIME": f"{LAG[self.name]:+d}s", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "DONT_FAKE_MONOTONIC": "1", "OMP_NUM_THREADS": "1"}

    def start(self, *words, **more):
        return subprocess.Popen(self.within(*words), env={**self.environment(), **more}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True)

    def say(self, *words):
        done = subprocess.run(self.within(*words), env=self.environment(), capture_output=True, text=True, timeout=20)
        assert done.returncode == 0, (self.name, words, done.stderr)
        return done.stdout.strip()

    def plug(self, cable):
        """Opens this machine's end of the cable: a device whose frames the cable reads and writes."""
        libc, own = ctypes.CDLL(None, use_errno=True), os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        there = os.open(f"/proc/{self.first}/ns/net", os.O_RDONLY)
        try:
            assert libc.setns(there, CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
            end = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
            fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH22x", b"eth0", IFF_TAP | IFF_NO_PI))
        finally:
            assert libc.setns(own, CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
            os.close(own)
            os.close(there)
        cable.ends.append(end)
        net = ["nsenter", "-t", str(self.first), "-n"]
        run(*net, "ip", "link", "set", "lo", "up")
        run(*net, "ip", "addr", "add", f"{self.ip}/24", "dev", "eth0")
        run(*net, "ip", "link", "set", "eth0", "mtu", "9000", "up")
        run(*net, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "1gbit", "burst", "1m", "latency", "100ms")

    def close(self):
        self.holder.stdin.close()
        self.holder.wait()
        self.holder.stdout.close()


class Cable:
    """Carries frames both ways. Each arrives DELAY seconds after it was sent, in order."""

    def __init__(self):
        self.ends, self.frames = [], [0, 0]

    def begin(self):
        for k in range(2):
            waiting, there = [], threading.Condition()
            threading.Thread(target=self._take, args=(k, waiting, there), daemon=True).start()
            threading.Thread(target=self._give, args=(1 - k, waiting, there), daemon=True).start()

    def _take(self, k, waiting, there):
        while True:
            try:
                frame = os.read(self.ends[k], 16384)
            except OSError:
                return  # the machine has gone
            self.frames[k] += 1
            with there:
                waiting.append((time.monotonic() + DELAY, frame))
                there.notify()

    def _give(self, k, waiting, there):
        while True:
            with there:
                while not waiting:
                    there.wait()
                batch = waiting[:]
                waiting.clear()
            for due, frame in batch:
                time.sleep(max(due - time.monotonic(), 0))
                with contextlib.suppress(OSError):  # the device is down, as a cable without a machine
                    os.write(self.ends[k], frame)


class Two:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.shared = self.folder / "shared"
        self.shared.mkdir()
        self.machines, self.cable, self.starts = [], Cable(), 0

    def __enter__(self):
        for number, name in enumerate(LAG, 1):
            self.machines.append(Machine(name, number, self.folder))
        for machine in self.machines:
            machine.plug(self.cable)
        self.cable.begin()
        return self

    def __exit__(self, *_):
        for machine in self.machines:
            machine.close()

    def launch(self, *program, workers=2, ps=2):
        """Starts a cluster, whose odd members are on the second machine. Returns what the members say, by rank."""
        self.starts += 1
        (self.shared / f"meeting-{self.starts}").mkdir(mode=0o700)
        members = workers + ps
        before = list(self.cable.frames)
        command = [THALWEG, "launch", "--on", "mpi", "--meet", f"/shared/meeting-{self.starts}", "-n", workers, "--ps", ps, "--threads", 1,
                   "--interface", "eth0", "--allow", "/shared", "--", sys.executable, "-B", *program]
        at = command.index("--") + 1
        command[at:at] = ["env", "-u", "LD_PRELOAD"]
        started = [self.machines[rank % 2].start(*command, OMPI_COMM_WORLD_RANK=str(rank), OMPI_COMM_WORLD_SIZE=str(members))
                   for rank in range(members)]
        said = [p.communicate(timeout=300)[0] for p in started]
        assert [p.returncode for p in started] == [0] * members, "\n".join(said)
        assert all(n > b for n, b in zip(self.cable.frames, before)), "nothing crossed the cable"
        return said


@contextlib.contextmanager
def two_machines():
    with tempfile.TemporaryDirectory(prefix="thalweg-two-") as folder, Two(folder) as both:
        yield both


def numbers(said, word):
    """Returns the numbers that follow a word in all lines."""
    return [float(line.split(word)[1].split()[0].strip(",")) for text in said for line in text.splitlines() if word in line]


def losses(path):
    return {int(step): loss for step, _, loss in (line.split(",") for line in path.read_text().splitlines()[1:])}


# usage: echo.py [ADDRESS]. Without an address it sends back what it gets; with one it says how long that took at least.
ECHO = """
import socket, sys, time
if len(sys.argv) == 1:
    server = socket.create_server(("", 7777))
    print("up", flush=True)
    client = server.accept()[0]
    while got := client.recv(1):
        client.send(got)
else:
    client, times = socket.create_connection((sys.argv[1], 7777)), []
    for _ in range(20):
        began = time.monotonic()
        client.send(b"x")
        client.recv(1)
        times.append(time.monotonic() - began)
    print(min(times))
"""


def test_the_machines_share_only_the_folder_and_the_cable():
    with two_machines() as both:
        a, b = both.machines
        assert (a.say("hostname"), b.say("hostname")) == ("alpha", "beta")
        a.say("sh", "-c", "echo x > /dev/shm/x; echo x > /tmp/x; echo x > /shared/x")
        assert b.say("sh", "-c", "test ! -e /dev/shm/x && test ! -e /tmp/x && cat /shared/x") == "x"
        apart = int(a.say("date", "+%s")) - int(b.say("date", "+%s"))
        assert abs(apart - 480) < 20, apart
        for kind in ("net", "mnt", "ipc", "uts", "pid"):
            assert os.readlink(f"/proc/{a.first}/ns/{kind}") != os.readlink(f"/proc/{b.first}/ns/{kind}"), kind
        server = b.start(sys.executable, "-c", ECHO)
        assert server.stdout.readline() == "up\n"
        there_and_back = float(a.say(sys.executable, "-c", ECHO, b.ip))
        server.communicate(timeout=20)
        assert there_and_back >= 2 * DELAY, there_and_back


def test_digits_train_with_the_bits_of_one_machine():
    with two_machines() as both:
        shutil.copy(DATA / "digits.csv", both.shared)
        words = [EXAMPLES / "digits.py", "--data", "/shared/digits.csv", "--steps", "60", "--save-every", "20"]
        said = both.launch(*words, "--background", "--folder", "/shared/two", "--mode", "sync")
        assert len(numbers(said, "accuracy ")) == 2, said
        alone = pathlib.Path(both.folder) / "one"
        run(THALWEG, "launch", "-n", "2", "--ps", "2", "--threads", "1", "--allow", str(both.folder), "--", sys.executable, "-B",
            str(words[0]), "--data", str(DATA / "digits.csv"), *words[3:], "--folder", str(alone), "--mode", "sync")
        for worker in range(2):
            found, expected = losses(both.shared / f"two/sync-{worker}.csv"), losses(alone / f"sync-{worker}.csv")
            assert len(found) == 60 and found == expected, worker
        for mode in ("async", "backup"):
            said = both.launch(*words, "--folder", "/shared/two", "--mode", mode)
            assert len(numbers(said, "accuracy ")) == 2 and min(numbers(said, "accuracy ")) > 0.5, (mode, said)


def test_all_other_examples_train():
    with two_machines() as both:
        for name in ("digits.csv", "kjv.txt"):
            shutil.copy(DATA / name, both.shared)
        (both.shared / "chars").mkdir()
        (both.shared / "part.txt").write_bytes((DATA / "kjv.txt").read_bytes()[:200_000])
        said = both.launch(EXAMPLES / "digits_async.py", "--data", "/shared/digits.csv", "--steps", "40")
        assert len(numbers(said, "accuracy ")) >= 1, said
        said = both.launch(EXAMPLES / "words.py", "--data", "/shared/part.txt", "--steps", "30", "--vocabulary", "300", "--width", "16",
                           "--folder", "/shared/words")
        assert any(" at first, " in text for text in said), said
        said = both.launch(EXAMPLES / "char_lm.py", "--data", "/shared/kjv.txt", "--steps", "20", "--cells", "16", "--limit", "100000",
                           "--softmax", "full", "--folder", "/shared/chars")
        found = numbers(said, "perplexity ")
        assert len(found) == 2 and found[0] == found[1], said
        said = both.launch(EXAMPLES / "pipeline.py", "--data", "/shared/digits.csv", "--stages", "2", "--parts", "4", "--steps", "20",
                           workers=1)
        found = numbers(said, "loss ")
        assert len(found) > 10 and found[-1] < found[0] and numbers(said, "bubble "), said


def test_all_reduce_sums_over_the_cable():
    with two_machines() as both:
        shutil.copy(DATA / "digits.csv", both.shared)
        program = SOURCE / "tests/python/all_reduce_worker.py"
        # Each of the two workers writes its weights to /tmp/weights.npz of its machine, and copies them.
        code = ("import os, runpy, shutil, sys; rank = os.environ['THALWEG_COLLECTIVE_RANK']; out = f'/shared/{rank}.npz'\n"
                f"sys.argv = ['x', '/shared/digits.csv', out, '10']; runpy.run_path({str(program)!r}, run_name='__main__')")
        both.launch("-c", code, ps=0)
        weights = [list(np.load(both.shared / f"{rank}.npz").values()) for rank in range(2)]
        assert all(a.tobytes() == b.tobytes() and a.any() for a, b in zip(*weights))


if __name__ == "__main__":
    run_tests(globals(), sys.argv[2:])
