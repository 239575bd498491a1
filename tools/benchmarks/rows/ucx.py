"""Row 22: bytes over the transport `ucx`, by shared memory and by TCP, against UCX's own benchmark of active messages, whose two processes
poll; ours sleep when they have nothing to do."""
import pathlib
import shutil

from bench import Goal
from workers import Failed, Worker

NUMBER = 22
TITLE = "the transport over UCX"
SIZES = (("64 KB", 64 << 10, 200, None), ("1 MB", 1 << 20, 60, None), ("64 MB", 64 << 20, 9, Goal(1.111)))
PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "programs" / "perftest_worker.py"


def run(bench):
    try:
        ours = bench.program_worker("ucx", "ucx_worker", 2)
    except Failed as error:
        print(f"row {NUMBER}: left out: the plugin ucx is not built ({error})")
        return
    anchor = None
    if shutil.which("ucx_perftest"):
        anchor = bench.worker("ucx_perftest", lambda log: Worker(["/usr/bin/python3", "-B", PROGRAM, 2], 2, log))
    for way, text in (("shm", "shared memory"), ("tcp", "TCP")):
        for name, size, samples, goal in SIZES:
            what = f"{way} {size} {samples}"
            bench.compare(f"{name}, {text}", ("Thalweg", ours, f"call {what}"), ("ucx_perftest", anchor, f"perftest {what}"), unit="us",
                          goal=goal)
