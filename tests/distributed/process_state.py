"""The resources that processes hold, from /proc, and whether they grow over time."""
import os
import pathlib
import statistics
import time
from typing import NamedTuple

PAGE = os.sysconf("SC_PAGESIZE")


class State(NamedTuple):
    """The resources of one process at one moment. rss: bytes."""
    rss: int
    descriptors: int
    threads: int


def state_of(pid):
    """Returns the state of a process, or None if it does not exist any more."""
    here = pathlib.Path(f"/proc/{pid}")
    try:
        threads = next(line for line in (here / "status").read_text().splitlines() if line.startswith("Threads:"))
        return State(int((here / "statm").read_text().split()[1]) * PAGE, len(os.listdir(here / "fd")), int(threads.split()[1]))
    except (OSError, StopIteration):
        return None


def arenas_of(pid):
    """Returns the number of malloc's arenas in a process, beside the main one: each reserves 64 MiB at a multiple of 64 MiB. An arena with
    more than that counts several times."""
    size, count, before = 64 << 20, 0, None  # before: the accessible part of what may be an arena
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
        words = line.split()
        begin, end = (int(n, 16) for n in words[0].split("-"))
        if len(words) == 5 and words[1] == "---p" and before and before[1] == begin and end - before[0] == size:
            count += 1
        before = (begin, end) if len(words) == 5 and words[1] == "rw-p" and begin % size == 0 else None
    return count


def at_rest(pids, readings=5, pause=0.2):
    """Returns, for each process, the minimum of each resource over some readings. Resources that a call holds briefly do not count."""
    found = {pid: [] for pid in pids}
    for i in range(readings):
        if i:
            time.sleep(pause)
        for pid, states in found.items():
            if state := state_of(pid):
                states.append(state)
    return {pid: State(*map(min, zip(*states))) for pid, states in found.items() if states}


def slope(points):
    """Returns the slope of a line through the points: the median of the slopes between all pairs (Theil and Sen), which up to 29 % of
    outliers do not change much."""
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for i, a in enumerate(points) for b in points[i + 1:] if b[0] > a[0]]
    return statistics.median(slopes) if slopes else 0.0


class Series:
    """The states at rest of one process, from its start to its end. A restarted process has another series."""

    def __init__(self, name, pid):
        self.name, self.pid, self.points = name, pid, []  # (seconds, State)
        self.peak = State(0, 0, 0)

    def see(self, state):
        """Adds a state that counts only for the peak."""
        self.peak = State(*map(max, self.peak, state))

    def rest(self, now, state):
        self.see(state)
        self.points.append((now, state))

    def grown(self, warm):
        """Returns the growth of each resource along a straight line through the states after the process's first `warm` seconds, or None
        if there are too few states."""
        settled = [(t, s) for t, s in self.points if t - self.points[0][0] >= warm] if self.points else []
        if len(settled) < 3:
            return None
        length = settled[-1][0] - settled[0][0]
        return State(*(slope([(t, s[k]) for t, s in settled]) * length for k in range(3)))

    def __str__(self):
        first, last = self.points[0][1], self.points[-1][1]
        return (f"{self.name} (process {self.pid}): {len(self.points)} times at rest; RSS {first.rss >> 10} -> {last.rss >> 10} KiB, peak "
                f"{self.peak.rss >> 10}; descriptors {first.descriptors} -> {last.descriptors}, peak {self.peak.descriptors}; threads "
                f"{first.threads} -> {last.threads}, peak {self.peak.threads}")
