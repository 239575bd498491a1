import numpy as np
import pytest

import thalweg as tw


def test_gradients_of_one_and_of_several(run):
    x, w = tw.placeholder("float32", [None]), tw.placeholder("float32", [])
    y = (x * x * w).sum()
    dx, dw = run(tw.gradients(y, [x, w]), {x: [1, 2], w: 3})
    np.testing.assert_allclose(dx, [6, 12])
    assert dw == 5 and run(tw.gradients(y, w), {x: [1, 2], w: 3}) == 5


def test_weights_of_the_ys(run):
    x = tw.placeholder("float32", [2])
    np.testing.assert_allclose(run(tw.gradients([x * x, 3 * x], x, dys=[[1, 10], None]), {x: [1, 2]}), [5, 43])
    with pytest.raises(ValueError, match="2 ys, but 1 dys"):
        tw.gradients([x, x], x, dys=[1.0])


def test_until_stops_the_way_back(run):
    x = tw.placeholder("float32", [])
    y = x * x
    assert run(tw.gradients(y * x, x, until=[y]), {x: 3}) == 9


def test_what_does_not_depend_has_none(graph):
    x, z = tw.placeholder("float32", []), tw.placeholder("float32", [])
    assert tw.gradients(x * 2, [z, x])[0] is None


def test_gradients_by_a_variable_and_by_its_rows(run, graph):
    v = tw.Variable(np.ones((4, 2), np.float32), name="v")
    run(graph.initializer())
    rows = tw.ops.resource_gather(v, [1, 3, 1], dtype="float32")
    found = tw.gradients((rows * [[1.0], [2], [3]]).sum(), v)
    assert isinstance(found, tw.SparseGradient)
    values, at = run([found.values, found.rows])
    dense = np.zeros((4, 2))
    np.add.at(dense, at, values)
    np.testing.assert_allclose(dense, [[0, 0], [4, 4], [0, 0], [2, 2]])
    np.testing.assert_allclose(run(tw.gradients((v * v).sum(), v)), np.full((4, 2), 2))


def test_failures_name_the_operation_and_its_line(graph):
    x = tw.placeholder("float32", [3])
    largest = tw.ops.arg_max(x, 0, name="largest")
    with pytest.raises(tw.InvalidArgumentError):
        tw.gradients(largest, x)
    cut = tw.ops.fill([2], 1.0) * largest.astype("float32")
    try:
        found = tw.gradients(cut, x)
    except tw.FailedPreconditionError as e:
        assert e.operation == "largest" and e.line.file == __file__
    else:
        assert found is None


def test_gradients_are_differentiable(run):
    x = tw.placeholder("float32", [])
    second = tw.gradients(tw.gradients(x ** 3, x), x)
    np.testing.assert_allclose(run(second, {x: 2}), 12)


def embedded(how):
    table = tw.Variable(np.arange(12, dtype=np.float32).reshape(6, 2), name="table")
    rows = tw.constant([[1, 4], [4, 0]])
    return table, {"a variable": lambda: tw.ops.gather_v2(table, rows), "its value": lambda: tw.ops.gather_v2(table.read(), rows, -2),
                   "a named value": lambda: tw.ops.gather(table.read().named("rows"), rows),
                   "its handle": lambda: tw.ops.resource_gather(table, rows, dtype="float32"),
                   "one of several": lambda: tw.ops.gather_v2(tw.read_variables([table])[0][0], rows),
                   "twice": lambda: tw.ops.gather_v2(table, rows) / 2 + tw.ops.gather_v2(table.read(), rows) / 2}[how]()


@pytest.mark.parametrize("how", ["a variable", "its value", "a named value", "its handle", "one of several", "twice"])
def test_rows_that_are_gathered_of_a_variable_have_a_sparse_gradient(run, graph, how):
    table, found = embedded(how)
    gradient = tw.gradients((found ** 2).sum(), table)
    assert isinstance(gradient, tw.SparseGradient) and gradient.values.shape[1] == 2
    step = tw.train.SGD(0.5).minimize((found ** 2).sum() / 2)
    run(graph.initializer())
    before = run(table)
    got, dense = run([gradient.values, gradient.rows]), np.zeros((6, 2), np.float32)
    np.add.at(dense, got[1], got[0])
    counts = np.array([1, 1, 0, 0, 2, 0])[:, None]
    np.testing.assert_allclose(dense, 2 * before * counts)
    run(step)
    np.testing.assert_allclose(run(table), before - 0.5 * before * counts)


def test_rows_and_the_whole_of_a_variable_make_a_dense_gradient(run, graph):
    table, found = embedded("a variable")
    fifth = tw.cond(found.sum() > 0, lambda: tw.ops.gather_v2(table, [5]).sum(), lambda: 0.0)
    gradient = tw.gradients(found.sum() + (table * table).sum() + fifth, table)
    run(graph.initializer())
    np.testing.assert_allclose(run(gradient), 2 * run(table) + np.array([1, 1, 0, 0, 2, 1])[:, None])
