"""Without a graph: values compute at once, have elements, and meet graphs and NumPy."""
import contextlib
import copy
import gc
import pathlib
import pickle
import threading

import numpy as np
import pytest

import thalweg as tw

A = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]], np.float32)
B = np.array([[2.0, 1.0, 0.5], [1.5, 3.0, 2.0]], np.float32)


@pytest.mark.parametrize("formula", [
    lambda a, b: a + b, lambda a, b: a - 2 * b, lambda a, b: a / b, lambda a, b: -a % b, lambda a, b: a // b, lambda a, b: b ** 2,
    lambda a, b: a @ b.T, lambda a, b: a < b, lambda a, b: (a < b) & ~(a < 0), lambda a, b: abs(a).sum(), lambda a, b: a.sum(axis=1),
    lambda a, b: a.mean(axis=0, keepdims=True), lambda a, b: a.max() + b.min(), lambda a, b: a.argmax(axis=1), lambda a, b: a[1:, ..., ::2],
    lambda a, b: a[None, 0, -1], lambda a, b: a.reshape(3, 2) @ b, lambda a, b: a.T, lambda a, b: 1 / b, lambda a, b: b[0] + a],
    ids=range(20))
def test_operators_and_methods_are_numpys(formula):
    found, expected = formula(tw.constant(A), tw.constant(B)), formula(A, B)
    assert isinstance(found, tw.Value) and found.shape == expected.shape
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)


def test_a_value_is_printed_with_elements_type_shape_and_device():
    assert repr(tw.constant([[1.5, 2], [3, 4]])) == "Value([[1.5, 2], [3, 4]], dtype=float32, shape=[2, 2], device=host)"
    assert repr(tw.constant(["a", b"b"])) == 'Value(["a", "b"], dtype=string, shape=[2], device=host)'
    x = tw.constant(3)
    assert (x.dtype, x.shape, x.device, x.item(), int(x)) == (tw.int32, (), None, 3, 3)
    assert (float(x), bool(x), list(range(x))) == (3.0, True, [0, 1, 2])
    with pytest.raises(ValueError, match=r"shape \[2\] is neither true nor false"):
        bool(tw.constant([1, 2]))
    with pytest.raises(TypeError, match="is no index"):
        range(tw.constant(1.0))


def test_numpy_takes_values_and_gets_no_way_to_change_them():
    x = tw.constant(A)
    np.testing.assert_array_equal(np.asarray(x), A)
    np.testing.assert_array_equal(np.concatenate([x, B]), np.concatenate([A, B]))
    assert np.sum(x) == A.sum() and [float(row.sum()) for row in x] == A.sum(1).tolist() and len(x) == 2
    with pytest.raises(ValueError, match="read-only"):
        x.numpy()[0, 0] = 5
    array = A.copy()
    y = tw.constant(array)
    array[:] = 0
    np.testing.assert_array_equal(y.numpy(), A)


def test_ops_have_lists_several_outputs_and_attributes():
    parts = tw.ops.split(1, tw.constant(A), num_split=3)
    assert [p.shape for p in parts] == [(2, 1)] * 3
    np.testing.assert_array_equal(tw.ops.concat_v2(parts, 1).numpy(), A)
    best = tw.ops.top_kv2(A, 2)
    np.testing.assert_array_equal(best.values.numpy(), [[3, 1], [4, 0.5]])
    np.testing.assert_array_equal(best.indices.numpy(), [[2, 0], [1, 0]])
    np.testing.assert_allclose(tw.ops.mat_mul(A, B, transpose_b=True).numpy(), A @ B.T, rtol=1e-6)
    assert tw.ops.cast([1.7, -1.2], DstT="int32").numpy().tolist() == [1, -1]
    assert tw.ops.string_join([["a", "b"], "c"], separator="-").numpy().tolist() == [b"a-c", b"b-c"]
    assert [x.item() for x in tw.ops.identity_n([1.0, 2])] == [1.0, 2]
    assert tw.ops.reshape(A, [-1]).shape == (6,) and tw.ops.placeholder_with_default(A, shape=[None, 3]).shape == (2, 3)


def test_an_error_names_the_op_and_the_callers_line():
    with pytest.raises(tw.InvalidArgumentError, match=r"MatMul 'eager': inner dimensions differ: a is \[2, 3\], b is \[2, 3\]") as e:
        tw.ops.mat_mul(A, B)  # this line
    text = pathlib.Path(__file__).read_text().splitlines()[e.value.line.number - 1]
    assert e.value.line.file == __file__ and "# this line" in text and str(e.value).startswith(__file__)
    with pytest.raises(tw.InvalidArgumentError):
        tw.constant(A) @ tw.constant(B)
    with pytest.raises(TypeError, match="MatMul: attribute 'transpose_a' is of kind bool"):
        tw.ops.mat_mul(A, B, transpose_a=1)
    with pytest.raises(TypeError, match="MatMul lacks its input 'b'"):
        tw.ops.mat_mul(A)
    with pytest.raises(tw.InvalidArgumentError, match="device"):
        with tw.device("CPU:x"):
            tw.ops.neg(A)


def test_variables_have_their_value_at_once():
    w = tw.Variable([1.0, 2.0], name="w")
    before = w.read()
    assert w.assign_add([1, 1]) is None and w.name == "w" and w.dtype == tw.float32 and w.shape == (2,) and w.trainable
    assert (w * 2).numpy().tolist() == [4, 6] and before.numpy().tolist() == [1, 2]
    w.assign([5, 6])
    w.assign_sub(tw.constant([1.0, 0.0]))
    assert w.read().numpy().tolist() == [4, 6]
    other = tw.Variable([0.0], name="w")
    assert other.name == "w_1" and w.read().numpy().tolist() == [4, 6]
    for change in (w.assign, w.assign_add):
        with pytest.raises(ValueError, match=r"<Variable 'w' float32 \[2\]> cannot take Value\(\[1\].*its shape is another"):
            change([1.0])


def test_a_variable_ends_with_its_last_reference():
    with tw.Eager() as e:
        w = tw.Variable([1.0], name="gone")
        again = e.op("VarHandleOp", dtype="float32", shape=[1], shared_name="gone")
        assert e.op("ReadVariableOp", again, dtype="float32").item() == 1
        del w
        gc.collect()
        with pytest.raises(tw.FailedPreconditionError, match="gone"):
            e.op("ReadVariableOp", again, dtype="float32")


def test_a_container_is_shared_with_sessions():
    with tw.Eager(container="python eager"):
        w = tw.Variable([1.0, 2.0], name="w")
    with tw.Graph() as g:
        v = tw.Variable(np.zeros(2, np.float32), name="w")
        add = v.assign_add([1, 1])
    with tw.Session(g, container="python eager") as s:
        s.run(add)
        assert w.read().numpy().tolist() == [2, 3]
        w.assign([7, 8])
        assert s.run(v).tolist() == [7, 8]


def test_with_a_value_of_a_graph_an_op_is_added_to_it():
    x, w = tw.constant([1.0, 2.0]), tw.Variable([1.0, 1.0])
    with tw.Graph() as g:
        p = tw.placeholder("float32", [2])
        values = [p * x, x * p, tw.ops.concat_v2([x, p], 0), p + w.read()]
        assert all(v.graph is g for v in values) and isinstance(x * 2, tw.Value) and not isinstance(tw.constant(1.0), tw.Value)
        with pytest.raises(TypeError, match="is a variable without a graph"):
            p + w
    with tw.Session(g) as s:
        assert [v.tolist() for v in s.run(values, {p: x})] == [[1, 4], [1, 4], [1, 2, 1, 2], [2, 3]]
    with g:
        v = tw.Variable(x, dtype="float64", name="v")
        init = tw.initializer()
    with tw.Session(g) as s:
        s.run(init)
        assert v.graph is g and s.run(v).dtype == np.float64 and s.run(v).tolist() == [1, 2]
    with tw.Session(g) as s:
        assert s.run(values[0], {p: w}).tolist() == [1, 2]  # what the variable holds now
    assert tw.Variable(x).read().numpy().tolist() == [1, 2]
    with pytest.raises(ValueError, match="is a value of a graph; fetch it"):
        tw.Eager().constant(p)


def test_what_is_for_graphs_says_so():
    x = tw.constant(1.0)
    for wrong, told in [(lambda: tw.placeholder("float32"), "no graph is current"),
                        (lambda: tw.cond(x > 0, lambda: x, lambda: -x), "Python's own"),
                        (lambda: tw.gradients(x * x, x), "thalweg.Tape"), (lambda: x.operation, "belongs to no operation")]:
        with pytest.raises((TypeError, RuntimeError), match=told):
            wrong()
    with tw.Eager():
        with pytest.raises(RuntimeError, match="no graph is current"):
            tw.current_graph()
    with tw.Graph():
        p = tw.placeholder("float32", [])
        for wrong in (p.numpy, p.item):
            with pytest.raises(TypeError, match="has no elements before a session runs it"):
                wrong()


def test_values_compare_by_elements_and_are_keys_by_identity():
    x, y = tw.constant([1.0, 2.0]), tw.constant([1.0, 3.0])
    assert isinstance(x == y, tw.Value) and (x == y).numpy().tolist() == [True, False] and (x != [1, 2]).numpy().tolist() == [False, False]
    same = tw.constant([1.0, 2.0])
    assert {x: 1, same: 2}[x] == 1 and len({x, same, x}) == 2 and hash(x) != hash(same)
    with pytest.raises(TypeError, match="is compared with None"):
        x == None  # noqa: E711  # pylint: disable=pointless-statement,singleton-comparison
    with tw.Graph() as g:
        p = tw.placeholder("float32", [2])
        found = [x == p, p == x]
    assert [v.tolist() for v in tw.Session(g).run(found, {p: [1, 5]})] == [[True, False]] * 2


def test_one_element_has_a_truth_value_and_a_graphs_value_has_none():
    x = tw.constant([[2.0]])
    taken = [bool(x), bool(x == 2), not x < 0, int(x), float(x), 0 < x < 3, tw.constant(1) in [tw.constant(0), tw.constant(1)]]
    assert taken == [True, True, True, 2, 2.0, True, True] and bool(tw.constant(0.0)) is False and f"{x:.2f}" == "2.00"
    for wrong in (lambda: bool(tw.constant([1.0, 2.0]) == 1), lambda: bool(tw.constant([])), lambda: bool(tw.Variable([1, 2]))):
        with pytest.raises(ValueError, match="is neither true nor false; only one of a single element is"):
            wrong()
    with pytest.raises(ValueError):
        float(tw.constant([1.0, 2.0]))
    w = tw.Variable(3.0)
    assert bool(w) and np.asarray(w).item() == 3 and np.sum(w) == 3
    with tw.Graph(), pytest.raises(TypeError, match="is neither true nor false before a session runs it"):
        bool(tw.placeholder("float32", []) == x)


def test_a_copied_value_has_the_same_elements():
    x = tw.constant([1.0, 2.0])
    for again in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert isinstance(again, tw.Value) and again is not x and again.numpy().tolist() == [1, 2]
    assert copy.copy(x) is x


def draws():
    """Two calls of one op, an op of whole numbers, and one that is given its seed."""
    return [tw.ops.random_uniform([4], dtype="float32").numpy().tolist() for _ in range(2)] + [
        tw.ops.random_uniform_int([4], 0, 10**6).numpy().tolist(), tw.ops.random_uniform([4], dtype="float32", seed=5).numpy().tolist()]


def in_a_new_context():
    with tw.Eager():
        return draws()


def test_a_seed_makes_new_contexts_draw_the_same():
    try:
        tw.random.seed(7)
        first, second = in_a_new_context(), in_a_new_context()
        with tw.Graph() as g:
            built = [tw.ops.random_uniform([4], dtype="float32") for _ in range(2)]
        with tw.Session(g) as s:
            assert first[:2] == [v.tolist() for v in s.run(built)]  # as the operations of a graph
        assert first == second and first[0] != first[1]
        tw.random.seed(8)
        third = in_a_new_context()
        assert all(a != b for a, b in zip(first[:3], third[:3])) and first[3] == third[3]
    finally:
        tw.random.seed(None)
    fourth, fifth = in_a_new_context(), in_a_new_context()
    assert all(a != b for a, b in zip(fourth[:3], fifth[:3]))


def test_inputs_may_be_left_out_and_names_are_suggested():
    x = tw.constant(A)
    found = [tw.ops.sum(x).item(), tw.ops.mean(A).item(), tw.ops.sum(tw.Variable(A)).item()]
    np.testing.assert_allclose(found, [A.sum(), A.mean(), A.sum()])
    np.testing.assert_array_equal(tw.ops.transpose(x).numpy(), A.T)
    assert tw.ops.one_hot([1, 0], 2).numpy().tolist() == [[0, 1], [1, 0]] and tw.ops.range(0, 3).numpy().tolist() == [0, 1, 2]
    np.testing.assert_array_equal(tw.ops.concat_v2([x, B]).numpy(), np.concatenate([A, B]))
    np.testing.assert_array_equal(tw.ops.neg([x, x]).numpy(), [-A, -A])
    with tw.Eager() as e:
        for op, told in [("LayerNorm", "see thalweg.nn.LayerNorm"), ("mat_mul", "did you mean 'MatMul'"),
                         ("flatten", r"write x.reshape\(-1\)")]:
            with pytest.raises(AttributeError, match=f"no op is called '{op}'; {told}"):
                e.op(op, x)


def test_cells_losses_and_schedules_say_that_they_need_a_graph():
    x, cell = tw.constant(np.ones((2, 3), np.float32)), lambda: tw.recurrent.LSTMCell(2, 3)
    table = tw.Variable(np.ones((2, 3), np.float32))
    told = r"to a graph and cannot compute with a value that has no graph; build a graph: make the call inside of `with thalweg.Graph\(\):`"
    for wrong in (lambda: tw.losses.sampled_softmax(table, tw.Variable([0.0, 0]), [[1], [0]], x, 1),
                  lambda: tw.schedules.cosine(0.1, 10, step=tw.constant(1))):
        for where in (contextlib.nullcontext(), tw.Eager()):
            with where, pytest.raises(TypeError, match=told):
                wrong()
    for wrong in (cell, tw.nn.training, lambda: tw.name_scope("a").__enter__(),
                  lambda: tw.container("a").__enter__()):
        for where in (contextlib.nullcontext(), tw.Eager()):
            with where, pytest.raises(RuntimeError, match=r"no graph is current; write `with thalweg.Graph\(\) as g:`"):
                wrong()


def test_a_graphs_layers_hold_values_as_constants():
    x, queries = tw.constant(np.ones((2, 3), np.float32)), tw.constant(np.ones((1, 2, 2), np.float32))
    w = tw.Variable(x)
    with tw.Graph() as g:
        p, net = tw.placeholder("float32", [None, 3]), tw.nn.Sequential(tw.nn.Dense(4), tw.nn.Dropout(0.5))
        y = net(p * x), net(x), tw.nn.relu(-x), tw.nn.MultiHeadAttention(1)(queries, None, g.constant([[0.0, 0], [0, 0]]))
        chosen = tw.cond(p.sum() > 0, lambda: x, lambda: x * 2)
        with pytest.raises(TypeError, match="is a variable without a graph; share it by a container of that name, or use its value"):
            tw.nn.relu(w)
        with pytest.raises(TypeError, match="result 0: .* is a variable without a graph"):
            tw.cond(p.sum() > 0, lambda: w, lambda: x)
    with tw.Session(g) as s:
        s.run(g.initializer())
        found = s.run(list(y), {p: np.ones((2, 3))})
        assert [v.shape for v in found] == [(2, 4), (2, 4), (2, 3), (1, 2, 2)] and not found[2].any()
        np.testing.assert_array_equal(found[0], found[1])
        assert s.run(chosen, {p: -np.ones((2, 3))}).tolist() == [[2] * 3] * 2


def test_a_graph_is_not_given_a_value_by_number():
    x = tw.constant(1.0)
    with tw.Graph() as g:
        p = tw.placeholder("float32", [])
        for wrong in (lambda: tw.gradients(p * p, [x]), lambda: tw.Session(g).run(x), lambda: tw.Session(g).run(p, {x: 1.0}),
                      lambda: x.number):
            with pytest.raises((TypeError, ValueError), match="without a graph|is of another graph|is not of the session.s graph"):
                wrong()


def test_a_context_keeps_what_it_prepared_and_has_options():
    with tw.Eager(max_entries=2) as e:
        for _ in range(3):
            assert tw.ops.square(3.0).item() == 9
        tw.ops.neg(1.0), tw.ops.exp(0.0)
        assert e.report() == (2, 2, 3, 1)
    assert "max_entries" in tw.Eager.options()
    with pytest.raises(tw.InvalidArgumentError, match="max_entries"):
        tw.Eager(max_entries=0)
    with tw.Eager(memory_limit="1M"), pytest.raises(tw.ResourceExhaustedError):
        tw.ops.fill([1 << 20], 1.0)


def test_values_are_computed_with_in_the_current_context():
    x, w = tw.constant([1.0, 2.0]), tw.Variable([3.0, 4.0])
    with tw.Eager() as e, tw.Tape() as tape:
        tape.watch(x)
        y = x * w
    assert e.report().entries >= 2 and [g.numpy().tolist() for g in tape.gradient(y, [x, w])] == [[3, 4], [1, 2]]
    with tw.Tape() as tape:
        tape.watch(y)
        z = (y * y).sum()
    assert tape.gradient(z, y).numpy().tolist() == [6, 16]  # here, in the process's own
    with tw.Eager(tw.Runtime()) as other:
        assert (x + 1).numpy().tolist() == [2, 3] and other.report().entries == 0  # it is of another runtime


def test_threads_compute_at_the_same_time():
    wrong = []

    def work(k):
        x = tw.constant(np.full(3, k, np.float32))
        wrong.extend(i for i in range(50) if ((x * i + k).sum().item() != 3 * k * (i + 1)))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []
