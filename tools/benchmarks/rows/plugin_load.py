"""Row 28, the part that every machine has: loading our own plugin, over opening its file."""
from bench import Goal

NUMBER = 28
TITLE = "loading the CPU plugin"


def run(bench):
    file = bench.build / "lib/thalweg/plugins/libcpu.so"
    bench.compare("CPU plugin", ("Thalweg", bench.ours(1), f"plugin_load {file}"), ("opening the file", bench.machine(), f"dlopen {file}"),
                  unit="us", goal=Goal(1e6, of="ours"))
