"""What the tests of bindings/python/examples/models share: weights from a formula, and a training step with them.

models_peer.py runs the same step in PyTorch with torchvision's networks and writes models_golden.npz, with which models_test.py
compares ours."""
import itertools
import pathlib
import sys

import numpy as np

import thalweg as tw

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "bindings/python/examples/models"
if str(FOLDER) not in sys.path:
    sys.path.insert(0, str(FOLDER))

import models  # noqa: E402  pylint: disable=wrong-import-position

RATE = 0.01
_containers = map("models{}".format, itertools.count())

# name of the case: (network, its parameters, side of the images). Those in GOLDEN are quick enough for every run of the tests.
CASES = {
    "alexnet": ("alexnet", {}, 224),
    "vgg-a": ("vgg-a", {}, 64),
    "resnet50": ("resnet50", {}, 64),
    "mobilenet-v2": ("mobilenet-v2", {"width": 0.35}, 64),
    "inception-v3": ("inception-v3", {}, 299),
}
GOLDEN = ("mobilenet-v2",)
BATCH, CLASSES = 4, 1000


def pattern(n, seed):
    """n numbers of mean 0 and variance 1, the same with every version of NumPy: the stream of RandomState is frozen."""
    return np.random.RandomState(seed).uniform(-3 ** 0.5, 3 ** 0.5, n).astype(np.float32)


def weight(i, name, shape):
    """The first value of parameter number i: kernels keep the variance of what they multiply, up to an activation."""
    n = int(np.prod(shape))
    values = pattern(n, i + 1).reshape(shape)
    if name == "kernel":
        return values * np.float32((2 / np.prod(shape[:-1])) ** 0.5)
    return (1 if name == "scale" else 0) + np.float32(0.1) * values


def batch(side):
    """Images with their channels last, and labels."""
    x = pattern(BATCH * side * side * 3, 0).reshape(BATCH, side, side, 3)
    return x, (np.arange(BATCH) * 37 % CLASSES).astype(np.int32)


def named(net):
    """The trained variables of a module in the order of its layers, and what each is for its layer."""
    return [(v.name.rsplit("/", 1)[-1], v) for v in net.parameters(trainable=True)]


def step(case):
    """Runs a step of gradient descent in training from the weights of the formula. Returns the loss before it, and for each trained
    variable the mean size of its change and the mean of its change along a pattern."""
    name, how, side = CASES[case]
    model, (x, y) = models.load(name), batch(side)
    how = how | ({"dropout": 0.0} if name in ("mobilenet-v2", "inception-v3") else {})
    with tw.Graph() as g:
        p, labels = tw.placeholder("float32", x.shape), tw.placeholder("int32", y.shape)
        net = model.network(classes=CLASSES, **how)
        loss = tw.train.LOSSES.get(model.loss) if isinstance(model.loss, str) else model.loss
        value = loss(net(p), labels).mean()
        update = tw.train.SGD(RATE).minimize(value)
        variables = named(net)
        start = g.initializer()
        given = [tw.placeholder(v.dtype, v.shape) for _, v in variables]
        load = tw.group(*(v.assign(w) for (_, v), w in zip(variables, given)))
    before = [weight(i, kind, v.shape) for i, (kind, v) in enumerate(variables)]
    with tw.Session(g, container=next(_containers)) as s:
        s.run(start)
        s.run(load, dict(zip(given, before)))
        found = s.run([value, update], {p: x, labels: y, tw.nn.training(g): True})[0]
        after = s.run([v for _, v in variables])
        s.reset()
    return measures(found, before, after)


def measures(loss, before, after):
    """The numbers that are compared. Both lists have the layouts of our variables."""
    changes = [(a - b).astype(np.float64).ravel() for a, b in zip(after, before)]
    return {"loss": np.float64(loss), "size": np.array([np.abs(c).mean() for c in changes]),
            "along": np.array([(c * pattern(c.size, 7)).mean() for c in changes])}


def compare(case, got, wanted, tolerance):
    """Raises AssertionError where a number differs by more than the tolerance, relative to the size of the change. Offsets before another
    batch normalisation have no gradient but rounding, far below the changes of the others."""
    rounding = 1e-6 * np.max(wanted["size"])
    assert abs(got["loss"] - wanted["loss"]) <= tolerance * abs(wanted["loss"]), f"{case}: loss {got['loss']}, not {wanted['loss']}"
    assert got["size"].shape == wanted["size"].shape, f"{case}: {got['size'].size} variables, not {wanted['size'].size}"
    for i, size in enumerate(wanted["size"]):
        for part in ("size", "along"):
            difference = abs(got[part][i] - wanted[part][i])
            assert difference <= tolerance * size + rounding, f"{case}: change {part} of variable {i}: {got[part][i]}, not {wanted[part][i]}"
