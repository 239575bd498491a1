"""Row 39: the gradient of a loop on a simulated device. Beyond a limit, the values that iterations keep are swapped to host memory.
Measures how many iterations fit into 4 MB, with and without swapping, and the time of an iteration that swaps, against a device with
enough memory. A kernel takes 250 us, and a copy of an iteration's values a quarter of that."""
from bench import Goal

NUMBER = 39
TITLE = "swapping what a loop keeps to host memory"
NEVER = 1 << 40
SETTINGS = dict(simulate_ns=30000, copy_ns=2000, queue_threads=1)
LENGTH = 200


def device(bench, memory):
    settings = [f"plugin.org.thalweg.fake.{key}={value}" for key, value in (SETTINGS | dict(memory=memory)).items()]
    worker = bench.program_worker(f"thalweg {memory}", "thalweg_worker", 2, *settings)
    worker.ask(f"device_load {bench.build / 'tests/devices/libfake.so'}")
    return worker


def run(bench):
    small, large = device(bench, "4M"), device(bench, "256M")
    bench.note("longest loop, without swapping", "iterations", small.ask(f"swapping_longest {NEVER}")[0], "with swapping",
               small.ask("swapping_longest 0")[0], Goal(0.5))
    bench.compare(f"per iteration of {LENGTH}, swapping", ("Thalweg", small, f"swapping_step 0 {LENGTH}"),
                  ("with room for all", large, f"swapping_step {NEVER} {LENGTH}"), unit="us", goal=Goal(1.05))
