import numpy as np
import pytest

import thalweg as tw


def test_contents_last_between_steps(run, graph):
    v = tw.Variable(np.array([1.0, 2], np.float32), name="v")
    run(graph.initializer())
    run(v.assign_add([10, 20]))
    run(v.assign_sub([1, 1]))
    np.testing.assert_array_equal(run(v), [10, 21])
    run(v.assign([5, 6]))
    np.testing.assert_array_equal(run(v.read()), [5, 6])


def test_a_variable_in_a_formula_is_its_contents(run, graph):
    v = tw.Variable([[1.0, 2], [3, 4]], name="v")
    run(graph.initializer())
    a = np.array([[1, 2], [3, 4]], np.float32)
    for got, want in zip(run([v + 1, 2 / v, v @ v, v[0], v.sum(), tw.ops.exp(v), -v, v > 2, a @ v]),
                         [a + 1, 2 / a, a @ a, a[0], a.sum(), np.exp(a), -a, a > 2, a @ a]):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_names_types_and_shapes(graph):
    with tw.name_scope("s"):
        named, first, second = tw.Variable(1.5, name="w"), tw.Variable([1]), tw.Variable([1, 2], dtype="float64")
    assert (named.name, first.name, second.name) == ("s/w", "s/Variable", "s/Variable_1")
    assert (named.dtype, named.shape, second.dtype, second.shape) == (tw.float32, (), tw.float64, (2,))
    assert repr(named) == "<Variable 's/w' float32 []>" and named.handle.dtype == "resource"
    with tw.name_scope("s/"):
        again = tw.Variable(1.5, name="w")
    assert again.name == "s/w_1" and again.handle.operation.attributes["shared_name"] == "s/w_1"


def test_the_graph_lists_its_variables(graph):
    a, b = tw.Variable(1.0, name="a"), tw.Variable([2], name="b", trainable=False)
    assert all(x is y for x, y in zip(graph.variables(), [a, b], strict=True)) and [v.trainable for v in graph.variables()] == [True, False]
    assert {a: 1}[graph.variables()[0]] == 1
    again = tw.Graph.from_bytes(graph.to_bytes())
    assert [(v.name, v.dtype, v.shape) for v in again.variables()] == [("a", tw.float32, ()), ("b", tw.int32, (1,))]


def test_variables_without_contents_are_told(run, graph):
    v = tw.Variable(1.0, name="lonely")
    assert not run(v.initialized())
    with pytest.raises(tw.FailedPreconditionError, match="lonely"):
        run(v)
    run(graph.initializer())
    assert run(v.initialized())


def test_wrong_values_are_refused(run, graph):
    v = tw.Variable([1.0, 2], name="v")
    run(graph.initializer())
    with pytest.raises(TypeError, match="is no float32"):
        v.assign("text")
    with pytest.raises(tw.Error):
        run(v.assign_add([1, 2, 3]))
    np.testing.assert_array_equal(run(v), [1, 2])


def test_ops_that_want_a_resource_get_the_handle(run, graph):
    v = tw.Variable(np.arange(6, dtype=np.float32).reshape(3, 2), name="v")
    run(graph.initializer())
    np.testing.assert_array_equal(run(tw.ops.resource_gather(v, [2, 0], dtype="float32")), [[4, 5], [0, 1]])


def test_graphs_do_not_share_variables_of_one_name():
    graphs = []
    for value in (1.0, 2.0):
        with tw.Graph() as g:
            tw.Variable(value, name="w")
        graphs.append(g)
    sessions = [tw.Session(g) for g in graphs]
    for s in sessions:
        s.run(s.graph.initializer())
    assert [s.run(s.graph.variables()[0]) for s in sessions] == [1, 2]
    both = [tw.Session(g, container="of two graphs") for g in graphs]
    both[0].run(graphs[0].initializer())
    assert [s.run(s.graph.variables()[0]) for s in both] == [1, 1]


def test_what_is_made_in_a_named_container_is_shared():
    sessions = []
    for value in (1.0, 2.0):
        with tw.Graph() as g:
            with tw.container("of a with"):
                ours, queue = tw.Variable(value, name="ours"), tw.FIFOQueue(3, ["float32"], [[]])
            mine = tw.Variable(value, name="mine")
        sessions.append((tw.Session(g), ours, mine, queue))
        sessions[-1][0].run([g.initializer(), queue.enqueue(value)])
    first, ours, mine, queue = sessions[0]
    assert first.run([ours, mine, queue.size()]) == [2, 1, 2]
    assert tw.Runtime.default().reset("of a with") == 2


def test_models_that_were_loaded_one_after_the_other_answer_as_each_does_alone():
    def model(weights):
        with tw.Graph() as g:
            x = tw.placeholder("float32", [2], name="x")
            w = tw.Variable(np.float32(weights), name="dense/kernel")
            tw.ops.identity((w * x).sum(), name="y")
            g.initializer(name="init")
        return g.to_bytes()

    loaded = []
    for weights in ([1, 1], [10, 20]):
        g = tw.Graph()
        g.import_bytes(model(weights))
        session = tw.Session(g)
        session.run("init")
        loaded.append(session)
    assert [s.run("y", {"x": [1, 1]}) for s in loaded] == [2, 30]


def test_a_reset_empties_containers(graph):
    v = tw.Variable(1.0, name="v")
    queue = tw.FIFOQueue(3, ["int64"], [[]])
    session, again = tw.Session(graph), tw.Session(graph)
    for s in (session, again):
        s.run(graph.initializer())
        s.run(queue.enqueue(3))
        assert again.run(v) == 1 and s.reset() == 2
        with pytest.raises(tw.FailedPreconditionError, match="not initialised"):
            again.run(v)
        assert again.run(queue.size()) == 0
    named = tw.Session(graph, container="to be reset")
    named.run(v.assign(5))
    assert tw.Runtime.default().reset("to be reset") == 1 and session.reset("to be reset") == 0
    with pytest.raises(tw.InvalidArgumentError, match="names that begin with '<' are of graphs"):
        session.reset("<graph 1>")
