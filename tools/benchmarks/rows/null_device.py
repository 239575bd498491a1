"""Row 34: the runtime's own time in a step and in its planning: the same graphs on a device that accepts every op and computes nothing
(plugins/null), against the CPU. The device uses the host's memory, so plans are the same, node by node. Its kernels open no variables, so
the time excludes their locks. The ratio is the runtime's share."""
import pathlib
import tempfile

from bench import Goal
from rows.mlp_step import write_data

NUMBER = 34
TITLE = "null device: the runtime's share of a step"
NODES = 1000


def run(bench):
    # This worker has a runtime of its own, because a runtime that knows the null device has more kernels to search.
    worker = bench.program_worker("thalweg null", "thalweg_worker", 1)
    worker.ask(f"device_load {bench.build / 'tests/devices/libnull.so'}")
    with tempfile.TemporaryDirectory() as folder:
        write_data(folder)
        worker.ask(f"mlp_load {folder}")
        worker.ask(f"mlp_null_load {folder}")
        bench.compare("MLP training step", ("null device", worker, "mlp_null_step 200"), ("CPU", worker, "mlp_step 200"), unit="us",
                      goal=Goal(0.05))
        file = pathlib.Path(folder) / "graph.pb"
        worker.ask(f"graph_write {NODES} {file}")
        for what, command, goal in ((f"later step, {NODES} small nodes", "later_step", Goal(0.2)),
                                    (f"first step, {NODES} small nodes", "first_step", None)):
            bench.compare(what, ("null device", worker, f"null_{command} {file}"), ("CPU", worker, f"{command} {file}"), unit="us",
                          goal=goal)
