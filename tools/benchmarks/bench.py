"""The tools for a row of tools/bench: workers, pairs, the probe, results."""
import dataclasses
import os
import pathlib
import statistics
import subprocess
import sys

import peers
from workers import Absent, Failed, Worker

LEAST_SCALING = 1.8  # a parallel comparison counts only if the probe speeds up at least this much on two threads
MOST_STEAL = 0.005   # largest share of the processors' time that other guests may take during a comparison
ATTEMPTS = 3         # a comparison that does not count is repeated up to this many times in all
MOST_KEPT = 1 << 30  # bytes that a worker may still hold when its row ends


@dataclasses.dataclass
class Goal:
    """The figure that `of` names shall be at most `limit`, and must be at most `floor`."""
    limit: float
    floor: float | None = None
    of: str = "ratio"  # or "difference" or "ours", our own figure


@dataclasses.dataclass
class Result:
    row: int
    what: str
    unit: str
    ours: float
    anchor_name: str
    anchor: float | None  # None: the anchor is absent
    metric: list      # lower quartile, median, upper quartile of the figure that `of` names
    of: str           # "ratio", "difference", "ours", or "probe" if there is no anchor
    probe_name: str
    goal: Goal | None
    met: str          # "yes", "missed", "missed, floor too", "discarded: ..." or "-"
    samples: list = dataclasses.field(default_factory=list)  # pairs (ours, anchor), each the numbers of one answer


def steal():
    """Returns the ticks that other guests of the host took from this machine, and all ticks."""
    ticks = [int(word) for word in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return ticks[7], sum(ticks)


class Bench:
    def __init__(self, build, pairs, use_peers, may_build):
        self.build = pathlib.Path(build).resolve()
        self.pairs = pairs
        self.use_peers = use_peers
        self.may_build = may_build
        self.folder = self.build / "benchmarks"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.results = []
        self.probes = []
        self.workers = {}
        self.built = set()
        self.fastest = 0  # multiply-adds on one thread
        self.row = 0

    def close(self):
        for worker in self.workers.values():
            if isinstance(worker, Worker):
                worker.close()

    def end_row(self):
        """Ends the workers that hold much memory, so that rows do not fill the machine together. They restart when they are next used."""
        for name, worker in list(self.workers.items()):
            if isinstance(worker, Worker) and worker.memory() > MOST_KEPT:
                worker.close()
                del self.workers[name]

    def cpus(self):
        return len(os.sched_getaffinity(0))

    def program(self, name):
        """Builds one of our programs unless --no-build was given. Returns its path."""
        if self.may_build and name not in self.built:
            done = subprocess.run(["cmake", "--build", str(self.build), "--target", name], capture_output=True, text=True)
            if done.returncode != 0:
                raise Failed(f"cannot build '{name}' in {self.build}:\n{done.stdout[-3000:]}{done.stderr[-1000:]}")
            self.built.add(name)
        if not (self.folder / name).exists():
            raise Failed(f"'{self.folder / name}' is not built; leave --no-build out")
        return self.folder / name

    def worker(self, name, make):
        """Returns the worker of that name; the first call starts it. If it could not be started, each call raises Absent."""
        if name not in self.workers:
            try:
                self.workers[name] = make(self.folder / f"{name.replace(' ', '_')}.log")
            except Absent as error:
                print(f"bench: {name} is left out: {error}", file=sys.stderr)
                self.workers[name] = error
        if isinstance(self.workers[name], Absent):
            raise self.workers[name]
        return self.workers[name]

    def program_worker(self, name, program, threads, *options):
        """Returns a worker of one of our programs; raises Failed if it does not start. options: arguments of its command line."""
        def start(log):
            try:
                return Worker([self.program(program), threads, *options], threads, log)
            except Absent as error:
                raise Failed(str(error)) from error
        return self.worker(name, start)

    def ours(self, threads, *options):
        """Returns Thalweg's worker. options: options of its runtime, "key=value"."""
        return self.program_worker(" ".join(["thalweg", str(threads), *options]), "thalweg_worker", threads, *options)

    def machine(self):
        return self.worker("machine", lambda log: Worker([self.program("machine_worker")], self.cpus(), log))

    def peer(self, name, threads):
        """Returns a worker that peers.command knows, or None if it is not installed or --peers was not given."""
        if not self.use_peers:
            return None
        try:
            return self.worker(f"{name} {threads}", lambda log: Worker(
                [*peers.command(name, self.folder), threads], threads, log, {"TF_CPP_MIN_LOG_LEVEL": "3"}))
        except Absent:
            return None

    # ---- Probe ----

    def probe(self):
        """Measures the machine now: GFLOP/s and GB/s on one thread and on two, ns of an uncontended mutex lock and unlock, load."""
        ask = self.machine().ask
        threads = min(2, self.cpus())
        taken = {"fma": [ask("fma 1")[0], ask(f"fma {threads}")[0]], "triad": [ask("triad 1")[0], ask(f"triad {threads}")[0]],
                 "mutex_ns": ask("mutex 100")[0], "load": os.getloadavg()[0]}
        self.probes.append(taken)
        return taken

    def scaling(self):
        """Returns how much faster the probe is on two threads now than its fastest result on one thread in this run."""
        self.fastest = max(self.fastest, self.machine().ask("fma 1")[0])
        return self.machine().ask("fma 2")[0] / self.fastest

    # ---- Comparing ----

    def compare(self, what, ours, anchor, *, unit, goal=None, threads=1, probe=None):
        """Times `ours` against `anchor` in turns, A B B A, and records one result.
        ours, anchor: (name, worker, command); the worker of an absent anchor is None. unit: the unit of the figures, a key of UNITS.
        probe: (name, function that returns ns): if the anchor is absent, our figure is compared with this one."""
        if threads > self.cpus():
            print(f"bench: row {self.row}, {what}: left out, it needs {threads} processors", file=sys.stderr)
            return
        if not self.probes:
            self.probe()
        if anchor[1] is None:
            return self.without_anchor(what, ours, anchor[0], unit, goal, probe)
        for _ in range(ATTEMPTS):
            samples, why = self.attempt(ours, anchor, threads)
            if not why:
                break
        self.record(what, unit, samples, anchor[0], goal, why)

    def attempt(self, ours, anchor, threads):
        """Returns the pairs, and the reason why they do not count, or "" if they do."""
        samples, scales = [], []
        stolen, ticks = steal()
        for i in range(self.pairs):
            samples.append(self.pair(i, ours, anchor))
            if threads > 1:
                scales.append(self.scaling())
        stolen_after, ticks_after = steal()
        if scales and statistics.median(scales) < LEAST_SCALING:
            return samples, f"the probe scales {statistics.median(scales):.2f}x"
        if stolen_after - stolen > MOST_STEAL * (ticks_after - ticks) + 1:
            return samples, f"steal time moved by {stolen_after - stolen} ticks"
        return samples, ""

    def pair(self, i, ours, anchor):
        if i % 2 == 0:
            first = ours[1].ask(ours[2])
            return first, anchor[1].ask(anchor[2])
        first = anchor[1].ask(anchor[2])
        return ours[1].ask(ours[2]), first

    def record(self, what, unit, samples, anchor_name, goal, discarded=""):
        of = goal.of if goal else "ratio"
        a, b = ([s[k][0] for s in samples] for k in (0, 1))
        values = {"ratio": [x / y for x, y in zip(a, b)], "difference": [x - y for x, y in zip(a, b)], "ours": a}[of]
        metric = quartiles(values)
        met = f"discarded: {discarded}" if discarded else verdict(metric[1], goal)
        self.results.append(Result(self.row, what, unit, statistics.median(a), anchor_name, statistics.median(b), metric, of, "", goal,
                                   met, samples))

    def without_anchor(self, what, ours, anchor_name, unit, goal, probe):
        samples = []
        for _ in range(self.pairs):
            samples.append((ours[1].ask(ours[2]), [probe[1]()] if probe else []))
        a = [s[0][0] for s in samples]
        metric = quartiles([s[0][0] / s[1][0] for s in samples]) if probe else []
        met = verdict(statistics.median(a), goal) if goal and goal.of == "ours" else "-"
        self.results.append(Result(self.row, what, unit, statistics.median(a), anchor_name, None, metric, "probe",
                                   probe[0] if probe else "", goal, met, samples))

    def note(self, what, unit, ours, anchor_name, anchor, goal):
        """Records a figure that is the same each time, so it needs no pairs. anchor: None if there is none."""
        if anchor is None:
            met = verdict(ours, goal) if goal and goal.of == "ours" else "-"
            self.results.append(Result(self.row, what, unit, ours, anchor_name, None, [], "probe", "", goal, met))
        else:
            self.record(what, unit, [([ours], [anchor])], anchor_name, goal)


def quartiles(values):
    if len(values) == 1:
        return values * 3
    return statistics.quantiles(values, n=4, method="inclusive")


def verdict(value, goal):
    if not goal:
        return "-"
    if value <= goal.limit:
        return "yes"
    return "missed, floor too" if goal.floor is not None and value > goal.floor else "missed"
