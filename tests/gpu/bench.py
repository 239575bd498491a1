"""The bench on a GPU: `bench.py OUT.json [small]`. It times training steps of networks, a perceptron, an LSTM and attention, a hundred
tiny kernels, and copies of a gigabyte each way: by Thalweg, by PyTorch and JAX if this Python has them, and by a CUDA program (../bin/raw).
Samples are taken in turns; a line has the medians of ours, of theirs and of the ratios. Each result is written at once; a row that fails is
noted, and the next row begins. Exit status: 0 measured, 1 Thalweg failed somewhere."""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
import traceback

import numpy as np

import backends
from networks import NETWORKS, PAPER, SMALL_SIDES, Thin, flop_of_step
from peak import float_peak

SMALL = "small" in sys.argv[2:]
RAW = pathlib.Path(os.environ.get("THALWEG_GPU_RAW", pathlib.Path(__file__).resolve().parent.parent.parent / "bin" / "raw"))
PAIRS = 2 if SMALL else 7


def median_time(step, seconds=0.0 if SMALL else 0.5):
    """Returns the median time of calls that take about `seconds` together."""
    times = []
    began = time.perf_counter()
    while len(times) < (1 if SMALL else 5) or (time.perf_counter() - began < seconds and len(times) < 1000):
        last = time.perf_counter()
        step()
        times.append(time.perf_counter() - last)
    return statistics.median(times)


def raw(*arguments):
    """Returns the seconds that the plain CUDA program measures."""
    done = subprocess.run([RAW, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise backends.Missing(f"raw CUDA: {done.stdout}{done.stderr}".strip())
    return float(done.stdout)


def compare(ours, others):
    """Takes samples in turns. ours: function that returns the seconds of a sample. others: such functions by name."""
    line = {"Thalweg": [], **{name: [] for name in others}}
    for _ in range(PAIRS):
        line["Thalweg"].append(ours())
        for name, sample in others.items():
            line[name].append(sample())
    out = {name: {"seconds": statistics.median(times), "samples": times} for name, times in line.items()}
    for name in others:
        out[name]["ratio"] = statistics.median(a / b for a, b in zip(line["Thalweg"], line[name]))
    return out


def made(results, name, makers):
    """Returns the steps that this machine can make, after three calls of each. Notes those that are missing."""
    steps = {}
    for who, make in makers.items():
        try:
            steps[who] = make()
            for _ in range(1 if SMALL else 3):
                steps[who]()
        except Exception as why:  # PyTorch or JAX may not support the step on this machine
            if who == "Thalweg":
                raise
            steps.pop(who, None)
            results.setdefault("missing", {})[f"{name}, {who}"] = str(why) if isinstance(why, backends.Missing) else repr(why)
    return steps


def row(results, name, makers):
    steps = made(results, name, makers)
    ours = steps.pop("Thalweg")
    results[name] = compare(lambda: median_time(ours), {who: lambda s=s: median_time(s) for who, s in steps.items()})
    print(name, {who: round(v["seconds"] * 1e3, 3) for who, v in results[name].items()}, "ms", flush=True)


def one_network(results, name, precision):
    network, batch, side = NETWORKS[name]
    if SMALL:
        batch, side, network = 1, SMALL_SIDES[name], lambda b, x, whole=network: whole(Thin(b), x)
    title = f"{name}, batch {batch}, {precision}"
    row(results, title, {who: lambda make=make: make(network, batch, side, precision) for who, make in backends.ALL.items()})
    for line in results[title].values():
        line["flop_per_second"] = flop_of_step(network, batch, side) / line["seconds"]
        if results["peak"]:
            line["of_peak"] = line["flop_per_second"] / results["peak"]["flop_per_second"]
    if name in PAPER:
        results[title]["the paper of 2016, of its card's peak"] = PAPER[name]


def perceptron(b, feeds):
    x, labels = feeds
    return b.dense(b.relu(b.dense(x, 100)), 10), labels


def mlp(results, precision):
    rng = np.random.default_rng(0)
    feeds = rng.standard_normal((100, 784), np.float32), rng.integers(0, 10, 100).astype(np.int32)

    def ours():
        def loss_of(b, values):
            z, labels = perceptron(b, values)
            return b.tw.ops.sparse_softmax_cross_entropy_with_logits(z, labels).loss.mean()
        return backends.thalweg_step(loss_of, feeds)

    def theirs():
        def loss_of(b, values):
            z, labels = perceptron(b, values)
            return b.f.cross_entropy(z, labels.long())
        return backends.torch_step(loss_of, feeds, precision)

    row(results, f"MLP 784-100-10, batch 100, {precision}", {"Thalweg": ours, "PyTorch": theirs})


def lstm(results, precision):
    """Times an LSTM cell over several steps. Ours is unrolled; PyTorch uses cuDNN's."""
    steps, batch, cells = (3, 2, 8) if SMALL else (64, 64, 512)
    rng = np.random.default_rng(0)
    feeds = (rng.standard_normal((steps, batch, cells), np.float32),)

    def ours():
        def loss_of(b, values):
            ops = b.tw.ops
            w, bias = b.weight((2 * cells, 4 * cells)), b.weight((4 * cells,), 0)
            h = c = np.zeros((batch, cells), np.float32)
            for t in range(steps):
                gates = ops.bias_add(ops.concat_v2([values[0][t], h], np.int32(1)) @ w, bias)
                i, g, f, o = ops.split(np.int32(1), gates, num_split=4)
                c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
                h = ops.sigmoid(o) * ops.tanh(c)
            return ops.square(h).mean()
        return backends.thalweg_step(loss_of, feeds)

    def theirs():
        torch = backends.cuda_torch()
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
        net = torch.nn.LSTM(cells, cells).cuda()
        x = torch.tensor(feeds[0], device="cuda")

        def step():
            loss = net(x)[1][0].square().mean()
            loss.backward()
            with torch.no_grad():
                for w in net.parameters():
                    w -= backends.RATE * w.grad
                    w.grad = None
            return float(loss)
        return step

    row(results, f"LSTM step, {steps} x {batch} x {cells}, {precision}", {"Thalweg": ours, "PyTorch": theirs})


def attention(results):
    """Times attention in half precision with a causal mask, and its gradient."""
    batch, heads, length, depth = (1, 2, 128, 8) if SMALL else (4, 16, 2048, 64)
    shape = batch, heads, length, depth

    def ours():
        def loss_of(b, _):
            q, k, v = (b.tw.ops.cast(b.weight(shape), DstT=np.float16) for _ in range(3))
            y = b.tw.ops.scaled_dot_product_attention(q, k, v, [], is_causal=True).output
            return b.tw.ops.square(b.tw.ops.cast(y, DstT=np.float32)).mean()
        return backends.thalweg_step(loss_of, ())

    def theirs():
        def loss_of(b, _):
            y = b.f.scaled_dot_product_attention(*(b.weight(shape).half() for _ in range(3)), is_causal=True)
            return y.float().square().mean()
        return backends.torch_step(loss_of, (), "float")

    row(results, f"attention, {' x '.join(map(str, shape))}, half", {"Thalweg": ours, "PyTorch": theirs})


def tiny(results):
    """Times a hundred kernels of four elements, one after the other."""
    import thalweg as tw

    def ours(**options):
        with tw.Graph() as g, tw.device("CUDA:0"):
            start = tw.Variable(np.ones(4, np.float32))
            y = start.read()
            for _ in range(100):
                y = tw.ops.neg(y)
            init = g.initializer()
        session = tw.Session(g, fallback="allow", compilers="off", container=next(backends.CONTAINERS), **options)
        session.run(init)
        call = session.callable([], targets=[y.operation])
        return lambda: call()

    def eager():
        torch = backends.cuda_torch()
        x = torch.ones(4, device="cuda")

        def step():
            y = x
            for _ in range(100):
                y = torch.neg(y)
            torch.cuda.synchronize()
        return step

    steps = made(results, "100 tiny kernels", {"Thalweg": ours, "Thalweg, not recorded": lambda: ours(capture=False), "PyTorch": eager})
    mine = steps.pop("Thalweg")
    others = {who: lambda s=s: median_time(s) for who, s in steps.items()}
    add_raw(results, others, "raw CUDA, recorded", "tiny", 100)
    results["100 tiny kernels"] = compare(lambda: median_time(mine), others)
    print("100 tiny kernels", {who: round(v["seconds"] * 1e6, 2) for who, v in results["100 tiny kernels"].items()}, "us", flush=True)


def add_raw(results, others, name, *arguments):
    try:
        raw(*arguments)
        others[name] = lambda: raw(*arguments)
    except (backends.Missing, OSError) as missing:
        results.setdefault("missing", {})[f"{arguments[0]}, {name}"] = str(missing)


def copies(results):
    import thalweg as tw
    n = 1 << (16 if SMALL else 28)  # floats
    array = tw.Tensor(np.ones(n, np.float32))
    with tw.Graph() as g:
        x = tw.placeholder("float32", [n])
        with tw.device("CUDA:0"):
            v = tw.Variable(np.zeros(n, np.float32))
            y, init = tw.ops.neg(x), g.initializer()
    session = tw.Session(g, fallback="allow", container=next(backends.CONTAINERS))
    session.run(init)
    to, back = session.callable([], feeds=[x], targets=[y.operation]), session.callable([v.read()], feeds=[])
    for name, call, way in (("copy in", lambda: to(array), "in"), ("copy out", lambda: back(as_tensors=True), "out")):
        call()
        others = {}
        add_raw(results, others, "raw CUDA, pinned", way, 4 * n)
        results[f"{name}, {4 * n} bytes"] = compare(lambda: median_time(call), others)
        print(name, {who: round(v["seconds"] * 1e3, 3) for who, v in results[f"{name}, {4 * n} bytes"].items()}, "ms", flush=True)


def main():
    out, precision = pathlib.Path(sys.argv[1]), os.environ.get("THALWEG_GPU_PRECISION", "float")
    results = {"peak": float_peak()}
    rows = {"MLP": lambda: mlp(results, precision)}
    if precision == "float":
        rows |= {"tiny kernels": lambda: tiny(results), "copies": lambda: copies(results), "attention": lambda: attention(results)}
    rows["LSTM"] = lambda: lstm(results, precision)
    rows |= {name: lambda name=name: one_network(results, name, precision) for name in NETWORKS}
    for name, measure in rows.items():
        try:
            measure()
        except Exception:
            results.setdefault("failed", {})[name] = traceback.format_exc().splitlines()[-6:]
            print("FAILED", name, *results["failed"][name], sep="\n    ", flush=True)
        out.write_text(json.dumps(results, indent=1) + "\n")
        backends.give_memory_back()
    return 1 if "failed" in results else 0


if __name__ == "__main__":
    sys.exit(main())
