import copy
import json
import pathlib
import sys
import threading

import numpy as np
import pytest

import thalweg as tw
import thalweg.stats as stats_module

sys.path.append(str(pathlib.Path(__file__).parent.parent / "tools"))
from trace_format import check_trace  # noqa: E402


@pytest.fixture
def step(graph):
    """A session of one thread, Neg(x x), and what it is fed."""
    x = tw.placeholder("float32", [2, 2], name="x")
    y = tw.ops.neg(tw.ops.mat_mul(x, x, name="product"), name="y")
    return tw.Session(graph, threads=1), y, {x: np.ones((2, 2), np.float32)}


def test_a_run_tells_what_each_part_took(step):
    s, y, feeds = step
    stats = tw.StepStats()
    assert stats.nodes == [] and stats.ops == [] and stats.waits == [] and stats.total == (0,) * 7 + (False,) * 3 + (0,) * 3
    assert s.run(y, feeds, stats=stats).tolist() == [[-2, -2], [-2, -2]]
    product, negative = stats.nodes
    assert (product.name, product.op, product.thread, product.output_bytes) == ("product", "MatMul", 0, 16)
    assert product.device.endswith("CPU:0") and "MatMul" in product.kernel and not product.failed and not product.is_copy
    assert 0 <= product.start_ns <= product.end_ns <= negative.start_ns and product.busy_ns == product.end_ns - product.start_ns
    assert {o.op: o.count for o in stats.ops} == {"MatMul": 1, "Neg": 1} and stats.ops[0].busy_ns >= stats.ops[1].busy_ns
    total = stats.total
    assert total.nodes == 2 and total.threads == 1 and total.planned and not total.counted and not total.failed
    assert total.total_ns > total.plan_ns > 0 and total.total_ns >= negative.end_ns and "2 nodes" in repr(stats)
    assert product.shapes == "float [2, 2], float [2, 2] -> float [2, 2]" and negative.after == (product.id,) and total.step == 1
    s.run(y, feeds, stats=stats)
    assert len(stats.nodes) == 2 and not stats.total.planned and stats.total.step == 2 and stats.total.left_out == 0


def test_callables_and_futures_take_them_too(step):
    s, y, feeds = step
    f, (value,) = s.callable(y, list(feeds)), feeds.values()
    stats = [tw.StepStats() for _ in range(3)]
    f(value, stats=stats[0])
    f.run_async(value, stats=stats[1]).result(60)
    s.run_async(y, feeds, stats=stats[2]).result(60)
    assert [[n.name for n in one.nodes] for one in stats] == [["product", "y"]] * 3


def test_a_run_that_fails_tells_how_far_it_came(graph):
    x = tw.placeholder("float32", name="x")
    y = tw.ops.mat_mul(tw.ops.neg(x, name="before"), np.ones((2, 2), np.float32), name="fails")
    s, stats = tw.Session(graph, threads=1), tw.StepStats()
    s.run(y, {x: np.ones((2, 2))})  # plans are made for shapes: the shape is known to be wrong before anything runs
    with pytest.raises(tw.InvalidArgumentError):
        s.run(y, {x: np.ones((2, 3))}, stats=stats)
    assert stats.total.failed
    at = tw.placeholder("int32", name="at")
    picked = tw.ops.gather_v2(tw.ops.neg(x, name="first"), at, 0, name="picked")
    with pytest.raises(tw.Error, match="picked"):
        s.run(picked, {x: np.ones((2, 3)), at: 7}, stats=stats)
    assert [(n.name, n.failed) for n in stats.nodes] == [("first", False), ("picked", True)] and stats.total.failed


def test_the_json_is_a_trace(step):
    s, y, feeds = step
    s.run(y, feeds, stats=(stats := tw.StepStats()))
    bars = {e["name"]: e for e in json.loads(stats.to_json())["traceEvents"] if e["ph"] == "X"}
    assert bars["MatMul"]["dur"] == pytest.approx(stats.nodes[0].busy_ns / 1000, abs=0.01)


def test_several_runs_are_one_trace(step, tmp_path):
    s, y, feeds = step
    trace = tw.Trace(most=3)
    for _ in range(5):
        s.run(y, feeds, stats=trace.step())
    trace.write(tmp_path / "steps.json")
    events = check_trace((tmp_path / "steps.json").read_text())
    steps = [e["args"]["step"] for e in events if e.get("cat") == "op"]
    assert steps == [3, 3, 4, 4, 5, 5] and check_trace(tw.Trace().to_json())[0]["name"] == "process_name"
    with pytest.raises(RuntimeError, match="under way"):
        stats_module.take(trace.step())
        trace.to_json()


def test_what_is_beyond_the_limit_is_counted(step):
    s, y, feeds = step
    s.run(y, feeds, stats=(stats := tw.StepStats(limit=1)))
    assert [n.name for n in stats.nodes] == ["product"] and stats.total.left_out == 1
    check_trace(stats.to_json())


def test_functions_and_loops_are_told_node_by_node(graph):
    n = tw.placeholder("int32", [], name="n")
    total = tw.while_loop(lambda i, t: i < n, lambda i, t: (i + 1, t + i), [tw.constant(0), tw.constant(0)])[1]
    s = tw.Session(graph, threads=1, optimize=False)
    assert int(s.run(total, {n: 4}, stats=(stats := tw.StepStats()))) == 6
    inside = [x for x in stats.nodes if x.function]
    calls = {(x.function, x.call) for x in inside}
    assert inside and len({call for _, call in calls}) == 5  # the condition five times, the body four
    events = check_trace(stats.to_json())
    functions = [e for e in events if e.get("cat") == "function"]
    assert len(functions) == 9 and {e["args"]["call"] for e in functions} == {1, 2, 3, 4, 5}
    outer = next(e for e in events if e.get("cat") == "op" and "While" in e["name"])
    assert all(outer["ts"] <= e["ts"] and e["ts"] + e["dur"] <= outer["ts"] + outer["dur"] + .01 for e in functions)


def test_loops_of_primitives_tell_their_iterations(graph):
    start = tw.ops.enter(tw.constant(0), frame_name="rounds")
    at = tw.ops.merge([start, start]).output
    with tw.control_dependencies([at]):
        more = tw.ops.loop_cond(at < tw.constant(3))
    last, body = tw.ops.switch(at, more)
    with tw.control_dependencies([body]):
        graph.close_loop(at, tw.ops.next_iteration(tw.ops.add_v2(body, tw.constant(1))))
    end = tw.ops.exit(last)
    s = tw.Session(graph, threads=1)  # one iteration after the other: each is a call
    assert int(s.run(end, stats=(stats := tw.StepStats()))) == 3
    adds = [n for n in stats.nodes if n.op == "AddV2"]
    assert len({(n.function, n.call) for n in adds}) == 3 and all("while_body" in n.function for n in adds)
    s = tw.Session(graph, threads=1, disable_pass="sequence")
    assert int(s.run(end, stats=(stats := tw.StepStats()))) == 3
    adds = [n for n in stats.nodes if n.op == "AddV2"]
    assert [(n.frame, n.loop, n.iteration) for n in adds] == [("rounds", adds[0].loop, k) for k in range(3)]
    assert all(n.shapes == "int32 [], int32 [] -> int32 []" for n in adds)
    loops = [e["name"] for e in check_trace(stats.to_json()) if e["ph"] == "b" and e["cat"] == "loop"]
    assert loops[:3] == [f"loop 'rounds' iteration {k}" for k in range(3)]


def test_they_outlive_the_session(step):
    s, y, feeds = step
    s.run(y, feeds, stats=(stats := tw.StepStats()))
    del s, step
    assert [n.name for n in stats.nodes] == ["product", "y"]


def test_one_run_at_a_time_has_them(graph):
    n = tw.placeholder("int32", [], name="n")
    wide = tw.ops.random_uniform([n, n], dtype="float32")
    product = tw.ops.mat_mul(wide, wide).sum()
    s, stats = tw.Session(graph, threads=2), tw.StepStats()
    s.run(product, {n: 8})
    future = s.run_async(product, {n: 1500}, stats=stats)
    refused = []
    for use in (lambda: stats.nodes, lambda: stats.total, stats.to_json, lambda: s.run(product, {n: 8}, stats=stats),
                lambda: s.run_async(product, {n: 8}, stats=stats)):
        try:
            use()
        except RuntimeError as e:
            refused.append("under way" in str(e))
    assert not future.done() and refused == [True] * 5 and "under way" in repr(stats)
    future.result(60)
    assert stats.total.nodes > 0 and not stats.total.failed


def test_each_thread_has_its_own(step):
    s, y, feeds = step

    def use():
        for _ in range(50):
            s.run(y, feeds, stats=(stats := tw.StepStats()))
            found.append(len(stats.nodes))

    found = []
    threads = [threading.Thread(target=use) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [2] * 200


def test_what_is_no_statistics_is_refused(step):
    s, y, feeds = step
    for run in (s.run, s.run_async):
        with pytest.raises(TypeError, match="stats is a StepStats, not {}"):
            run(y, feeds, stats={})
    stats = tw.StepStats()
    with pytest.raises(TypeError, match="timeout"):
        s.run(y, feeds, stats=stats, timeout="soon")
    with pytest.raises(TypeError, match="timeout"):
        s.run_async(y, feeds, stats=stats, timeout="soon")
    s.run(y, feeds, stats=stats)  # none of them kept it
    with pytest.raises(TypeError, match="cannot be copied"):
        copy.copy(stats)
