"""Row 26: from the start of a process to the end of its first step, a graph of 100 nodes, over a process that does nothing."""
from bench import Goal

NUMBER = 26
TITLE = "cold start: process to first step, graph of 100 nodes"


def run(bench):
    machine = bench.machine()
    bench.compare("process to first step", ("Thalweg", machine, f"spawn {bench.program('cold_start')}"),
                  ("empty process", machine, f"spawn {bench.program('empty')}"), unit="ms", goal=Goal(5e6, floor=12e6, of="difference"))
