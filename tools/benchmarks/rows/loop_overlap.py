"""Row 37: a loop of 64 iterations, each a chain of eight products of 64 x 64, which do not depend on other iterations: ten of them at once
(parallel_iterations) against one at a time, on two threads."""
from bench import Goal

NUMBER = 37
TITLE = "iterations of a loop side by side"


def run(bench):
    ours = bench.ours(2)
    for many in (2, 10):
        bench.compare(f"per iteration, {many} at once, 2 threads", ("Thalweg", ours, f"chains {many}"), ("one at a time", ours, "chains 1"),
                      unit="us", goal=Goal(0.7, floor=1), threads=2)
