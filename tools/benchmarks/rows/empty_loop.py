"""Row 35: the cost of an iteration, from a loop of Enter, Merge, Switch, NextIteration and Exit that only counts 100,000 iterations."""
from bench import Goal

NUMBER = 35
TITLE = "loop of 100,000 iterations that only counts"


def run(bench):
    probe = ("prototype loop", lambda: bench.machine().ask("loop 30")[0])
    for threads in (1, 2):
        bench.compare(f"per iteration, {threads} thread{'s' * (threads > 1)}", ("Thalweg", bench.ours(threads), "loop 5"),
                      ("TensorFlow", bench.peer("TensorFlow", threads), "loop 5"), unit="ns", goal=Goal(0.5), threads=threads, probe=probe)
