"""A user's programs under `mypy --strict`: right ones pass, and what is wrong is told where it stands."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

MYPY = shutil.which("mypy", path="/usr/bin")
SAMPLE = pathlib.Path(__file__).parent / "typing_sample.py"
pytestmark = pytest.mark.skipif(MYPY is None or "LD_PRELOAD" in os.environ, reason="needs mypy, and a Python without sanitizers")


@pytest.fixture(scope="module")
def check(tmp_path_factory):
    """Runs mypy on a program and gives the errors: (line, text)."""
    folder = tmp_path_factory.mktemp("mypy")

    def run(text):
        (folder / "program.py").write_text(text)
        command = [MYPY, "--strict", "--enable-incomplete-feature=Unpack", "--follow-imports=silent", "--show-column-numbers",
                   "--cache-dir", folder / "cache", "program.py"]
        import thalweg
        done = subprocess.run([str(c) for c in command], cwd=folder, capture_output=True, text=True, check=False,
                              env={**os.environ, "MYPYPATH": str(pathlib.Path(thalweg.__file__).parent.parent)})
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return [(int(line), message) for line, message in re.findall(r"^program\.py:(\d+):\d+: error: (.*)$", done.stdout, re.M)]

    return run


def test_a_program_that_uses_everything_passes(check):
    assert check(SAMPLE.read_text()) == []


def test_and_it_runs(tmp_path):
    done = subprocess.run([sys.executable, "-B", SAMPLE], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout == "ok\n"


WRONG = [
    ("tw.ops.conv2d(x, x, padding='SAME')", 'Missing named argument "strides"'),
    ("tw.ops.conv2d(x, x, strides=[1, 1, 1, 1], padding='SOME')", 'expected "Literal'),
    ("tw.ops.mat_mull(x, x)", 'maybe "mat_mul"'),
    ("tw.ops.mat_mul(x, x, transpose=True)", 'Unexpected keyword argument "transpose"'),
    ("tw.ops.softmax_cross_entropy_with_logits(x, x).los", 'has no attribute "los"'),
    ("tw.Session(g, thread=1)", 'Unexpected keyword argument "thread"'),
    ("tw.Session(g, threads='two')", '"threads"'),
    ("tw.Session(g).run(x, timeout='1')", 'Argument "timeout"'),
    ("tw.Session(g).run(x, cancel=True)", 'Argument "cancel"'),
    ("y: tw.Operation = x * 2", "Incompatible types in assignment"),
    ("tw.log.set(print, 'loud')", "Argument 2"),
    ("tw.Graf()", 'has no attribute "Graf"'),
]


def test_what_is_wrong_is_told_where_it_stands(check):
    head = "import thalweg as tw\ng = tw.Graph()\nx = g.placeholder('float32', [None])\n"
    found = dict(check(head + "\n".join(line for line, _ in WRONG) + "\n"))
    for at, (line, told) in enumerate(WRONG, 4):
        assert told in found.pop(at, "nothing"), line
    assert not found
