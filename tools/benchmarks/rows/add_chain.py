"""Row 3: a chain of 10,000 additions of one element, with outputs: the cost of a small node."""
from bench import Goal

NUMBER = 3
TITLE = "chain of 10,000 additions of one element"


def run(bench):
    probe = ("prototype loop", lambda: bench.machine().ask("loop 30")[0])
    for threads in (1, 2):
        ours = ("Thalweg", bench.ours(threads), "add_chain 30")
        for name, goal in (("TensorFlow", Goal(0.25, floor=0.35)), ("TensorFlow C", Goal(0.25, floor=0.35)), ("ONNX Runtime", None), ("PyTorch", None)):
            bench.compare(f"per node, {threads} thread{'s' * (threads > 1)}", ours, (name, bench.peer(name, threads), "add_chain 30"),
                          unit="ns", goal=goal, threads=threads, probe=probe)
