"""Measures the cost of a sandbox per step: microseconds per step of y = x + 1 on arrays of several sizes, at a worker and at a sandboxed
one in short turns. Prints the medians of the turns, the median of their differences, and the difference of the fifths of the turns that
were least disturbed, for machines that have other work.

usage: PYTHONPATH=build/release/python python3 sandbox_cost.py THALWEG [TURNS, default 61]"""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import thalweg as tw

THALWEG = sys.argv[1]
TURNS = int(sys.argv[2]) if len(sys.argv) > 2 else 61
STEPS = 200


def worker(folder, name, port, *options):
    file = pathlib.Path(folder) / f"{name}.json"
    file.write_text(json.dumps({"worker": [f"127.0.0.1:{port}"]}))
    process = subprocess.Popen([THALWEG, "worker", "--cluster", str(file), "--job", "worker", "--threads", "2", *options],
                               stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    assert line.startswith("listening at "), line
    return process, line.split()[-1]


def stepper(address, elements):
    with tw.Graph() as graph:
        x = tw.placeholder(np.float32, [None])
        y = x + np.float32(1)
    session = tw.Session(graph, target=address)
    feed = np.zeros(elements, np.float32)
    step = session.callable([y], feeds=[x])
    step(feed)
    return lambda: step(feed)


def median(step):
    times = []
    for _ in range(STEPS):
        began = time.perf_counter()
        step()
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e6


def quiet(values):
    """Returns the median of the lowest fifth of the values."""
    return statistics.median(sorted(values)[:max(len(values) // 5, 1)])


with tempfile.TemporaryDirectory() as folder:
    plain, at_plain = worker(folder, "plain", 0)
    boxed, at_boxed = worker(folder, "boxed", 0, "--sandbox")
    try:
        for elements in (1, 1000, 10_000, 100_000):
            a, b = stepper(at_plain, elements), stepper(at_boxed, elements)
            pairs = []
            for turn in range(TURNS):
                first, second = (a, b) if turn % 2 else (b, a)
                times = {first: median(first), second: median(second)}
                pairs.append((times[a], times[b]))
            more = statistics.median(y - x for x, y in pairs)
            undisturbed = quiet([p[1] for p in pairs]) - quiet([p[0] for p in pairs])
            print(f"{elements:7} numbers: worker {statistics.median(p[0] for p in pairs):7.1f} us, sandboxed "
                  f"{statistics.median(p[1] for p in pairs):7.1f} us, difference {more:6.1f} us, "
                  f"undisturbed {undisturbed:6.1f} us", flush=True)
    finally:
        for process in (plain, boxed):
            process.terminate()
            process.wait()
