"""worker.h for peers in Python: reads commands from standard input and answers each with one line on standard output."""
import os
import pathlib
import sys
import time
import traceback

CHAIN = 10000  # nodes
ROUNDS = 100000  # iterations of the empty loop
HANDOFFS = 20000  # values through a queue
CHAIN_ITERATIONS, CHAIN_STAGES, CHAIN_ELEMENTS = 32, 8, 16384  # sizes of the loop of running sums
ADDITIONS, ADDING_ROUNDS = 1000, 10  # additions of one element, iterations of the loop that makes them
MLP_SHAPES = {"x": (100, 784), "w1": (784, 100), "b1": (100,), "w2": (100, 10), "b2": (10,)}


def threads():
    return int(sys.argv[1])


def times(once, samples, parts=1):
    """Returns median and 99th percentile of one call in nanoseconds, divided by `parts`, like worker_reply_time in C."""
    for _ in range(3):
        once()
    taken = []
    for _ in range(samples):
        begin = time.perf_counter_ns()
        once()
        taken.append((time.perf_counter_ns() - begin) / parts)
    taken.sort()
    return taken[samples // 2], taken[samples * 99 // 100]


def time_once(once):
    begin = time.perf_counter_ns()
    once()
    return [time.perf_counter_ns() - begin]


def checkpoint_parts(numpy):
    """Returns the arrays of the checkpoint row: sixteen of 64 MB, as in checkpoint_data.h."""
    i = numpy.arange(16 << 20, dtype=numpy.int64)
    return [((i * 31 + part * 7) % 1000003).astype(numpy.float32) * numpy.float32(0.001) for part in range(16)]


def sync(file):
    file.flush()
    os.fsync(file.fileno())


def read_mlp(folder, numpy):
    """Returns the arrays of the MLP row by name."""
    folder = pathlib.Path(folder)
    data = {name: numpy.fromfile(folder / f"{name}.f32", numpy.float32).reshape(shape) for name, shape in MLP_SHAPES.items()}
    return {**data, "y": numpy.fromfile(folder / "y.i32", numpy.int32)}


def serve(commands):
    """Answers commands until standard input ends. commands: {name: function from its argument, a string, to numbers}."""
    print("ready", flush=True)
    for line in sys.stdin:
        name, _, argument = line.strip().partition(" ")
        try:
            print("ok", *commands[name](argument), flush=True)
        except Exception as error:  # any error is reported in the answer
            traceback.print_exc()
            print("error", " ".join(f"{type(error).__name__}: {error}".split()), flush=True)
            sys.exit(1)
