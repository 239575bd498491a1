"""Makes the seeds of graph_def_fuzz out of the graphs that the op tests run: for every op the smallest graphs that have it.
usage: PYTHONPATH=build/release/python make_corpus.py [FOLDER]     (default: corpus/graph_def beside this file)"""
import contextlib
import hashlib
import io
import pathlib
import runpy
import sys

import thalweg

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "ops"))
MOST_BYTES, PER_OP = 2048, 2
SOURCES = ["oracle_test.py", "gradient_test.py", "state_test.py", "random_test.py", "training_test.py", "string_test.py", "control_flow_test.py"]
graphs = {}  # bytes -> ops
start = thalweg.Session.__init__


def record(session, graph=None, **options):
    start(session, graph, **options)
    data = session.graph.to_bytes()
    if len(data) <= MOST_BYTES:
        graphs.setdefault(data, frozenset(operation.type for operation in session.graph.operations()))


thalweg.Session.__init__ = record
for source in filter(lambda s: (here.parent / "ops" / s).exists(), SOURCES):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        runpy.run_path(str(here.parent / "ops" / source), run_name="__main__")

chosen, seen = [], {}
for data, ops in sorted(graphs.items(), key=lambda g: (len(g[0]), g[0])):
    if any(seen.get(op, 0) < PER_OP for op in ops):
        chosen.append(data)
        for op in ops:
            seen[op] = seen.get(op, 0) + 1
folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here / "corpus" / "graph_def"
folder.mkdir(parents=True, exist_ok=True)
for data in chosen:
    (folder / hashlib.sha1(data).hexdigest()[:16]).write_bytes(data)
print(f"{len(chosen)} seeds of {sum(map(len, chosen))} bytes for {len(seen)} of {len(thalweg.Runtime.default().ops())} ops in {folder}")
