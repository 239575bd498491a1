"""Row 41: the time at which values are copied to a device: the peak memory of a device in a step that adds 64 values of 256 KB which the
host makes. Each value is copied when it is first needed, against all values copied when the step begins, which happens if nothing schedules
copies."""
from bench import Goal

NUMBER = 41
TITLE = "memory for values that come to a device"


def run(bench):
    plugin = bench.build / "tests/devices/libfake.so"
    ours = bench.ours(2)
    bench.note("peak on the device", "MB", ours.ask(f"copies_peak needed {plugin}")[0], "all at once",
               ours.ask(f"copies_peak at_once {plugin}")[0], Goal(0.125))
