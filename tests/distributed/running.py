"""Runs the functions of a test script whose names begin with `test_`."""
import contextlib
import ctypes
import os
import pathlib
import signal
import sys
import time
import traceback

PR_SET_CHILD_SUBREAPER = 36


def end_children():
    """Ends the processes that a failed test has left, and their children: they would keep our output open, and its reader waits for its
    end."""
    for _ in range(1000):
        left = []
        for task in pathlib.Path("/proc/self/task").iterdir():
            with contextlib.suppress(OSError):  # the thread may have ended meanwhile
                left += map(int, (task / "children").read_text().split())
        if not left:
            return
        for pid in left:
            with contextlib.suppress(OSError):  # another thread may have waited for it
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)  # its children become ours then


def run_tests(tests, only):
    """Runs tests and ends the process, with status 1 if any fails. tests: {name: function}, such as globals(). only: names to run; empty:
    all."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
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
            end_children()
    end_children()
    sys.exit(failed > 0)
