"""Row 36: two loops of one step, one putting 20,000 values into a queue that holds one, the other taking them out: what a value costs."""
from bench import Goal

NUMBER = 36
TITLE = "20,000 values through a queue that holds one"


def run(bench):
    for threads in (1, 2):
        bench.compare(f"per value, {threads} thread{'s' * (threads > 1)}", ("Thalweg", bench.ours(threads), "handoff 5"),
                      ("TensorFlow", bench.peer("TensorFlow", threads), "handoff 5"), unit="ns", goal=Goal(1.0), threads=threads)
