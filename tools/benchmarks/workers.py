"""Processes that answer commands, so that they can be timed in turns; see programs/worker.h."""
import os
import pathlib
import select
import subprocess

PATIENCE_S = 600  # seconds to wait for an answer


class Failed(Exception):
    """A row could not be run; the message has the reason."""


class Absent(Exception):
    """The anchor is absent; the message has the reason."""


class Worker:
    """A process that runs on the first `threads` of the processors that we may use. Its standard error is appended to `log`."""

    def __init__(self, command, threads, log, environment=None):
        cpus = sorted(os.sched_getaffinity(0))[:threads]
        with open(log, "ab") as errors:
            self.process = subprocess.Popen(
                [str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                env={**os.environ, **(environment or {})}, preexec_fn=lambda: os.sched_setaffinity(0, cpus))
        self.name = pathlib.Path(str(command[-2] if len(command) > 1 else command[0])).stem
        self.log = log
        self.buffer = b""
        try:
            self.read_line()  # "ready"
        except Failed as error:
            raise Absent(str(error)) from error

    def read_line(self):
        out = self.process.stdout.fileno()
        while b"\n" not in self.buffer:
            if not select.select([out], [], [], PATIENCE_S)[0]:
                self.process.kill()
                raise Failed(f"{self.name}: no answer within {PATIENCE_S} s")
            more = os.read(out, 65536)
            if not more:
                raise Failed(f"{self.name}: ended with status {self.process.wait()}; see {self.log}")
            self.buffer += more
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.decode()

    def ask(self, command):
        """Sends a command. Returns the numbers of the answer; raises Failed if the worker reports an error or ended."""
        try:
            self.process.stdin.write((command + "\n").encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # read_line reports how the worker ended
        word, _, rest = self.read_line().partition(" ")
        if word != "ok":
            raise Failed(f"{self.name}: {command}: {rest}")
        return [float(number) for number in rest.split()]

    def memory(self):
        """Returns the worker's resident memory in bytes."""
        pages = pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
