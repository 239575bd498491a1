"""Conditions and loops, against what Python itself computes."""
import threading

import numpy as np
import pytest

import thalweg as tw
from thalweg import flow

from flow_cases import FAKE, for_loop, run


# ---- Conditions ----

@pytest.mark.parametrize("value, wanted", [(3, 6), (-3, 3), (0, 0)])
def test_a_condition_gives_what_its_branch_gives(graph, x, value, wanted):
    assert run(tw.cond(x > 0, lambda: x * 2, lambda: -x), {x: value}) == wanted


def test_only_the_branch_that_was_chosen_runs(graph, x):
    v = tw.Variable(np.float32(0), name="v")
    chosen = tw.cond(x > 0, lambda: [v.assign_add(1.0)], lambda: [v.assign_add(10.0)])
    with tw.Session(graph) as s:
        s.run(graph.initializer())
        for value, wanted in ((1, 1), (-1, 11), (2, 12)):
            s.run(chosen, {x: value})
            assert s.run(v.read()) == wanted


@pytest.mark.parametrize("pred, truth", [(np.float32(0), False), (np.float64(-0.5), True), (np.int64(7), True), (b"", False), (b"no", True),
                                         (np.zeros(0, np.float32), False), (np.zeros(3, np.float32), True), (np.uint8(0), False),
                                         (np.float16(0), False)], ids=repr)
def test_anything_can_be_the_condition(graph, pred, truth):
    p = tw.placeholder(tw.as_dtype("string" if isinstance(pred, bytes) else np.asarray(pred).dtype), np.shape(pred))
    assert run(tw.cond(p, lambda: 1, lambda: 0), {p: pred}) == int(truth)


def test_a_number_that_no_branch_has_chooses_the_last(graph):
    i = tw.placeholder("int32", [])
    y = tw.switch_case(i, [lambda: 10, lambda: 20, lambda: 30])
    with tw.Session(graph) as s:
        assert [int(s.run(y, {i: n})) for n in (0, 1, 2, 3, -1)] == [10, 20, 30, 30, 30]


def test_branches_of_several_results_keep_their_order(graph, x):
    a, b = tw.cond(x > 0, lambda: [x, x + 1], lambda: [x * 2, x * 3])
    assert run([a, b], {x: 2}) == [2, 3] and run([a, b], {x: -2}) == [-4, -6]


def test_branches_that_differ_are_refused(graph, x):
    with pytest.raises(TypeError, match="`then` gives 2 results, `otherwise` a value"):
        tw.cond(x > 0, lambda: [x, x], lambda: x)
    with pytest.raises(TypeError, match="result 0 is float32 in `then` but int32 in `otherwise`"):
        tw.cond(x > 0, lambda: x, lambda: 1)


def test_sizes_that_both_branches_have_are_known(graph, x):
    a, b = tw.placeholder("float32", [2, 3]), tw.placeholder("float32", [2, 5])
    assert tw.cond(x > 0, lambda: a, lambda: b).shape == (2, None)


# ---- Loops ----

def test_a_loop_runs_as_long_as_its_condition_holds(graph):
    n = tw.placeholder("int32", [])
    i, total = tw.while_loop(lambda i, t: i < n, lambda i, t: [i + 1, t + i], [0, 0])
    with tw.Session(graph) as s:
        for count in (0, 1, 7, 1000):
            assert s.run([i, total], {n: count}) == [count, sum(range(count))]


@pytest.mark.parametrize("options", [dict(threads=t, engine=e) for t in (1, 2, 8) for e in ("fixed", "counted")], ids=str)
def test_loops_inside_loops_and_conditions_inside_both(graph, options):
    n = tw.placeholder("int32", [])

    def inner(i, total):
        return tw.while_loop(lambda j, t: j < i, lambda j, t: [j + 1, t + tw.cond(t > 5, lambda: j, lambda: 2 * j)], [0, total])[1]

    i, total = tw.while_loop(lambda i, t: i < n, lambda i, t: [i + 1, inner(i, t)], [0, 0])
    wanted, k = 0, 0
    for k in range(9):
        for j in range(k):
            wanted += j if wanted > 5 else 2 * j
    assert run([i, total], {n: 9}, **options) == [9, wanted]


def test_a_loop_reads_variables_and_values_around_it(graph):
    x = tw.placeholder("float32", [None, 4])
    w = tw.Variable(np.eye(4, dtype=np.float32) * 2)
    i, y = tw.while_loop(lambda i, y: i < 3, lambda i, y: [i + 1, y @ w + x], [0, x])
    with tw.Session(graph) as s:
        s.run(graph.initializer())
        for rows in (1, 5):
            data = np.random.default_rng(1).standard_normal((rows, 4)).astype(np.float32)
            np.testing.assert_allclose(s.run(y, {x: data}), data * 15, rtol=1e-6)


def test_assignments_in_a_body_run_every_time(graph):
    v = tw.Variable(np.float32(0))

    def body(i):
        v.assign_add(2.0)
        return i + 1

    i, = tw.while_loop(lambda i: i < 5, body, [0])
    with tw.Session(graph) as s:
        s.run(graph.initializer())
        s.run(i)
        assert s.run(v.read()) == 10


def test_a_shape_may_grow_where_the_invariant_lets_it(graph):
    x = tw.placeholder("float32", [1])
    with pytest.raises(ValueError, match=r"variable 1 \('.*:0'\) has shape \[1\], but \[2\] after `body`; say in shape_invariants"):
        tw.while_loop(lambda i, y: i < 4, lambda i, y: [i + 1, tw.ops.concat_v2([y, x], 0)], [0, x])
    _, y = tw.while_loop(lambda i, y: i < 4, lambda i, y: [i + 1, tw.ops.concat_v2([y, x], 0)], [0, x], shape_invariants=[[], [None]])
    assert y.shape == (None,) and run(y, {x: [3]}).tolist() == [3] * 5


def test_what_is_no_function_and_no_list_is_told_so(graph):
    x = tw.placeholder("float32", [])
    with pytest.raises(TypeError, match="`then` is <Output .*>, which is no function; write `lambda: ...`"):
        tw.cond(x > 0, x, x)
    with pytest.raises(TypeError, match="branch 1 is 2.0, which is no function"):
        tw.switch_case(0, [lambda: x, 2.0])
    for wrong in (0, x):
        with pytest.raises(TypeError, match="loop_vars is a list of values"):
            tw.while_loop(lambda i: i < 3, lambda i: i + 1, wrong)
    i, = tw.while_loop(lambda i: i < 3, lambda i: i + 1, (n for n in [0]))
    assert run(i) == 3


def test_a_loop_that_would_not_end_ends_after_so_many_iterations(graph):
    assert run(tw.while_loop(lambda i: i >= 0, lambda i: i + 1, [0], maximum_iterations=7)) == [7]


def test_a_loop_that_does_not_end_is_cancelled_and_ends_by_its_deadline(graph):
    i, = tw.while_loop(lambda i: i >= 0, lambda i: i * 0, [0])
    with tw.Session(graph) as s:
        with pytest.raises(tw.DeadlineExceededError):
            s.run(i, timeout=0.1)
        token = tw.CancelToken()
        threading.Timer(0.1, token.cancel).start()
        with pytest.raises(tw.CancelledError):
            s.run(i, cancel=token)


def test_bodies_with_wrong_variables_are_refused(graph):
    with pytest.raises(TypeError, match="there are 2 loop variables, but `body` gives 1"):
        tw.while_loop(lambda i, j: i < 3, lambda i, j: [i], [0, 0])
    with pytest.raises(TypeError, match="loop variable 0 .* is int32, but `body` makes it float32"):
        tw.while_loop(lambda i: i < 3, lambda i: i.astype("float32"), [0])
    with pytest.raises(TypeError, match="`cond` gives 2 results"):
        tw.while_loop(lambda i: [i < 3, i < 4], lambda i: i + 1, [0])


def test_a_failure_in_a_body_names_node_and_place_and_the_session_goes_on(graph):
    x = tw.placeholder("int32", [])
    i, = tw.while_loop(lambda i: i < 10, lambda i: tw.ops.floor_div(10, x - i, name="quotient") * 0 + i + 1, [0])
    with tw.Session(graph) as s:
        with pytest.raises(tw.InvalidArgumentError, match="quotient") as e:
            s.run(i, {x: 4})
        assert "StatelessWhile" in str(e.value) and "flow_test.py" in str(e.value) and "in iteration 4" in str(e.value)
        assert s.run(i, {x: 100}) == 10


def test_a_loop_changes_its_variable_in_place(graph):
    x = tw.ops.fill([4 << 20], tw.constant(1.0))  # 16 MiB; a new one in each iteration would be a third beside the first and the last
    _, y = tw.while_loop(lambda i, y: i < 5, lambda i, y: [i + 1, y + 1.0], [0, x])
    for options in ({}, {"engine": "counted"}):
        assert run(y.max(), memory_limit="40M", **options) == 6


@pytest.mark.parametrize("threads", [1, 8])
def test_nothing_that_somebody_else_has_is_changed_in_place(graph, threads):
    x, v = tw.placeholder("float32", [3]), tw.Variable(np.float32([1, 2, 3]))
    twice = tw.function(lambda a: tw.while_loop(lambda i, y: i < 2, lambda i, y: [i + 1, y * a], [0, a])[1] + a)
    ys = [tw.while_loop(lambda i, y: i < 3, lambda i, y: [i + 1, y + 1.0], [0, first])[1] for first in (x, v.read(), tw.constant(np.float32([1, 2, 3])))]
    again = tw.while_loop(lambda i, y, kept: i < 3, lambda i, y, kept: [i + 1, kept + 1.0, y], [0, x, x])
    data = np.float32([1, 2, 3])
    with tw.Session(graph, threads=threads) as s:
        s.run(graph.initializer())
        for _ in range(3):
            got = s.run([*ys, *again[1:], twice(x), x * 1.0, v], {x: data})
            for value, wanted in zip(got, ([4, 5, 6],) * 3 + ([3, 4, 5], [2, 3, 4], [2, 10, 30], [1, 2, 3], [1, 2, 3])):
                np.testing.assert_array_equal(value, wanted)
            np.testing.assert_array_equal(data, [1, 2, 3])


# ---- If, StatelessIf, Case, StatelessCase, While, StatelessWhile, For, PartitionedCall, StatefulPartitionedCall ----

BUILT = {
    "If": lambda x, one: tw.cond(x > 0, lambda: x + one(), lambda: x),
    "Case": lambda x, one: tw.switch_case(tw.constant(0), [lambda: x + one()]),
    "While": lambda x, one: tw.while_loop(lambda a: a < 4, lambda a: a + one(), [x])[0],
    "PartitionedCall": lambda x, one: tw.function(lambda a: a + one())(x),
}


@pytest.mark.parametrize("op", BUILT)
@pytest.mark.parametrize("state", [False, True], ids=["without state", "with state"])
def test_the_builders_make_the_op_that_the_state_of_their_functions_asks_for(graph, x, op, state):
    def one():
        return tw.ops.random_uniform(np.zeros(0, np.int32), dtype="float32") * 0 + 1 if state else 1.0

    y = BUILT[op](x, one)
    stateful, stateless = ("StatefulPartitionedCall", "PartitionedCall") if op == "PartitionedCall" else (op, f"Stateless{op}")
    assert y.operation.type == (stateful if state else stateless)
    assert run(y, {x: 3}) == 4


@pytest.mark.parametrize("start, limit, delta, wanted", [(0, 5, 1, 10), (5, 0, -2, 9), (3, 3, 1, 0), (2**31 - 2, 2**31 - 1, 7, 2**31 - 2)])
def test_for_gives_its_body_the_number(graph, start, limit, delta, wanted):
    assert run(loop_of_numbers(graph, start, limit, delta)) == wanted


@pytest.mark.parametrize("start, limit, delta, message", [(0, 5, 0, "'delta' is 0"), (0, 5, -1, "leads away from 'limit' 5"),
                                                          (5, 0, 1, "leads away from 'limit' 0")])
def test_a_for_that_would_not_end_is_refused(graph, start, limit, delta, message):
    with pytest.raises(tw.InvalidArgumentError, match=message):
        run(loop_of_numbers(graph, start, limit, delta))


def loop_of_numbers(graph, start, limit, delta):
    """A For that adds up its numbers, as int64."""
    f = flow.Traced(graph, lambda i, total: total + i.astype("int64"), [(tw.int32, ()), (tw.int64, ())], "`body`")
    bounds = [tw.constant(np.int32(v)) for v in (start, limit, delta)]
    return graph.op("For", *bounds, [tw.constant(np.int64(0))], body=f.add("sum", []))[0]


# ---- Devices ----

PLACED = {
    "a condition": lambda x: tw.cond(tw.constant(True), lambda: x * x, lambda: x),
    "one of several": lambda x: tw.switch_case(tw.constant(1), [lambda: x, lambda: x * x, lambda: -x]),
    "a loop": lambda x: tw.while_loop(lambda i, y: i < 3, lambda i, y: [i + 1, y * x], [0, x])[1],
    "a loop of numbers": lambda x: for_loop(x, 0, 3, 1, lambda i, y: y * y),
    "a call": lambda x: tw.function(lambda a: a * a)(x),
    "a condition in a loop": lambda x: tw.while_loop(
        lambda i, y: i < 3, lambda i, y: [i + 1, tw.cond(i > 0, lambda: y * x, lambda: y * y)], [0, x])[1],
}


@pytest.mark.parametrize("what", PLACED)
def test_a_device_around_what_calls_functions_is_that_of_their_nodes(what):
    """Without `fallback`: the loop itself runs on the host, and so does what the device has no kernels for, such as its numbers."""
    runtime = tw.Runtime(plugin_path=FAKE, threads=2)
    data = np.array([0.5, -2, 3], np.float32)
    with tw.Graph(runtime) as graph:
        x = tw.placeholder("float32", [3])
        with tw.device("FAKE:0"):
            y = PLACED[what](x)
        plain = PLACED[what](x)
        dx = tw.gradients(y, x)
        plain_dx = tw.gradients(plain, x)
    with tw.Session(graph) as s:
        wanted, slope = s.run([plain, plain_dx], {x: data})
        before = kernels_of(runtime)
        np.testing.assert_array_equal(s.run(y, {x: data}), wanted)
        assert kernels_of(runtime) > before
        np.testing.assert_array_equal(s.run(dx, {x: data}), slope)


def kernels_of(runtime):
    return next(d for d in runtime.devices() if d.name.endswith("FAKE:0")).statistics["kernels"]


def test_a_device_that_is_not_there_is_an_error_around_a_loop_too(graph, x):
    with tw.device("FAKE:7"):
        y = PLACED["a loop of numbers"](x)
    with pytest.raises(tw.NotFoundError, match="FAKE"):
        run(y, {x: 1})


# ---- Steps that wait inside of functions ----

def taken(queue):
    return tw.ops.queue_dequeue_v2(queue, component_types=["float32"])[0]


WAITING = {
    "a condition": lambda q: tw.cond(tw.constant(True), lambda: taken(q), lambda: tw.constant(np.float32(0))),
    "a loop": lambda q: tw.while_loop(lambda i, y: i < 2, lambda i, y: [i + 1, y + taken(q)], [0, np.float32(0)],
                                      shape_invariants=[[], None])[1],
    "a call in a loop": lambda q: tw.while_loop(lambda i, y: i < 2, lambda i, y: [i + 1, y + tw.function(taken)(q)], [0, np.float32(0)],
                                                shape_invariants=[[], None])[1],
}


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("what", WAITING)
def test_a_step_that_waits_inside_goes_on_or_ends(what, threads):
    runtime = tw.Runtime(threads=threads)
    with tw.Graph(runtime) as graph:
        q = tw.ops.fifo_queue_v2(component_types=["float32"])
        value = tw.placeholder("float32", [])
        put = tw.ops.queue_enqueue_v2(q, [value])
        y = WAITING[what](q)
        bad = tw.ops.check_numerics(value, message="the other node")
    with tw.Session(graph) as s:
        for v in (1, 2):
            s.run(put, {value: v})
        assert s.run(y) == (1 if what == "a condition" else 3)
        with pytest.raises(tw.DeadlineExceededError):
            s.run(y, timeout=0.05) if what != "a condition" else (s.run(y), s.run(y, timeout=0.05))
        if threads == 1:
            return
        with pytest.raises(tw.InvalidArgumentError, match="the other node"):
            s.run([y, bad], {value: np.nan}, timeout=20)
        waiting = s.run_async(y)
    with pytest.raises(tw.CancelledError):
        waiting.result(timeout=20)


def test_a_loop_goes_on_until_values_are_equal(run):
    i, n = tw.while_loop(lambda i, n: i != n, lambda i, n: [i + 1, n], [0, tw.placeholder("int32", [], name="n")])
    assert run([i, tw.cond(i == 5, lambda: i * 2, lambda: i)], {"n": 5}) == [5, 10]


@pytest.mark.parametrize("truth", [True, False, np.bool_(True)], ids=str)
def test_what_was_decided_while_the_graph_was_built_decides_no_step(run, truth):
    x = tw.constant(1)
    told = "a truth value of Python, which no step can change.*thalweg.constant"
    with pytest.raises(TypeError, match="cond: pred is " + repr(truth).replace("(", r"\(").replace(")", r"\)") + ", " + told):
        tw.cond(truth, lambda: x, lambda: -x)
    for options in ({}, {"maximum_iterations": 3}):
        for answer in (truth, [truth]):
            with pytest.raises(TypeError, match="while_loop: what `cond` gives is .*" + told):
                tw.while_loop(lambda i: answer, lambda i: [i + 1], [x], **options)
    assert run(tw.cond(tw.constant(bool(truth)), lambda: x, lambda: -x)) == (1 if truth else -1)
    assert run(tw.while_loop(lambda i: tw.constant(True), lambda i: [i + 1], [x], maximum_iterations=3)) == [4]
