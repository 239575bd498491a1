"""worker.h for peers in Python: commands on standard input, one line of answer each on standard output."""
import os
import pathlib
import sys
import time
import traceback

CHAIN = 10000  # nodes
ROUNDS = 100000  # of a loop
HANDOFFS = 20000  # values through a queue
CHAIN_ITERATIONS, CHAIN_STAGES, CHAIN_ELEMENTS = 32, 8, 16384  # of a loop of running sums
ADDITIONS, ADDING_ROUNDS = 1000, 10  # of one element, in one loop
MLP_SHAPES = {"x": (100, 784), "w1": (784, 100), "b1": (100,), "w2": (100, 10), "b2": (10,)}


def threads():
    return int(sys.argv[1])


def times(once, samples, parts=1):
    """Median and 99th percentile of one call in nanoseconds, divided by `parts`; as worker_reply_time in C."""
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
    """The arrays of the checkpoint row: sixteen of 64 MB, as checkpoint_data.h has them."""
    i = numpy.arange(16 << 20, dtype=numpy.int64)
    return [((i * 31 + part * 7) % 1000003).astype(numpy.float32) * numpy.float32(0.001) for part in range(16)]


def sync(file):
    file.flush()
    os.fsync(file.fileno())


def read_mlp(folder, numpy):
    """The arrays of the MLP row by name."""
    folder = pathlib.Path(folder)
    data = {name: numpy.fromfile(folder / f"{name}.f32", numpy.float32).reshape(shape) for name, shape in MLP_SHAPES.items()}
    return {**data, "y": numpy.fromfile(folder / "y.i32", numpy.int32)}


def serve(commands):
    """commands: functions by name, each from an argument (a text) to numbers."""
    print("ready", flush=True)
    for line in sys.stdin:
        name, _, argument = line.strip().partition(" ")
        try:
            print("ok", *commands[name](argument), flush=True)
        except Exception as error:  # the answer says what went wrong, whatever it was
            traceback.print_exc()
            print("error", " ".join(f"{type(error).__name__}: {error}".split()), flush=True)
            sys.exit(1)
