"""What processes hold, by /proc, and whether that stays the same over time."""
import os
import pathlib
import statistics
import time
from typing import NamedTuple

PAGE = os.sysconf("SC_PAGESIZE")


class State(NamedTuple):
    """Of one process at one moment. rss: bytes."""
    rss: int
    descriptors: int
    threads: int


def state_of(pid):
    """None for a process that is not there any more."""
    here = pathlib.Path(f"/proc/{pid}")
    try:
        threads = next(line for line in (here / "status").read_text().splitlines() if line.startswith("Threads:"))
        return State(int((here / "statm").read_text().split()[1]) * PAGE, len(os.listdir(here / "fd")), int(threads.split()[1]))
    except (OSError, StopIteration):
        return None


def at_rest(pids, readings=5, pause=0.2):
    """For each process the least of each over some readings, so that what a call holds for a moment does not count."""
    found = {pid: [] for pid in pids}
    for i in range(readings):
        if i:
            time.sleep(pause)
        for pid, states in found.items():
            if state := state_of(pid):
                states.append(state)
    return {pid: State(*map(min, zip(*states))) for pid, states in found.items() if states}


def slope(points):
    """By which the second numbers grow with the first: the median of the slopes between all pairs (Theil and Sen), which up to 29 % of points that
    lie anywhere do not move far."""
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for i, a in enumerate(points) for b in points[i + 1:] if b[0] > a[0]]
    return statistics.median(slopes) if slopes else 0.0


class Series:
    """The states at rest of one process, from its start to its end; one that is started again has another series."""

    def __init__(self, name, pid):
        self.name, self.pid, self.points = name, pid, []  # (seconds, State)
        self.peak = State(0, 0, 0)

    def see(self, state):
        """Counts for the peak alone."""
        self.peak = State(*map(max, self.peak, state))

    def rest(self, now, state):
        self.see(state)
        self.points.append((now, state))

    def grown(self, warm):
        """By how much each grew in a straight line through what was seen after `warm` seconds of its own; None: seen too few times."""
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
