"""The cluster of soak_test.py: two parameter servers and two workers, each a process whose clock and disk the test can disturb."""
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import time

import thalweg as tw
from addresses import new_address, scheme_of
from process_state import Series, at_rest, state_of

TASKS = [("ps", 0), ("ps", 1), ("worker", 0), ("worker", 1)]
FAKETIME = pathlib.Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
SANITIZED = "LD_PRELOAD" in os.environ


def name_of(key):
    return f"/job:{key[0]}/task:{key[1]}"


class Faults:
    """The numbers that failing_files.c reads in the processes of the cluster."""

    def __init__(self, path):
        self.path = path
        path.write_bytes(bytes(16))

    def set(self, every, error=0):
        with self.path.open("r+b") as f:
            f.write(struct.pack("II", every, error))

    def failed(self):
        return struct.unpack("4I", self.path.read_bytes())[3]


class Cluster:
    """clocks: whether the test can set the clocks of tasks. failing_files: the library of failing_files.c; "": none."""

    def __init__(self, program, transport, folder, clocks, failing_files):
        self.program, self.transport, self.folder = program, transport, folder
        self.clocks, self.failing_files, self.began = clocks, failing_files, time.monotonic()
        self.address = {job: [new_address(transport, "soak") for _ in range(2)] for job in ("ps", "worker")}
        self.file = folder / "cluster.json"
        self.file.write_text(json.dumps(self.address))
        self.failing = folder / "in" / "failing"
        self.failing.mkdir(parents=True)
        self.faults = Faults(folder / "faults")
        self.credentials = scheme_of(transport) == "grpc"
        if self.credentials:
            subprocess.run([program, "cluster", "init", "--cluster", str(self.file), "--out", str(folder / "keys"), "--client", "ann"], check=True,
                           stdout=subprocess.DEVNULL)
        self.log = (folder / "log").open("wb")
        self.processes, self.series, self.ended, self.killed = {}, {}, [], set()
        if clocks:
            self.check_clock()
        for key in TASKS:
            self.set_clock(key, "+0")
            self.start(key)
            assert not clocks or FAKETIME.name in pathlib.Path(f"/proc/{self.processes[key].pid}/maps").read_text()

    def clock(self, key):
        return self.folder / f"clock-{key[0]}-{key[1]}"

    def set_clock(self, key, text):
        """Sets the clock of a task. text: in libfaketime's format; libfaketime reads it once a second."""
        fresh = self.folder / "clock"
        fresh.write_text(text + "\n")
        fresh.rename(self.clock(key))

    def environment(self, key):
        preloaded = [str(FAKETIME)] * self.clocks + [self.failing_files] * bool(self.failing_files)
        if not preloaded:
            return dict(os.environ)
        # Waits and deadlines use the machine's monotonic clock, so a step of the other clock must not affect them.
        return {**os.environ, "LD_PRELOAD": " ".join(preloaded), "FAKETIME_TIMESTAMP_FILE": str(self.clock(key)), "FAKETIME_CACHE_DURATION": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1", "NO_FAKE_STAT": "1", "THALWEG_FAILING_FOLDER": str(self.failing),
                "THALWEG_FAILING_FILES": str(self.faults.path)}

    def check_clock(self):
        """Checks that a program started like a task sees the step of its wall clock, and an unchanged monotonic clock."""
        key, program = TASKS[0], "import time; print(time.time(), time.monotonic())"
        self.set_clock(key, "+86400")
        said = subprocess.run([sys.executable, "-c", program], env=self.environment(key), capture_output=True, text=True, check=True).stdout.split()
        self.set_clock(key, "+0")
        assert abs(float(said[0]) - time.time() - 86400) < 60 and abs(float(said[1]) - time.monotonic()) < 60, said

    def start(self, key):
        job, task = key
        words = [self.program, "worker", "--plugin", self.transport, "--cluster", str(self.file), "--job", job, "--task", str(task), "--threads", "2",
                 "--allow", str(self.folder / "in")]
        if self.credentials:
            words += ["--credentials", str(self.folder / "keys" / f"{job}-{task}")]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=self.log, text=True, env=self.environment(key),
                                   preexec_fn=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_IGN))
        line = process.stdout.readline()
        assert line == f"listening at {self.address[job][task]}\n", (line, self.tail())
        self.processes[key] = process
        self.killed.discard(key)
        self.series[key] = Series(name_of(key), process.pid)

    def kill(self, key):
        process = self.processes[key]
        self.killed.add(key)
        process.kill()
        process.wait()
        process.stdout.close()
        self.ended.append(self.series[key])

    def stop(self, key):
        self.processes[key].send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.processes[key].pid, os.WSTOPPED)

    def go_on(self, key):
        self.processes[key].send_signal(signal.SIGCONT)

    def check_alive(self):
        for key, process in self.processes.items():
            assert key in self.killed or process.poll() is None, f"task {name_of(key)} ended by itself with {process.returncode}; {self.tail()}"

    def see(self):
        for key, series in self.series.items():
            if state := state_of(self.processes[key].pid):
                series.see(state)

    def rest(self, pause):
        now, found = time.monotonic() - self.began, at_rest([s.pid for s in self.series.values()], pause=pause)
        for series in self.series.values():
            series.rest(now, found[series.pid])

    def options(self):
        return {"credentials": str(self.folder / "keys" / "client-ann")} if self.credentials else {}

    def session(self, graph, **options):
        return tw.Session(graph, target=self.address["worker"][0], **self.options(), **options)

    def open_sessions(self):
        """Returns the number of open sessions of each task."""
        while True:
            found = [t.get("sessions") for t in tw.cluster_status(self.address["worker"][0], timeout=30, **self.options())]
            if all(n is not None for n in found):  # None: the task did not answer in time
                return found

    def tail(self):
        return "the tasks' last words: " + (self.folder / "log").read_text(errors="replace")[-2000:]

    def close(self):
        for process in self.processes.values():
            process.kill()
            process.wait()
            process.stdout.close()
        self.log.close()
