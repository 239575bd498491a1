"""What loops keep for their gradients: on their device, in host memory, or computed once more."""
import numpy as np
import pytest

import thalweg as tw

from flow_cases import BUILDERS, FAKE, numeric

N, ITERATIONS = 8192, 200
KEPT = ITERATIONS * N * 4  # bytes that each value of the body takes, all iterations together


def on_a_device(memory, **options):
    """Two hundred iterations of 32 KiB each on a device: the gradient, what was swapped out and in, and what the device counted."""
    runtime = tw.Runtime(plugin_path=FAKE, threads=2, **{"plugin.org.thalweg.fake.memory": memory})
    with tw.Graph(runtime) as graph:
        x = tw.placeholder("float32", [N])

        def body(i, y):
            with tw.device("FAKE:0"):
                return [i + 1, tw.ops.relu(tw.ops.mul(y, tw.constant(np.full(N, 0.99, np.float32))))]

        _, y = tw.while_loop(lambda i, y: i < ITERATIONS, body, [0, x])
        dx = tw.gradients(y, x)
    data = np.linspace(-1, 1, N, dtype=np.float32)
    with tw.Session(graph, **options) as s:
        value, gradient = s.run([y, dx], {x: data})
        report = s.report()
    np.testing.assert_allclose(value, np.maximum(data, 0) * 0.99**ITERATIONS, rtol=1e-4)
    np.testing.assert_allclose(gradient, (data > 0) * 0.99**ITERATIONS, rtol=1e-4)
    counts = next(d for d in runtime.devices() if d.name.endswith("FAKE:0")).statistics
    return gradient.tobytes(), report["swapped_out_bytes"], report["swapped_in_bytes"], counts


def test_what_a_loop_keeps_for_its_gradient_stays_on_its_device_while_there_is_room():
    _, out, back, counts = on_a_device("64M")
    assert out == 0 and back == 0
    # Nor do its variables travel: what comes into the loops and leaves them is copied, and numbers.
    assert counts["bytes_in"] < 10 * N * 4 and counts["bytes_out"] < 10 * N * 4


def test_what_a_loop_keeps_goes_to_host_memory_where_the_device_is_too_small():
    kept = on_a_device("64M")[0]
    for memory, options in (("1M", {}), ("1M", {"swap_memory_above": "256K"}), ("64M", {"swap_memory_above": "1M"})):
        gradient, out, back, counts = on_a_device(memory, **options)
        assert gradient == kept
        assert KEPT - (1 << 20) <= out <= KEPT and 0 < back <= out
        assert counts["bytes_out"] >= out and counts["bytes_in"] >= back


def test_a_device_that_is_too_small_is_an_error_where_nothing_may_be_swapped():
    with pytest.raises(tw.ResourceExhaustedError, match="FAKE:0"):
        on_a_device("1M", swap_memory_above="1G")


def through_a_stack(memory, **options):
    """Pushes values of a device onto a stack and pops them there: their weighted sum, and what was swapped out and in."""
    runtime = tw.Runtime(plugin_path=FAKE, threads=2, **{"plugin.org.thalweg.fake.memory": memory})
    values = 64
    with tw.Graph(runtime) as graph:
        x = tw.placeholder("float32", [N])
        stack = tw.ops.stack_v2(-1, elem_type="float32")
        before = []
        for k in range(values):
            with tw.device("FAKE:0"):
                value = tw.ops.mul(x, tw.constant(np.full(N, k + 2, np.float32)))
            with tw.control_dependencies(before):
                before = [tw.ops.stack_push_v2(stack, value)]
        total = x
        for k in range(values):
            with tw.control_dependencies(before):
                popped = tw.ops.stack_pop_v2(stack, elem_type="float32")
            before = [popped]
            with tw.device("FAKE:0"):
                total = tw.ops.relu(tw.ops.mul(total, tw.constant(np.full(N, 0.5, np.float32))) + popped)
    data = np.linspace(0, 1, N, dtype=np.float32)
    with tw.Session(graph, **options) as s:
        found = s.run(total, {x: data})
        report = s.report()
    wanted = data.astype(np.float64)
    for k in reversed(range(values)):
        wanted = wanted * 0.5 + data.astype(np.float64) * (k + 2)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    return found.tobytes(), report["swapped_out_bytes"], report["swapped_in_bytes"]


def test_a_stack_swaps_where_the_device_is_too_small():
    kept, out, back = through_a_stack("64M")
    assert out == 0 and back == 0
    found, out, back = through_a_stack("64M", swap_memory_above="512K")
    assert found == kept and 32 * N * 4 <= out <= 64 * N * 4 and 0 < back <= out


def kept_of(graph, x, limit, **keeping):
    """The gradient of a loop of its own, and how many values it keeps of each iteration."""
    _, y = tw.while_loop(lambda i, y: i < limit, lambda i, y: [i + 1, tw.ops.tanh(tw.ops.sin(tw.ops.exp(y * y)))], [0, x])
    before = len(graph)
    dx = tw.gradients(y, x, **keeping)
    loop, = [o for o in graph.operations()[before:] if o.name.endswith("_with_captures")]
    return dx, len(loop.outputs) - len(y.operation.outputs) - 1  # a count


def test_a_budget_chooses_what_is_computed_once_more(graph):
    x = tw.placeholder("float32", [5])
    kept, n_kept = kept_of(graph, x, 4)
    again, n_again = kept_of(graph, x, 4, recompute=True)
    assert n_again == 1 < n_kept
    needed = 4 * n_kept * 5 * 4  # iterations, values, bytes of each
    rich, n_rich = kept_of(graph, x, 4, memory_budget=needed)
    poor, n_poor = kept_of(graph, x, 4, memory_budget=needed - 1)
    assert (n_rich, n_poor) == (n_kept, n_again)
    with tw.Session(graph) as s:
        data = np.linspace(-1, 1, 5, dtype=np.float32)
        assert len({s.run(dx, {x: data}).tobytes() for dx in (kept, again, rich, poor)}) == 1


def test_a_loop_of_unknown_length_or_size_is_beyond_any_budget(graph):
    limit = tw.placeholder("int32", [])
    assert kept_of(graph, tw.placeholder("float32", [5]), limit, memory_budget=1 << 60)[1] == 1
    assert kept_of(graph, tw.placeholder("float32", [None]), 4, memory_budget=1 << 60)[1] == 1


def test_loops_share_a_budget(graph):
    x = tw.placeholder("float32", [5])
    y = tw.ops.identity(x)
    for _ in range(3):
        _, y = tw.while_loop(lambda i, y: i < 4, lambda i, y: [i + 1, tw.ops.tanh(tw.ops.sin(tw.ops.exp(y * y)))], [0, y])
    before = len(graph)
    tw.gradients(y, x, memory_budget=2 * 4 * kept_of(graph, x, 4)[1] * 5 * 4)
    loops = [o for o in graph.operations()[before:] if o.name.endswith("_with_captures")]
    assert sorted(len(o.outputs) for o in loops)[0] < sorted(len(o.outputs) for o in loops)[-1]


@pytest.mark.parametrize("what", BUILDERS)
def test_what_is_computed_once_more_has_the_same_bits(graph, what):
    x = tw.placeholder("float64", [2])
    y = BUILDERS[what](x)
    kept, again = tw.gradients(y, x), tw.gradients(y, x, recompute=True)
    twice = tw.gradients(again, x, recompute=True)
    with tw.Session(graph) as s:
        data = np.array([0.3, 0.8])
        for fetches in ([kept, again], [again], [again, kept, y], [twice, y]):
            s.run(fetches, {x: data})
        assert s.run(kept, {x: data}).tobytes() == s.run(again, {x: data}).tobytes()
        np.testing.assert_allclose(s.run(twice, {x: data}), numeric(lambda v: s.run(kept, {x: v}), data), rtol=1e-4, atol=1e-6)


def test_a_loop_that_is_computed_once_more_keeps_its_variables_only(graph):
    x = tw.placeholder("float32", [5])
    _, y = tw.while_loop(lambda i, y: i < 4, lambda i, y: [i + 1, tw.ops.tanh(tw.ops.sin(tw.ops.exp(y * y)))], [0, x])
    before = len(graph)
    tw.gradients(y, x)
    kept = [o for o in graph.operations()[before:] if o.name.endswith("_with_captures")]
    before = len(graph)
    tw.gradients(y, x, recompute=True)
    again = [o for o in graph.operations()[before:] if o.name.startswith("StatelessWhile") and "_with_captures" in o.name]
    assert len(kept) == len(again) == 1 and len(again[0].outputs) - len(kept[0].outputs) == 2  # a count, and a list of y


def test_random_values_are_not_drawn_once_more(graph):
    x = tw.placeholder("float32", [5])
    _, y = tw.while_loop(lambda i, y: i < 4, lambda i, y: [i + 1, y * tw.ops.random_uniform([5], dtype="float32")], [0, x])
    dx = tw.gradients(y, x, recompute=True)
    with tw.Session(graph) as s:
        value, gradient = s.run([y, dx], {x: np.full(5, 2, np.float32)})
        np.testing.assert_allclose(gradient, value / 2, rtol=1e-6)


# ---- Devices: which come first, and values that wait in host memory ----

def chain_on_a_device(graph, layers=12):
    """A flat chain on a device whose results are read again in reverse order."""
    x = tw.placeholder("float32", [N])
    with tw.device("FAKE:0"):
        kept, h = [], x
        for _ in range(layers):
            h = tw.ops.mul(h, h)
            kept.append(h)
        d = tw.ops.neg(h)
        for value in reversed(kept):
            d = tw.ops.mul(d, value)
    return x, d


def test_values_of_a_device_wait_in_host_memory_for_a_budget():
    runtime = tw.Runtime(plugin_path=FAKE, threads=2)
    with tw.Graph(runtime) as graph:
        x, d = chain_on_a_device(graph)
    data = np.linspace(-1, 1, N, dtype=np.float32)
    with tw.Session(graph) as s:
        wanted, free = s.run(d, {x: data}), s.plan(d, {x: [N]})
    assert sum(b["bytes"] for b in free["block_bytes"]) >= 12 * N * 4
    options = {"memory_budget": str(7 * N * 4), "disable_pass": "recompute"}
    with tw.Session(graph, **options) as s:
        found, plan = s.run(d, {x: data}), s.plan(d, {x: [N]})
    assert found.tobytes() == wanted.tobytes()
    assert sum(b["bytes"] for b in plan["block_bytes"]) <= 7 * N * 4
    memory = plan["memory"]
    assert memory["swapped"] and not memory["recomputed"] and memory["swap_ns"] > 0
    assert all(v["bytes"] == N * 4 and v["value"].startswith("Mul") for v in memory["swapped"])
    with tw.Session(graph, memory_budget=str(7 * N * 4)) as s:  # here computing again is cheaper than copies
        assert s.run(d, {x: data}).tobytes() == wanted.tobytes()
        memory = s.plan(d, {x: [N]})["memory"]
    assert memory["recomputed"] and not memory["swapped"]


def test_accelerators_come_first_for_large_graphs():
    runtime = tw.Runtime(plugin_path=FAKE, threads=2)

    def places(size, **options):
        with tw.Graph(runtime) as graph:
            x = tw.placeholder("float32", [size])
            y = tw.ops.mul(x, x)
        with tw.Session(graph, **options) as s:
            found = s.run(y, {x: np.full(size, 3, np.float32)})
            assert (found == 9).all()
            place, = [p for p in s.plan(y, {x: [size]})["places"] if p["op"] == "Mul"]
        return place["device"].rsplit("device:", 1)[-1]

    large = 1 << 19
    assert [places(8, prefer="auto"), places(large, prefer="auto"), places(large)] == ["CPU:0", "FAKE:0", "CPU:0"]
    assert places(8, prefer="accelerator") == "FAKE:0" and places(large, prefer="auto", device="CPU:0") == "CPU:0"


def test_nodes_about_shapes_follow_their_input_and_sources_their_reader():
    runtime = tw.Runtime(plugin_path=FAKE, threads=2)
    with tw.Graph(runtime) as graph:
        x = tw.placeholder("float32", [4])
        with tw.device("CPU:0"):
            made = tw.ops.exp(x)
        renamed = tw.ops.reshape(made, [2, 2])
        with tw.device("CPU:0"):
            read = tw.ops.neg(renamed)
    with tw.Session(graph, prefer="accelerator") as s:
        np.testing.assert_allclose(s.run(read, {x: np.zeros(4, np.float32)}), -np.ones((2, 2)))
        place, = [p for p in s.plan(read, {x: [4]})["places"] if p["op"] == "Reshape"]
    assert place["device"].endswith("CPU:0") and place["why"] == "follows" and place["with"] == made.operation.name


def test_variables_of_a_large_graph_move_to_their_reader():
    runtime = tw.Runtime(plugin_path=FAKE, threads=2)
    with tw.Graph(runtime) as graph:
        w = tw.Variable(np.ones(1 << 19, np.float32), name="w")
        loss = (w * w).mean()
        step = tw.train.SGD(0.25).minimize(loss)
        start = graph.initializer()
    results = []
    for options in ({"prefer": "auto"}, {"container": "on the host"}):
        with tw.Session(graph, **options) as s:
            s.run(start)
            for _ in range(3):
                s.run(step)
            results.append(s.run(loss))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6)


def test_devices_of_a_stored_graph_are_mapped():
    with tw.Graph() as graph:
        x = tw.placeholder("float32", [2])
        with tw.device("/job:ps/task:1"):
            y = tw.ops.neg(x)
    data = np.array([1, -2], np.float32)
    with tw.Session(graph) as s, pytest.raises(tw.NotFoundError, match="job:ps"):
        s.run(y, {x: data})
    for rule in ("/job:ps=CPU:0", "/job:ps="):
        with tw.Session(graph, map_device=rule) as s:
            np.testing.assert_array_equal(s.run(y, {x: data}), -data)
    with pytest.raises(tw.InvalidArgumentError, match="map_device"):
        tw.Session(graph, map_device="/job:ps")
