"""Row 41: when values come to a device: the most memory that it holds in a step that adds up 64 values of 256 KB which the host makes, each
copied when it is first needed, against all of them copied when the step begins, as they are where nothing settles when copies come."""
from bench import Goal

NUMBER = 41
TITLE = "memory for values that come to a device"


def run(bench):
    plugin = bench.build / "tests/devices/libfake.so"
    ours = bench.ours(2)
    bench.note("peak on the device", "MB", ours.ask(f"copies_peak needed {plugin}")[0], "all at once",
               ours.ask(f"copies_peak at_once {plugin}")[0], Goal(0.125))
