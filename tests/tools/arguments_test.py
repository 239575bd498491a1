"""Scripts of tools/ reject unknown arguments before they do anything: arguments_test.py"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

TOOLS = pathlib.Path(os.environ["THALWEG_SOURCE_DIR"]) / "tools"


def run(folder, script, *arguments):
    """Runs a script in a tree that has only a tools/setup, which ends with status 9."""
    shutil.copy(TOOLS / script, folder / "tools" / script)
    return subprocess.run([folder / "tools" / script, *arguments], capture_output=True, text=True, timeout=60)


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / "tools").mkdir()
    (folder / "tools/setup").write_text("#!/bin/sh\nexit 9\n")
    (folder / "tools/setup").chmod(0o755)
    for script in ("test", "quickstart"):
        done = run(folder, script, "--nope")
        assert done.returncode == 2 and done.stderr == f"{script}: unknown argument '--nope'; see tools/{script} --help\n", done
    for wrong in (["--presett", "asan"], ["-R", "x", "--out-put"], ["--preset", "fast"]):
        assert run(folder, "test", *wrong).returncode == 2, wrong
    for right in ([], ["-R", "x"], ["-LE", "slow", "-V"], ["-j8"], ["--jobs", "2", "--repeat", "until-fail:3"], ["--preset=asan", "-N"]):
        done = run(folder, "test", *right)
        assert done.returncode == 9 and done.stderr == "", (right, done)
for script in ("setup", "bench", "docs", "coverage", "release"):
    done = subprocess.run([TOOLS / script, "--nope"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "--nope" in done.stderr, done
sys.exit(0)
