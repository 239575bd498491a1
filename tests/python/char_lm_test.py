"""The example char_lm: a small one learns, goes on after a stop as if there had been none, writes, and agrees with its twin in C."""
import os
import pathlib
import re
import subprocess
import sys

import event_files as ef
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "bindings/python/examples/char_lm.py"
TWIN = pathlib.Path(os.environ.get("THALWEG_BINARY_DIR", ROOT / "build/release")) / "bin/char_lm"
DATA = pathlib.Path(os.environ.get("THALWEG_DATA_PATH", "")) / "kjv.txt"
FILES = ["curve.csv", "text.txt", "perplexity.svg"]

pytestmark = pytest.mark.skipif(not DATA.is_file(), reason=f"{DATA} is not there; run tools/setup")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A part of the text, so that a run takes a second."""
    path = tmp_path_factory.mktemp("data") / "part.txt"
    path.write_bytes(DATA.read_bytes()[:400_000])
    return path


def run(data, out, steps, program=(sys.executable, SCRIPT), *options):
    command = [*map(str, program), "--data", data, "--out", out, "--steps", str(steps), "--cells", "16", "--length", "60", "--quiet"]
    done = subprocess.run([*command, *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def files(folder):
    return [(folder / name).read_bytes() for name in FILES]


def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(data, tmp_path):
    said = run(data, tmp_path / "whole", 75)
    assert re.fullmatch(r"char_lm: held-out perplexity \d+\.\d\d after 75 steps\n", said)
    run(data, tmp_path / "parts", 30)  # in the middle between two looks
    run(data, tmp_path / "parts", 50)
    assert run(data, tmp_path / "parts", 75, (sys.executable, SCRIPT), "--logdir", tmp_path / "log") == said
    assert files(tmp_path / "parts") == files(tmp_path / "whole")

    rows = [line.split(",") for line in (tmp_path / "whole/curve.csv").read_text().splitlines()]
    perplexities = [float(row[2]) for row in rows[1:]]
    assert ef.scalars(tmp_path / "log")["perplexity/held out"] == [(75, float(np.float32(perplexities[-1])))]
    assert [row[0] for row in rows] == ["step", "25", "50", "75"] and perplexities == sorted(perplexities, reverse=True)
    assert perplexities[-1] < 25 and len((tmp_path / "whole/text.txt").read_text()) == 60
    svg = (tmp_path / "whole/perplexity.svg").read_text()
    assert svg.startswith("<svg") and svg.rstrip().endswith("</svg>") and "held out" in svg


def test_a_text_that_is_not_there_or_too_short_is_told_in_a_line(tmp_path):
    short = tmp_path / "short.txt"
    short.write_text("In the beginning")
    for path, told in {tmp_path / "none.txt": "No such file or directory", short: "16 characters are too few"}.items():
        done = subprocess.run([sys.executable, SCRIPT, "--data", path, "--out", tmp_path / "out"], capture_output=True, text=True)
        assert done.returncode == 1 and told in done.stderr and done.stderr.count("\n") == 1 and not (tmp_path / "out").exists(), done
    done = subprocess.run([sys.executable, SCRIPT, "--data", short, "--steps", "3"], capture_output=True, text=True)
    assert done.returncode == 2 and "--steps takes a number of at least 25, not 3" in done.stderr, done


def test_threads_make_no_difference_and_seeds_do(data, tmp_path):
    for name, options in (("one", ["--threads", "1"]), ("two", ["--threads", "2"]), ("other", ["--seed", "2"])):
        run(data, tmp_path / name, 25, (sys.executable, SCRIPT), *options)
    assert files(tmp_path / "one") == files(tmp_path / "two") != files(tmp_path / "other")


@pytest.mark.skipif(not TWIN.is_file(), reason=f"{TWIN} is not built")
def test_the_twin_in_c_goes_on_from_its_checkpoints_with_the_same_curve(data, tmp_path):
    run(data, tmp_path / "python", 75)
    run(data, tmp_path / "c", 75, (TWIN,))
    run(data, tmp_path / "both", 25)
    run(data, tmp_path / "both", 50, (TWIN,))
    run(data, tmp_path / "both", 75)
    curves = [(tmp_path / name / "curve.csv").read_bytes() for name in ("python", "c", "both")]
    texts = [(tmp_path / name / "text.txt").read_bytes() for name in ("python", "c", "both")]
    assert curves[0] == curves[1] == curves[2] and texts[0] == texts[1] == texts[2]
