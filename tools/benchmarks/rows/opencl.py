"""Row 29: an OpenCL device against a plain OpenCL program in the same process: an empty kernel, an addition of 16M elements, a product of
1,024 rows and columns. Steps read variables on the device and leave their result there; each step is waited for. A training step on digits
is compared with the same step on the CPU plugin."""
import peers
from bench import Goal
from workers import Failed, Worker

PYTHON = "/usr/bin/python3"  # the binding is built for this one

NUMBER = 29
TITLE = "OpenCL: empty kernel, add 16M, matmul 1024, training"


class Limit:
    """A worker whose answer is the time that the machine needs for that many additions and multiplications."""

    def __init__(self, machine, threads):
        self.machine, self.threads = machine, threads

    def ask(self, flop):
        return [int(flop) / self.machine.ask(f"fma {self.threads}")[0]]


def run(bench):
    try:
        worker = bench.program_worker("opencl", "opencl_worker", bench.cpus())
        worker.ask("raw empty 16")
    except Failed as error:
        print(f"row {NUMBER} is left out: {error}")
        return
    threads, machine = bench.cpus(), bench.machine()

    def compare(what, ours, anchor, goal):
        bench.compare(what, ("Thalweg", worker, f"ours {ours}"), anchor, unit="us", goal=goal, threads=threads)

    compare("one element", "Neg 1 1", ("raw OpenCL, empty kernel", worker, "raw empty 16"), Goal(1.1, 1.3))
    compare("add, 16M", "AddV2 16384 1024", ("raw OpenCL", worker, f"raw add {16 << 20}"), Goal(1.1))
    compare("add, 16M", "AddV2 16384 1024", ("triad", machine, f"stream {threads} {3 << 26}"), Goal(1 / 0.9, 1 / 0.8))
    compare("matmul 1024", "MatMul 1024 1024", ("FMA limit", Limit(machine, threads), str(2 * 1024**3)), Goal(1 / 0.35, 1 / 0.2))
    if not (bench.build / "python").is_dir():
        print(f"row {NUMBER}, training: left out: '{bench.build}' has no Python binding")
        return
    digits = bench.worker("opencl_digits", lambda log: Worker(
        [PYTHON, "-B", peers.PROGRAMS / "opencl_digits.py", threads], threads, log,
        {"PYTHONPATH": f"{bench.build}/python", "THALWEG_LIBRARY": f"{bench.build}/lib/libthalweg.so"}))
    bench.compare("digits, batch 256", ("Thalweg", digits, "step OPENCL:0"), ("the CPU plugin", digits, "step CPU:0"), unit="us",
                  goal=Goal(5), threads=threads)
