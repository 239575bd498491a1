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
    with pytest.raises(tw.AlreadyExistsError):
        with tw.name_scope("s/"):
            tw.Variable(1.5, name="w")


def test_the_graph_lists_its_variables(graph):
    a, b = tw.Variable(1.0, name="a"), tw.Variable([2], name="b", trainable=False)
    assert graph.variables() == [a, b] and [v.trainable for v in graph.variables()] == [True, False]
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
