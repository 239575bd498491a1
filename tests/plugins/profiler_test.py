"""The example trace_profiler.c writes the steps of sessions that name it in an option, and of no others: all nodes, what kernels report,
steps that fail. The file is read as JSON and compared with what the program did."""
import collections
import json
import os
import pathlib
import sys

import numpy as np
import pytest

import thalweg as tw

BUILD = pathlib.Path(os.environ["THALWEG_BINARY_DIR"])
TRACE, TRANSPORT = (BUILD / f"examples/plugins/lib{name}.so" for name in ("trace_profiler", "socket_transport"))
sys.path.insert(0, str(pathlib.Path(os.environ["THALWEG_SOURCE_DIR"]) / "tests/distributed"))
from local_cluster import local_cluster  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def profiler():
    tw.load_plugin(TRACE)


def events(path):
    return json.loads(path.read_text(encoding="utf-8"))


def of(all_events, category):
    return [e for e in all_events if e.get("cat") == category and e["ph"] in "Xb"]


def test_every_step_of_the_session_is_in_the_file(tmp_path):
    path = tmp_path / "steps.json"
    graph = tw.Graph()
    with graph:
        x = tw.placeholder(tw.float32, [None])
        y = tw.ops.tanh(x) * 2.0 + x
    with tw.Session(graph, profiler=f"trace:{path}", optimize=False, compilers="off") as session, tw.Session(graph) as other:
        for n in (1, 5, 0):
            feed = np.arange(n, dtype="f")
            np.testing.assert_allclose(session.run(y, {x: feed}), np.tanh(feed) * 2 + feed, rtol=1e-6)
            assert np.array_equal(other.run(y, {x: feed}), session.run(y, {x: feed}))
        # Each step is there when its run has returned; only the end of the list is missing.
        assert len(of(json.loads(path.read_text(encoding="utf-8") + "\n]"), "step")) == 6
    got = events(path)
    steps = of(got, "step")
    assert [s["args"]["step"] for s in steps] == [1, 2, 3, 4, 5, 6]
    assert len({s["args"]["trace"] for s in steps}) == 6 and not any(s["args"]["failed"] for s in steps)
    nodes = collections.Counter((e["args"]["step"], e["name"]) for e in of(got, "node"))
    for step in range(1, 7):
        assert nodes[step, "Tanh"] == 1 and nodes[step, "Mul"] == 1, nodes
    for node in of(got, "node"):
        step = steps[node["args"]["step"] - 1]
        assert step["ts"] <= node["ts"] and node["ts"] + node["dur"] <= step["ts"] + step["dur"] + 0.002  # rounded to nanoseconds
        assert node["args"]["device"].endswith("CPU:0")
    bars = sorted((e["ts"], -e["dur"], e["ts"] + e["dur"]) for e in got if e["ph"] == "X" and e["tid"] == 0)
    inside = []
    for begin, _, end in bars:  # bars of one thread are disjoint or nested
        while inside and inside[-1] <= begin + 0.001:
            inside.pop()
        assert not inside or end <= inside[-1] + 0.002
        inside.append(end)
    begins, ends = ([e["id"] for e in got if e["ph"] == phase] for phase in "be")
    assert len(set(begins)) == len(begins) and sorted(begins) == sorted(ends)


def test_spans_of_kernels_belong_to_their_nodes(tmp_path):
    path = tmp_path / "save.json"
    graph = tw.Graph()
    with graph:
        saved = tw.ops.save_v2(str(tmp_path / "model"), ["v"], [""], [np.ones(7, "f")])
    with tw.Session(graph, profiler=f"trace:{path}") as session:
        session.run(saved)
    got = events(path)
    (node,) = (e for e in of(got, "node") if e["name"] == "SaveV2")
    spans = [e for e in of(got, "kernel") if e["args"]["node"] == node["args"]["node"]]
    assert spans, "the kernel of SaveV2 reports spans"
    for span in spans:
        assert node["ts"] <= span["ts"] and span["ts"] + span["dur"] <= node["ts"] + node["dur"] + 0.002


def test_a_step_that_fails_is_in_the_file(tmp_path):
    path = tmp_path / "failing.json"
    graph = tw.Graph()
    with graph:
        x = tw.placeholder(tw.float32, [None])
        y = x + np.ones(3, "f")
    with tw.Session(graph, profiler=f"trace:{path}") as session:
        session.run(y, {x: np.zeros(3, "f")})
        with pytest.raises(tw.InvalidArgumentError):
            session.run(y, {x: np.zeros(2, "f")})
    assert [s["args"]["failed"] for s in of(events(path), "step")] == [False, True]


@pytest.mark.parametrize("option, error, words", [
    ("nobody", tw.NotFoundError, "there is no profiler 'nobody'; there are 'trace'"),
    ("trace", tw.InvalidArgumentError, "profiler=trace:FILE"),
    ("trace:/no/such/folder/x.json", tw.NotFoundError, "/no/such/folder/x.json"),
])
def test_a_profiler_that_cannot_start_is_an_error(option, error, words):
    graph = tw.Graph()
    with pytest.raises(error, match=words):
        tw.Session(graph, profiler=option)


def test_a_full_disk_fails_no_step():
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    graph = tw.Graph()
    with graph:
        y = tw.constant(np.float32(2)) * 3.0
    with tw.Session(graph, profiler="trace:/dev/full") as session:
        assert session.run(y) == 6
        assert session.run(y) == 6


def test_a_cluster_session_writes_the_nodes_of_all_tasks(tmp_path):
    path = tmp_path / "cluster.json"
    tw.load_plugin(TRANSPORT)
    graph = tw.Graph()
    with graph:
        x = tw.placeholder(tw.float32, [None])
        with tw.device("/job:ps/task:0"):
            y = tw.ops.tanh(x)
        with tw.device("/job:worker/task:0"):
            z = tw.ops.neg(y)
    with local_cluster(str(BUILD / "bin/thalweg"), str(TRANSPORT), ps=1, workers=1) as cluster:
        with cluster.session(graph, profiler=f"trace:{path}") as session:
            for _ in range(2):
                np.testing.assert_allclose(session.run(z, {x: np.ones(3, "f")}), -np.tanh(np.ones(3)), rtol=1e-6)
    got = events(path)
    # The tasks number their traces themselves.
    assert [(s["args"]["trace"], s["args"]["failed"]) for s in of(got, "step")] == [(0, False)] * 2
    where = {(e["name"], e["args"]["device"].split("/replica")[0]) for e in of(got, "node")}
    assert {("Tanh", "/job:ps"), ("Neg", "/job:worker")} <= where, where
