"""Layers without a graph: the numbers of the same layers in a graph, and gradients by tapes."""
import numpy as np
import pytest

import thalweg as tw

rng = np.random.default_rng(9)
X = rng.normal(size=(4, 6, 6, 2)).astype(np.float32)


def classifier():
    return tw.nn.Sequential(tw.nn.Conv2D(4, 3, "relu", seed=1), tw.nn.BatchNorm(), tw.nn.MaxPool2D(), tw.nn.Flatten(), tw.nn.Dropout(0.5),
                            tw.nn.LayerNorm(), tw.nn.Dense(3, tw.nn.tanh, seed=2))


def in_a_graph(build, *inputs, training=False):
    with tw.Graph() as g:
        net = build()
        places = [tw.placeholder(x.dtype.name, x.shape) for x in inputs]
        y = net(*places)
        flag, start = tw.nn.training(), g.initializer()
    with tw.Session(g) as s:
        s.run(start)
        return s.run(y, {**dict(zip(places, inputs)), flag: training})


def test_a_network_computes_what_it_does_in_a_graph():
    net = classifier()
    y = net(tw.constant(X))
    assert isinstance(y, tw.Value) and y.shape == (4, 3)
    np.testing.assert_array_equal(y.numpy(), in_a_graph(classifier, X))
    np.testing.assert_array_equal(net(X).numpy(), y.numpy())  # an array, and the same weights
    assert net(X[:2]).shape == (2, 3)
    names = [v.name.split("/", 1)[1] for v in net.parameters()]
    assert names == ["conv2d/kernel", "conv2d/bias", "batchnorm/scale", "batchnorm/offset", "batchnorm/mean", "batchnorm/variance",
                     "layernorm/scale", "layernorm/offset", "dense/kernel", "dense/bias"]
    assert len(net.parameters(trainable=True)) == 8 and net.parameters()[0].graph.computes


@pytest.mark.parametrize("build,inputs", [
    (lambda: tw.nn.Conv1D(3, 3, padding="causal", seed=1), [X[:, 0]]),
    (lambda: tw.nn.Conv2DTranspose(3, 3, strides=2, seed=1), [X]),
    (lambda: tw.nn.GroupNorm(2), [X]),
    (lambda: tw.nn.RMSNorm(), [X]),
    (lambda: tw.nn.AvgPool2D(3, 2, "same"), [X]),
    (lambda: tw.nn.Conv2D(3, 3, strides=2, padding=(1, (0, 1)), seed=1), [X]),
    (lambda: tw.nn.MaxPool2D(3, 2, padding=1), [X]),
    (lambda: tw.nn.Concat(tw.nn.Conv2D(2, 1, seed=1), tw.nn.relu), [X]),
    (lambda: tw.nn.GlobalMaxPool(), [X]),
    (lambda: tw.nn.MultiHeadAttention(1, rotary=True, seed=3), [X[:, 0]]),
    (lambda: tw.nn.Embedding(9, 4, seed=4), [np.arange(6).reshape(2, 3)]),
    (lambda: tw.nn.Residual(tw.nn.Dense(2, "gelu", seed=5)), [X]),
])
def test_each_layer_computes_what_it_does_in_a_graph(build, inputs):
    layer = build()
    np.testing.assert_allclose(layer(*map(tw.constant, inputs)).numpy(), in_a_graph(build, *inputs), rtol=1e-6, atol=1e-6)


def test_a_network_learns_by_a_tape():
    net = tw.nn.Sequential(tw.nn.Dense(8, "tanh", seed=1), tw.nn.Dense(1, tw.nn.sigmoid, seed=2))
    x, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32), np.array([[0], [1], [1], [0]], np.float32)
    net(x)
    losses = []
    for _ in range(250):
        with tw.Tape() as tape:
            error = net(x) - y
            loss = (error * error).mean()
        losses.append(loss.item())
        for w, g in zip(net.parameters(), tape.gradient(loss, net.parameters())):
            w.assign_sub(3.0 * g)
    assert losses[-1] < 0.05 < losses[0]


def test_gradients_are_those_of_the_graph():
    build = lambda: tw.nn.Sequential(tw.nn.Conv2D(3, 3, "silu", seed=1), tw.nn.LayerNorm(), tw.nn.Flatten(), tw.nn.Dense(1, seed=2))  # noqa: E731
    net = build()
    net(X)
    with tw.Tape() as tape:
        loss = net(X).sum()
    found = tape.gradient(loss, net.parameters())
    with tw.Graph() as g:
        other = build()
        loss = other(X).sum()
        wanted, start = tw.gradients(loss, other.parameters()), g.initializer()
    with tw.Session(g) as s:
        s.run(start)
        for a, b in zip(found, s.run(wanted)):
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-4, atol=1e-5)


def test_in_training_dropout_drops_and_averages_move():
    drop, norm = tw.nn.Dropout(0.5), tw.nn.BatchNorm(momentum=0.5)
    ones = np.ones((50, 40), np.float32)
    np.testing.assert_array_equal(drop(ones).numpy(), ones)
    norm(X)
    assert not norm.mean.read().numpy().any()
    with tw.nn.in_training():
        first, second = drop(ones).numpy(), drop(ones).numpy()
        y = norm(X)
    assert set(np.unique(first)) == {0.0, 2.0} and not np.array_equal(first, second)
    np.testing.assert_allclose(y.numpy().mean((0, 1, 2)), 0, atol=1e-5)
    np.testing.assert_allclose(norm.mean.read().numpy(), X.mean((0, 1, 2)) / 2, rtol=1e-5)
    np.testing.assert_array_equal(drop(ones).numpy(), ones)


def test_two_layers_do_not_start_alike_and_a_seed_repeats_them():
    def draw():
        tw.random.seed(7)
        try:
            with tw.Eager():
                a, b = tw.nn.Dense(3), tw.nn.Dense(3)
                a(X[0, 0]), b(X[0, 0])
                return a.kernel.read().numpy(), b.kernel.read().numpy()
        finally:
            tw.random.seed(None)

    (a, b), (c, d) = draw(), draw()
    assert not np.array_equal(a, b) and np.array_equal(a, c) and np.array_equal(b, d)


def test_mistakes_are_told():
    net = tw.nn.Dense(3)
    with pytest.raises(tw.InvalidArgumentError, match="so 2 channels; the weights are for 6"):
        net(X[0, 0].T)
        net(X[0, 0])
    with tw.Graph(), pytest.raises(ValueError, match="has its variables in another graph"):
        net(tw.placeholder("float32", [None, 6]))


def test_errors_name_the_module():
    class Block(tw.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = tw.nn.Dense(3)

        def forward(self, x):
            return self.inner(x)
    net = tw.nn.Sequential(tw.nn.Dense(4), Block())
    net(tw.constant(np.ones((2, 5), np.float32)))
    with pytest.raises(tw.InvalidArgumentError, match=r"^module 'sequential(_\d+)?/dense': .*the input has shape \[2, 6\], so 6 channels; the weights are for 5") as e:
        net(tw.constant(np.ones((2, 6), np.float32)))
    assert str(e.value) == e.value.message
    with pytest.raises(tw.InvalidArgumentError, match=r"^module '[a-z0-9_/]*conv2d(_\d+)?': .*it must have 4 axes"):
        tw.nn.Sequential(tw.nn.Conv2D(2, 3))(tw.constant(np.ones((2, 6), np.float32)))
    with tw.Graph():  # here the operation has the name
        with pytest.raises(tw.InvalidArgumentError, match="'sequential/conv2d'") as e:
            tw.nn.Sequential(tw.nn.Conv2D(2, 3))(tw.placeholder("float32", [None, 6]))
        assert str(e.value).count("sequential/conv2d") == 1
