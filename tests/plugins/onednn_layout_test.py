"""NCHW nets run channels-last if the pack's kernels compute their convolutions: a chain has two transposes and the same results. Without
the pass `layout`, or without the pack, nothing changes."""
import os
import subprocess
import sys

import numpy as np
import pytest

import thalweg as tw

PACK = "org.thalweg.onednn"
RNG = np.random.default_rng(11)


@pytest.fixture(scope="module")
def packed():
    """A runtime in which the library does all work that it supports."""
    return tw.Runtime(threads=4, **{f"plugin.{PACK}.least_work": 1})


@pytest.fixture(scope="module")
def plain():
    """A runtime without the pack."""
    return tw.Runtime(threads=4, disabled_plugins=PACK)


def numbers(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


class Net:
    """NCHW layers with stored weights, so that every runtime gets the same weights."""

    def __init__(self):
        self.kept = []

    def begin(self):
        self.at = 0
        self.weights = []

    def weight(self, *shape):
        if self.at == len(self.kept):
            self.kept.append(numbers(*shape) / np.float32(np.sqrt(np.prod(shape[:-1], initial=1))))
        self.weights.append(tw.placeholder(tw.float32, shape))
        self.at += 1
        return self.weights[-1]

    def conv(self, x, inputs, outputs, step=1, size=3, padding="SAME"):
        return tw.ops.Conv2D(x, self.weight(size, size, inputs, outputs), strides=[1, 1, step, step], padding=padding, data_format="NCHW")

    def norm(self, x, channels):
        mean, variance = (tw.constant(np.full(channels, v, np.float32)) for v in (0.1, 1.3))
        return tw.ops.FusedBatchNormV3(x, self.weight(channels), self.weight(channels), mean, variance, data_format="NCHW",
                                       is_training=False, epsilon=1e-3).y

    def bias(self, x, channels):
        return tw.ops.BiasAdd(x, self.weight(channels), data_format="NCHW")


def pool(x, op="MaxPool"):
    return getattr(tw.ops, op)(x, ksize=[1, 1, 2, 2], strides=[1, 1, 2, 2], padding="VALID", data_format="NCHW")


def chain(net, x):
    y = tw.ops.Relu(net.norm(net.conv(x, 16, 32), 32))
    y = pool(tw.ops.Relu(net.bias(net.conv(y, 32, 32), 32)))
    return tw.ops.Relu(net.conv(y, 32, 48, step=2, padding="VALID"))


def residual(net, x):
    y = net.conv(x, 16, 32)
    for _ in range(2):
        inner = tw.ops.Relu(net.bias(net.conv(tw.ops.Relu(y), 32, 32), 32))
        y = tw.ops.AddV2(y, net.conv(inner, 32, 32))
    return tw.ops.ConcatV2([pool(y), pool(y, "AvgPool")], tw.constant(np.int32(1)))


def run(runtime, net, build, x, gradients=True, **options):
    """Runs the net on x. Returns its result, the gradients of the squared sum with respect to x and the weights, and the plan."""
    graph = tw.Graph(runtime)
    with graph:
        given = tw.placeholder(tw.float32, [None, *x.shape[1:]])
        net.begin()
        y = build(net, given)
        wanted = [y]
        if gradients:
            loss = tw.ops.Sum(tw.ops.Square(y), tw.constant(np.arange(4, dtype=np.int32)))
            wanted += tw.gradients(loss, [given, *net.weights])
    feeds = {given: x, **dict(zip(net.weights, net.kept))}
    session = tw.Session(graph, **options)
    found = session.run(wanted, feeds)
    return found, session.plan(wanted, {v: value.shape for v, value in feeds.items()})


def transposes(plan):
    return [n for n in plan["nodes"] if n["op"] == "Transpose"]


def convolutions(plan):
    return [n for n in plan["nodes"] if n["op"].startswith("Conv2D")]


def test_a_chain_of_layers_is_served_by_the_pack_for_two_transposes(packed):
    x = numbers(4, 16, 24, 24)
    _, plan = run(packed, Net(), chain, x, gradients=False, compilers="off")
    assert len(transposes(plan)) == 2
    assert [n["inputs"][0]["shape"][3] for n in convolutions(plan)] == [16, 32, 32]
    assert all("priority 10" in n["kernel"] for n in convolutions(plan))
    notes, = plan["layouts"]
    assert notes["order"] == "NHWC" and notes["transposes"] == 2 and len(notes["nodes"]) == 9


def test_its_fusions_take_what_was_turned(packed):
    x = numbers(4, 16, 24, 24)
    _, plan = run(packed, Net(), chain, x, gradients=False)
    taken = [c["nodes"] for c in plan["claims"] if c["plugin"] == PACK and not c.get("refused")]
    assert any(len(nodes) == 3 for nodes in taken)  # convolution, bias and activation


@pytest.mark.parametrize("build", [chain, residual])
@pytest.mark.parametrize("batch", [1, 3])
def test_results_and_gradients_are_the_same(packed, plain, build, batch):
    net, x = Net(), numbers(batch, 16, 18, 22)
    found, plan = run(packed, net, build, x)
    assert plan["layouts"]
    for runtime, options in ((packed, dict(disable_pass="layout")), (plain, {})):
        expected, other = run(runtime, net, build, x, **options)
        assert other["layouts"] == []
        for a, b in zip(found, expected):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * abs(b).max())


def test_the_same_bits_on_any_number_of_threads(packed):
    net, x = Net(), numbers(2, 16, 20, 20)
    first, _ = run(packed, net, residual, x)
    for options in (dict(threads=1), dict(threads=3), dict(engine="counted")):
        for a, b in zip(run(packed, net, residual, x, **options)[0], first):
            np.testing.assert_array_equal(a, b)


def test_convolutions_are_those_of_numpy(packed):
    """Compares with sums in float64, written as loops."""
    net, x = Net(), numbers(2, 16, 9, 8)
    found, plan = run(packed, net, lambda net, x: net.conv(net.conv(x, 16, 32), 32, 32, padding="VALID"), x, gradients=False)
    assert plan["layouts"]

    def conv(x, w):
        height, width = x.shape[2] - 2, x.shape[3] - 2
        return sum(np.einsum("nchw,co->nohw", x[:, :, i:i + height, j:j + width], w[i, j]) for i in range(3) for j in range(3))

    first, second = (w.astype(np.float64) for w in net.kept)
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    expected = conv(conv(padded, first), second)
    np.testing.assert_allclose(found[0], expected, rtol=0, atol=2e-6 * abs(expected).max())


def test_a_function_that_is_inlined_twice_keeps_the_constants_of_each_call(packed):
    x, filters = numbers(2, 32, 10, 9), numbers(3, 3, 32, 32) / 17
    widths = [np.array([[0, 0], [0, 0], [1, 2], [0, 3]], np.int32), np.array([[0, 0], [0, 0], [0, 1], [2, 2]], np.int32)]

    def build(graph):
        @tw.function
        def padded(images, pads):
            y = tw.ops.Pad(images, pads)
            return tw.ops.Relu(tw.ops.Conv2D(y, tw.constant(filters), strides=[1, 1, 1, 1], padding="VALID", data_format="NCHW"))

        given = tw.placeholder(tw.float32, [None, *x.shape[1:]])
        return given, [padded(padded(given, tw.constant(widths[k])), tw.constant(widths[1 - k])) for k in range(2)]

    results = []
    for options in ({}, dict(disable_pass="layout")):
        graph = tw.Graph(packed)
        with graph:
            given, ys = build(graph)
        session = tw.Session(graph, **options)
        results.append(session.run(ys, {given: x}))
        assert bool(session.plan(ys, {given: x.shape})["layouts"]) == (not options)
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * abs(b).max())


PROGRAM = """
import numpy as np, thalweg as tw
with tw.Graph() as graph:
    x, w = tw.placeholder(tw.float32, (4, 64, 30, 30)), tw.placeholder(tw.float32, (3, 3, 64, 64))
    y = tw.ops.Conv2D(x, w, strides=[1, 1, 1, 1], padding="VALID", data_format="NCHW")
y = tw.Session(graph).run(y, {x: np.ones((4, 64, 30, 30), np.float32), w: np.ones((3, 3, 64, 64), np.float32)})
assert y.shape == (4, 64, 28, 28) and (y == 576).all()
"""


def test_the_library_really_computes_nets_that_say_nchw():
    done = subprocess.run([sys.executable, "-B", "-c", PROGRAM], capture_output=True, text=True,
                          env={**os.environ, "THALWEG_OPTIONS": "threads=2", "DNNL_VERBOSE": "1"})
    assert done.returncode == 0, done.stderr
    assert "verbose,exec,cpu,convolution," in done.stdout
