"""Functions, conditions and loops, against what Python itself computes."""
import os
import pathlib
import threading

import numpy as np
import pytest

import thalweg as tw
from thalweg import flow

FAKE = os.environ["THALWEG_BINARY_DIR"] + "/tests/devices/libfake.so"


@pytest.fixture
def x(graph):
    return tw.placeholder("float32", [], name="x")


def run(fetches, feeds=None, **options):
    graph = (fetches[0] if isinstance(fetches, (list, tuple)) else fetches).graph
    with tw.Session(graph, **options) as s:
        return s.run(fetches, feeds or {})


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
    with pytest.raises(ValueError, match=r"variable 1 \('.*:0'\) has shape \[1\], but \[2\] it is after `body`; say in shape_invariants"):
        tw.while_loop(lambda i, y: i < 4, lambda i, y: [i + 1, tw.ops.concat_v2([y, x], 0)], [0, x])
    _, y = tw.while_loop(lambda i, y: i < 4, lambda i, y: [i + 1, tw.ops.concat_v2([y, x], 0)], [0, x], shape_invariants=[[], [None]])
    assert y.shape == (None,) and run(y, {x: [3]}).tolist() == [3] * 5


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


# ---- Functions ----

def test_a_function_is_written_down_once_for_each_signature(graph, x):
    written = []

    @tw.function
    def square(a):
        written.append(a.dtype)
        return a * a

    y = square(square(x))
    z = square(tw.constant(np.arange(3)))
    assert run([y, z], {x: 3})[0] == 81 and len(written) == 2
    assert graph.functions() == ["square", "square_1"]


def test_a_function_calls_itself(graph, x):
    @tw.function(results=["float32"])
    def factorial(n):
        return tw.cond(n > 1, lambda: n * factorial(n - 1), lambda: 1.0)

    y = factorial(x)
    with tw.Session(graph) as s:
        assert s.run(y, {x: 10}) == 3628800


def test_endless_recursion_is_an_error_that_can_be_read(graph, x):
    @tw.function(results=["float32"])
    def down(n):
        return tw.cond(n < 0, lambda: 0.0, lambda: down(n + 1))

    y = down(x)
    for depth in (50, 100000):
        with tw.Session(graph, max_call_depth=depth) as s:
            with pytest.raises(tw.ResourceExhaustedError, match="calls lie within each other") as e:
                s.run(y, {x: 1})
            assert len(str(e.value)) < 2000
            assert s.run(y, {x: -1}) == 0


def test_a_function_that_calls_itself_says_what_it_gives(graph, x):
    @tw.function
    def forever(n):
        return forever(n)

    with pytest.raises(ValueError, match="say in `results` which dtypes it gives"):
        forever(x)

    @tw.function(results=["int32"])
    def wrong(n):
        return n

    with pytest.raises(TypeError, match=r"gives \['float32'\], but its `results` say \['int32'\]"):
        wrong(x)


def test_a_function_takes_all_that_it_uses(graph, x):
    @tw.function
    def outside(a):
        return a + x

    with pytest.raises(ValueError, match="function 'outside' uses .*; give it as an argument"):
        outside(tw.constant(1.0))


def test_functions_are_stored_with_their_graph(graph, x):
    @tw.function(results=["float32"])
    def factorial(n):
        return tw.cond(n > 1, lambda: n * factorial(n - 1), lambda: 1.0)

    v = tw.Variable(np.float32(3), name="v")
    i, y = tw.while_loop(lambda i, y: i < 3, lambda i, y: [i + 1, y * v + factorial(x)], [0, x], shape_invariants=[[], None])
    init = graph.initializer(name="init")
    data = graph.to_bytes()
    other = tw.Graph.from_bytes(data)
    assert other.to_bytes() == data and other.functions() == graph.functions()
    with tw.Session(graph) as s, tw.Session(other) as t:
        s.run(init)
        assert s.run(y, {x: 2}) == t.run(other[y.name], {other["x"]: 2})


def test_another_function_of_the_same_name_is_refused(graph, x):
    @tw.function(name="f")
    def f(a):
        return a * 2

    f(x)
    with tw.Graph() as other:
        @tw.function(name="f")
        def g(a):
            return a * 3

        g(tw.placeholder("float32", [], name="y"))
    with pytest.raises(tw.AlreadyExistsError, match="function 'f': the graph has another function of that name"):
        graph.import_bytes(other.to_bytes())
    assert not graph.has("y")


def test_variables_are_made_outside(graph, x):
    with pytest.raises(ValueError, match="make it outside"):
        tw.cond(x > 0, lambda: tw.Variable(1.0).read(), lambda: 1.0)


def test_a_value_of_a_graph_that_is_not_around_is_refused(graph, x):
    with tw.Graph():
        y = tw.constant(np.float32(1))
    with pytest.raises(ValueError, match="value of another graph"):
        tw.cond(x > 0, lambda: x + y, lambda: x)


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


# ---- Calls that become nodes ----

def ops_of(y, x, **options):
    """The ops that run for y, fed x."""
    with tw.Session(y.graph, **options) as s:
        return sorted({node["op"] for node in s.plan(y, [x])["nodes"]})


def test_a_call_without_effects_is_inlined_and_gives_the_same_bits(graph):
    x = tw.placeholder("float32", [64], name="x")
    f = tw.function(lambda a: tw.ops.exp(tw.ops.sin(a)) * a - tw.ops.tanh(a))
    y = f(f(x) + 1.0)
    assert "PartitionedCall" not in ops_of(y, x) and "PartitionedCall" in ops_of(y, x, disable_pass="inline")
    data = np.linspace(-2, 2, 64, dtype=np.float32)
    assert run(y, {x: data}).tobytes() == run(y, {x: data}, disable_pass="inline").tobytes()


def test_a_failure_in_an_inlined_function_names_node_and_function(graph):
    x = tw.placeholder("float32", [None, None])
    f = tw.function(lambda a: tw.ops.mat_mul(a, a, name="product"), name="square")
    y = f(x)
    assert "PartitionedCall" not in ops_of(y, x)
    with pytest.raises(tw.InvalidArgumentError, match="PartitionedCall '.*function 'square': MatMul 'product'.*inner dimensions"):
        run(y, {x: np.zeros((2, 3), np.float32)})


def test_a_condition_whose_answer_is_known_is_inlined(graph, x):
    y = tw.cond(tw.constant(True), lambda: x * 2, lambda: -x)
    assert not [op for op in ops_of(y, x) if "If" in op] and run(y, {x: 3}) == 6
    z = tw.switch_case(tw.constant(1), [lambda: x, lambda: x * 3])
    assert not [op for op in ops_of(z, x) if "Case" in op] and run(z, {x: 3}) == 9


def test_calls_within_calls_are_bounded_inlined_or_not(graph, x):
    inner = tw.function(lambda a: a + 1, name="inner")
    outer = tw.function(lambda a: inner(a) * 2, name="outer")
    y = outer(x)
    assert run(y, {x: 3}) == 8
    with pytest.raises(tw.ResourceExhaustedError, match="calls lie within each other"):
        run(y, {x: 3}, max_call_depth=1)


# ---- Gradients ----

def numeric(f, x, h=1e-6):
    """The gradient of the sum of what f gives, by differences."""
    x = np.array(x, np.float64)
    found = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[i], down[i] = x[i] + h, x[i] - h
        found[i] = (np.sum(f(up)) - np.sum(f(down))) / (2 * h)
    return found


def check_gradient(graph, build, data, second=True, **options):
    """First and second derivatives of build(x) at data against differences."""
    x = tw.placeholder("float64", np.shape(data))
    y = build(x)
    dx = tw.gradients(y, x)
    with tw.Session(graph, **options) as s:
        np.testing.assert_allclose(s.run(dx, {x: data}), numeric(lambda v: s.run(y, {x: v}), data), rtol=1e-5, atol=1e-7)
        if second:
            ddx = tw.gradients(dx, x)
            np.testing.assert_allclose(s.run(ddx, {x: data}), numeric(lambda v: s.run(dx, {x: v}), data), rtol=1e-4, atol=1e-6)


def powers(x, n=3):
    return tw.while_loop(lambda i, y: i < n, lambda i, y: [i + 1, y * x + tw.ops.sin(y)], [0, x])[1]


def x_of(i, y):
    """The number in the type of the variable."""
    return i.astype(y.dtype) + 1


def for_loop(x, start, limit, delta, body):
    """A For of one variable."""
    graph = x.graph
    f = flow.Traced(graph, body, [(tw.int32, ()), (x.dtype, tuple(x.shape))], "`body`")
    bounds = [graph.constant(np.int32(v)) for v in (start, limit, delta)]
    return graph.op("For", *bounds, [x], body=f.add("for_body", []))[0]


BUILDERS = {
    "a condition": lambda x: tw.cond(x.sum() > 0, lambda: tw.ops.exp(x) * x, lambda: tw.ops.sin(x)),
    "a condition that holds nothing for one input": lambda x: x * x + tw.cond(x.sum() < 0, lambda: x * 0, lambda: tw.constant(np.zeros(2))),
    "one of several": lambda x: tw.switch_case(tw.constant(1), [lambda: x, lambda: tw.ops.tanh(x * x), lambda: -x]),
    "a function": lambda x: tw.function(lambda a: tw.ops.exp(tw.ops.sin(a)) * a)(x),
    "a function of a function": lambda x: tw.function(lambda a: tw.function(lambda b: b * tw.ops.exp(b))(a) + a)(x * x),
    "a loop": powers,
    "a loop without iterations": lambda x: powers(x, 0) * x,
    "a loop in a condition": lambda x: tw.cond(x.sum() > 0, lambda: powers(x), lambda: x),
    "a condition in a loop": lambda x: tw.while_loop(
        lambda i, y: i < 4, lambda i, y: [i + 1, tw.cond(y.sum() > 1, lambda: tw.ops.sin(y) * x, lambda: y * y + x)], [0, x])[1],
    "a loop in a loop": lambda x: tw.while_loop(
        lambda i, y: i < 3,
        lambda i, y: [i + 1, tw.while_loop(lambda j, z: j < i, lambda j, z: [j + 1, tw.ops.tanh(z) * x + z], [0, y])[1]], [0, x])[1],
    "a for": lambda x: for_loop(x, 0, 3, 1, lambda i, y: tw.ops.sin(y) * x_of(i, y) + y),
    "a for that counts down": lambda x: for_loop(x, 7, 0, -3, lambda i, y: tw.ops.tanh(y) * x_of(i, y)),
    "a for without iterations": lambda x: for_loop(x, 3, 3, 1, lambda i, y: y * y) * x,
    "a for in a for": lambda x: for_loop(x, 0, 3, 1, lambda i, y: for_loop(y, 0, 2, 1, lambda j, z: tw.ops.sin(z) * z + z)),
    "a loop that grows": lambda x: tw.while_loop(lambda i, y: i < 3, lambda i, y: [i + 1, tw.ops.concat_v2([y * y, x], 0)], [0, x],
                                                 shape_invariants=[[], [None]])[1],
}


@pytest.mark.parametrize("what", BUILDERS)
def test_first_and_second_derivatives_are_those_of_differences(graph, what):
    check_gradient(graph, BUILDERS[what], [0.3, 0.8])


@pytest.mark.parametrize("threads", [1, 8])
def test_the_gradient_has_the_same_bits_on_any_number_of_threads(graph, threads):
    x = tw.placeholder("float32", [64])
    dx = tw.gradients(powers(x, 5), x)
    data = np.linspace(-1, 1, 64, dtype=np.float32)
    assert run(dx, {x: data}, threads=threads).tobytes() == run(dx, {x: data}, engine="fixed", threads=1).tobytes()


def test_random_values_of_a_loop_are_drawn_once(graph):
    x = tw.placeholder("float32", [5])
    _, y = tw.while_loop(lambda i, y: i < 4, lambda i, y: [i + 1, y * tw.ops.random_uniform([5], dtype="float32")], [0, x])
    dx = tw.gradients(y, x)
    with tw.Session(graph) as s:
        for _ in range(3):
            value, gradient = s.run([y, dx], {x: np.full(5, 2, np.float32)})
            np.testing.assert_allclose(gradient, value / 2, rtol=1e-6)


@pytest.mark.parametrize("how", ["as it is", "written and read"])
def test_effects_happen_once_where_the_gradient_is_fetched_too(graph, how):
    x, v = tw.placeholder("float32", []), tw.Variable(np.float32(0))

    def body(i, y):
        v.assign_add(1.0)
        return [i + 1, y * y]

    _, y = tw.while_loop(lambda i, y: i < 3, body, [0, x])
    check_effects(graph, x, y, v, how)


N, ITERATIONS = 8192, 200
KEPT = ITERATIONS * N * 4  # bytes that each value of the body takes, all iterations together


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


def written_and_read(graph):
    return tw.Graph.from_bytes(graph.to_bytes())


@pytest.mark.parametrize("how", ["as it is", "written and read"])
def test_effects_of_a_for_happen_once_where_the_gradient_is_fetched_too(graph, how):
    x, v = tw.placeholder("float32", []), tw.Variable(np.float32(0))

    def body(i, handle, y):
        tw.ops.assign_add_variable_op(handle, tw.constant(np.float32(1)))
        return [handle, y * y]

    f = flow.Traced(graph, body, [(tw.int32, ()), (tw.resource, ()), (tw.float32, ())], "`body`")
    bounds = [tw.constant(np.int32(n)) for n in (0, 3, 1)]
    y = graph.op("For", *bounds, [v.handle, x], body=f.add("body", []))[1]
    check_effects(graph, x, y, v, how)


def check_effects(graph, x, y, v, how):
    """A loop that adds 1 to v three times, and its gradient."""
    dx, now, init = tw.gradients(y, x), v.read(), graph.initializer(name="init")
    if how == "written and read":
        other = written_and_read(graph)
        assert other.to_bytes() == graph.to_bytes()
        x, y, dx, now = (other[value.name] for value in (x, y, dx, now))
        graph, init = other, other.operation("init")
    with tw.Session(graph) as s:
        s.run(init)
        for fetches, count in (([y, dx], 3), (dx, 6), (y, 9)):
            s.run(fetches, {x: 1.1})
            assert s.run(now) == count


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


def test_a_variable_in_a_loop_is_trained(graph):
    x = tw.placeholder("float32", [None, 3])
    w = tw.Variable(np.eye(3, dtype=np.float32) * 0.5)
    _, y = tw.while_loop(lambda i, y: i < 3, lambda i, y: [i + 1, tw.ops.tanh(y @ w)], [0, x])
    dw = tw.gradients((y * y).sum(), w)
    data = np.random.default_rng(3).standard_normal((4, 3)).astype(np.float32)
    h = data.astype(np.float64)

    def loss(weights):
        y = h
        for _ in range(3):
            y = np.tanh(y @ weights)
        return (y * y).sum()

    with tw.Session(graph) as s:
        s.run(graph.initializer())
        np.testing.assert_allclose(s.run(dw, {x: data}), numeric(loss, np.eye(3) * 0.5), rtol=1e-3, atol=1e-5)


def test_a_recurrent_net_learns_through_a_loop(graph):
    x, wanted = tw.placeholder("float32", [8, 5, 2]), tw.placeholder("float32", [8, 1])
    rng = np.random.default_rng(0)
    w, u, out = (tw.Variable(rng.standard_normal(s).astype(np.float32) * 0.4) for s in ((2, 6), (6, 6), (6, 1)))

    def body(t, h):
        step = tw.ops.gather_v2(x, t, 1)
        return [t + 1, tw.ops.tanh(step @ w + h @ u)]

    _, h = tw.while_loop(lambda t, h: t < 5, body, [0, np.zeros((8, 6), np.float32)])
    loss = ((h @ out - wanted) * (h @ out - wanted)).mean()
    train = tw.train.Adam(0.03).minimize(loss)
    data = rng.standard_normal((8, 5, 2)).astype(np.float32)
    feeds = {x: data, wanted: data.sum((1, 2))[:, None]}
    with tw.Session(graph) as s:
        s.run(graph.initializer())
        before = s.run(loss, feeds)
        for _ in range(150):
            s.run(train, feeds)
        assert s.run(loss, feeds) < before / 20


def test_what_has_no_gradient_in_a_body_is_told_with_its_node(graph, x):
    z = tw.cond(x > 0, lambda: tw.ops.bitcast(x, type="float32"), lambda: x)
    with pytest.raises(tw.FailedPreconditionError, match="gradient of StatelessIf .*Bitcast .*not differentiable"):
        tw.gradients(z, x)


def test_the_gradient_of_a_function_that_calls_itself_is_refused(graph, x):
    @tw.function(results=["float32"])
    def factorial(n):
        return tw.cond(n > 1, lambda: n * factorial(n - 1), lambda: 1.0)

    y = factorial(x)
    with pytest.raises(tw.UnimplementedError, match="function 'factorial.*' calls itself"):
        tw.gradients(y, x)
    assert run(y, {x: 4}) == 24


# ---- As TensorFlow stores them ----

@pytest.mark.parametrize("count", range(6))
def test_functions_of_a_graph_of_tensorflows_run(count):
    graph = tw.Graph.from_bytes((pathlib.Path(__file__).with_name("functions.pb")).read_bytes())  # made by functions_peer.py
    x = np.array([0.3, 0.8])
    y = x
    for _ in range(count):
        y = np.sin(y) * x if y.sum() > 1 else y * y + x
    again = tw.Graph.from_bytes(graph.to_bytes())
    assert again.functions() == graph.functions() and len(graph.functions()) == 4
    for g in (graph, again):
        np.testing.assert_allclose(run(g["Identity"], {g["x"]: x.astype(np.float32), g["n"]: count}), y * 2, rtol=1e-6)


def test_stored_functions_know_what_their_handles_lead_to(graph):
    x, v = tw.placeholder("float32", [], name="x"), tw.Variable(np.float32(3), name="v")
    _, y = tw.while_loop(lambda i, y: i < 3, lambda i, y: [i + 1, y * v], [0, x])
    graph.initializer(name="init")
    other = tw.Graph.from_bytes(graph.to_bytes())
    with other:
        gradients = tw.gradients(other[y.name], [other[v.handle.name], other["x"]])
    with tw.Session(other) as s:
        s.run([o for o in other.operations() if o.name == "init"])
        assert s.run(gradients, {other["x"]: 2}) == [54, 27]


CALLS = pathlib.Path(__file__).with_name("calls.pb")


def test_functions_with_types_and_numbers_of_their_own_are_made_for_each_call():
    x = np.float32([0.3, 0.8])
    wanted = np.array([[0.5956560969352722, 3.1658847332000732], [2.382624387741089, 12.663538932800293],
                       [1.9855202436447144, 3.9573559761047363]])  # by functions_peer.py
    graph = tw.Graph.from_bytes(CALLS.read_bytes())
    again = tw.Graph.from_bytes(graph.to_bytes())
    assert again.to_bytes() == graph.to_bytes() and set(graph.functions()) >= {"Affine", "Double", "Main", "Twice"}
    for g in (graph, again):
        for names in (["affine", "twice", "sum"], ["main", "main:1", "main:2"], ["affine", "named", "sum"]):
            np.testing.assert_allclose(run([g[n] for n in names], {g["x"]: x}), wanted, rtol=1e-6)


def test_a_call_by_the_ops_name_is_written_as_it_is_read():
    data = CALLS.read_bytes()
    written = tw.Graph.from_bytes(data).to_bytes()
    for name in (b"Affine", b"Twice", b"Main"):
        assert written.count(b"\x12" + bytes([len(name)]) + name) == data.count(b"\x12" + bytes([len(name)]) + name) > 0


def test_a_function_has_the_gradient_that_its_library_says():
    graph = tw.Graph.from_bytes(CALLS.read_bytes())
    x, data = graph["x"], np.float32([0.3, 0.8])
    with graph:
        np.testing.assert_allclose(run(tw.gradients(graph["s"], x), {x: data}), 3 * np.cos(data), rtol=1e-6)
        np.testing.assert_allclose(run(tw.gradients(graph["q"], x), {x: data}), 3 * np.cos(data) + 1, rtol=1e-6)
        np.testing.assert_allclose(run(tw.gradients(graph["p"], x), {x: data}), 2 * data + 1, rtol=1e-6)


def wire(number, payload):
    """A field of a message: text, a message, or a number."""
    if isinstance(payload, int):
        return bytes([number << 3, payload])
    payload = payload.encode() if isinstance(payload, str) else payload
    return bytes([number << 3 | 2, len(payload)]) + payload


def stored(attrs=b"", gradient=None):
    """A graph with a node of op F, function F(x: T) = -x, and what the node says of it."""
    arg = lambda name: wire(1, name) + wire(4, "T")
    attr = lambda key, value: wire(1, key) + wire(2, value)
    signature = wire(1, "F") + wire(2, arg("x")) + wire(3, arg("y")) + wire(4, wire(1, "T") + wire(2, "type"))
    node = wire(1, "n") + wire(2, "Neg") + wire(3, "x") + wire(5, attr("T", wire(9, "T")))
    f = wire(1, signature) + wire(3, node) + wire(4, attr("y", "n:y:0"))
    x = wire(1, "x") + wire(2, "Placeholder") + wire(5, attr("dtype", wire(6, 1)))
    call = wire(1, "call") + wire(2, "F") + wire(3, "x") + attrs
    named = wire(5, attr("_gradient_op_type", wire(2, gradient))) if gradient else b""
    y = wire(1, "y") + wire(2, "Relu") + wire(3, "call") + wire(5, attr("T", wire(6, 1))) + named
    return wire(1, x) + wire(1, call) + wire(1, y) + wire(2, wire(1, f))


T_IS_FLOAT = wire(5, wire(1, "T") + wire(2, wire(6, 1)))


def test_an_attribute_of_a_function_without_value_is_told():
    graph = tw.Graph.from_bytes(stored(T_IS_FLOAT))
    assert run(graph["y"], {graph["x"]: np.float32(-2)}) == 2
    with pytest.raises(tw.InvalidArgumentError, match="function 'F' has the attribute 'T', but the call does not say what it is"):
        tw.Graph.from_bytes(stored())


@pytest.mark.parametrize("name, wanted", [("Relu", -1), ("Tanh", 3)])
def test_a_node_may_name_the_op_whose_gradient_it_has(name, wanted):
    graph = tw.Graph.from_bytes(stored(T_IS_FLOAT, name))
    with graph:
        dx = tw.gradients(graph["y"], graph["x"])
    assert run(dx, {graph["x"]: np.float32(-2)}) == wanted


def test_a_gradient_that_is_not_there_is_told_with_its_node():
    graph = tw.Graph.from_bytes(stored(T_IS_FLOAT, "GuidedRelu"))
    with graph, pytest.raises(tw.FailedPreconditionError, match="Relu 'y'.*its gradient is 'GuidedRelu'"):
        tw.gradients(graph["y"], graph["x"])


def test_a_part_of_a_graph_is_outlined_and_called():
    with tw.Graph() as graph:
        x, v = tw.placeholder("float32", [2]), tw.Variable(np.float32(3), name="outlined_v")
        a = x + 1
        y = v.read() * a * a
        z, = tw.outline([a], [y], name="cube")
        assert z.operation.type == "StatefulPartitionedCall" and graph.functions() == ["cube"] and z.shape == (2,)
        session = tw.Session(graph)
        session.run(tw.initializer())
        values = session.run([y, z, tw.gradients(z, x)], {x: [1, 2]})
        assert [v.tolist() for v in values] == [[12, 27], [12, 27], [12, 18]]
        again = tw.Graph.from_bytes(graph.to_bytes())
        assert "cube" in again.functions()
        with pytest.raises(tw.InvalidArgumentError, match=r"it needs 'Placeholder', a placeholder that is none of its arguments"):
            tw.outline([v.handle], [y])
