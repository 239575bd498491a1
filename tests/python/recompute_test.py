"""checkpoint: the same gradients, of any order, from values that are computed again; less memory; effects and random draws happen once."""
import copy

import numpy as np
import pytest

import thalweg as tw

from tape_test import FUNCTIONS, X, numeric

WIDTH, ROWS, LAYERS = 64, 1024, 16
BYTES = ROWS * WIDTH * 4  # of each value of a layer
LITTLE, TWICE = str(40 * BYTES), str(80 * BYTES)  # with checkpoints a run needs 25 to 28 values, without them 106 to 150


def layer(x, w):
    """Keeps six values of the size of x for its gradient."""
    h = tw.ops.sigmoid(tw.ops.tanh(x @ w)) * tw.ops.sin(x)
    return x + tw.ops.tanh(tw.ops.exp(h) * 0.1)


def weights(seed=1):
    return (np.random.default_rng(seed).normal(size=(LAYERS, WIDTH, WIDTH)) / 8).astype(np.float32)


def data():
    return np.random.default_rng(0).normal(size=(ROWS, WIDTH)).astype(np.float32)


# ---- Memory: a chain of 16 layers ----

def chain_of_values(wrap, **limit):
    """The gradients by the weights, with a tape."""
    with tw.Eager(**limit) as eager:
        x, ws = eager.constant(data()), [eager.constant(w) for w in weights()]
        with tw.Tape() as tape:
            tape.watch(*ws)
            y = x
            for w in ws:
                y = wrap(layer)(y, w)
        return [g.numpy().copy() for g in tape.gradient(y, ws)]


def chain_in_a_graph(wrap, *, recompute=False, **limit):
    """The same in a graph."""
    with tw.Graph() as g:
        x, ws = tw.placeholder("float32", [ROWS, WIDTH]), [tw.placeholder("float32", [WIDTH, WIDTH]) for _ in range(LAYERS)]
        y = x
        for w in ws:
            y = wrap(layer)(y, w)
        found = tw.gradients(y, ws, recompute=recompute)
    with tw.Session(g, **limit) as s:
        return s.run(found, {x: data(), **dict(zip(ws, weights()))})


def less_memory(chain, plain, again, **options):
    """Checks that the chain gives the same bits in less than half the memory."""
    wanted, found = chain(plain), chain(again, **options, memory_limit=LITTLE)
    assert len(found) == LAYERS and all(map(np.array_equal, found, wanted))
    with pytest.raises(tw.ResourceExhaustedError, match="memory_limit"):
        chain(plain, memory_limit=TWICE)


@pytest.mark.parametrize("chain", [chain_of_values, chain_in_a_graph])
def test_only_the_values_between_layers_are_kept(chain):
    less_memory(chain, lambda f: f, tw.checkpoint)


def test_recompute_of_calls_is_not_undone_by_the_planner():
    function = tw.function(layer)
    less_memory(chain_in_a_graph, lambda f: function, lambda f: function, recompute=True)


# ---- Values ----

@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_agree_with_numeric_ones(name):
    f = FUNCTIONS[name]
    value, found = tw.value_and_grad(tw.checkpoint(f))(X)
    assert value.item() == f(tw.constant(X)).item()
    np.testing.assert_array_equal(found.numpy(), tw.grad(f)(X).numpy())
    np.testing.assert_allclose(found.numpy(), numeric(lambda x: f(tw.constant(x)).item(), X), atol=1e-8)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("traced", [False, True])
def test_second_derivatives_agree_with_numeric_ones(name, traced):
    f = tw.checkpoint(FUNCTIONS[name])

    def weighted(x):
        return (tw.grad(f)(x) * np.arange(1.0, 7).reshape(2, 3)).sum()

    def plain(x):
        return (tw.grad(FUNCTIONS[name])(x) * np.arange(1.0, 7).reshape(2, 3)).sum()

    second = tw.grad(weighted)
    found = (tw.function(second) if traced else second)(tw.constant(X))
    np.testing.assert_allclose(found.numpy(), numeric(lambda x: plain(tw.constant(x)).item(), X), atol=1e-7)


def test_derivatives_of_any_order_and_nested():
    inner = tw.checkpoint(lambda x: tw.ops.sin(tw.checkpoint(lambda y: 2 * y)(x)))
    for f in (tw.checkpoint(lambda x: tw.ops.sin(2 * x)), tw.checkpoint(lambda x: inner(x))):
        for value in [np.sin(1.0), 2 * np.cos(1.0), -4 * np.sin(1.0), -8 * np.cos(1.0), 16 * np.sin(1.0)]:
            assert f(tw.constant(0.5, "float64")).item() == pytest.approx(value)
            f = tw.grad(f)


def in_a_graph(f, *arrays):
    """Runs f of placeholders."""
    with tw.Graph() as g:
        places = [tw.placeholder(np.asarray(a).dtype.name, np.shape(a)) for a in arrays]
        fetched = f(*places)
        with tw.Session(g) as s:
            s.run(g.initializer())
            return s.run(fetched, dict(zip(places, arrays)))


def ways(f):
    """f at once, traced, and in a graph."""
    return [lambda *a: f(*map(tw.constant, a)), lambda *a: tw.function(f)(*map(tw.constant, a)), lambda *a: in_a_graph(f, *a),
            lambda *a: in_a_graph(tw.function(f), *a)]


@pytest.mark.parametrize("way", range(4))
def test_values_from_around_it_and_leaked_ones_have_gradients(way):
    def f(x, w):
        leaked = []

        @tw.checkpoint
        def inner(a, *, twice):
            h = tw.ops.exp(a * w)
            if way == 0:
                leaked.append(h)
            return {"y": tw.ops.sin(h) * (2 if twice else 1), "same": a, "none": None}

        found = inner(x * 3, twice=True)
        assert found["none"] is None
        return (found["y"] + found["same"] + (leaked[0] if leaked else 0)).sum()

    def slopes(x, w):
        return tuple(tw.value_and_grad(f, [0, 1])(x, w)[1]) if way != 2 else tuple(tw.gradients(f(x, w), [x, w]))

    x, w = np.array([0.1, 0.2]), np.array([0.3, -0.5])
    found = ways(slopes)[way](x, w)

    def plain(x, w):
        h = np.exp(3 * x * w)
        return (2 * np.sin(h) + 3 * x + (h if way == 0 else 0)).sum()

    np.testing.assert_allclose(np.asarray(found[0]), numeric(lambda v: plain(v, w), x), atol=1e-6)
    np.testing.assert_allclose(np.asarray(found[1]), numeric(lambda v: plain(x, v), w), atol=1e-6)


def test_derivatives_by_a_value_that_the_program_holds():
    def derivatives(wrap):
        x, held = tw.constant([0.1, 0.2], "float64"), []

        def f(a):
            held.append(tw.ops.exp(tw.ops.sin(a)))
            return tw.ops.tanh(held[0] * a)

        with tw.Tape() as outer:
            outer.watch(x)
            with tw.Tape() as inner:
                inner.watch(x)
                y = wrap(f)(x)
            first = inner.gradient(y, [x, *held])
            total = (first[0] * first[1]).sum()
        return [g.numpy() for g in [*first, *outer.gradient(total, [x, *held])]]

    for plain, again in zip(derivatives(lambda f: f), derivatives(tw.checkpoint)):
        np.testing.assert_allclose(again, plain, rtol=1e-12)


# ---- Layers, variables, dropout ----

class Block(tw.nn.Module):
    def __init__(self, rate=0.5):
        super().__init__()
        self.first, self.drop, self.norm, self.last = tw.nn.Dense(8, "tanh"), tw.nn.Dropout(rate), tw.nn.LayerNorm(), tw.nn.Dense(8)

    def forward(self, x):
        return self.last(self.norm(self.drop(self.first(x))))


def test_dropout_at_once_sees_the_same_random_values():
    x = np.random.default_rng(2).normal(size=(32, 8)).astype(np.float32)
    found = []
    for wrap in (lambda m: m, tw.checkpoint):
        with tw.Eager():
            tw.random.seed(3)
            net = wrap(Block())
            with tw.nn.in_training():
                net(x)  # makes the variables
                with tw.Tape() as tape:
                    y = (net(x) ** 2).sum()
            found.append([y.numpy(), *(g.numpy() for g in tape.gradient(y, net.parameters()))])
            tw.random.seed(None)
    for a, b in zip(*found):
        np.testing.assert_array_equal(a, b)


def test_unseeded_dropout_at_once_agrees_with_what_it_dropped():
    with tw.nn.in_training():
        x, drop = tw.constant(np.ones((50, 50), np.float32)), tw.nn.Dropout(0.5)
        with tw.Tape() as tape:
            tape.watch(x)
            y = tw.checkpoint(lambda a: tw.ops.tanh(drop(a * 1.0)) * 2.0)(x)
        slope = tape.gradient(y, x)
    kept = y.numpy() != 0
    assert 0.3 < kept.mean() < 0.7
    np.testing.assert_array_equal(slope.numpy() != 0, kept)


@pytest.mark.parametrize("seed", [None, 4])
def test_dropout_in_a_graph_sees_the_same_random_values(graph, seed):
    tw.random.seed(seed)
    try:
        x, drop = tw.placeholder("float32", [50, 50]), tw.nn.Dropout(0.5)
        y = tw.checkpoint(lambda a: tw.ops.tanh(drop(tw.ops.exp(a))) * 2.0)(x)
        slope = tw.gradients(y, x)
    finally:
        tw.random.seed(None)
    with tw.Session(graph) as s:
        for _ in range(3):
            value, found = s.run([y, slope], {x: np.ones((50, 50)), tw.nn.training(graph): True})
            assert 0.3 < (value != 0).mean() < 0.7
            np.testing.assert_array_equal(found != 0, value != 0)


def train(wrap, steps=5):
    """The weights after steps of training in a graph."""
    tw.random.seed(5)
    try:
        with tw.Graph() as g:
            x = tw.placeholder("float32", [None, 8])
            net = tw.nn.Sequential(*(wrap(tw.nn.Sequential(tw.nn.Dense(8, "tanh"), tw.nn.BatchNorm())) for _ in range(3)))
            loss = ((net(x) - 1) ** 2).mean()
            step = tw.train.Adam(0.01).minimize(loss)
        names = sorted(net.named_parameters())
        with tw.Session(g) as s:
            s.run(g.initializer())
            for i in range(steps):
                s.run(step, {x: np.random.default_rng(i).normal(size=(16, 8)), tw.nn.training(g): True})
            return names, s.run([net.named_parameters()[n] for n in names])
    finally:
        tw.random.seed(None)


def test_layers_in_a_graph_have_the_same_names_and_train_alike():
    (names, plain), (same, again) = train(lambda m: m), train(tw.checkpoint)
    assert names == same and len(names) == 3 * 6
    for name, a, b in zip(names, plain, again):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6, err_msg=name)


def test_a_traced_function_that_trains():
    x = np.random.default_rng(2).normal(size=(4, 8)).astype(np.float32)
    with tw.Eager():
        net = tw.checkpoint(Block(0.0))
        net(x)
        plain = net.inner

        def slopes(net):
            return lambda v: tuple(tw.value_and_grad(lambda *w: (net(v) ** 2).sum(), list(range(len(net.parameters()))))(*net.parameters())[1])

        wanted = slopes(plain)(tw.constant(x))
        for got in (slopes(net)(tw.constant(x)), tw.function(slopes(net))(tw.constant(x))):
            for a, b in zip(got, wanted):
                np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


def test_effects_happen_once(graph):
    count, x = tw.Variable(0.0, name="count"), tw.placeholder("float32", [])

    @tw.checkpoint
    def f(a):
        with tw.control_dependencies([count.assign_add(1.0)]):
            return tw.ops.sin(tw.ops.exp(a) * 1.0)

    y = f(x)
    dx = tw.gradients(y, x)
    with tw.Session(graph) as s:
        s.run(graph.initializer())
        value, slope = s.run([y, dx], {x: 0.5})
        assert s.run(count) == 1
        assert slope == pytest.approx(np.cos(np.exp(0.5)) * np.exp(0.5), rel=1e-5) and value == pytest.approx(np.sin(np.exp(0.5)), rel=1e-5)


def test_effects_happen_once_at_once():
    count = tw.Variable(0.0)

    def f(a):
        h = tw.ops.exp(a)
        count.assign_add(1.0)
        return tw.ops.sin(h * count)

    slope = tw.grad(tw.checkpoint(f))(0.5)
    assert count.read().item() == 1 and slope.item() == pytest.approx(np.cos(np.exp(0.5)) * np.exp(0.5), rel=1e-5)
    assert tw.grad(lambda v: tw.checkpoint(lambda a: a * v)(3.0))(count).item() == 3


def test_conditions_and_loops_inside(graph):
    v, x = tw.Variable(np.float64(1.5), name="v"), tw.placeholder("float64", [])

    @tw.checkpoint
    def f(a):
        a = tw.cond(a > 0, lambda: tw.ops.exp(a) * v, lambda: a * 2)
        return tw.while_loop(lambda i, b: i < 3, lambda i, b: [i + 1, tw.ops.sin(b) * a], [0, a])[1]

    y = f(x)
    slopes = tw.gradients(y, [x, v])

    def plain(x, v):
        a = np.exp(x) * v if x > 0 else 2 * x
        b = a
        for _ in range(3):
            b = np.sin(b) * a
        return b

    with tw.Session(graph) as s:
        s.run(graph.initializer())
        for at in (0.4, -0.7):
            value, (dx, dv) = s.run([y, slopes], {x: at})
            assert value == pytest.approx(plain(at, 1.5))
            assert dx == pytest.approx(numeric(lambda q: plain(q, 1.5), at).item(), abs=1e-6)
            assert dv == pytest.approx(numeric(lambda q: plain(at, q), 1.5).item(), abs=1e-6)


def test_inside_loops_and_after_a_graph_was_written_and_read(graph):
    x = tw.placeholder("float64", [3], name="x")
    body = tw.checkpoint(lambda y: tw.ops.sin(tw.ops.exp(y * 0.5)))
    _, y = tw.while_loop(lambda i, y: i < 4, lambda i, y: [i + 1, body(y)], [0, x])
    dx = tw.ops.identity(tw.gradients(body(y), x), name="dx")

    def plain(v):
        for _ in range(5):
            v = np.sin(np.exp(v * 0.5))
        return v.sum()

    at = np.array([0.1, 0.5, -0.3])
    read = tw.Graph.from_bytes(graph.to_bytes())
    assert b"_thalweg_recompute" in read.to_bytes() and b"_thalweg_no_inline" in read.to_bytes()
    for g in (graph, read):
        with tw.Session(g) as s:
            np.testing.assert_allclose(s.run(g.operation("dx").outputs[0], {g.operation("x").outputs[0]: at}), numeric(plain, at), atol=1e-7)


def test_inside_of_vmap():
    xs = np.random.default_rng(1).normal(size=(5, 3))
    f = lambda x: tw.ops.tanh((x * x).sum())
    for g in (tw.vmap(tw.checkpoint(f)), tw.checkpoint(tw.vmap(f))):
        np.testing.assert_allclose(g(tw.constant(xs)).numpy(), np.tanh((xs * xs).sum(1)))
        np.testing.assert_allclose(tw.grad(lambda v: g(v).sum())(xs).numpy(), tw.grad(lambda v: tw.vmap(f)(v).sum())(xs).numpy())


# ---- Misuse ----

def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="checkpoint: 3 is no function"):
        tw.checkpoint(3)


def test_an_error_inside_leaves_the_tape_usable():
    x = tw.constant(2.0)

    def fails(a):
        b = tw.ops.exp(a * 1.0)
        raise KeyError("inside")

    with tw.Tape() as tape:
        tape.watch(x)
        y = x * x
        with pytest.raises(KeyError):
            tw.checkpoint(fails)(y)
        z = tw.checkpoint(lambda a: tw.ops.sin(a * 2.0))(y)
    assert tape.gradient(z, x).item() == pytest.approx(np.cos(8.0) * 8, rel=1e-5)


def test_a_method_a_copy_and_the_name():
    class Net:
        @tw.checkpoint
        def double(self, x):
            """Doubles."""
            return x * 2

    assert Net().double(tw.constant(3.0)).item() == 6 and Net.double.__doc__ == "Doubles." and "double" in repr(Net.double)
    with tw.Eager():
        net = tw.checkpoint(tw.nn.Dense(2))
        y = net(np.ones((1, 3), np.float32))
        np.testing.assert_array_equal(copy.deepcopy(net)(np.ones((1, 3), np.float32)).numpy(), y.numpy())
        assert net.name == net.inner.name and len(net.parameters()) == 2


# ---- Nets without functions: planning chooses ----

def test_recompute_holds_for_a_net_that_is_written_flat():
    less_memory(chain_in_a_graph, lambda f: f, lambda f: f, recompute=True)


def flat_plan(*, recompute=False, **options):
    """The plan of the chain without functions."""
    with tw.Graph() as g:
        x, ws = tw.placeholder("float32", [ROWS, WIDTH]), [tw.placeholder("float32", [WIDTH, WIDTH]) for _ in range(LAYERS)]
        y = x
        for w in ws:
            y = layer(y, w)
        found = tw.gradients(y, ws, recompute=recompute)
    with tw.Session(g, **options) as s:
        return s.plan(found, {x: [ROWS, WIDTH], **{w: [WIDTH, WIDTH] for w in ws}})


def bytes_of(plan):
    return sum(b["bytes"] for b in plan["block_bytes"])


def test_a_budget_is_met_and_the_plan_says_how():
    free = flat_plan()
    budget = bytes_of(free) // 2
    within = flat_plan(memory_budget=str(budget))
    memory = within["memory"]
    assert bytes_of(within) <= budget and memory["budget"] == budget and memory["after"] == bytes_of(within) and memory["recomputed"]
    assert 0 < memory["recompute_ns"] < 0.6 * memory["step_ns"] and not memory["swapped"]
    assert max(within["live_bytes"]) == within["peak_bytes"] <= budget and within["lower_bound_bytes"] <= within["peak_bytes"]
    wanted = chain_in_a_graph(lambda f: f)
    assert all(map(np.array_equal, chain_in_a_graph(lambda f: f, memory_budget=str(budget)), wanted))


def test_a_budget_that_cannot_be_met_says_how_much_would_do():
    with pytest.raises(tw.ResourceExhaustedError, match="most is in use by '") as failed:
        flat_plan(memory_budget=str(2 * BYTES))
    enough = int(str(failed.value).split("set memory_budget=")[1].split(",")[0])
    assert bytes_of(flat_plan(memory_budget=str(enough))) <= enough < bytes_of(flat_plan()) // 2
