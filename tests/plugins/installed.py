"""Shared by the tests of templates and guides: installs Thalweg into a folder and moves it, runs commands in folders of their own, counts
results."""
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
    """Installs Thalweg. Skips the test if plugins would have to be built with a sanitizer."""
    if re.search(r"^THALWEG_(SANITIZE|FUZZ|COVERAGE):[A-Z]+=(.*[a-z].*|ON)$", (BUILD / "CMakeCache.txt").read_text(), re.M):
        print("skipped  an instrumented library can only be used by instrumented programs")
        sys.exit(77)
    atexit.register(shutil.rmtree, WORK, ignore_errors=True)
    done = subprocess.run(["cmake", "--install", BUILD, "--prefix", WORK / "first"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    (WORK / "first").rename(PREFIX)


def environment(**more):
    """Returns an environment that leads to no file of the build, and in which no program writes outside WORK."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("THALWEG_") and k != "LD_LIBRARY_PATH"}
    return {**kept, "PATH": f"{PREFIX / 'bin'}:{kept['PATH']}", "XDG_CACHE_HOME": str(WORK / "cache"), "HOME": str(WORK), **more}


def run(command, folder, **more):
    """Runs a shell command. Returns (exit status, output and errors together)."""
    done = subprocess.run(["bash", "-euc", command], cwd=folder, capture_output=True, text=True, env=environment(**more), timeout=120)
    return done.returncode, done.stdout + done.stderr


def finish():
    sys.exit(int(failures > 0))
