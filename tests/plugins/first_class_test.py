"""The ops of plugins/examples are first class: they are listed, can be called from Python's functions and from scopes, have gradients and
shapes, and take variables. Plugins have resources of their own that checkpoints save, and optimizers."""
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import thalweg as tw

BUILD = pathlib.Path(os.environ["THALWEG_BINARY_DIR"])
EXAMPLES = BUILD / "examples/plugins"
RNG = np.random.default_rng(3)


@pytest.fixture(scope="module", autouse=True)
def plugins():
    for name in ("twice", "scale", "swish", "bloom", "lamb"):
        tw.load_plugin(EXAMPLES / f"lib{name}.so")


@pytest.fixture
def graph():
    with tw.Graph() as g:
        yield g


# ---- Ops ----

def test_ops_of_a_plugin_are_listed_by_the_command_line():
    def ops(*arguments):
        return subprocess.run([BUILD / "bin/thalweg", "ops", *arguments], capture_output=True, text=True, check=True,
                              env={**os.environ, "THALWEG_PLUGIN_PATH": str(EXAMPLES)}).stdout

    assert {"Twice", "Scale", "Swish", "BloomFilter", "Lamb"} <= {line.split()[0] for line in ops().splitlines()}
    said = ops("Swish")
    assert "x times its sigmoid" in said and "org.example.swish" in said and "Gradient\n  yes" in said and "Swish(float -> float) @CPU" in said


def test_they_are_functions_with_signatures_from_their_schemas(graph):
    assert "x times its sigmoid" in tw.ops.swish.__doc__ and tw.ops.Swish is tw.ops.swish and "swish" in dir(tw.ops)
    x = tw.placeholder("float32", [None, 3])
    assert tw.ops.swish(x).shape == (None, 3) and tw.ops.scale(x, factor=3.0).operation.attributes["factor"] == 3.0
    with pytest.raises(tw.InvalidArgumentError, match="int32"):
        tw.ops.swish(tw.constant([1], "int32"))


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float64", 1e-12)])
def test_they_compute_and_are_differentiated_twice(graph, dtype, tolerance):
    value = RNG.normal(size=(4, 3)).astype(dtype)
    x = tw.placeholder(dtype, [4, 3])
    y = tw.ops.swish(x)
    (dx,) = tw.gradients(y.sum(), [x])
    (ddx,) = tw.gradients(dx.sum(), [x])
    found = tw.Session(graph).run([y, dx, ddx], {x: value})
    s = 1 / (1 + np.exp(-value.astype(np.float64)))
    wanted = value * s, s + value * s * (1 - s), s * (1 - s) * (2 + value * (1 - 2 * s))
    for f, w in zip(found, wanted):
        np.testing.assert_allclose(f, w, rtol=tolerance, atol=tolerance)


def test_they_are_trained_through_in_a_loop_of_steps(graph):
    w = tw.Variable(np.float32(0.5), name="swish_w")
    loss = (tw.ops.twice(tw.ops.swish(w * 1)) - 3.0) ** 2
    step = tw.train.SGD(0.02).minimize(loss)
    session = tw.Session(graph, container="swish")
    session.run(graph.initializer())
    for _ in range(200):
        session.run(step)
    assert session.run(loss) < 1e-6


# ---- An optimizer of a plugin's own ----

def lamb_reference(x, m, v, t, rate, grad, beta1=0.9, beta2=0.999, epsilon=1e-6, decay=0.01):
    # The attributes of the op are floats.
    beta1, beta2, epsilon, decay = (float(np.float32(a)) for a in (beta1, beta2, epsilon, decay))
    m = m + (1 - beta1) * (grad - m)
    v = v + (1 - beta2) * (grad * grad - v)
    r = m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + epsilon) + decay * x
    of_x, of_r = np.linalg.norm(x), np.linalg.norm(r)
    return x - rate * (of_x / of_r if of_x > 0 and of_r > 0 else 1) * r, m, v


class Lamb:
    """Uses the optimizer of a plugin as a program does: variables for its state, and one op for each step."""

    def __init__(self, value, grad, rate, **attributes):
        like = np.zeros_like(value)
        self.x, self.m, self.v = (tw.Variable(a, name=n) for a, n in ((value, "x"), (like, "m"), (like, "v")))
        self.count = tw.Variable(np.int64(0), name="count")
        self.step = tw.ops.lamb(self.x.handle, self.m.handle, self.v.handle, self.count.handle, rate, grad, **attributes)


@pytest.mark.parametrize("dtype, tolerance", [("float32", 2e-5), ("float64", 1e-12)])
@pytest.mark.parametrize("attributes, options", [({}, {}), ({"beta1": 0.8, "weight_decay": 0.0}, {"beta1": 0.8, "decay": 0.0})])
def test_lamb_is_what_its_paper_says_over_20_steps(graph, dtype, tolerance, attributes, options):
    grad, rate = tw.placeholder(dtype, [5, 3]), tw.placeholder(dtype, [])
    wanted = RNG.normal(size=(5, 3)), np.zeros((5, 3)), np.zeros((5, 3))
    lamb = Lamb(wanted[0].astype(dtype), grad, rate, **attributes)
    session = tw.Session(graph, container=f"lamb {dtype} {len(options)}")
    session.run(graph.initializer())
    for t in range(1, 21):
        g, r = RNG.normal(size=(5, 3)), 0.1 / t
        wanted = lamb_reference(*wanted, t, r, g, **options)
        session.run(lamb.step, {grad: g.astype(dtype), rate: np.dtype(dtype).type(r)})
    for variable, w in zip((lamb.x, lamb.m, lamb.v), wanted):
        np.testing.assert_allclose(session.run(variable), w, rtol=tolerance, atol=tolerance)
    assert session.run(lamb.count) == 20


def test_lamb_starts_from_zero_weights(graph):
    lamb = Lamb(np.zeros(2), tw.constant([1.0, -1.0], "float64"), tw.constant(0.5, "float64"))
    session = tw.Session(graph, container="lamb zero")
    session.run(graph.initializer())
    session.run(lamb.step)
    np.testing.assert_allclose(session.run(lamb.x), [-0.5, 0.5], rtol=1e-5)


class LambOptimizer(tw.train.Optimizer):
    """The same as a class for minimize."""

    def update(self, variable, gradient, rate):
        state = [tw.Variable(np.zeros(variable.shape, variable.dtype.numpy), name=f"{variable.name}/{n}") for n in "mv"]
        count = tw.Variable(np.int64(0), name=f"{variable.name}/count")
        return tw.ops.lamb(variable.handle, *(s.handle for s in state), count.handle, rate.astype(variable.dtype), gradient)


def test_an_optimizer_of_a_plugin_minimizes(graph):
    start, target = RNG.normal(size=3), np.float64([2, -1, 0.5])
    w = tw.Variable(start, name="w")
    step = LambOptimizer(tw.schedules.exponential(0.1, 1, 0.5), weight_decay=0.25).minimize(((w - target) ** 2).sum(), clip=1.0)
    assert [v.name for v in graph.variables() if v.trainable and v.dtype.is_floating] == ["w"]  # the state is not trained
    session = tw.Session(graph)
    session.run(graph.initializer())
    x, m, v = start, np.zeros(3), np.zeros(3)
    for t in (1, 2):
        rate, grad = 0.1 * 0.5 ** (t - 1), 2 * (x - target)
        grad /= max(np.linalg.norm(grad), 1)
        x, m, v = lamb_reference(x - rate * 0.25 * x, m, v, t, rate, grad)
        session.run(step)
        np.testing.assert_allclose(session.run(w), x, rtol=1e-6)


def test_a_variable_whose_gradient_clip_takes_away_stays_as_it_is(graph):
    a, b = (tw.Variable(np.ones(2), name=name) for name in "ab")
    step = LambOptimizer(0.1).minimize((a * a + b * b).sum(), [a, b], clip=lambda found: [found[0], None])
    session = tw.Session(graph)
    session.run(graph.initializer())
    session.run(step)
    got = session.run([a, b])
    assert (got[0] < 1).all() and (got[1] == 1).all(), got


def test_an_optimizer_without_an_update_says_so(graph):
    w = tw.Variable(np.float32(1), name="w")
    with pytest.raises(NotImplementedError, match="Optimizer has no update"):
        tw.train.Optimizer(0.1).minimize(w * w)


def test_lamb_refuses_state_of_another_shape(graph):
    grad = tw.placeholder("float32", None)
    lamb = Lamb(np.ones(3, np.float32), grad, 0.1)
    session = tw.Session(graph, container="lamb refused")
    session.run(graph.initializer())
    with pytest.raises(tw.InvalidArgumentError, match=r"var has shape \[3\], grad \[2\]"):
        session.run(lamb.step, {grad: np.ones(2, np.float32)})
    np.testing.assert_array_equal(session.run(lamb.x), np.ones(3))


# ---- A resource of a plugin's own ----

@pytest.mark.parametrize("dtype", ["int32", "int64", "string"])
def test_a_bloom_filter_knows_what_was_inserted(graph, dtype):
    def keys(numbers):
        return np.array([f"key {n}".encode() for n in numbers], object) if dtype == "string" else np.array(list(numbers), dtype)

    asked = tw.placeholder(dtype, [None])
    bloom = tw.ops.bloom_filter(bits=20000, hashes=5, shared_name=f"known {dtype}")
    insert, found = tw.ops.bloom_insert(bloom, asked), tw.ops.bloom_contains(bloom, asked)
    assert found.dtype == tw.bool_ and found.shape == (None,)
    session = tw.Session(graph)
    assert not session.run(found, {asked: keys(range(1000))}).any()
    session.run(insert, {asked: keys(range(1000))})
    assert session.run(found, {asked: keys(range(1000))}).all()
    # 5 of 20000 bits for each of 1000 keys: (1 - exp(-5 / 20))^5 is 0.0005.
    assert session.run(found, {asked: keys(range(1000, 11000))}).mean() < 0.005
    assert session.run(found, {asked: keys([])}).shape == (0,)


def test_a_bloom_filter_is_shared_by_name_and_kept_between_sessions(graph):
    first, second = (tw.ops.bloom_filter(shared_name=n) for n in ("shared", "other"))
    tw.Session(graph).run(tw.ops.bloom_insert(first, [7]))
    assert tw.Session(graph).run(tw.ops.bloom_contains(tw.ops.bloom_filter(shared_name="shared"), [7]))[0]
    assert not tw.Session(graph).run(tw.ops.bloom_contains(second, [7]))[0]


SAVE_A_FILTER = """
import sys, thalweg as tw
tw.load_plugin(sys.argv[1])
with tw.Graph() as g:
    weight = tw.Variable(2.5, name="weight")
    insert = tw.ops.bloom_insert(tw.ops.bloom_filter(bits=4096, shared_name="seen"), tw.constant([1, 5, 9], "int64"))
session = tw.Session(g)
session.run(g.initializer())
session.run(insert)
with tw.Checkpointer(session, sys.argv[2]) as c:
    c.save(7)
"""


def filtered(container, name="seen"):
    """Makes a filter and a variable. Returns (session, an output that says whether the filter has some keys, the variable)."""
    weight = tw.Variable(0.0, name="weight")
    asked = tw.ops.bloom_contains(tw.ops.bloom_filter(bits=64, shared_name=name), tw.constant([1, 2, 5, 9], "int64"))
    session = tw.Session(weight.graph, container=container)
    session.run(weight.graph.initializer())
    return session, asked, weight


def test_a_checkpoint_of_another_process_has_the_bloom_filter(graph, tmp_path):
    subprocess.run([sys.executable, "-B", "-c", SAVE_A_FILTER, EXAMPLES / "libbloom.so", tmp_path], check=True)
    session, asked, weight = filtered("another process")
    assert not session.run(asked).any()
    with tw.Checkpointer(session, tmp_path) as c:
        assert c.restore() == 7
    assert session.run(asked).tolist() == [True, False, True, True] and session.run(weight) == 2.5
    listed = subprocess.run([BUILD / "bin/thalweg", "ckpt", "list", tmp_path / "model.ckpt-7"], capture_output=True, text=True,
                            check=True)
    assert "seen:resource" in listed.stdout and "string  [3] org.example.bloom.filter, format 1" in listed.stdout


def test_a_saver_carries_a_bloom_filter_under_the_name_of_its_rule(graph, tmp_path):
    session, asked, weight = filtered("ruled")
    session.run(tw.ops.bloom_insert(tw.ops.bloom_filter(shared_name="seen"), tw.constant([5], "int64")))
    saver = tw.Saver(names={"seen": "found/before"})
    saver.save(session, tmp_path / "model")
    with tw.Checkpoint(tmp_path / "model") as c:
        assert c.names == ["found/before:resource", "weight"]
        assert c["found/before:resource"][:2].tolist() == [b"org.example.bloom.filter", b"1"]
    session.run(tw.ops.bloom_insert(tw.ops.bloom_filter(shared_name="seen"), tw.constant([9], "int64")))
    saver.restore(session, tmp_path / "model")
    assert session.run(asked).tolist() == [False, False, True, False]


def test_a_saver_may_be_for_a_bloom_filter_alone(graph, tmp_path):
    session, asked, weight = filtered("alone")
    saver = tw.Saver([tw.ops.bloom_filter(shared_name="seen")])
    saver.save(session, tmp_path / "filter")
    with tw.Checkpoint(tmp_path / "filter") as c:
        assert c.names == ["seen:resource"]
    session.run(weight.assign(4.0))
    saver.restore(session, tmp_path / "filter")
    assert session.run(weight) == 4 and not session.run(asked).any()


def test_a_file_without_the_bloom_filter_is_restored_in_part(graph, tmp_path):
    session, asked, weight = filtered("part")
    tw.Saver([weight]).save(session, tmp_path / "old")
    saver = tw.Saver()
    with pytest.raises(tw.NotFoundError, match="seen:resource"):
        saver.restore(session, tmp_path / "old")
    assert [(r.outcome, r.variable, r.name) for r in saver.restore_partial(session, tmp_path / "old")] == [
        ("restored", "weight", "weight"), ("missing", "seen", "seen:resource")]


@pytest.mark.parametrize("saved, error, said", [
    ([b"org.example.bloom.filter", b"1", b"abc"], tw.DataLossError, "these 3 bytes are no Bloom filter"),
    ([b"org.example.bloom.filter", b"1", b"\xff" * 24], tw.DataLossError, "these 24 bytes are no Bloom filter"),
    ([b"org.example.bloom.filter", b"0", bytes(16)], tw.UnimplementedError, "there is no format 0 of Bloom filters"),
    ([b"org.example.bloom.filter", b"2", bytes(16)], tw.UnimplementedError, "saved in format 2, and the plugin reads up to 1"),
    ([b"org.example.table", b"1", b""], tw.InvalidArgumentError, "'kept' of plugin .* cannot become .* a org.example.table"),
    ([b"org.example.bloom.filter", b"1"], tw.DataLossError, r"has shape \[2\]"),
])
def test_bytes_that_are_no_bloom_filter_are_refused(graph, saved, error, said):
    bloom = tw.ops.bloom_filter(shared_name="kept")
    session = tw.Session(graph)
    session.run(tw.ops.bloom_insert(bloom, [1]))
    with pytest.raises(error, match=said):
        session.run(tw.ops.restore_resources([bloom], [tw.constant(np.array(saved, object))]))
    assert session.run(tw.ops.bloom_contains(bloom, [1]))[0]


def test_random_bytes_never_crash_a_restore(graph):
    bloom, given = tw.ops.bloom_filter(shared_name="random"), tw.placeholder("string", [None])
    restore, asked = tw.ops.restore_resources([bloom], [given]), tw.ops.bloom_contains(bloom, np.arange(50))
    session = tw.Session(graph)
    taken = 0
    for size in range(200):
        words = RNG.integers(0, 256, size).astype(np.uint8)
        words[1:8] = 0  # so that the number of hashes is often small
        words[:1] %= 80
        try:
            session.run(restore, {given: np.array([b"org.example.bloom.filter", b"1", words.tobytes()], object)})
            taken += 1
        except tw.DataLossError:
            pass
        assert session.run(asked).shape == (50,)
    assert 10 <= taken <= 23  # one in eight has whole words


def test_what_is_no_bloom_filter_is_refused(graph):
    bloom, variable = tw.ops.bloom_filter(shared_name="kept"), tw.Variable(1.0, name="no_filter")
    session = tw.Session(graph, container="")
    session.run(graph.initializer())
    with pytest.raises(tw.InvalidArgumentError,
                       match="'filter' is a handle of the variable 'no_filter', but must be one of a org.example.bloom.filter"):
        session.run(tw.ops.bloom_insert(variable.handle, [1]))
    with pytest.raises(tw.InvalidArgumentError, match="is a org.example.bloom.filter of plugin 'org.example.bloom', which a kernel of"):
        session.run(variable.graph.op("AssignAddVariableOp", bloom, 1.0, dtype="float32"))
    with pytest.raises(tw.InvalidArgumentError, match="more than 64"):
        session.run(tw.ops.bloom_insert(tw.ops.bloom_filter(hashes=65), [1]))
