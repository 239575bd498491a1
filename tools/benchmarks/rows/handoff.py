"""Row 36: the cost of a value through a queue: two loops of one step, of which one enqueues 20,000 values into a queue of capacity one and
the other dequeues them."""
from bench import Goal

NUMBER = 36
TITLE = "20,000 values through a queue that holds one"


def run(bench):
    for threads in (1, 2):
        bench.compare(f"per value, {threads} thread{'s' * (threads > 1)}", ("Thalweg", bench.ours(threads), "handoff 5"),
                      ("TensorFlow", bench.peer("TensorFlow", threads), "handoff 5"), unit="ns", goal=Goal(1.0), threads=threads)
