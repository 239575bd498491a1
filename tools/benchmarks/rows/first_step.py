"""Row 32, experiment G7: the first step of a new session, which plans, and a later step, which finds its plan, in a training graph of 5,300
small nodes."""
import pathlib
import tempfile

from bench import Goal

NUMBER = 32
TITLE = "first and later steps of a session, graph of 5,300 nodes (G7)"


def run(bench):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "graph.pb"
        ours, tensorflow = bench.ours(1), bench.peer("TensorFlow C", 1)
        ours.ask(f"graph_write 5300 {file}")
        first, later = ("Thalweg", ours, f"first_step {file}"), ("Thalweg", ours, f"later_step {file}")
        bench.compare("first step", first, ("Thalweg, later step", ours, f"later_step {file}"), unit="ms")
        bench.compare("first step", first, ("TensorFlow C", tensorflow, f"first_step {file}"), unit="ms", goal=Goal(0.5))
        bench.compare("later step", later, ("TensorFlow C", tensorflow, f"later_step {file}"), unit="ms", goal=Goal(0.5))
