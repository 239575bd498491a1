# Our plugins keep the rules of their levels; a level that a plugin has no part of passes without a check.
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from kit import BINARY_DIR, run

# file, level; a file that this build does not make is left out
PLUGINS = [
    ("lib/thalweg/plugins/libcpu.so", 5),
    ("lib/thalweg/plugins/libonednn.so", 5),
    ("lib/thalweg/plugins/libopencl.so", 5),
    ("lib/thalweg/plugins/libthalweg_cuda.so", 5),  # without a GPU: what it says of itself
    ("tests/devices/libfake.so", 5),
    ("tests/devices/libnull.so", 1),  # computes nothing
]
EXAMPLES = "examples/plugins"


def plugins():
    examples = os.path.join(BINARY_DIR, EXAMPLES)
    return PLUGINS + [(os.path.join(EXAMPLES, f), 5) for f in sorted(os.listdir(examples)) if f.endswith(".so")]


# What is wrong; None: nothing.
def check(path, level, options):
    file = os.path.join(BINARY_DIR, path)
    if not os.path.exists(file):
        return None
    report = run(file, "--level", str(level), *options)
    if report.status == 0 and report.json["passed"] > 0:
        return None
    return f"{path}: status {report.status}\n    " + "\n    ".join(report.told() + [report.errors])


def main():
    options = ["--full"] if "--full" in sys.argv else []
    wanted = [a for a in sys.argv[1:] if not a.startswith("--")]
    chosen = [(path, level) for path, level in plugins() if not wanted or any(w in path for w in wanted)]
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(2) as pool:  # place: for membership services
        wrong = [w for w in pool.map(lambda p: check(*p, [*options, "--at", place]), chosen) if w]
    print("\n".join(wrong) or f"{len(chosen)} plugins keep the rules")
    return 1 if wrong else 0


sys.exit(main())
