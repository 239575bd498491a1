# Our plugins keep the rules of their levels; a level that a plugin has no part of passes without a check.
import os
import sys

from kit import BINARY_DIR, run

# file, level; a file that this build does not make is left out
PLUGINS = [
    ("lib/thalweg/plugins/libcpu.so", 5),
    ("lib/thalweg/plugins/libopencl.so", 5),
    ("examples/plugins/libtwice.so", 5),
    ("examples/plugins/libscale.so", 5),
    ("tests/devices/libnull.so", 1),
    ("tests/devices/libfake.so", 5),
]


def check(path, level, options):
    file = os.path.join(BINARY_DIR, path)
    if not os.path.exists(file):
        print(f"{path}: not part of this build")
        return True
    report = run(file, "--level", str(level), *options)
    print(f"{path}: {report.json.get('passed')} passed, {report.json.get('skipped')} skipped, {report.json.get('failed')} failed")
    if report.status == 0:
        return True
    print("    " + "\n    ".join(report.told()) + report.errors)
    return False


def main():
    options = ["--full"] if "--full" in sys.argv else []
    wanted = [a for a in sys.argv[1:] if not a.startswith("--")]
    results = [check(path, level, options) for path, level in PLUGINS if not wanted or any(w in path for w in wanted)]
    return 0 if all(results) else 1


sys.exit(main())
