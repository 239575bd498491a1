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
        flag, start = tw.nn.training(), g.initializer()
    assert tw.nn.training(g) is flag
    with tw.Session(g) as s:
        s.run(start)
        assert np.array_equal(s.run(y), x)
        dropped, next_ = s.run(y, {flag: True}), s.run(y, {flag: True})
        s.run(start)
        again = s.run(y, {flag: True})
    assert set(np.unique(dropped)) == {0.0, 2.0} and 0.45 < dropped.mean() / 2 < 0.55
    assert not np.array_equal(dropped, next_) and np.array_equal(dropped, again)  # the elements depend on the number of the step


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


# ---- In bodies ----

def test_layers_in_a_loop_see_the_training_flag_and_values_from_around_it():
    x = rng.normal(size=(6, 4)).astype(np.float32)
    with tw.Graph() as g:
        value, norm, dense = g.constant(x), tw.nn.BatchNorm(), tw.nn.Dense(4, seed=1)
        attention = tw.nn.MultiHeadAttention(2, seed=3)
        rows = value.reshape(1, 6, 4)
        norm(value), dense(value), attention(rows)
        looped = tw.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, norm(dense(h))), [0, value])[1]
        unrolled = value
        for _ in range(3):
            unrolled = norm(dense(unrolled))
        both = tw.while_loop(lambda i, h: i < 1, lambda i, h: (i + 1, attention(rows, h)), [0, rows * 2])[1]  # `rows` is from around the body
        wanted = attention(rows, rows * 2)
        gradients = [tw.gradients((y * y * y).sum(), [dense.kernel, norm.scale]) for y in (looped, unrolled)]
    with initialised(g) as s:
        for flag in (False, True):
            a, b, c, d, found = s.run([looped, unrolled, both, wanted, gradients], {tw.nn.training(g): flag})
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(c, d, rtol=1e-5, atol=1e-6)
            for one, other in zip(*found):
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def test_a_default_placeholder_that_is_fed_is_seen_in_bodies_and_by_shapes():
    with tw.Graph() as g:
        factor = tw.ops.placeholder_with_default(g.constant(2.0), shape=[])
        size = tw.ops.placeholder_with_default(g.constant([2, 3]), shape=[2])
        looped = tw.while_loop(lambda i, h: i < 2, lambda i, h: (i + 1, h * factor), [0, g.constant(1.0)])[1]
        shaped = tw.ops.reshape(g.constant(np.arange(6)), size)
    with tw.Session(g) as s:
        assert s.run(looped) == 4 and s.run(looped, {factor: 3.0}) == 9
        assert s.run(shaped).shape == (2, 3) and s.run(shaped, {size: [3, 2]}).shape == (3, 2)


def test_averages_move_in_the_body_of_a_condition():
    x = (3 + rng.normal(size=(20, 4))).astype(np.float32)
    with tw.Graph() as g:
        value, norm = g.constant(x), tw.nn.BatchNorm(momentum=0.5)
        norm(value)
        y = tw.cond(tw.ops.placeholder_with_default(g.constant(True), shape=[]), lambda: norm(value), lambda: value)
        loss = (y * y).sum()
        step = tw.train.SGD(0.0).minimize(loss, [norm.scale])
    with initialised(g) as s:
        s.run(step)
        assert np.array_equal(s.run(norm.mean), np.zeros(4))
        s.run(step, {tw.nn.training(g): True})
        np.testing.assert_allclose(s.run(norm.mean), x.mean(0) / 2, rtol=1e-5)  # once, not again for the gradient


def test_variables_are_not_made_in_bodies():
    with tw.Graph() as g:
        for layer, x in ((tw.nn.Dense(2), np.ones((3, 2), np.float32)), (tw.nn.LSTM(2), np.ones((3, 4, 2), np.float32))):
            value = g.constant(x)
            with pytest.raises(ValueError, match=f"module '{layer.name}' is called for the first time inside a function"):
                tw.cond(g.constant(True), lambda: layer(value), lambda: value)


def test_one_batch_norm_over_two_batches_counts_both():
    x = [(m + rng.normal(size=(50, 4))).astype(np.float32) for m in (1, 100)]
    with tw.Graph() as g:
        norm = tw.nn.BatchNorm(momentum=0.99)
        loss = sum(norm(g.constant(one)).mean() for one in x)
        step = tw.train.SGD(0.0).minimize(loss)
    with initialised(g) as s:
        s.run(step, {tw.nn.training(g): True})
        np.testing.assert_allclose(s.run(norm.mean), 0.01 * (x[0].mean(0) + x[1].mean(0)), rtol=0.02)


def test_loss_scale_moves_averages_too():
    x = (3 + rng.normal(size=(20, 4))).astype(np.float32)
    with tw.Graph() as g:
        norm = tw.nn.BatchNorm(momentum=0.5)
        step = tw.train.LossScale(tw.train.SGD(0.0)).minimize(norm(g.constant(x)).sum())
    with initialised(g) as s:
        s.run(step, {tw.nn.training(g): True})
        np.testing.assert_allclose(s.run(norm.mean), x.mean(0) / 2, rtol=1e-5)


# ---- Modules ----

def test_a_module_may_refer_to_one_around_it():
    class Parent(tw.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = tw.nn.Dense(2)
            self.inner.parent = self

        def forward(self, x):
            return self.inner(x)
    with tw.Graph():
        parent = Parent()
        parent(np.ones((1, 3), np.float32))
    assert [v.name for v in parent.parameters()] == ["parent/dense/kernel", "parent/dense/bias"]
    assert parent.summary().splitlines()[-1] == "8 parameters, 8 of them trained"


def test_freeze_needs_variables_and_gives_back_what_it_took():
    class Scaled(tw.nn.Module):
        def build(self, x):
            self.fixed, self.free = tw.Variable(1.0, name="fixed", trainable=False), tw.Variable(1.0, name="free")

        def forward(self, x):
            return x * self.fixed * self.free
    with tw.Graph():
        module = Scaled()
        with pytest.raises(RuntimeError, match="module 'scaled' was not called yet"):
            module.freeze()
        module(np.float32(1))
        module.freeze()
        module.freeze()
        assert not module.parameters(trainable=True)
        module.freeze(False)
        assert [v.name for v in module.parameters(trainable=True)] == ["scaled/free"]


def test_the_flag_of_an_imported_graph_is_found_and_depends_on_nothing():
    with tw.Graph() as g:
        with tw.control_dependencies([tw.placeholder("float32", name="never_fed")]), tw.device("CPU:0"):
            flag = tw.nn.training()
        y = tw.nn.Dropout(0.5)(g.constant(np.ones((3, 4), np.float32)))
    assert flag.operation.device == ""
    with tw.Session(g) as s:
        assert np.array_equal(s.run(y), np.ones((3, 4)))
    again = tw.Graph.from_bytes(g.to_bytes())
    assert tw.nn.training(again).name == flag.name


def test_arrays_take_the_type_of_the_weights():
    with tw.Graph() as g:
        dense, attention = tw.nn.Dense(2), tw.nn.MultiHeadAttention(1)
        assert dense(np.ones((3, 4))).dtype == tw.float32 and dense([[1, 2, 3, 4]]).dtype == tw.float32
        x = g.constant(np.ones((1, 3, 4), np.float32))
        assert attention(x, None, np.zeros((3, 3))).dtype == tw.float32
        with pytest.raises(tw.InvalidArgumentError, match="tw_attention_apply 'multiheadattention': bias is bool"):
            attention(x, None, np.ones((3, 3), bool))


@pytest.mark.parametrize("make, error", [
    (lambda: tw.nn.Dense(3.0), "Dense: units is 3.0; it must be a whole number"),
    (lambda: tw.nn.Dense(2**64 + 3), "Dense: units is 18446744073709551619; it must fit into 64 bits"),
    (lambda: tw.nn.Dense(3, 5), "activation is 5; it must be a name, a function of one value, or None"),
    (lambda: tw.nn.Dense(3, kernel=("constant",)), "Dense: kernel is .*; it must be the name of an initializer, or a pair"),
    (lambda: tw.nn.Dense(3, name=5), "Dense: name is 5; it must be a text"),
    (lambda: tw.nn.Dense(3, seed=2**64), "Dense: seed is 18446744073709551616; it must fit"),
    (lambda: tw.nn.GroupNorm(2**32), "GroupNorm: groups is 4294967296; it must fit into 32 bits"),
    (lambda: tw.nn.Conv2D(3, "ab"), "Conv2D: window is 'ab'; it must be a whole number"),
    (lambda: tw.nn.MaxPool2D((2, 2, 2)), r"MaxPool2D: window is \(2, 2, 2\); it must be a number, or one for each of 2 axes"),
    (lambda: tw.nn.Sequential(tw.nn.Flatten), r"it is a class: write Flatten\(...\)")])
def test_arguments_are_checked_where_they_are_given(make, error):
    with pytest.raises((TypeError, ValueError), match=error):
        make()


def test_a_convolution_takes_the_channels_it_was_made_for():
    with tw.Graph():
        layer = tw.nn.Conv2D(6, np.int64(3))
        layer(tw.placeholder("float32", [None, 5, 5, 4]))
        with pytest.raises(tw.InvalidArgumentError, match="'conv2d': the input has shape .*, so 8 channels; the weights are for 4"):
            layer(tw.placeholder("float32", [None, 5, 5, 8]))  # two groups, to the operation
    with tw.Graph(), pytest.raises(ValueError, match="has its variables in another graph"):
        layer(x=tw.placeholder("float32", [None, 5, 5, 4]))


@pytest.mark.parametrize("make", [lambda **how: tw.nn.LSTM(6, seed=1, **how), lambda **how: tw.nn.GRU(6, seed=1, **how),
                                  lambda **how: tw.nn.LSTM(6, projection=3, seed=1, **how)])
def test_a_recurrent_layer_goes_on_from_a_state(make):
    x = rng.normal(size=(2, 7, 5)).astype(np.float32)
    with tw.Graph() as g:
        layer = make(sequences=True, with_state=True)
        whole, end = layer(g.constant(x))
        first, state = layer(g.constant(x[:, :3]))
        rest, last = layer(g.constant(x[:, 3:]), state=state)
        single = layer.cell.step(g.constant(x[:, 3]), state)
        single = single[0] if isinstance(layer, tw.nn.LSTM) else single
    with initialised(g) as s:
        whole, first, rest, single = s.run([whole, first, rest, single])
        for a, b in zip(s.run([*end] if isinstance(end, tuple) else [end]), s.run([*last] if isinstance(last, tuple) else [last])):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert whole.shape == (2, 7, 3 if isinstance(layer, tw.nn.LSTM) and layer.projection else 6)
    np.testing.assert_allclose(np.concatenate([first, rest], 1), whole, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(single, whole[:, 3], rtol=1e-5, atol=1e-6)


def test_a_projection_is_the_size_of_the_results():
    with tw.Graph() as g:
        layer = tw.nn.LSTM(512, projection=128)
        assert layer(tw.placeholder("float32", [None, 20, 64])).shape == (None, 128)
    assert {v.name.split("/", 1)[1]: v.shape for v in layer.parameters()} == {
        "cell/kernel": (192, 2048), "cell/bias": (2048,), "cell/projection": (512, 128)}
    assert len(g.variables()) == 3
