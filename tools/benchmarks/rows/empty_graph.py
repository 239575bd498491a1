"""Row 31, experiment E06: null operations per second and core, from a step of 10,000 nodes that do nothing and have no dependencies. The
white paper's runtime ran 2,000,000, which is 500 ns each."""
from bench import Goal

NUMBER = 31
TITLE = "empty graph of 10,000 nodes, time per null operation (E06)"


def run(bench):
    ours = ("Thalweg", bench.ours(1), "empty_graph 30")
    probe = ("prototype loop", lambda: bench.machine().ask("loop 30")[0])
    bench.compare("null operation, 1 thread", ours, ("prototype loop", bench.machine(), "loop 30"), unit="ns", goal=Goal(500, of="ours"))
    for name in ("TensorFlow", "TensorFlow C"):
        bench.compare("null operation, 1 thread", ours, (name, bench.peer(name, 1), "empty_graph 30"), unit="ns", goal=Goal(0.5),
                      probe=probe)
