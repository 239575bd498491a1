"""Functions: written in Python, inlined, stored as TensorFlow stores them, outlined."""
import inspect
import pathlib

import numpy as np
import pytest

import thalweg as tw

from flow_cases import run


def test_a_function_is_documented_as_what_it_was_made_of():
    @tw.function(name="half")
    def halved(a: tw.Output) -> tw.Output:
        """Half of it."""
        return a / 2

    assert (halved.__name__, halved.__doc__, str(inspect.signature(halved))) == ("halved", "Half of it.", "(a: thalweg.output.Output) -> thalweg.output.Output")
    assert repr(halved) == "<Function 'half'>"


def test_a_function_is_written_down_once_for_each_signature(graph, x):
    written = []

    @tw.function
    def square(a):
        written.append(a.dtype)
        return a * a

    with pytest.warns(tw.TraceWarning, match="written.append"):
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


def test_what_a_function_uses_from_outside_becomes_an_argument(graph, x):
    @tw.function
    def outside(a):
        return a + x

    @tw.function(results=["float32"])
    def itself(a):
        return tw.cond(a > 1, lambda: itself(a - 1) + x, lambda: a)

    y = outside(tw.constant(1.0))
    assert run([y, tw.gradients(y, x)], {x: 3}) == [4, 1]
    with pytest.raises(ValueError, match="function 'itself' uses .*, which is outside of it, and calls itself; give it as an argument"):
        itself(tw.constant(1.0))


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
    with tw.Session(graph, container="stored") as s, tw.Session(other, container="stored") as t:
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


def test_the_inputs_of_a_failure_are_told_once(graph, x):
    checked = tw.function(lambda a: tw.ops.check_numerics(a, message="bad"), name="checked")
    within = tw.function(lambda a: checked(a) + 1, name="within")
    y = within(x)
    with pytest.raises(tw.InvalidArgumentError) as e:
        run(y, {x: np.nan}, optimize=False)
    assert str(e.value).count("(inputs: ") == 1 and "not finite (inputs: float[])" in str(e.value)


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


def test_a_stored_function_may_have_any_name(graph, x):
    square = tw.function(lambda a: a * a, name="square_x")
    y = square(x) + 1
    other = tw.Graph.from_bytes(graph.to_bytes().replace(b"square_x", b"<lambda>"))  # as TensorFlow calls a lambda's
    assert other.functions() == ["<lambda>"]
    for g in (other, tw.Graph.from_bytes(other.to_bytes())):
        assert run(g[y.name], {g[x.name]: 3}) == 10
        assert run(g[y.name], {g[x.name]: 3}, optimize=False) == 10
    with pytest.raises(tw.InvalidArgumentError, match="'square x'.*not a function's name"):
        g = tw.Graph.from_bytes(graph.to_bytes().replace(b"square_x", b"square x"))
        run(g[y.name], {g[x.name]: 3})


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
