"""Row 19: a step that copies 100 MB from a variable on a parameter server to a tensor at the worker, which reads the first number."""
from bench import Goal
from rows.cluster_step import bare_grpc

NUMBER = 19
TITLE = "distributed fetch of 100 MB"
BYTES = 100 * 1000 * 1000
SAMPLES = 7


def run(bench):
    ours = bench.program_worker("cluster of 1", "thalweg_worker", 2)
    command = f"1 {BYTES} {SAMPLES}"
    for name, anchor, what, goal in (
            ("TensorFlow", bench.peer("TensorFlow", 2), f"cluster {command}", Goal(1.0, floor=1.0)),
            ("gRPC", bare_grpc(bench, "of 100 MB"), f"call {command}", None),
            ("TCP", bench.machine(), f"tcp {command}", Goal(0.5, floor=1.15))):
        bench.compare("1 server", ("Thalweg", ours, f"cluster {command}"), (name, anchor, what), unit="ms", goal=goal)
    ours.ask("cluster_stop")
