"""The examples text_classifier, image_classifier and keywords: small sizes learn, go on after a stop as if there had been none, and tell
what is wrong with their data. The sizes of their manuals reach their accuracy in the nightly tests."""
import contextlib
import importlib.util
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import wave
from unittest import mock

import event_files as ef
import numpy as np
import pytest

import thalweg as tw

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "bindings/python/examples"
DATA = pathlib.Path(os.environ.get("THALWEG_DATA_PATH", ""))
NIGHTLY = "THALWEG_TEST_NIGHTLY" in os.environ

needs_data = pytest.mark.skipif(not (DATA / "kjv.txt").is_file(), reason=f"{DATA} has no data sets; run tools/setup")
nightly = pytest.mark.skipif(not NIGHTLY, reason="a nightly test")


def run(name, *options):
    return subprocess.run([sys.executable, EXAMPLES / f"{name}.py", *map(str, options)], capture_output=True, text=True, check=True).stdout


def run_here(name, *options, fails=False):
    """Runs it in this process, which takes less time than another one."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    program, out, wrong = importlib.util.module_from_spec(spec), io.StringIO(), io.StringIO()
    spec.loader.exec_module(program)
    status = 0
    with mock.patch.object(sys, "argv", [name, *map(str, options)]), contextlib.redirect_stdout(out), contextlib.redirect_stderr(wrong):
        try:
            program.main()
        except SystemExit as e:
            status = e.code
        finally:
            tw.random.seed(None)
    assert status == int(fails), wrong.getvalue()
    return wrong.getvalue() if fails else out.getvalue()


def accuracy(name, *options):
    return float(re.search(r"(\d+\.\d\d) % ", run(name, *options))[1])


def state(folder):
    """All that the newest checkpoint has, with the position in the data."""
    with tw.Checkpoint(tw.latest_checkpoint(folder / "checkpoints")) as c:
        return {name: c.read(name).numpy().tobytes() if c.read(name).dtype.name != "string" else c.read(name).numpy().tolist() for name in c}


def goes_on(name, data, tmp_path, steps, stops, *options):
    """Stops at odd places, between checkpoints of the whole run and in the middle of an epoch, goes on in another process, and compares all
    bits at the end with a run in this process that did not stop."""
    told = run_here(name, "--data", data, "--out", tmp_path / "whole", "--steps", steps, "--quiet", "--every", 7, *options)
    for at in stops if NIGHTLY else stops[-1:]:
        run(name, "--data", data, "--out", tmp_path / "parts", "--steps", at, "--quiet", "--every", 5, *options)
    log = tmp_path / "log"
    assert run(name, "--data", data, "--out", tmp_path / "parts", "--steps", steps, "--quiet", "--every", 5, "--logdir", log, *options) == told
    assert state(tmp_path / "parts") == state(tmp_path / "whole")
    assert any("position" in key for key in state(tmp_path / "whole"))
    scalars = ef.scalars(log)
    assert scalars["accuracy"][0][0] == steps and 0 <= scalars["accuracy"][0][1] <= 1 and all(np.isfinite(v) for _, v in scalars["loss"])
    return told


# ---- Texts ----

@pytest.fixture(scope="module")
def verses(tmp_path_factory):
    """Tables of a hundred texts, of which some have quotes, commas and ends of lines."""
    folder = tmp_path_factory.mktemp("verses")
    rng = np.random.default_rng(1)
    words = {"law": "altar, offering \"goat\" tabernacle cubits".split(), "letters": "grace faith,\nbrethren gospel apostle".split()}
    for name, count in (("train", 150), ("test", 40)):
        lines = [f'"{" ".join(rng.choice(words[label], 6)).replace(chr(34), chr(34) * 2)}",{label}\n' for label in rng.choice(sorted(words), count)]
        (folder / f"{name}.csv").write_text("text,label\n" + "".join(lines))
    return folder


def test_the_text_classifier_goes_on_bit_for_bit(verses, tmp_path):
    told = goes_on("text_classifier", verses, tmp_path, 40, [3, 22])
    assert re.fullmatch(r"text_classifier: test accuracy 100\.00 % after 40 steps\n", told)


def test_the_text_classifier_tells_what_is_wrong(verses, tmp_path):
    bad = tmp_path / "bad"
    shutil.copytree(verses, bad)
    with open(bad / "train.csv", "a") as f:
        f.write("a,b,c\n")
    line = (bad / "train.csv").read_text().count("\n")
    assert f"'{bad / 'train.csv'}' line {line}: the record has 3 fields; the header has 2" in run_here("text_classifier", "--data", bad, fails=True)
    (bad / "train.csv").write_text("text,label\na,b\n")
    assert "1 labels are too few" in run_here("text_classifier", "--data", bad, fails=True)
    assert "train.csv" in run_here("text_classifier", "--data", tmp_path / "none", fails=True)


@needs_data
@nightly
def test_the_text_classifier_tells_the_testaments_apart(tmp_path):
    run("text_classifier", "--make", DATA / "kjv.txt", "--data", tmp_path / "verses")
    assert accuracy("text_classifier", "--data", tmp_path / "verses", "--out", tmp_path / "out", "--quiet") >= TESTAMENTS


# ---- Pictures ----

@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Files of two classes: a bright upper half, a bright left half."""
    folder = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(2)
    for label in ("left", "upper"):
        (folder / label).mkdir()
        for k in range(80):
            picture = rng.integers(0, 60, (20, 24, 1)).astype(np.uint8)
            picture[(slice(0, 10), slice(None)) if label == "upper" else (slice(None), slice(0, 12))] += 150
            (folder / label / f"{k:03}.jpg").write_bytes(tw.ops.encode_jpeg(picture).numpy().item())
    return folder


def test_the_image_classifier_goes_on_in_the_middle_of_an_epoch_bit_for_bit(pictures, tmp_path):
    told = goes_on("image_classifier", pictures, tmp_path, 14, [3, 9])  # an epoch has 2.56 steps
    assert float(re.search(r"accuracy (\S+) %", told)[1]) > 80


def test_the_image_classifier_tells_what_is_wrong(pictures, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "0 classes with 0 files to train on are too few" in run_here("image_classifier", "--data", tmp_path / "empty", fails=True)
    bad = tmp_path / "bad"
    shutil.copytree(pictures, bad)
    for path in bad.glob("*/*.jpg"):
        path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(tw.InvalidArgumentError, match="DecodeJpeg"):
        run_here("image_classifier", "--data", bad, "--out", tmp_path / "out", "--steps", 1)


@needs_data
@nightly
def test_the_image_classifier_reads_digits(tmp_path):
    run("image_classifier", "--make", DATA / "digits.csv", "--data", tmp_path / "digits")
    assert accuracy("image_classifier", "--data", tmp_path / "digits", "--out", tmp_path / "out", "--quiet") >= DIGITS


# ---- Words ----

@pytest.fixture(scope="module")
def tones(tmp_path_factory):
    """Sounds that stand for two words: a rising and a falling tone."""
    folder, rng = tmp_path_factory.mktemp("tones"), np.random.default_rng(3)
    for side, count in (("train", 40), ("test", 16)):
        (folder / side).mkdir()
        for word, (first, last) in (("up", (300, 2500)), ("no", (2500, 300))):
            for k in range(count):
                n = int(22050 * rng.uniform(0.2, 0.4))
                samples = 0.4 * np.sin(2 * np.pi * np.cumsum(np.linspace(first, last, n) * rng.uniform(0.9, 1.1)) / 22050)
                with wave.open(str(folder / side / f"{word}-{k}.wav"), "wb") as f:
                    f.setnchannels(1)
                    f.setsampwidth(2)
                    f.setframerate(22050)
                    f.writeframes((samples * 32767).astype("<i2").tobytes())
    return folder


def test_the_recogniser_goes_on_bit_for_bit(tones, tmp_path):
    goes_on("keywords", tones, tmp_path, 6, [1, 4])


def test_the_recogniser_tells_what_is_wrong(tones, tmp_path):
    assert "train: 0 files are too few" in run_here("keywords", "--data", tmp_path, fails=True)
    bad = tmp_path / "bad"
    shutil.copytree(tones, bad)
    (bad / "train" / "maybe-1.wav").write_bytes(b"")
    assert "maybe is no word of the list" in run_here("keywords", "--data", bad, fails=True)


@nightly
@pytest.mark.skipif(not shutil.which("espeak-ng"), reason="espeak-ng is not installed; run tools/setup --peers")
def test_the_recogniser_knows_the_words_of_other_voices(tmp_path):
    run("keywords", "--make", "--data", tmp_path / "spoken")
    assert accuracy("keywords", "--data", tmp_path / "spoken", "--out", tmp_path / "out", "--quiet") >= 95


TESTAMENTS, DIGITS = 90, 97  # percent; the programs reach some more
