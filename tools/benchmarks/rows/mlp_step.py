"""Row 9: a training step of the multi-layer perceptron 784-100-10 on a batch of 100, with plain gradient descent. It feeds pictures and
labels and fetches the loss. All contenders start from the same weights and must agree on the first five losses."""
import array
import pathlib
import random
import tempfile

from bench import Goal
from workers import Failed

NUMBER = 9
TITLE = "MLP 784-100-10, batch 100, training step"
MISSED = """Row 9 on one thread: the five products are 32 MFLOP, which at the machine's limit take half of TensorFlow's step already; the
line `own products alone` says how much of ours they are."""
FLOP = 2 * (2 * 100 * 784 * 100 + 3 * 100 * 100 * 10)  # five products
GOALS = {  # threads: peer: goal
    1: {"TensorFlow": Goal(0.4, floor=0.6), "TensorFlow C": Goal(1), "JAX": Goal(0.75, floor=1.1), "PyTorch": Goal(1)},
    2: {"TensorFlow": Goal(0.3, floor=0.6), "TensorFlow C": Goal(1), "JAX": Goal(0.5, floor=1.1), "PyTorch": Goal(1)},
}


def write_data(folder):
    """Writes pictures, labels and initial weights as raw arrays; see programs/mlp_data.h."""
    source = random.Random(0)

    def write(name, kind, count, draw):
        (pathlib.Path(folder) / name).write_bytes(array.array(kind, (draw() for _ in range(count))).tobytes())

    write("x.f32", "f", 100 * 784, source.random)
    write("y.i32", "i", 100, lambda: source.randrange(10))
    for name, count in (("w1", 784 * 100), ("b1", 100), ("w2", 100 * 10), ("b2", 10)):
        write(f"{name}.f32", "f", count, lambda: source.gauss(0, 0.05))


def check_losses(name, losses, expected):
    for i, (a, b) in enumerate(zip(losses, expected)):
        if not abs(a - b) <= 1e-4 * abs(b):
            raise Failed(f"{name} and Thalweg do not compute the same: loss {i + 1} is {a!r} against {b!r}")


def run(bench):
    with tempfile.TemporaryDirectory() as folder:
        write_data(folder)
        for threads in (1, 2):
            ours, where = bench.ours(threads), f"{threads} thread{'s' * (threads > 1)}"
            ours.ask(f"mlp_load {folder}")
            expected = ours.ask("mlp_losses")
            probe = ("FMA limit", lambda: FLOP / bench.machine().ask(f"fma {threads}")[0])
            for name, goal in GOALS[threads].items():  # TensorFlow first: it writes the graph that TensorFlow C reads
                peer = bench.peer(name, threads)
                if peer:
                    peer.ask(f"mlp_load {folder}")
                    check_losses(name, peer.ask("mlp_losses"), expected)
                bench.compare(f"step, {where}", ("Thalweg", ours, "mlp_step 200"), (name, peer, "mlp_step 200"), unit="us", goal=goal,
                              threads=threads, probe=probe)
            bench.compare(f"step, {where}", ("Thalweg", ours, "mlp_step 200"), ("own products alone", ours, "mlp_matmuls 200"), unit="us",
                          goal=Goal(1.25), threads=threads)
