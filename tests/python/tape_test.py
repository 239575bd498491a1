"""Tapes, grad and value_and_grad, against numeric gradients in float64."""
import threading

import numpy as np
import pytest

import thalweg as tw


def numeric(f, x, h=1e-6):
    """The gradient of f, of an array to a number, by central differences."""
    x, out = np.asarray(x, np.float64), np.zeros_like(x, np.float64)
    for i in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[i] = h
        out[i] = (float(f(x + step)) - float(f(x - step))) / (2 * h)
    return out


X = np.array([[0.3, -0.7, 1.1], [0.4, 0.9, -0.2]])

FUNCTIONS = {
    "elementwise": lambda x: (tw.ops.tanh(x) * tw.ops.exp(x) / (1 + x * x)).sum(),
    "products": lambda x: (tw.ops.softmax(x @ x.T) * 3.0).max() + (x.T @ x).sum(),
    "slices": lambda x: (x[0] * x[1, ::-1]).sum() + x[:, 1:].mean() * x[0, 0] ** 3,
    "layers": lambda x: tw.ops.sigmoid(tw.ops.bias_add(x @ np.ones((3, 2)), [0.1, -0.1])).mean(axis=0).prod(),
    "lists": lambda x: sum(p.sum() * (k + 1) for k, p in enumerate(tw.ops.split(1, x * x * x, num_split=3))),
    "losses": lambda x: tw.ops.sparse_softmax_cross_entropy_with_logits(x, [2, 0]).loss.mean(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_agree_with_numeric_ones(name):
    f = FUNCTIONS[name]
    value, found = tw.value_and_grad(f)(X)
    assert value.item() == pytest.approx(f(tw.constant(X)).item())
    np.testing.assert_allclose(found.numpy(), numeric(lambda x: f(tw.constant(x)).item(), X), atol=1e-8)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_derivatives_agree_with_numeric_ones(name):
    def weighted(x):
        return (tw.grad(FUNCTIONS[name])(x) * np.arange(1.0, 7).reshape(2, 3)).sum()

    np.testing.assert_allclose(tw.grad(weighted)(X).numpy(), numeric(lambda x: weighted(tw.constant(x)).item(), X), atol=1e-7)


def test_derivatives_of_any_order():
    f, expected = (lambda x: tw.ops.sin(2 * x)), [np.sin(1.0), 2 * np.cos(1.0), -4 * np.sin(1.0), -8 * np.cos(1.0), 16 * np.sin(1.0)]
    for value in expected:
        assert f(tw.constant(0.5, "float64")).item() == pytest.approx(value)
        f = tw.grad(f)


def test_several_arguments_variables_and_what_does_not_depend():
    w = tw.Variable([2.0, 3.0])
    value, (dx, dw, none) = tw.value_and_grad(lambda x, w, unused: (x * w * w).sum(), argnums=[0, 1, 2])([1.0, 10.0], w, 5.0)
    assert value.item() == 94 and dx.numpy().tolist() == [4, 9] and dw.numpy().tolist() == [4, 60] and none is None
    x = tw.constant(3.0)
    assert tw.grad(lambda y: x * y)(x).item() == 3  # what f uses otherwise is a constant


def test_a_tape_weights_its_ys_and_answers_more_than_once():
    x = tw.constant([1.0, 2.0])
    with tw.Tape() as tape:
        tape.watch(x)
        square = x * x
        cube = square * x
    later = square * 2
    assert tape.gradient([square, cube], x, dys=[[10, 100], None]).numpy().tolist() == [23, 412]
    assert [g.numpy().tolist() for g in tape.gradient(cube, [x, square])] == [[3, 12], [1, 2]]
    assert tape.gradient(later, x) is None
    with pytest.raises(ValueError, match="2 ys, but 1 dys"):
        tape.gradient([square, cube], x, dys=[None])


def test_a_table_has_sparse_gradients():
    table = tw.Variable(np.arange(6, dtype=np.float32).reshape(3, 2))
    with tw.Tape() as tape:
        some = tw.ops.resource_gather(table, [2, 0, 2], dtype="float32")
        y = (some * some).sum()
    found = tape.gradient(y, table)
    assert isinstance(found, tw.SparseGradient) and found.rows.numpy().tolist() == [2, 0, 2]
    np.testing.assert_array_equal(found.values.numpy(), [[8, 10], [0, 2], [8, 10]])


def test_a_net_learns():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 3)).astype(np.float32)
    y = x @ np.array([1.0, -2.0, 0.5], np.float32) + 0.25
    w, b = tw.Variable(np.zeros(3, np.float32)), tw.Variable(0.0)
    for _ in range(200):
        with tw.Tape() as tape:
            e = tw.constant(x) @ w.read() + b - y
            loss = (e * e).mean()
        for v, g in zip((w, b), tape.gradient(loss, [w, b])):
            v.assign_sub(0.1 * g)
    np.testing.assert_allclose(w.read().numpy(), [1, -2, 0.5], atol=1e-3)
    assert b.read().item() == pytest.approx(0.25, abs=1e-3)


def test_what_cannot_be_differentiated_is_told():
    x = tw.constant([1.0, 2.0])
    with pytest.raises(ValueError, match="a scalar is needed"):
        tw.grad(lambda v: v * 2)(x)
    with pytest.raises(tw.InvalidArgumentError, match="a value of int32 cannot be watched"):
        tw.grad(lambda v: v * 2)(3)
    with pytest.raises(TypeError, match="for values of a graph there is thalweg.gradients"):
        with tw.Graph(), tw.Tape() as tape:
            tape.watch(tw.placeholder("float32", []))
    tape = tw.Tape()
    with pytest.raises(RuntimeError, match="inside its `with`"):
        tape.watch(x)


def test_a_tape_is_of_its_thread():
    x, told = tw.constant(3.0), []
    with tw.Tape() as tape:
        tape.watch(x)

        def other():
            y = x * x
            try:
                tape.gradient(y, x)
            except tw.FailedPreconditionError as e:
                told.append((y, e))

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    y, error = told[0]
    assert "belongs to another thread" in str(error) and tape.gradient(y, x) is None


def test_shapes_beyond_those_that_have_gradients_of_their_own():
    for n in range(1, 41):
        x = np.linspace(0.5, 1.5, n)
        f = lambda v: (v * v * v * 2.0 + tw.ops.gather_v2(v * v, [0, n - 1], 0).sum()).mean()  # noqa: E731
        wanted = 6 * x ** 2 / n
        for i in (0, n - 1):
            wanted[i] += 2 * x[i]
        np.testing.assert_allclose(tw.grad(f)(x).numpy(), wanted, rtol=1e-12)
        second = tw.grad(lambda v: tw.grad(f)(v).sum())(x)  # pylint: disable=cell-var-from-loop
        curved = 12 * x / n
        for i in (0, n - 1):
            curved[i] += 2
        np.testing.assert_allclose(second.numpy(), curved, rtol=1e-12)
