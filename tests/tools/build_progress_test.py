"""tools/cmake/build prints how many of all steps are done, on a terminal and elsewhere, and the log of a failure: build_progress_test.py"""
import os
import pathlib
import pty
import shutil
import subprocess
import tempfile

TOOLS = pathlib.Path(os.environ["THALWEG_SOURCE_DIR"]) / "tools"
# Replaces cmake: the build writes two steps, waits until the test has seen them, and ends with the status that the test sets.
CMAKE = """#!/bin/sh
[ "$1" = --build ] || exit 0
echo "[1/3] Building a.o"
printf "[2/3] Building b.o\\n"
read ending <"$GO"
[ "$ending" = well ] && echo "[3/3] Linking c" && exit 0
echo "b.cc:1: error: no such thing"
exit 3
"""


def tree(name):
    folder = pathlib.Path(name)
    (folder / "tools/cmake").mkdir(parents=True)
    (folder / "bin").mkdir()
    shutil.copy(TOOLS / "cmake/build", folder / "tools/cmake/build")
    (folder / "bin/cmake").write_text(CMAKE)
    (folder / "bin/cmake").chmod(0o755)
    os.mkfifo(folder / "go")
    return folder


def environment(folder, **more):
    return {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "GO": str(folder / "go"), **more}


def on_a_terminal(folder):
    """Checks the output to a terminal. The build goes on once the script has reported two steps of three."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([folder / "tools/cmake/build", "release"], env=environment(folder), stdin=subprocess.DEVNULL, stdout=theirs)
    os.close(theirs)
    seen, gone_on = b"", False
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        seen += part
        if b"build release: 2 of 3 steps, " in seen and not gone_on:
            gone_on = True
            (folder / "go").write_text("well\n")
    os.close(ours)
    assert process.wait(60) == 0, seen
    assert gone_on and b"build release: done in " in seen, seen


def elsewhere(folder, ending):
    process = subprocess.Popen([folder / "tools/cmake/build", "release"], env=environment(folder, THALWEG_PROGRESS_SECONDS="0"),
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith("build release: 2 of 3 steps, ") and lines.count(line) == 1 and ending:
            (folder / "go").write_text(ending + "\n")
            ending = None
    return process.wait(60), lines, process.stderr.read()


with tempfile.TemporaryDirectory() as name:
    on_a_terminal(tree(name))
with tempfile.TemporaryDirectory() as name:
    status, lines, errors = elsewhere(tree(name), "well")
    assert status == 0 and lines[-1].startswith("build release: done in ") and errors == "", (lines, errors)
with tempfile.TemporaryDirectory() as name:
    status, lines, errors = elsewhere(tree(name), "badly")
    assert status == 3 and "b.cc:1: error: no such thing" in errors and "failed with status 3" in errors, (lines, errors)
