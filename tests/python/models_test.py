"""The networks of images in bindings/python/examples/models, and the other programs without sequences: their sizes, a training step,
what they learn, and the bench."""
import contextlib
import importlib.util
import io
import json
import os
import re
import subprocess
import sys

import models_cases as cases
import numpy as np
import pytest

import thalweg as tw
from models_cases import FOLDER, models

import bench
import counts
import training

NIGHTLY = pytest.mark.skipif(not os.environ.get("THALWEG_TEST_NIGHTLY"), reason="takes minutes; the nightly entry runs it")
IMAGES = ["alexnet", "overfeat", "vgg-a", "googlenet", "inception-v3", "resnet50", "mobilenet-v2"]
DATA = training.pathlib.Path(os.environ.get("THALWEG_DATA_PATH") or training.pathlib.Path.home() / ".cache/thalweg/data")
with_data = pytest.mark.skipif(not (DATA / "digits.csv").is_file(), reason=f"{DATA}/digits.csv is not there; run tools/setup")


@pytest.mark.parametrize("name", [*IMAGES, "unet", "sparse-regression"])
def test_a_network_takes_at_most_60_lines(name):
    lines = (FOLDER / f"{name.replace('-', '_')}.py").read_text().splitlines()
    assert sum(bool(line.strip()) for line in lines) <= 60


def test_an_unknown_network_is_told():
    assert models.load("AlexNet").__name__ == "alexnet"
    with pytest.raises(ValueError, match="there is no model 'alexnt'; did you mean 'alexnet'. there are: alexnet, overfeat"):
        models.load("alexnt")


def test_the_build_and_the_readme_have_each_file():
    files = {path.name for path in FOLDER.glob("*.py")}
    listed = re.search(r"^set\(models\n(.*?)\)$", (FOLDER.parents[1] / "CMakeLists.txt").read_text(), re.M | re.S)[1]
    assert set(listed.split()) == files
    assert set(re.findall(r"^\| `(\w+\.py)` \|", (FOLDER / "README.md").read_text(), re.M)) == files
    assert {f"{name.replace('-', '_')}.py" for name in models.MODELS} <= files


# ---- Sizes ----

# Of the definitions that benchmarks of convolutions use: million multiply-accumulates of an image, to a tenth, and parameters.
LAYERS = {
    "alexnet": ((70.3, 23_296), (223.9, 307_392), (112.1, 663_936), (149.5, 884_992), (99.7, 590_080), (37.7, 37_752_832), (16.8, 16_781_312),
                (4.1, 4_097_000)),
    "overfeat": ((109.3, 34_944), (353.9, 614_656), (169.9, 1_180_160), (679.5, 4_719_616), (1358.9, 9_438_208), (113.2, 113_249_280),
                 (12.6, 12_587_008), (4.1, 4_097_000)),
    "vgg-a": ((86.7, 1_792), (924.8, 73_856), (924.8, 295_168), (1849.7, 590_080), (924.8, 1_180_160), (1849.7, 2_359_808), (462.4, 2_359_808),
              (462.4, 2_359_808), (102.8, 102_764_544), (16.8, 16_781_312), (4.1, 4_097_000)),
    "googlenet": ((118.0, 9_472), (12.8, 4_160), (346.8, 110_784), (128.1, 163_696), (304.3, 388_736), (73.6, 376_176), (87.9, 449_160),
                  (99.9, 510_104), (118.5, 605_376), (170.0, 868_352), (51.1, 1_043_456), (70.7, 1_444_080), (1.0, 1_025_000)),
    "inception-v3": ((19.2, None), (199.2, None), (398.3, None), (27.3, None), (696.9, None), (312.4, 255_904), (338.7, 277_472), (348.1, 285_152),
                     (401.9, 1_153_280), (374.1, 1_297_408), (487.7, 1_691_008), (487.7, 1_691_008), (617.9, 2_141_952), (291.0, 1_698_304),
                     (322.4, 5_044_608), (388.5, 6_076_800), (2.0, 2_049_000)),
}
TOTALS = {"alexnet": (714.2, 61_100_840), "overfeat": (2801.4, 145_920_872), "vgg-a": (7609.1, 132_863_336), "googlenet": (1582.7, 6_998_552),
          "inception-v3": (5713, 23_834_568),
          # The papers give 3.8 billion (with strides in 1x1 convolutions) and 300 million; the exact figures are torchvision's.
          "resnet50": (4089.2, 25_557_032), "mobilenet-v2": (300.8, 3_504_872)}


def parts_of(module):
    """The layers of nested Sequentials, one after the other. Blocks with branches and blocks of convolution, norm and activation stay whole."""
    if isinstance(module, tw.nn.Sequential) and not any(isinstance(part, tw.nn.BatchNorm) for part in module.parts):
        return [inner for part in module.parts for inner in parts_of(part)]
    return [module]


def layers_of(net):
    return parts_of(tw.nn.Sequential(net.body, net.head)) if hasattr(net, "head") else parts_of(net)


@pytest.mark.parametrize("name", IMAGES)
def test_products_and_parameters_are_those_of_the_definition(name):
    model, side = models.load(name), {"overfeat": 231, "inception-v3": 299}.get(name, 224)
    rows, total = [], 0
    with tw.Graph():
        net = model.network(**({"auxiliary": False} if name == "inception-v3" else {}))
        x = tw.placeholder("float32", [1, side, side, 3])
        scores, after = net(x), []
        for layer in layers_of(net):
            after.append((layer, layer(after[-1][1] if after else x)))
        for layer, value in after:
            products = counts.multiply_accumulates(value)
            if products > total:
                rows.append(((products - total) / 1e6, counts.parameters(layer)))
            total = products
        assert scores.shape == (1, 1000) and counts.multiply_accumulates(scores) == total
    macs, parameters = TOTALS[name]
    assert counts.parameters(net) == parameters and abs(total / 1e6 - macs) <= (0.5 if macs > 5000 else 0.1)
    if name in LAYERS:
        assert len(rows) == len(LAYERS[name])
        for i, ((found, size), (wanted, of_row)) in enumerate(zip(rows, LAYERS[name])):
            assert abs(found - wanted) <= 0.06 and of_row in (None, size), f"row {i}: {found} million, {size} parameters"


def test_inception_has_its_auxiliary_head_in_training():
    model = models.load("inception-v3")
    with tw.Graph():
        net = model.network()
        scores, auxiliary = net(tw.placeholder("float32", [2, 299, 299, 3]))
    assert scores.shape == auxiliary.shape == (2, 1000) and counts.parameters(net) == 27_161_264


def test_unet_has_the_sizes_of_its_levels():
    with tw.Graph():
        net = models.load("unet").network(classes=2)
        scores = net(tw.placeholder("float32", [1, 64, 64, 1]))
    wanted, macs, before = 2 * 64 + 2, 64 * 64 * 64 * 2, 1
    for level in range(5):
        n, area = 64 << level, (64 >> level) ** 2
        wanted += 9 * before * n + n + 9 * n * n + n
        macs += area * 9 * (before * n + n * n)
        if level < 4:  # on the way up: 2x2 transposed from twice the channels, and two convolutions
            wanted += 4 * 2 * n * n + n + 9 * 2 * n * n + n + 9 * n * n + n
            macs += area * (2 * n * n + 9 * 2 * n * n + 9 * n * n)
        before = n
    assert scores.shape == (1, 64, 64, 2) and counts.parameters(net) == wanted and counts.multiply_accumulates(scores) == macs


@pytest.mark.parametrize("name, theirs", [("alexnet", "AlexNet"), ("overfeat", "Overfeat"), ("vgg-a", "VGG-A"), ("googlenet", "GoogLeNet"),
                                          ("resnet50", "ResNet-50")])
def test_the_bench_of_gpus_has_the_same_networks(name, theirs):
    spec = importlib.util.spec_from_file_location("gpu_networks", cases.ROOT / "tests/gpu/networks.py")
    gpu = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gpu)
    build, _, side = gpu.NETWORKS[theirs]
    counting = gpu.Counting()
    build(counting, (1, side, side, 3))
    with tw.Graph():
        assert counts.multiply_accumulates(models.load(name).network()(tw.placeholder("float32", [1, side, side, 3]))) == counting.flop / 2


def test_counts_say_what_they_cannot_count():
    with tw.Graph():
        x = tw.placeholder("float32", [None, 4])
        with pytest.raises(ValueError, match="the sizes of .* are not known"):
            counts.multiply_accumulates(x @ np.ones((4, 2), np.float32))
        looped = tw.while_loop(lambda i, y: i < 3, lambda i, y: [i + 1, y @ np.ones((4, 4), np.float32)], [0, x])[1]
        with pytest.raises(ValueError, match="runs a function with .*MatMul.*, whose products are not counted"):
            counts.multiply_accumulates(looped)


# ---- A step ----

SMALL = {"alexnet": (67, {}), "overfeat": (103, {}), "vgg-a": (32, {}), "googlenet": (32, {}), "inception-v3": (299, {}), "resnet50": (32, {}),
         "mobilenet-v2": (32, {"width": 0.25})}


@pytest.mark.parametrize("name", IMAGES)
def test_a_step_moves_every_weight_and_lowers_the_loss(name):
    side, how = SMALL[name]
    model, (x, y) = models.load(name), training.images(2 if side > 200 else 4, side, classes=10)
    (x,), (y,) = x, y
    tw.random.seed(3)
    with tw.Graph() as g:
        p, labels = tw.placeholder("float32", x.shape), tw.placeholder("int32", y.shape)
        net = model.network(classes=10, **({"width": 1 / 16} | how))
        loss = tw.train.LOSSES[model.loss] if isinstance(model.loss, str) else model.loss
        value = loss(net(p), labels).mean()
        step = tw.train.Adam(1e-3).minimize(value)
        weights = net.parameters(trainable=True)
        start = g.initializer()
    feeds = {p: x, labels: y, tw.nn.training(g): True}
    with tw.Session(g) as s:
        s.run(start)
        first, before = s.run([value, weights], feeds)
        s.run(step, feeds)
        still = [v.name for v, a, b in zip(weights, before, s.run(weights)) if np.array_equal(a, b)]
        # A rectifier of few channels may be 0 for all images of a small batch; then weights behind it do not move.
        assert len(still) <= len(weights) // 5 and not any("dense" in n and "bias" in n for n in still[-1:]), still
        for _ in range(4):
            s.run(step, feeds)
        assert np.isfinite(first) and s.run(value, feeds) < first


@pytest.mark.parametrize("name", [*IMAGES, "unet", "sparse-regression"])
def test_the_optimizer_of_the_paper_takes_a_step(name):
    model = models.load(name)
    with tw.Graph() as g:
        w = tw.Variable(np.float32([1, -2]))
        step = model.optimizer().minimize((w * w).sum())
        start = g.initializer()
    with tw.Session(g) as s:
        s.run(start)
        s.run(step)
        assert (np.abs(s.run(w)) < [1, 2]).all()


@pytest.mark.parametrize("case", cases.GOLDEN)
def test_a_step_is_pytorchs(case):
    golden = np.load(cases.ROOT / "tests/python/models_golden.npz")
    wanted = {part: golden[f"{case}|{part}"] for part in ("loss", "size", "along")}
    cases.compare(case, cases.step(case), wanted, 2e-3)


# ---- Learning ----

@with_data
@pytest.mark.parametrize("name, epochs, least", [("alexnet", 3, 0.7)])
def test_digits_are_learned(name, epochs, least, tmp_path, capsys):
    reached = models.load(name).main(["--epochs", str(epochs), "--data", str(DATA / "digits.csv"), "--logdir", str(tmp_path)])
    assert reached > least
    assert re.search(rf"^{name}: held-out accuracy {reached:.4f} after {epochs} epochs$", capsys.readouterr().out, re.M)
    assert list((tmp_path / "train").iterdir()) and list((tmp_path / "validation").iterdir())


@NIGHTLY
@with_data
@pytest.mark.parametrize("name, least", [("alexnet", 0.93), ("overfeat", 0.9), ("vgg-a", 0.95), ("googlenet", 0.94), ("inception-v3", 0.9),
                                         ("resnet50", 0.9), ("mobilenet-v2", 0.9)])
def test_digits_are_learned_well(name, least):
    assert models.load(name).main(["--data", str(DATA / "digits.csv")]) > least


@with_data
def test_a_small_unet_finds_strokes_in_noise():
    unet = models.load("unet")
    x, masks = unet.strokes(training.digits(DATA / "digits.csv")[0][:400], np.random.default_rng(1))
    tw.random.seed(1)
    trainer = tw.train.Trainer(unet.network(filters=4, depth=1), unet.loss, tw.train.Adam(5e-3), threads=1)
    trainer.fit((x[:320], masks[:320]), 2, batch=8)
    found, wanted = trainer.predict(x[320:]).argmax(-1) == 1, masks[320:] == 1
    assert (found & wanted).sum() / (found | wanted).sum() > 0.4


@NIGHTLY
@with_data
def test_unet_finds_most_strokes():
    assert models.load("unet").main(["--data", str(DATA / "digits.csv")]) > 0.7


@with_data
def test_sparse_regression_tells_the_testaments_apart(tmp_path, capsys):
    every = (DATA / "kjv.txt").read_text().splitlines()
    path = tmp_path / "kjv.txt"
    path.write_text("\n".join(every[20000:27000]))  # some of both
    assert models.load("sparse-regression").main(["--epochs", "1", "--data", str(path)]) > 0.9
    path.write_text("\n".join(every[:100]))
    with pytest.raises(ValueError, match="lacks the first verse of the New Testament"):
        models.load("sparse-regression").main(["--data", str(path)])
    assert "area under the curve" in capsys.readouterr().out


@NIGHTLY
@with_data
def test_sparse_regression_learns_the_whole_bible():
    assert models.load("sparse-regression").main(["--data", str(DATA / "kjv.txt")]) > 0.97


def test_sparse_regression_sums_the_weights_of_the_features_that_are_there():
    ids = np.int32([[3, 1, 0, 0], [2, 0, 0, 0], [0, 0, 0, 0]])
    table = np.float32([[100], [1], [2], [4]])
    with tw.Graph() as g:
        net = models.load("sparse-regression").network(features=4)
        p = tw.placeholder("int32", [None, 4])
        z = net(p)
        load = tw.group(net.weights.table.assign(table), net.bias.assign(np.float32(0.5)))
    with tw.Session(g) as s:
        s.run(load)
        np.testing.assert_array_equal(s.run(z, {p: ids}), [5.5, 2.5, 0.5])


# ---- Clusters ----

POINTS = np.random.RandomState(5).normal(size=(60, 3)) + np.repeat([[0, 0, 0], [6, 0, 0], [0, 6, 6]], 20, 0)


def slow_kmeans(points, centers):
    distances = ((points[:, None] - centers) ** 2).sum(2)
    nearest = distances.argmin(1)
    return np.stack([points[nearest == i].mean(0) if (nearest == i).any() else c for i, c in enumerate(centers)]), distances.min(1).mean()


def slow_mixture(points, means, variances, weights):
    """By densities themselves, each point and Gaussian alone."""
    densities = np.array([[w * np.prod(np.exp(-(p - m) ** 2 / (2 * v)) / np.sqrt(2 * np.pi * v)) for m, v, w in zip(means, variances, weights)]
                          for p in points])
    shares = densities / densities.sum(1, keepdims=True)
    counts_ = shares.sum(0)
    new = np.array([(s[:, None] * points).sum(0) / s.sum() for s in shares.T])
    spread = np.array([(s[:, None] * (points - m) ** 2).sum(0) / s.sum() for s, m in zip(shares.T, new)])
    return new, spread + 1e-2, counts_ / counts_.sum(), np.log(densities.sum(1)).mean()


def test_steps_of_clusters_are_those_of_slow_programs():
    clusters = models.load("clusters")
    centers = np.concatenate([POINTS[[0, 20, 40]] + 0.3, [[99.0, 99, 99]]])  # the last one is nearest to no point
    (found,), distances = clusters.fit(clusters.kmeans_step, POINTS, [centers], 3, tolerance=0)
    wanted, measures = centers, []
    for _ in range(3):
        wanted, measure = slow_kmeans(POINTS, wanted)
        measures.append(measure)
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
    np.testing.assert_allclose(distances, measures, rtol=1e-9)

    state = [POINTS[[0, 20, 40]], np.full((3, 3), 2.0), np.full(3, 1 / 3)]
    found, likelihoods = clusters.fit(clusters.mixture_step, POINTS, state, 4, tolerance=0)
    wanted, measures = state, []
    for _ in range(4):
        *wanted, measure = slow_mixture(POINTS, *wanted)
        measures.append(measure)
    for a, b in zip(found, wanted):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(likelihoods, measures, rtol=1e-6)
    assert likelihoods == sorted(likelihoods)


@with_data
def test_digits_are_clustered(tmp_path, capsys):
    assert models.load("clusters").main(["--data", str(DATA / "digits.csv"), "--logdir", str(tmp_path)]) > 0.6
    said = capsys.readouterr().out
    first, last = map(float, re.search(r"distance ([\d.]+), then ([\d.]+)", said).groups())
    low, high = map(float, re.search(r"log-likelihood (-?[\d.]+), then (-?[\d.]+)", said).groups())
    assert last < first and high > low and "clusters: purity" in said and list(tmp_path.iterdir())


# ---- The command lines ----

def test_bench_times_a_step(capsys):
    small = ["--set", "width=0.0625", "--set", "side=67", "--threads", "1", "--batch", "2", "--repeat", "3", "--warmup", "0", "--json"]
    done = subprocess.run([sys.executable, "-B", FOLDER / "bench.py", "alexnet", *small], capture_output=True, text=True, check=True)
    trained = json.loads(done.stdout)
    assert trained["what"] == "training" and trained["steps"] == 3 and trained["batch"] == 2
    assert 0 < trained["min_seconds"] <= trained["median_seconds"] <= trained["max_seconds"]
    assert trained["examples_per_second"] == 2 / trained["median_seconds"] and trained["peak_rss_bytes"] > 1e7
    bench.main(["alexnet", *small, "--forward"])
    forward = json.loads(capsys.readouterr().out)
    assert forward["what"] == "forward" and forward["parameters"] == trained["parameters"]
    with tw.Graph():
        net = models.load("alexnet").network(width=0.0625)
        products = counts.multiply_accumulates(net(tw.placeholder("float32", [2, 67, 67, 3])))
    assert forward["multiply_accumulates"] == trained["multiply_accumulates"] == products and forward["parameters"] == counts.parameters(net)


def told(main, *words, status=2):
    """What a program says on standard error before it ends with that status."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), pytest.raises(SystemExit) as end:
        main(list(map(str, words)))
    assert end.value.code == status, said.getvalue()
    return said.getvalue()


def test_the_command_lines_say_what_is_wrong(tmp_path):
    assert "there is no model 'vgg'; did you mean 'vgg-a'?" in told(bench.main, "vgg")
    assert "'clusters' has no batches to time" in told(bench.main, "clusters")
    assert "--batch takes a number of 1 or more, not 0" in told(bench.main, "alexnet", "--batch", 0)
    assert "--seconds takes a number above 0, not 0.0" in told(bench.main, "alexnet", "--seconds", 0)
    assert "'alexnet' has no parameter 'depth'; there are: classes, side, width" in told(bench.main, "alexnet", "--set", "depth=2")
    assert "--set takes NAME=VALUE" in told(bench.main, "alexnet", "--set", "side=big")
    assert "is no file; tools/setup fetches it" in told(models.load("alexnet").main, "--data", tmp_path / "none.csv", status=1)
    assert "--epochs takes a number of 1 or more, not 0" in told(models.load("vgg-a").main, "--epochs", 0)
    with pytest.raises(ValueError, match="width is 0; it is the factor"):
        models.load("alexnet").network(width=0)
    (tmp_path / "digits.csv").write_text("1,2,3\n4,5,6\n")
    with pytest.raises(ValueError, match="has rows of 3 numbers; digits have 64 pixels and a label"):
        training.digits(tmp_path / "digits.csv")
