"""The peak float performance of a GPU, from the properties that its driver reports."""
import ctypes
import os

# Fused multiply-adds that a multiprocessor starts per cycle, by compute capability; newer ones have as many as the last entry.
PER_CYCLE = {(7, 0): 64, (7, 5): 64, (8, 0): 64, (8, 6): 128}
MULTIPROCESSORS, CLOCK_KHZ, MAJOR, MINOR = 16, 13, 75, 76  # values of CUdevice_attribute


def driver_file():
    """Returns the driver library that the plugin opens."""
    options = dict(o.split("=", 1) for o in os.environ.get("THALWEG_OPTIONS", "").split(";") if "=" in o)
    return options.get("plugin.org.thalweg.cuda.library", "libcuda.so.1")


def float_peak():
    """Returns {"flop_per_second", "multiprocessors", "clock_hz"} of the first GPU, or None if its driver does not report them."""
    try:
        driver = ctypes.CDLL(driver_file())
    except OSError:
        return None
    device = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), 0):
        return None

    def attribute(number):
        value = ctypes.c_int()
        return 0 if driver.cuDeviceGetAttribute(ctypes.byref(value), number, device) else value.value

    capability = attribute(MAJOR), attribute(MINOR)
    per_cycle = next((n for c, n in reversed(PER_CYCLE.items()) if c <= capability), 0)
    count, clock = attribute(MULTIPROCESSORS), attribute(CLOCK_KHZ) * 1000
    if not per_cycle * count * clock:
        return None
    return {"flop_per_second": 2.0 * per_cycle * count * clock, "multiprocessors": count, "clock_hz": clock}
