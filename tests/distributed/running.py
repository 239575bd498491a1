"""Runs the functions of a test script whose names begin with `test_`."""
import sys
import time
import traceback


def run_tests(tests, only):
    """tests: names and functions, as of globals(); only: names; empty: all. Ends the process, with 1 if any fails."""
    failed = 0
    for name, f in list(tests.items()):
        if not name.startswith("test_") or (only and name not in only):
            continue
        began = time.monotonic()
        try:
            f()
            print(f"{name}: good ({time.monotonic() - began:.1f} s)", flush=True)
        except Exception:
            failed += 1
            print(f"{name}: FAILED", flush=True)
            traceback.print_exc()
    sys.exit(failed > 0)
