"""`tools/bench ops`: times every op against TensorFlow's, one at a time, on the cases of op_cases.py."""
import json
import os
import statistics
import subprocess
import sys
import tempfile

import peers
import table
from bench import Goal
from workers import Failed, Worker

GOAL = Goal(3)
SAMPLE_MS = 15    # the calls of one sample take this long together
WORST = 10
SOURCE = peers.HERE.parent.parent
PYTHON = "/usr/bin/python3"  # the binding is built for this one


class Sweep:
    def __init__(self, bench, folder):
        self.bench, self.folder, self.threads = bench, folder, bench.cpus()
        self.missing = []  # (case, reason why it could not be compared)
        self.ours = self.worker([PYTHON, "-B", peers.PROGRAMS / "ops_worker.py"], "ops_thalweg", {
            "PYTHONPATH": f"{bench.build}/python:{SOURCE}/tests/ops", "THALWEG_LIBRARY": f"{bench.build}/lib/libthalweg.so",
            "THALWEG_OPTIONS": f"threads={self.threads}"})
        self.theirs = None
        self.ours.ask("list")
        with open(f"{folder}/cases.json") as file:
            listed = json.load(file)
        self.cases, self.left_out = listed["cases"], listed["left out"]

    def worker(self, command, name, environment):
        return Worker([*command, self.folder, self.threads], self.threads, self.bench.folder / f"{name}.log", environment)

    def close(self):
        for worker in filter(None, (self.ours, self.theirs)):
            worker.close()

    def run(self, ops):
        """Compares the ops. ops: their names, None for all."""
        if self.bench.use_peers:
            self.theirs = self.worker([peers.environment() / "bin/python", "-B", peers.PROGRAMS / "tensorflow_ops_worker.py"],
                                      "ops_tensorflow", {"TF_CPP_MIN_LOG_LEVEL": "3"})
        for number, (op, name) in enumerate(self.cases):
            if ops is None or op in ops:
                print(f"bench: {name}", file=sys.stderr)
                self.compare(number, name)

    def compare(self, number, name):
        if not self.asked(f"Thalweg: {name}", self.ours, f"make {number}"):
            return
        theirs = self.theirs
        if theirs and not self.asked(f"TensorFlow: {name}", theirs, "make"):
            theirs = None
        if theirs and not self.asked(name, self.ours, f"agree {number}"):
            return
        for worker in filter(None, (self.ours, theirs)):
            worker.ask(f"time {SAMPLE_MS}")  # warms up
        timed = ("Thalweg", self.ours, f"time {SAMPLE_MS}"), ("TensorFlow", theirs, f"time {SAMPLE_MS}")
        if theirs:
            self.bench.record(name, "us", [self.bench.pair(i, *timed) for i in range(self.bench.pairs)], "TensorFlow", GOAL)
        else:
            self.bench.without_anchor(name, *timed[:1], "TensorFlow", "us", None, None)

    def asked(self, what, worker, command):
        if worker.ask(command)[0]:
            return True
        with open(f"{self.folder}/why") as file:
            self.missing.append((what, file.read()))
        return False


def factor(result):
    return result.metric[1] if result.metric else 0


def show(sweep, results, everything):
    """Returns the table, with the slowest op last, then the ops without a figure and the reasons, then the worst ten."""
    ordered = sorted(results, key=factor)
    header = ("op", "ours", "TensorFlow", "ratio", "met")
    anchor = lambda r: "-" if r.anchor is None else table.figure(r.anchor, r.unit)  # noqa: E731
    cells = {r.what: (r.what, table.figure(r.ours, r.unit), anchor(r), table.ratio(r), r.met) for r in ordered}
    parts = [table.columns([header, *cells.values()])]
    if everything:
        parts.append("Not compared:\n" + "\n".join(f"  {op}: {why}" for op, why in sorted(sweep.left_out.items())))
    if sweep.missing:
        parts.append("Could not be compared:\n" + "\n".join(f"  {what}: {why}" for what, why in sweep.missing))
    with_ratio = [r for r in ordered if r.metric]
    if with_ratio:
        many = [sum(factor(r) <= most for r in with_ratio) for most in (1, 2, 3)]
        parts.append(f"{len(with_ratio)} cases: {many[0]} are no slower than TensorFlow's, {many[1]} at most twice, {many[2]} at most "
                     f"three times as slow; median ratio {statistics.median(map(factor, with_ratio)):.3g}x")
        parts.append(f"The worst {min(WORST, len(with_ratio))}:\n" +
                     table.columns([header, *(cells[r.what] for r in with_ratio[-WORST:])]))
    return "\n\n".join(parts)


def bring_up_to_date(build):
    done = subprocess.run(["cmake", "--build", str(build), "--target", "thalweg", "thalweg_plugin_cpu", "thalweg_python"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(f"cannot build the library and its Python binding in {build}:\n{done.stdout[-3000:]}{done.stderr[-1000:]}")


def listing(sweep):
    lines = [f"{op:36}  {name[len(op):].strip()}".rstrip() for op, name in sweep.cases]
    return "\n".join(lines + [f"{op:36}  not compared: {why}" for op, why in sorted(sweep.left_out.items())])


def run(bench, options):
    """Runs the sweep. Returns the exit status that tools/bench documents."""
    bench.row = "ops"
    if bench.may_build:
        bring_up_to_date(bench.build)
    if not os.path.exists(bench.build / "python/thalweg"):
        raise Failed(f"'{bench.build}' has no Python binding; configure it with THALWEG_BUILD_PYTHON=ON")
    with tempfile.TemporaryDirectory() as folder:
        sweep = Sweep(bench, folder)
        try:
            unknown = sorted(set(options.ops or ()) - {op for op, _ in sweep.cases} - set(sweep.left_out))
            if unknown:
                raise Failed(f"no op {', '.join(unknown)}; tools/bench ops --list shows all")
            if options.list:
                print(listing(sweep))
                return 0
            sweep.run(options.ops)
        finally:
            sweep.close()
    print(show(sweep, bench.results, options.ops is None))
    failed = any(what.startswith("Thalweg:") or ": " not in what for what, _ in sweep.missing)
    return 1 if failed else 3 if options.strict and any(r.met.startswith("missed") for r in bench.results) else 0
