"""Graphs of branches and loops that TensorFlow wrote, against what it answers (goldens/control_flow.json.gz, which control_flow_peer.py
writes): with one thread and several, with and without optimisation, and once more after a round trip."""
import base64
import gzip
import json
import pathlib

import numpy as np

import cases
import thalweg

PATH = pathlib.Path(__file__).parent / "goldens" / "control_flow.json.gz"
ONE, MANY = thalweg.Runtime(threads=1), thalweg.Runtime(threads=4)


def check(number, use):
    data = base64.b64decode(use["graph"])
    for runtime, options in ((ONE, {}), (MANY, {}), (MANY, {"optimize": False})):
        graph = thalweg.Graph.from_bytes(data, runtime)
        written = graph.to_bytes()
        cases.holds(f"program {number} is written as it is read", thalweg.Graph.from_bytes(written, runtime).to_bytes() == written)
        with thalweg.Session(graph, **options) as session:
            for feeds, answers in zip(use["feeds"], use["answers"]):
                got = session.run([graph.output(x) for x in use["outputs"]],
                                  {graph.output(x): np.array(f, np.float32) for x, f in zip(use["inputs"], feeds)})
                for x, wanted in zip(got, answers):
                    cases.equal(f"program {number} of {options}, fed {feeds}", x, np.array(wanted, np.float32))


if __name__ == "__main__":
    for number, use in enumerate(json.loads(gzip.decompress(PATH.read_bytes()))):
        check(number, use)
    cases.finish()
