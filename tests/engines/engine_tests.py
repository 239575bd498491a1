"""Shared by the tests of engines: the command line that starts a program under an engine, what it printed, and processes that stay.

Every test gets the same program, distributed/examples/digits.py, and compares the losses bit for bit with those of a local launch."""
import base64
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "distributed"))

SOURCE = pathlib.Path(os.environ["THALWEG_SOURCE_DIR"])
DATA = pathlib.Path(os.environ["THALWEG_DATA_PATH"]) / "digits.csv"
EXAMPLE = SOURCE / "distributed/examples/digits.py"
MARK = "THALWEG_ENGINES_TEST"  # in the environment of every process that a test starts


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def digits(thalweg, folder, *, on="local", options=(), steps=60, save=20, mode="sync", workers=2, ps=1):
    """Returns the command that trains digits in `folder`."""
    return [thalweg, "launch", "--on", on, "-n", str(workers), "--ps", str(ps), "--threads", "1", "--allow", str(folder),
            *map(str, options), "--", sys.executable, "-B", str(EXAMPLE), "--data", str(DATA), "--folder", str(folder), "--mode", mode, "--steps",
            str(steps), "--save-every", str(save), "--wait", "200"]


def marked(environment=None):
    return {**(os.environ if environment is None else environment), MARK: str(os.getpid())}


def ran(command, *, environment=None, timeout=300, status=0, cwd=None):
    done = subprocess.run([str(word) for word in command], env=marked(environment), capture_output=True, text=True, timeout=timeout, cwd=cwd)
    assert done.returncode == status, f"exit status {done.returncode} instead of {status}: {done.stdout}{done.stderr}"
    return done


def losses(folder, worker, mode="sync"):
    """Returns {step: loss}, each loss as it was written, with every bit."""
    lines = (pathlib.Path(folder) / f"{mode}-{worker}.csv").read_text().splitlines()[1:]
    return {int(step): loss for step, _, loss in (line.split(",") for line in lines)}


def same_losses(expected, found, steps, whole=True):
    """Compares two folders. whole: no process was started again, so both have every step."""
    for worker in range(2):
        one, other = losses(expected, worker), losses(found, worker)
        assert len(one) == steps and other and (not whole or len(other) == steps), (len(one), len(other))
        assert all(other[step] == one[step] for step in other), "the losses differ"


def living(mark=None):
    """Returns {pid: command line} of the living processes that have this test's mark, without this one."""
    mark, found = f"{MARK}={mark or os.getpid()}".encode(), {}
    for folder in pathlib.Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and int(folder.name) != os.getpid() and mark in (folder / "environ").read_bytes().split(b"\0"):
                if (folder / "stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX":
                    found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            pass
    return found


def none_stays(seconds=20, but=()):
    until = time.monotonic() + seconds
    while (left := {pid: words for pid, words in living().items() if pid not in but}) and time.monotonic() < until:
        time.sleep(0.1)
    assert not left, left


def engines_python():
    """Returns the Python of tools/setup --engines; "" if it is not there."""
    folder = os.environ.get("THALWEG_ENGINES_PATH") or subprocess.run([str(SOURCE / "tools/setup"), "--print-engines"], capture_output=True,
                                                                       text=True).stdout.strip()
    python = pathlib.Path(folder) / "bin/python"
    return str(python) if folder and python.exists() else ""


def decoded(text):
    return base64.b64decode(text, validate=True)
