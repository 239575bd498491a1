"""Compares graphs of branches, loops and arrays that TensorFlow wrote, and their gradients, with TensorFlow's results
(goldens/control_flow.json.gz, which control_flow_peer.py writes): with one thread and several, with and without optimisation, and once more
after a round trip."""
import base64
import gzip
import json
import pathlib

import numpy as np

import cases
import thalweg
from tw import SESSION, runtime

PATH = pathlib.Path(__file__).parent / "goldens" / "control_flow.json.gz"
ONE, MANY = runtime(threads=1), runtime(threads=4)


def check(number, use):
    data = base64.b64decode(use["graph"])
    for runtime, options in ((ONE, {}), (MANY, {}), (MANY, {"optimize": False})):
        graph = thalweg.Graph.from_bytes(data, runtime)
        written = graph.to_bytes()
        cases.holds(f"program {number} is written as it is read", thalweg.Graph.from_bytes(written, runtime).to_bytes() == written)
        inputs, outputs = [graph.output(x) for x in use["inputs"]], [graph.output(x) for x in use["outputs"]]
        gradients = thalweg.gradients(outputs, inputs)
        cases.holds(f"program {number} depends on the same inputs", [g is not None for g in gradients] == use["depends"], gradients)
        fetches = outputs + [g for g in gradients if g is not None]
        with thalweg.Session(graph, **{**options, **SESSION}) as session:
            for feeds, answers in zip(use["feeds"], use["answers"]):
                fed = {x: np.array(f, np.float32) for x, f in zip(inputs, feeds)}
                for way, got, wanted in (("together", session.run(fetches, fed), answers),
                                         ("alone", session.run(outputs, fed), answers[:len(outputs)])):
                    for x, w in zip(got, wanted):
                        w = np.array(w, np.float32)
                        size = max(1, np.abs(w).max(initial=0))  # the error of a sum in another order is relative to this
                        cases.equal(f"program {number} of {options}, {way}, fed {feeds}", x / size, w / size)


if __name__ == "__main__":
    for number, use in enumerate(json.loads(gzip.decompress(PATH.read_bytes()))):
        if cases.sampled("program"):
            check(number, use)
    cases.finish()
