"""What the tests of templates and guides share: Thalweg installed into a folder and moved from there, commands run in folders of their
own, results counted."""
import atexit
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE, BUILD = (pathlib.Path(os.environ[name]) for name in ("THALWEG_SOURCE_DIR", "THALWEG_BINARY_DIR"))
WORK = pathlib.Path(tempfile.mkdtemp(prefix="thalweg-plugins."))
PREFIX = WORK / "moved"
failures = 0


def check(condition, what, why=""):
    global failures
    print(("passed  " if condition else "FAILED  ") + what + ("" if condition or not why else f"\n{why}"))
    failures += not condition
    return condition


def install():
    """Skips the test where plugins would have to be built with a sanitizer."""
    if re.search(r"^THALWEG_(SANITIZE|FUZZ|COVERAGE):[A-Z]+=(.*[a-z].*|ON)$", (BUILD / "CMakeCache.txt").read_text(), re.M):
        print("skipped  an instrumented library can only be used by instrumented programs")
        sys.exit(77)
    atexit.register(shutil.rmtree, WORK, ignore_errors=True)
    done = subprocess.run(["cmake", "--install", BUILD, "--prefix", WORK / "first"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    (WORK / "first").rename(PREFIX)


def environment(**more):
    """Nothing of the build is found by way of the environment, and nothing is written outside of WORK."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("THALWEG_") and k != "LD_LIBRARY_PATH"}
    return {**kept, "PATH": f"{PREFIX / 'bin'}:{kept['PATH']}", "XDG_CACHE_HOME": str(WORK / "cache"), "HOME": str(WORK), **more}


def run(command, folder, **more):
    """A line or a script of the shell; (exit status, output and errors together)."""
    done = subprocess.run(["bash", "-euc", command], cwd=folder, capture_output=True, text=True, env=environment(**more), timeout=120)
    return done.returncode, done.stdout + done.stderr


def finish():
    sys.exit(int(failures > 0))
