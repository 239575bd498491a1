"""Row 42: simultaneous steps of several workers, each a process, with sixteen parameter servers, also processes: four bytes of each
server, a model of 100 MB and of 1 GB, and 32 rows of a table of 1 GB and of up to 8 GB (E02 to E05 of the paper, with as many workers as
two processors carry). They are compared with the same steps of one worker."""
import peers
from bench import Goal
from rows.embedding import free_gibibytes
from workers import Worker

PYTHON = "/usr/bin/python3"  # the binding is built for this one
NUMBER = 42
TITLE = "workers at sixteen parameter servers"
MODEL = 100 * 1000 * 1000


def run(bench):
    if not (bench.build / "python").is_dir():
        print(f"row {NUMBER}: left out: '{bench.build}' has no Python binding")
        return
    crowd = bench.worker("crowd", lambda log: Worker(
        [PYTHON, "-B", peers.PROGRAMS / "crowd.py", 1], 2, log,
        {"PYTHONPATH": f"{bench.build}/python", "THALWEG_LIBRARY": f"{bench.build}/lib/libthalweg.so"}))
    free = free_gibibytes()
    large = max(2, min(8, free // 3))
    for what, command, most in (("four bytes of each", f"values {16 * 4}", 16), ("100 MB", f"values {MODEL}", 8),
                                ("1 GB", f"values {10 * MODEL}", min(4, free // 4)), ("32 rows of 1 GiB", f"rows {1 << 30}", 16)):
        for workers in (2, 4, 8, 16):
            if workers <= most:
                bench.compare(f"{what}, {workers} workers", ("Thalweg", crowd, f"step {workers} {command}"),
                              ("one worker", crowd, f"step 1 {command}"), unit="ms" if MODEL // 10 < int(command.split()[1]) < 1 << 30 else "us")
        if not command.startswith("rows"):
            crowd.ask("stop")
    bench.compare(f"32 rows of {large} GiB, 1 worker", ("Thalweg", crowd, f"step 1 rows {large << 30}"),
                  ("of 1 GiB", crowd, f"step 1 rows {1 << 30}"), unit="us", goal=Goal(1.5, floor=1.5))
    crowd.ask("stop")
