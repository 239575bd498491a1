"""Formulas against NumPy's."""
import copy
import operator

import numpy as np
import pytest

import thalweg as tw

A = np.array([[1.5, -2, 3], [4, 5, -6]], np.float32)
B = np.array([2, -3, 4], np.float32)


@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.lt,
                                operator.le, operator.gt, operator.ge, operator.eq, operator.ne])
def test_operators_are_numpys_on_either_side(run, op):
    a, b = tw.placeholder("float32", [None, 3]), tw.placeholder("float32", [3])
    fetches, wanted = [op(a, b), op(a, 2), op(3, b), op(a, B), op(A, b), op(np.float32(2), b)], [
        op(A, B), op(A, 2), op(3, B), op(A, B), op(A, B), op(np.float32(2), B)]
    for got, want in zip(run(fetches, {a: A, b: B}), wanted):
        np.testing.assert_allclose(got, want, rtol=1e-6)
        assert got.dtype == want.dtype


def test_powers_signs_and_truth_values(run):
    a = tw.constant(A)
    got = run([a ** 2, 2 ** a, -a, +a, abs(a), (a > 0) & (a < 4), (a > 4) | (a < 0), (a > 0) ^ True, ~(a > 0), True & (a > 0)])
    want = [A ** 2, 2 ** A, -A, A, abs(A), (A > 0) & (A < 4), (A > 4) | (A < 0), (A > 0) ^ True, ~(A > 0), A > 0]
    for g, w in zip(got, want):
        np.testing.assert_allclose(g, w, rtol=1e-5)


@pytest.mark.parametrize("left, right", [((2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)), ((5, 2, 3), (3, 4)), ((3,), (3, 4)), ((2, 3), (3,)),
                                         ((3,), (3,)), ((5, 2, 3), (3,))])
def test_matrix_products_of_all_ranks(run, left, right):
    a, b = (np.random.default_rng(1).normal(size=s).astype(np.float32) for s in (left, right))
    x, y = tw.placeholder("float32", left), tw.placeholder("float32", right)
    for got in run([x @ y, x @ b, a @ y], {x: a, y: b}):
        np.testing.assert_allclose(got, a @ b, rtol=1e-5, atol=1e-6)


def test_whole_numbers_divide_into_real_ones(run):
    n = tw.constant([7, -7])
    got = run([n / 2, n / n, 1 / n, n // 2, n % 3])
    for g, w in zip(got, [[3.5, -3.5], [1, 1], [1 / 7, -1 / 7], [3, -4], [1, 2]]):
        np.testing.assert_allclose(g, w)
    assert got[0].dtype == np.float64 and got[3].dtype == np.int32


def test_numbers_take_the_type_of_the_value_or_are_refused(graph):
    n, x = tw.placeholder("int64"), tw.placeholder("float16")
    assert (n + 1).dtype == "int64" and (2 * x).dtype == "float16" and (x + 1).dtype == "float16"
    with pytest.raises(TypeError, match="0.5 .*is no int64"):
        n + 0.5
    with pytest.raises(TypeError, match="is no float16"):
        x + "text"


KEYS = [np.s_[1], np.s_[-1], np.s_[0, 2], np.s_[1:], np.s_[:-1], np.s_[::2], np.s_[::-1], np.s_[..., 1], np.s_[:, None, 1:3],
        np.s_[None, ..., None], np.s_[1:2, :, -1], np.s_[..., ::-2], np.s_[2:1], np.s_[...], np.s_[-2:, 1, 0:2]]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_indexing_is_numpys(run, key):
    array = np.arange(24).reshape(2, 3, 4)
    x = tw.placeholder("int64")
    np.testing.assert_array_equal(run(x[key], {x: array}), array[key])


def test_indices_may_be_values(run):
    array, x, k = np.arange(12).reshape(3, 4), tw.placeholder("int64", [3, 4]), tw.placeholder("int32", [])
    for i in (0, 2, -1):
        for got, want in zip(run([x[k], x[:, k], x[k:]], {x: array, k: i}), [array[i], array[:, i], array[i:]]):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("key", [1.5, "a", [0, 1], True, np.array([0, 1]), slice(0.5, None)], ids=str)
def test_other_indices_are_refused(graph, key):
    with pytest.raises(TypeError, match="is no index|is no bound"):
        tw.placeholder("float32", [3])[key]


def test_a_mask_is_no_index_and_told_so(run):
    x = tw.placeholder("float32", [2, 3])
    with pytest.raises(TypeError, match="to pick by truth values, use ops.gather_nd with ops.where"):
        x[x > 2]
    assert run(tw.ops.gather_nd(x, tw.ops.where(x > 2)), {x: A}).tolist() == A[A > 2].tolist()


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "min"])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)])
def test_reductions_are_numpys(run, name, axis):
    known, unknown = tw.placeholder("float32", [2, 3]), tw.placeholder("float32")
    for x in (known, unknown):
        for keep in (False, True):
            got = run(getattr(x, name)(axis, keepdims=keep), {x: A})
            np.testing.assert_allclose(got, getattr(np, name)(A, axis=axis, keepdims=keep), rtol=1e-5)


def test_methods(run):
    x = tw.placeholder("float32", [2, 3])
    got = run([x.argmax(0), x.argmin(1, dtype="int32"), x.reshape(3, 2), x.reshape([-1]), x.T, x.transpose(1, 0), x.astype("int32"),
               x.equal(A), x.not_equal(3), x.reshape(tw.constant([6]))], {x: A})
    want = [A.argmax(0), A.argmin(1), A.reshape(3, 2), A.reshape(-1), A.T, A.T, A.astype(np.int32), A == A, A != 3, A.reshape(6)]
    for g, w in zip(got, want):
        np.testing.assert_array_equal(g, w)
    assert got[1].dtype == np.int32 and x.astype("float32") is x
    with pytest.raises(ValueError, match="rank is unknown"):
        tw.placeholder("float32").T


def test_values_are_keys_and_neither_true_nor_lists(graph):
    x, y = tw.placeholder("float32"), tw.placeholder("float32")
    assert graph.output("Placeholder") is x and {x: 1, y: 2}[graph.output("Placeholder")] == 1
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(x)
    with pytest.raises(TypeError, match="not iterable"):
        list(x)
    for wrong in (np.asarray, lambda value: np.array([value, value]), np.linalg.norm, np.sum, lambda value: np.concatenate([A, value])):
        with pytest.raises(TypeError, match="no elements before a session runs it"):
            wrong(x)


def test_what_a_value_tells(graph):
    x = tw.placeholder("float32", [None, 3], name="x")
    y = (x + 1).named("y")
    assert (y.name, y.index, y.dtype, y.shape, y.operation.type) == ("y:0", 0, tw.float32, (None, 3), "Identity")
    assert repr(x) == "<Output 'x:0' float32 [?, 3]>" and tw.placeholder("int32").shape is None
    assert y.operation.inputs[0].operation.inputs[0] is x and y.operation.outputs[0] is y
    assert repr(y.operation) == "<Operation 'y' Identity>"


def test_equality_is_of_elements_and_makes_masks_that_compute(run):
    y, loss = tw.placeholder("float32", [3]), np.ones(3, np.float32)
    feeds = {y: [0, 2, 3]}
    assert run(((y != 0).astype("float32") * loss).sum(), feeds) == 2
    for got, want in zip(run([y == 2, y != [0, 2, 4], np.float32(2) == y, np.array([0, 2, 4]) != y, y == y], feeds),
                         [[0, 1, 0], [0, 0, 1], [0, 1, 0], [0, 0, 1], [1, 1, 1]]):
        assert got.dtype == bool and got.tolist() == [bool(w) for w in want]
    v = tw.Variable([1.0, 2.0])
    run(run.session.graph.initializer())
    assert run(v == 2).tolist() == [False, True] and run(v != v).tolist() == [False, False]
    assert run(tw.constant(["a", "b"]) == "b").tolist() == [False, True]


def test_what_a_formula_cannot_answer_is_an_error_that_says_what_to_write(graph):
    x, y, v = tw.placeholder("float32"), tw.placeholder("float32"), tw.Variable(1.0)
    for wrong in (lambda: x in [y], lambda: [y, x].index(x), lambda: 0 < x < 1, lambda: not x, lambda: x if x == y else y, lambda: [x] == [y],
                  lambda: v in [tw.Variable(1.0)], lambda: max(x, y)):
        with pytest.raises(TypeError, match="neither true nor false .*thalweg.cond.*any\\(x is y for y in values\\)"):
            wrong()
    for wrong in (lambda: x == None, lambda: None != x):  # noqa: E711
        with pytest.raises(TypeError, match="`is None`"):
            wrong()
    with pytest.raises(TypeError, match="is an operation, not a value"):
        x == tw.ops.no_op()


def test_a_value_is_one_object_and_so_is_a_variable(graph):
    x, v = tw.placeholder("float32", name="x"), tw.Variable(1.0, name="v")
    y = x + v
    assert graph["x"] is x and y.operation.inputs[0] is x and tw.Output(graph, x.number) is x and x.operation.outputs[0] is x
    assert graph.variables()[0] is v and v.handle is graph["v"] and {v: 1}[graph.variables()[0]] == 1
    assert copy.copy(x) is x and copy.copy(v) is v and copy.copy([x, v])[1] is v
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        copy.deepcopy(x)
    assert len({x, y, v, graph["x"], *graph.variables()}) == 3 and x in [x, y]
    keys = {value: i for i, value in enumerate([x + i for i in range(1000)])}
    assert len(keys) == 1000 and [keys[value] for value in list(keys)] == list(range(1000))
    other = tw.Graph()
    assert tw.Output(other, x.number) is not x and tw.Output(other, x.number) not in {x: 1}


@pytest.mark.parametrize("truth", [True, np.bool_(False)], ids=str)
def test_a_truth_value_of_python_is_no_number_of_a_formula(run, truth):
    x, n, b = tw.constant([1.5, 2.0]), tw.constant([1, 2]), tw.constant([True, False])
    for wrong in (lambda: truth * x, lambda: x + truth, lambda: n * truth, lambda: x == truth, lambda: tw.ops.maximum(n, truth)):
        with pytest.raises(TypeError, match=f"is {truth!r}, a truth value of Python, where .* is wanted; .*write 1 or 0".replace("(", r"\(")):
            wrong()
    got = run([b & truth, b == truth, x * np.array([True, False])])
    assert [g.tolist() for g in got] == [[bool(truth), False], [bool(truth), not truth], [1.5, 0]]


def test_means_of_whole_numbers_and_counts_of_truth_are_numpys(run):
    n, b = tw.placeholder("int32", [None, 2]), tw.placeholder("bool")
    whole, truth = np.array([[1, 2], [4, 4]], np.int32), np.array([True, False, True])
    got = run([n.mean(), n.mean(0), n.mean(1, keepdims=True), b.mean(), b.sum(), (n == 4).mean(), (n != 4).sum(0)], {n: whole, b: truth})
    want = [whole.mean(), whole.mean(0), whole.mean(1, keepdims=True), truth.mean(), truth.sum(), 0.5, [1, 1]]
    for g, w in zip(got, want):
        np.testing.assert_array_equal(g, w)
    assert [g.dtype for g in got] == [np.float64] * 4 + [np.int64, np.float64, np.int64]
    with pytest.raises(TypeError, match="axis is a whole number, several, or None for all, not 0.5"):
        n.sum(0.5)


def test_positions_without_an_axis_are_among_all_elements(run):
    known, unknown, array = tw.placeholder("float32", [2, 3]), tw.placeholder("float32"), np.array([[1, 9, 2], [9, 0, 3]], np.float32)
    for x in (known, unknown):
        got = run([x.argmax(), x.argmin(), x.argmax(dtype="int32"), x.argmax(-1), x.max()], {x: array})
        assert [g.tolist() for g in got] == [1, 4, 1, [1, 0], 9] and got[0] == array.argmax() and got[1] == array.argmin()


def test_truth_values_count_as_0_and_1_beside_numbers():
    x = np.float32([[1, 0, 3], [0, 5, 6]])

    def results(v):
        large = v > 2
        return [((v != 0) * v).sum(), v * large, large + v, v - large * v]
    with tw.Graph() as g:
        p = tw.placeholder("float32", [None, 3])
        fetches = results(p)
        with tw.Session(g) as s:
            fetched = s.run(fetches, {p: x})
    for got, at_once, right in zip(fetched, results(tw.constant(x)), results(x)):
        np.testing.assert_array_equal(got, right)
        np.testing.assert_array_equal(at_once.numpy(), right)
    with pytest.raises(tw.InvalidArgumentError, match="cast it"):
        tw.constant(x) * tw.constant([1, 2, 3])


def test_all_any_and_what_arrays_have():
    x = tw.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert (x > 0).all().item() is True and (x > 5).any(axis=1).tolist() == [False, True] and (x > 1).all(0, keepdims=True).shape == (1, 3)
    assert x.ndim == 2 and x.size == 6 and x.tolist() == [[1, 2, 3], [4, 5, 6]] and x.sum().tolist() == 21.0
    with tw.Graph():
        assert tw.placeholder("float32", [None, 2]).ndim == 2 and tw.placeholder("float32").ndim is None
