import threading

import numpy as np
import pytest

import thalweg as tw


def test_the_innermost_graph_is_current():
    with tw.Graph() as a:
        with tw.Graph() as b:
            assert tw.current_graph() is b
        assert tw.current_graph() is a
        tw.placeholder("float32", name="x")
    assert "x" in a and "x" not in b and len(a) == 1 and bool(b)
    with pytest.raises(RuntimeError, match="no graph is current"):
        tw.placeholder("float32")


def test_each_thread_has_its_own_current_graph(graph):
    seen = []

    def other():
        try:
            tw.current_graph()
        except RuntimeError as e:
            seen.append(e)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert len(seen) == 1


def test_values_add_to_their_own_graph_wherever_they_are():
    g = tw.Graph()
    x = g.placeholder("float32", name="x")
    y = x * 2 + g.constant([1.0])
    with tw.Graph() as other:
        z = tw.ops.softmax(y)
    assert z.graph is g and len(other) == 0
    assert tw.Session(g).run(x * 2, {x: 3}) == 6


def test_operations_are_found_by_name(graph):
    x = tw.placeholder("float32", [2], name="x")
    step = tw.group(x, name="all")
    assert graph["x"] is x and graph["x:0"] is x and graph.operation("all") == step and step.control_inputs == [x.operation]
    assert [o.name for o in graph.operations()] == ["x", "all"]
    with pytest.raises(tw.NotFoundError, match="nope"):
        graph.operation("nope")
    with pytest.raises(tw.InvalidArgumentError):
        graph["x:1"]


def test_names_that_are_taken_get_a_number(graph):
    named = [tw.placeholder("float32", name="x").name for _ in range(3)]
    with tw.name_scope("s"):
        named += [tw.constant(1, name="x").name, tw.constant(1, name="x").name, tw.group(name="x").name]
    named += [tw.constant(1, name="x_3").name, tw.constant(1, name="x").name, graph.initializer("x").name]
    assert named == ["x:0", "x_1:0", "x_2:0", "s/x:0", "s/x_1:0", "s/x_2", "x_3:0", "x_4:0", "x_5"]
    with pytest.raises(tw.InvalidArgumentError):
        tw.placeholder("float32", name="no spaces")


def test_constants_of_every_sort(run):
    values = [1.5, [1, 2], np.float64(3), np.array([[True]]), "text", [b"a", "b"], tw.Tensor([1, 2]), np.arange(6).reshape(2, 3).T]
    for value in values:
        want = value.numpy() if isinstance(value, tw.Tensor) else value
        got = run(tw.constant(value))
        if isinstance(value, (str, list)) and not isinstance(value[0], int):
            assert np.asarray(got).tolist() in (b"text", [b"a", b"b"])
        else:
            np.testing.assert_array_equal(got, want)
    assert tw.constant(1, "int8").dtype == "int8" and tw.constant(2.5, "bfloat16").dtype == "bfloat16"
    with pytest.raises(TypeError, match="is a value of a graph"):
        tw.constant(tw.constant(1))


def test_a_constant_does_not_change_with_its_array(run):
    array = np.zeros(100000, np.float32)
    value = tw.constant(array)
    array[:] = 1
    assert run(value).max() == 0


def test_bytes_make_the_same_graph_again(graph):
    x = tw.placeholder("float32", [None], name="x")
    (x * 2 + 1).named("y")
    data = graph.to_bytes()
    again = tw.Graph.from_bytes(data)
    assert again.to_bytes() == data and [o.name for o in again.operations()] == [o.name for o in graph.operations()]
    np.testing.assert_array_equal(tw.Session(again).run("y", {"x": [1, 2]}), [3, 5])


def test_imported_operations_get_a_prefix_and_have_no_line(graph):
    tw.placeholder("float32", name="x")
    other = tw.Graph()
    other.import_bytes(graph.to_bytes(), prefix="in", device="CPU:0")
    assert "in/x" in other and other.operation("in/x").device.endswith("CPU:0") and other.operation("in/x").line is None
    with pytest.raises(tw.AlreadyExistsError):
        other.import_bytes(graph.to_bytes(), prefix="in")
    with pytest.raises(tw.InvalidArgumentError):
        tw.Graph.from_bytes(b"\xff\xff no graph")


def test_verify_names_what_no_device_can_run(graph):
    tw.ops.softmax(tw.placeholder("float32", [2, 2]))
    graph.verify()
    with tw.Graph(tw.Runtime(load_plugins=False)) as bare:
        tw.ops.softmax(tw.placeholder("float32", [2, 2]), name="odd")
    with pytest.raises(tw.UnimplementedError, match="Softmax 'odd': no device has a kernel"):
        bare.verify()


def test_numbers_of_attributes_are_the_same_in_a_stored_graph(graph):
    x = np.array([-1.0, -3.0])
    given, default = tw.ops.leaky_relu(x, alpha=0.3), tw.ops.leaky_relu(x)
    other = tw.Graph.from_bytes(graph.to_bytes())
    with tw.Session(graph) as here, tw.Session(other) as there:
        for y, alpha in ((given, 0.3), (default, 0.2)):
            wanted = x * float(np.float32(alpha))
            np.testing.assert_array_equal(here.run(y), wanted)
            np.testing.assert_array_equal(there.run(y.name), wanted)
