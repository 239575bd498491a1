"""Row 25: the time to import a training graph of 5,300 nodes from the bytes of its file, and the time to the end of its first step, which
includes planning, against parsing the file with Protocol Buffers into an arena."""
import pathlib
import tempfile

from bench import Goal
from workers import Worker

NUMBER = 25
MISSED = """Row 25: a flat profile; a quarter of the instructions are malloc and free of nodes, their lists and names,
of which the arena has none."""
TITLE = "graph of 5,300 nodes: import, and to the end of the first step"


def run(bench):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "graph.pb"
        ours = bench.ours(1)
        ours.ask(f"graph_write 5300 {file}")
        parser = bench.worker("protobuf", lambda log: Worker([bench.program("protobuf_worker")], 1, log))
        tensorflow = bench.peer("TensorFlow C", 1)
        for what, command, goal in (("import", "graph_load", Goal(1.5)), ("import, plan, first step", "graph_plan", Goal(4, floor=10))):
            bench.compare(what, ("Thalweg", ours, f"{command} {file}"), ("arena parse", parser, f"parse {file}"), unit="ms", goal=goal)
            bench.compare(what, ("Thalweg", ours, f"{command} {file}"), ("TensorFlow C", tensorflow, f"{command} {file}"), unit="ms",
                          goal=Goal(0.5))
