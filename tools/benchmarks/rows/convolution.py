"""Row 7: convolutions of known networks and their gradients, float and bfloat16, against oneDNN called as its manual says, with the filter
in oneDNN's preferred layout from the start. Ours has the filter in the usual layout of programs. Both must have the same results."""
from bench import Goal

from . import libraries

NUMBER = 7
TITLE = "convolutions and their gradients"
MISSED = """Row 7, 3x3 of 512 channels at 7: ours turns the filter in each step, because it may have changed, a twentieth of the time;
a constant one is packed once by the graph compiler."""
CONVOLUTIONS = [  # name, "N SIZE IN OUT WINDOW STRIDE PADDING"
    ("VGG conv3_1", "16 56 128 256 3 1 1"),
    ("AlexNet conv1", "16 224 3 64 11 4 2"),
    ("1x1, 256 to 64", "8 56 256 64 1 1 0"),
    ("3x3, 512 at 7", "16 7 512 512 3 1 1"),
]
KINDS = {"forward": "forward", "filter": "filter's gradient", "input": "input's gradient"}


def flop(sizes):
    n, size, inputs, outputs, window, stride, padding = map(int, sizes.split())
    out = (size + 2 * padding - window) // stride + 1
    return 2 * n * out * out * inputs * outputs * window * window


def run(bench):
    for threads in (1, 2):
        ours, theirs = bench.ours(threads), libraries.start(bench, threads)
        for kind in ("float", "bfloat16"):
            for what, sizes in CONVOLUTIONS:
                for of, title in KINDS.items():
                    call = f"{of} {sizes} {kind}"
                    if theirs:
                        libraries.check_same(ours, f"convolution_sum {call}", "oneDNN", theirs, f"convolution_sum {call}")
                    bench.compare(f"{what}, {title}, {kind}, {libraries.where(threads)}", ("Thalweg", ours, f"convolution {call}"),
                                  ("oneDNN", theirs, f"convolution {call}"), unit="ms", goal=Goal(1 / 0.97, floor=1 / 0.9),
                                  threads=threads, probe=libraries.limit(bench, flop(sizes), threads))
