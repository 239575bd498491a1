"""Row 37: a loop of 32 iterations, each of eight stages one after the other, which do not depend on other iterations. Several iterations at
once (parallel_iterations) are compared with one at a time: on the CPU, where a stage is a running sum on one of two threads; and on eight
simulated devices, each with a stage of 300 us, against iterations that wait for each other, to see how many at once are enough."""
from bench import Goal

NUMBER = 37
TITLE = "iterations of a loop side by side"
STAGE_NS = 300000
AT_ONCE = (1, 2, 4, 8, 16, 32)


def run(bench):
    ours = bench.ours(2)
    for many in (2, 10):
        bench.compare(f"per iteration, {many} at once, 2 threads", ("Thalweg", ours, f"chains cpu {many}"),
                      ("one at a time", ours, "chains cpu 1"), unit="us", goal=Goal(0.7, floor=1), threads=2)
    bench.compare("per iteration, 10 at once, 2 threads", ("Thalweg", ours, "chains cpu 10"),
                  ("TensorFlow", bench.peer("TensorFlow", 2), "chains cpu 10"), unit="us", goal=Goal(1), threads=2)
    devices = bench.program_worker("thalweg devices", "thalweg_worker", 2, "plugin.org.thalweg.fake.devices=8",
                                   f"plugin.org.thalweg.fake.simulate_ns={STAGE_NS}")
    devices.ask(f"device_load {bench.build / 'tests/devices/libfake.so'}")
    for many in AT_ONCE:
        bench.compare(f"per iteration, eight devices, {many} at once", ("Thalweg", devices, f"chains devices {many}"),
                      ("iterations in turn", devices, f"chains devices_in_turn {many}"), unit="us", goal=Goal(0.2) if many >= 8 else None)
