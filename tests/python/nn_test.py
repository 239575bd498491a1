import numpy as np
import pytest

import thalweg as tw

rng = np.random.default_rng(5)


def initialised(graph):
    session = tw.Session(graph)
    session.run(graph.initializer())
    return session


class Classifier(tw.nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = tw.nn.Dense(8, "relu", seed=1)
        self.blocks = [tw.nn.Residual(tw.nn.Sequential(tw.nn.LayerNorm(), tw.nn.Dense(8, "gelu", seed=2 + i))) for i in range(2)]
        self.out = tw.nn.Dense(3, use_bias=False, seed=9)

    def forward(self, x):
        x = self.hidden(x)
        for block in self.blocks:
            x = block(x)
        return self.out(x)


def test_a_module_owns_names_and_lists_its_variables():
    with tw.Graph() as g:
        net = Classifier()
        y = net(tw.placeholder("float32", [None, 4]))
    names = [v.name for v in net.parameters()]
    assert names == ["classifier/dense/kernel", "classifier/dense/bias", "classifier/residual/sequential/layernorm/scale",
                     "classifier/residual/sequential/layernorm/offset", "classifier/residual/sequential/dense/kernel",
                     "classifier/residual/sequential/dense/bias", "classifier/residual_1/sequential/layernorm/scale",
                     "classifier/residual_1/sequential/layernorm/offset", "classifier/residual_1/sequential/dense/kernel",
                     "classifier/residual_1/sequential/dense/bias", "classifier/dense_1/kernel"]
    assert list(net.named_parameters()) == names and [v.name for v in g.variables()] == names
    assert y.shape == (None, 3)


def test_calls_share_variables_and_modules_of_one_class_do_not():
    with tw.Graph() as g:
        layer, other = tw.nn.Dense(2), tw.nn.Dense(2)
        x = g.constant(rng.normal(size=(3, 4)).astype(np.float32))
        one, same, another = layer(x), layer(x), other(x)
    assert len(g.variables()) == 4
    with initialised(g) as s:
        a, b, c = s.run([one, same, another])
    assert np.array_equal(a, b) and not np.array_equal(a, c)


def test_layers_compute_what_numpy_does():
    x = rng.normal(size=(5, 7)).astype(np.float32)
    with tw.Graph() as g:
        layer = tw.nn.Dense(3, "tanh", kernel="he_normal", bias=("constant", 0.5), seed=4)
        y = layer(x)
    with initialised(g) as s:
        kernel, bias, got = s.run([layer.kernel, layer.bias, y])
    assert np.array_equal(bias, np.full(3, 0.5, np.float32))
    np.testing.assert_allclose(got, np.tanh(x.astype(np.float64) @ kernel + bias), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("lengths", [None, [4, 2, 0]])
def test_a_recurrent_layer_takes_batches_first_and_both_directions(lengths):
    x = rng.normal(size=(3, 4, 5)).astype(np.float32)
    with tw.Graph() as g:
        layer = tw.nn.Bidirectional(lambda reverse: tw.nn.LSTM(6, sequences=True, reverse=reverse, seed=1 + reverse))
        last = tw.nn.GRU(6, seed=3)
        value = g.constant(x)
        both, end = layer(value, lengths), last(value, lengths)
        cell = layer.backwards.cell
        turned = x.copy()
        for i in range(3):
            n = 4 if lengths is None else lengths[i]
            turned[i, :n] = x[i, :n][::-1]
        backwards, _ = cell.loop(turned.transpose(1, 0, 2), lengths)
        forwards, _ = layer.forwards.cell.loop(x.transpose(1, 0, 2), lengths)
        _, wanted_end = last.cell.loop(x.transpose(1, 0, 2), lengths)
    with initialised(g) as s:
        got, f, b, got_end, e = s.run([both, forwards, backwards, end, wanted_end])
    f, b = f.transpose(1, 0, 2), b.transpose(1, 0, 2)
    for i in range(3):
        n = 4 if lengths is None else lengths[i]
        b[i, :n] = b[i, :n][::-1].copy()
    assert got.shape == (3, 4, 12) and np.array_equal(got, np.concatenate([f, b], -1))
    assert np.array_equal(got_end, e)


def test_averages_move_with_the_step_that_minimises_and_serve_afterwards():
    x = (3 + 2 * rng.normal(size=(256, 4))).astype(np.float32)
    with tw.Graph() as g:
        norm = tw.nn.BatchNorm(momentum=0.5)
        fed = tw.placeholder("float32", [None, 4])
        y = norm(fed)
        elsewhere = tw.nn.BatchNorm()(tw.placeholder("float32", [None, 2], name="never_fed"))
        step = tw.train.SGD(0.0).minimize(tw.nn.Dense(1)(y).mean())
        flag = tw.nn.training()
    assert [v.name for v in norm.parameters(trainable=True)] == ["batchnorm/scale", "batchnorm/offset"]
    assert len(tw.nn.updates(y)) == 1 and len(tw.nn.updates(elsewhere)) == 1
    with initialised(g) as s:
        np.testing.assert_allclose(s.run(y, {fed: x}), x / np.sqrt(1 + 1e-3), rtol=1e-5)  # nothing is learnt yet
        s.run(step, {fed: x})  # training() is False: the averages stay
        assert np.array_equal(s.run(norm.mean), np.zeros(4))
        for _ in range(30):
            s.run(step, {fed: x, flag: True})
        np.testing.assert_allclose(s.run(norm.mean), x.mean(0), rtol=1e-4)
        np.testing.assert_allclose(s.run(norm.variance), x.var(0, ddof=1), rtol=1e-4)
        np.testing.assert_allclose(s.run(y, {fed: x}), (x - x.mean(0)) / np.sqrt(x.var(0, ddof=1) + 1e-3), rtol=1e-3, atol=1e-4)


def test_dropout_works_in_training_only():
    x = np.ones((100, 100), np.float32)
    with tw.Graph() as g:
        y = tw.nn.Dropout(0.5, seed=3)(g.constant(x))
        flag = tw.nn.training()
    assert tw.nn.training(g) is flag
    with tw.Session(g) as s:
        assert np.array_equal(s.run(y), x)
        dropped = s.run(y, {flag: True})
    assert set(np.unique(dropped)) == {0.0, 2.0} and 0.45 < dropped.mean() / 2 < 0.55


def test_a_small_network_learns_xor():
    x, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32), np.array([[0], [1], [1], [0]], np.float32)
    with tw.Graph() as g:
        net = tw.nn.Sequential(tw.nn.Dense(8, "tanh", seed=1), tw.nn.Dense(1, tw.nn.sigmoid, seed=2))
        error = net(g.constant(x)) - y
        loss = (error * error).mean()
        step = tw.train.Adam(0.05).minimize(loss)
    with initialised(g) as s:
        for _ in range(300):
            s.run(step)
        assert s.run(loss) < 1e-2


def test_frozen_modules_are_not_trained():
    with tw.Graph():
        body, head = tw.nn.Sequential(tw.nn.Dense(4), tw.nn.BatchNorm()), tw.nn.Dense(1)
        head(body(np.ones((2, 3), np.float32)))
        body.freeze()
        assert not body.parameters(trainable=True) and head.parameters(trainable=True)
        body.freeze(False)
        assert [v.name.rsplit("/")[-1] for v in body.parameters(trainable=True)] == ["kernel", "bias", "scale", "offset"]


def test_a_summary_counts_parameters():
    with tw.Graph():
        net = tw.nn.Sequential(tw.nn.Conv2D(4, 3, "relu", padding="valid"), tw.nn.BatchNorm(), tw.nn.MaxPool2D(), tw.nn.Flatten(), tw.nn.Dense(10))
        net(tw.placeholder("float32", [None, 8, 8, 1]))
    lines = net.summary().splitlines()
    assert lines[0].split() == ["module", "class", "result", "parameters"]
    assert lines[2].split() == ["sequential", "Sequential", "[?,", "10]", "426"], lines[2]
    assert lines[3].split()[-1] == "40" and lines[4].split()[-1] == "16" and lines[7].split()[-1] == "370"
    assert lines[-1] == "426 parameters, 418 of them trained"


@pytest.mark.parametrize("name", tw.nn.ACTIVATIONS[1:])
def test_each_activation_is_a_function(name):
    with tw.Graph() as g:
        x = g.constant([[-1.0, 0.5, 2.0]])
        with tw.Session(g) as s:
            by_name, by_function = s.run([tw.nn.activation(name, x), getattr(tw.nn, name)(x)])
    assert np.array_equal(by_name, by_function)


def test_what_is_wrong_is_told_with_the_module():
    with tw.Graph():
        x = tw.placeholder("float32", [None, 4])
        with pytest.raises(ValueError, match="there is no activation 'rleu'; there are: none, relu"):
            tw.nn.Dense(3, "rleu")
        with pytest.raises(ValueError, match="there is no initializer 'he'"):
            tw.nn.Dense(3, kernel="he")
        with pytest.raises(ValueError, match="module 'dense': the last axis of its first input .* must be known"):
            tw.nn.Dense(3)(tw.placeholder("float32", [4, None]))
        layer = tw.nn.Dense(3)
        layer(x)
        with pytest.raises(tw.InvalidArgumentError, match="the input has shape .*, so 5 channels; the weights are for 4"):
            layer(tw.placeholder("float32", [None, 5]))
        with pytest.raises(RuntimeError, match="module 'lstm' was not called yet"):
            tw.nn.LSTM(3).parameters()
        with pytest.raises(ValueError, match="window is .*; it must be a number, or one for each of 2 axes"):
            tw.nn.Conv2D(3, [1, 2, 3])
    with tw.Graph(), pytest.raises(ValueError, match="has its variables in another graph"):
        layer(tw.placeholder("float32", [None, 4]))

    class Forgetful(tw.nn.Module):
        def __init__(self):
            pass
    with tw.Graph(), pytest.raises(RuntimeError, match="did not call super"):
        Forgetful()(1)
