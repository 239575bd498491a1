"""The examples keep their promises: hello prints its line; digits learns, is deterministic, and writes files that `thalweg run` can use;
char_lm learns, and after a stop it continues as if it had not stopped."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

programs = pathlib.Path(sys.argv[1])
data = pathlib.Path(os.environ["THALWEG_DATA_PATH"]) / "digits.csv"
sanitized = "san" in os.environ["THALWEG_BINARY_DIR"].rsplit("/", 1)[-1]
failures = 0


def check(condition, what):
    global failures
    print(("passed  " if condition else "FAILED  ") + what)
    failures += not condition


def run(*command, status=0):
    # A program that exits with an error does not free its memory.
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"} if status else None
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment)
    if done.returncode != status:
        print(done.stdout + done.stderr)
        check(False, f"exit status {status} of {' '.join(map(str, command))}, not {done.returncode}")
    return done


def train(out, *options):
    begin = time.monotonic()
    done = run(programs / "digits", "--data", data, "--out", out, *options)
    return done.stdout, time.monotonic() - begin


source = pathlib.Path(os.environ["THALWEG_SOURCE_DIR"])
output = run(programs / "hello").stdout
check(output == "y = 10\n", "hello prints its result")
os.environ["THALWEG_OPTIONS"] = " threads=1; colour=red"
check("colour" in run(programs / "hello", status=1).stderr, "THALWEG_OPTIONS reaches the default runtime")
os.environ["THALWEG_OPTIONS"] = " threads=1 ; threads=2 ; "
check(run(programs / "hello").stdout == output, "one thread is enough for hello")
del os.environ["THALWEG_OPTIONS"]
hello = (source / "c_api/examples/hello.c").read_text()
check(len(hello.splitlines()) <= 25, "hello.c has at most 25 lines")
readme = source / "README.md"
if readme.exists():
    check(f"```c\n{hello}```" in readme.read_text() and output.strip() in readme.read_text(), "README.md shows hello.c and what it prints")

kjv = data.with_name("kjv.txt")


def write(folder, name, steps, *options):
    """Trains a small char_lm for that many steps. Returns the files that it wrote."""
    done = run(programs / "char_lm", "--data", folder / "part.txt", "--out", folder / name, "--steps", steps, "--cells", 16, "--length", 60,
               "--quiet", *options)
    return done.stdout, [(folder / name / file).read_bytes() for file in ("curve.csv", "text.txt", "perplexity.svg")]


if kjv.exists():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "part.txt").write_bytes(kjv.read_bytes()[:400_000])
        whole = write(folder, "whole", 75, "--threads", 1)
        for steps in (30, 50):
            write(folder, "parts", steps, "--threads", 2)
        check(write(folder, "parts", 75) == whole, "char_lm stopped twice leaves the same curve, text and plot, on one thread and two")
        curve = [float(line.split(",")[2]) for line in whole[1][0].decode().splitlines()[1:]]
        check(len(curve) == 3 and curve == sorted(curve, reverse=True) and curve[-1] < 25, f"its perplexity falls: {curve}")
        check(re.fullmatch(r"char_lm: held-out perplexity \d+\.\d\d after 75 steps\n", whole[0]), whole[0].strip())
        check(len(whole[1][1]) == 60, "it writes as many characters as it is told")
        check(whole[1][2].startswith(b"<svg") and whole[1][2].rstrip().endswith(b"</svg>"), "perplexity.svg is a picture")
        check("cannot read" in run(programs / "char_lm", "--data", folder / "none", "--out", folder / "d", status=1).stderr,
              "a text that is not there is an error that says what to do")
        (folder / "short.txt").write_text("too short")
        check("too few" in run(programs / "char_lm", "--data", folder / "short.txt", "--out", folder / "d", status=1).stderr,
              "a text that is too short is named")
        check("--cells" in run(programs / "char_lm", "--cells", "none", status=2).stderr, "a wrong argument of char_lm is named")
else:
    print(f"skipped  char_lm: {kjv} is not there; run tools/setup")

if not data.exists():
    print(f"skipped  digits: {data} is not there; run tools/setup")
    sys.exit(bool(failures) or 77)

with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    if not sanitized:
        text, seconds = train(folder / "full")
        lines = text.splitlines()
        accuracy = re.fullmatch(r"digits: test accuracy (\d+\.\d\d) %", lines[-1])
        check(accuracy and float(accuracy[1]) >= 97.5, f"{lines[-1]} (at least 97.5 %)")
        check((folder / "full/accuracy.txt").read_text() == f"{accuracy[1]}\n", "accuracy.txt says the same")
        trained = float(re.search(r"trained in ([\d.]+) s", text)[1])
        check(trained < 10, f"trained in {trained} s (less than 10; {seconds:.1f} s in all)")
        check(sum("examples/s" in line for line in lines) == 10, "ten plain lines of progress away from a terminal")

    a, _ = train(folder / "a", "--epochs", 2, "--seed", 7, "--quiet", "--threads", 1)
    b, _ = train(folder / "b", "--epochs", 2, "--seed", 7, "--quiet", "--threads", 2)
    c, _ = train(folder / "c", "--epochs", 2, "--seed", 8, "--quiet")
    check(re.fullmatch(r"digits: test accuracy \d+\.\d\d %\n", a), "quiet leaves only the last line")
    files = ["graph.pb", "model.index", "model.data-00000-of-00001", "digits.svg", "accuracy.txt"]
    same = [name for name in files if (folder / "a" / name).read_bytes() == (folder / "b" / name).read_bytes()]
    check(same == files, f"the same seed gives the same bytes on one thread and two (same: {same})")
    weights = "model.data-00000-of-00001"
    check((folder / "a" / weights).read_bytes() != (folder / "c" / weights).read_bytes(), "another seed gives other weights")
    svg = (folder / "a/digits.svg").read_text()
    check(svg.startswith("<svg") and svg.rstrip().endswith("</svg>") and "predicted" in svg, "digits.svg is a picture")

    fake = pathlib.Path(os.environ["THALWEG_BINARY_DIR"]) / "tests/devices/libfake.so"
    if fake.exists():
        on_fake = ("--epochs", 1, "--seed", 7, "--quiet", "--threads", 2)
        here, _ = train(folder / "here", *on_fake)
        os.environ["THALWEG_OPTIONS"] = f"plugin_path={fake}"
        there, _ = train(folder / "there", *on_fake, "--device", "FAKE:0")
        near = abs(float((folder / "here/accuracy.txt").read_text()) - float((folder / "there/accuracy.txt").read_text())) < 3
        check(near, f"an accelerator in software learns as much: {here.strip()}; there: {there.strip()}")
        for setting, says in (("fail_kernel=300", "was to fail while it ran"), ("fail_enqueue=300", "was not to be enqueued"),
                              ("fail_copy=300", "this copy was to fail"), ("fail_transfer=300", "was to fail while it ran"),
                              ("lose_after=300", "lost")):
            os.environ["THALWEG_OPTIONS"] = f"plugin_path={fake};plugin.org.thalweg.fake.{setting}"
            told = run(programs / "digits", "--data", data, "--out", folder / "lost", *on_fake, "--device", "FAKE:0", status=1).stderr
            check(says in told, f"{setting}: {told.strip()[:200]}")
        del os.environ["THALWEG_OPTIONS"]

    if (programs / "thalweg").exists():
        accuracy = float((folder / "a/accuracy.txt").read_text())
        out = run(programs / "thalweg", "run", folder / "a/graph.pb", "--checkpoint", folder / "a/model", "--feed",
                  f"image={data}[::5,0:64]", "--feed", f"label={data}[::5,64]", "--fetch", "correct").stdout
        correct = float(out.split("=")[1])
        check(abs(100 * correct - accuracy) < 0.01, f"thalweg run finds the same accuracy in a new process: {out.strip()}")

    check("cannot read" in run(programs / "digits", "--data", folder / "none.csv", "--out", folder / "d", status=1).stderr,
          "missing data is an error that says what to do")
    (folder / "bad.csv").write_text("1,2,x\n")
    check("bad.csv:1: value 3" in run(programs / "digits", "--data", folder / "bad.csv", "--out", folder / "d", status=1).stderr,
          "a bad line is named")
    check("--epochs" in run(programs / "digits", "--epochs", "many", status=2).stderr, "a wrong argument is named")
    check("unknown argument '--colour'" in run(programs / "digits", "--colour", "red", status=2).stderr, "an unknown argument is named")
    check("usage: digits" in run(programs / "digits", "--help").stdout, "--help says how to use it")

sys.exit(bool(failures))
