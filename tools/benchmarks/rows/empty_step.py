"""Row 1: a step of one operation that does nothing, through a prepared callable and through a run that is looked up."""
from bench import Goal

NUMBER = 1
TITLE = "empty step: prepared callable, named run"


def run(bench):
    probe = ("mutex pairs", lambda: bench.machine().ask("mutex 100")[0])
    for threads in (1, 2):
        ours, where = bench.ours(threads), f"{threads} thread{'s' * (threads > 1)}"

        def against(name, what, command, goal):
            bench.compare(f"{what}, {where}", ("Thalweg", ours, f"{command} 1000"), (name, bench.peer(name, threads), f"{command} 1000"),
                          unit="us", goal=goal, threads=threads, probe=probe)

        against("TensorFlow", "prepared callable", "callable", Goal(0.07, floor=0.1))
        against("TensorFlow", "named run", "run", Goal(0.08, floor=0.15))
        against("TensorFlow C", "named run", "run", Goal(0.2))
        against("ONNX Runtime", "prepared callable", "callable", Goal(0.25))
        against("JAX", "prepared callable", "callable", None)
        bench.compare(f"prepared callable, {where}", ("Thalweg", ours, "callable 1000"), ("mutex pair", bench.machine(), "mutex 1000"),
                      unit="us", threads=threads)
