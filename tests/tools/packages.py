"""Shared by the tests of packages: makes packages of the build with tools/release, unpacks them, runs commands away from the build."""
import atexit
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

SOURCE, BUILD = (pathlib.Path(os.environ[name]) for name in ("THALWEG_SOURCE_DIR", "THALWEG_BINARY_DIR"))
DATA = pathlib.Path(os.environ.get("THALWEG_DATA_PATH", ""))
EPOCH = "1700000000"
WORK = pathlib.Path(tempfile.mkdtemp(prefix="thalweg-packages."))
atexit.register(shutil.rmtree, WORK, ignore_errors=True)
failures = 0


def check(condition, what, why=""):
    global failures
    print(("passed  " if condition else "FAILED  ") + what + ("" if condition or not why else f"\n{why}"), flush=True)
    failures += not condition
    return condition


def skip(why):
    print(f"skipped  {why}")
    sys.exit(77)


def finish():
    sys.exit(int(failures > 0))


def clean():
    """Returns an environment that leads to no file of the build."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("THALWEG_", "PYTHON", "LD_"))}
    return {**kept, "XDG_CACHE_HOME": str(WORK / "cache"), "HOME": str(WORK), "SOURCE_DATE_EPOCH": EPOCH}


def run(*command, folder=WORK, timeout=600, **more):
    """Runs a command. Returns (exit status, output and errors together)."""
    done = subprocess.run([str(c) for c in command], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, env={**clean(), **more}, timeout=timeout, check=False)
    return done.returncode, done.stdout


def must(*command, **options):
    """Runs a command and returns its output. Ends the test if the command fails."""
    status, said = run(*command, **options)
    if status:
        sys.exit(f"FAILED  {' '.join(str(c) for c in command)}: status {status}\n{said}")
    return said


def refuse_instrumented():
    if re.search(r"^THALWEG_(SANITIZE|FUZZ|COVERAGE):[A-Z]+=(.*[a-z].*|ON)$", (BUILD / "CMakeCache.txt").read_text(), re.M):
        skip("an instrumented library is not packaged")


def release(out, *arguments, build=BUILD, level=1):
    """Runs tools/release on a build or an installed tree, and returns {file name: path}."""
    where = ["--tree", build] if not (build / "CMakeCache.txt").exists() else ["--build", build]
    must(SOURCE / "tools/release", *where, "--out", out, "--level", level, *arguments)
    return {file.name: file for file in out.iterdir()}


def one(files, pattern):
    """Returns the file whose name matches."""
    found = [path for name, path in files.items() if re.fullmatch(pattern, name)]
    if len(found) != 1:
        sys.exit(f"FAILED  {len(found)} files match {pattern}: {sorted(files)}")
    return found[0]


def unpack(archive, folder):
    with tarfile.open(archive) as tar:
        tar.extractall(folder)
    return folder
