"""Row 21: bytes over the transport: a step that fetches a value of 64 KB, 1 MB and 64 MB from a parameter server."""
from bench import Goal
from rows.cluster_step import bare_grpc

NUMBER = 21
TITLE = "values from a parameter server"
SIZES = (("64 KB", 64 << 10, 200, 1.333), ("1 MB", 1 << 20, 60, 1.667), ("64 MB", 64 << 20, 7, 1.176))


def run(bench):
    ours = bench.program_worker("cluster of 1", "thalweg_worker", 2)
    for name, size, samples, limit in SIZES:
        command = f"1 {size} {samples}"
        for anchor, worker, what, goal in (("gRPC", bare_grpc(bench, f"of {name}"), f"call {command}", Goal(0.909)),
                                           ("TCP", bench.machine(), f"tcp {command}", Goal(limit))):
            bench.compare(name, ("Thalweg", ours, f"cluster {command}"), (anchor, worker, what), unit="us", goal=goal)
    ours.ask("cluster_stop")
