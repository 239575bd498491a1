"""What the tests of all languages share: the build tree, the environment in which programs find it, checks, and the cost of a call in C."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(os.environ["THALWEG_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["THALWEG_BINARY_DIR"])
DIGITS = pathlib.Path(os.environ["THALWEG_DATA_PATH"]) / "digits.csv"
MODEL = pathlib.Path("/usr/share/libonnx-testdata/data/node/test_add/model.onnx")
LIBRARY = pathlib.Path(os.environ.get("THALWEG_LIBRARY", BUILD / "lib/libthalweg.so")).resolve().parent
MOST_OVER_C = 1000  # nanoseconds that a call may cost more than in C
failures = 0


def check(condition, what):
    global failures
    print(("passed  " if condition else "FAILED  ") + what, flush=True)
    failures += not condition


def skip(why):
    print(f"skipped  {why}")
    sys.exit(77)


def need(*programs):
    """Skips the test if a program is missing, or data."""
    for program in programs:
        if not shutil.which(program):
            skip(f"there is no {program}; run tools/setup --languages")
    if not DIGITS.exists():
        skip(f"{DIGITS} is not there; run tools/setup")


def folder(language):
    """A folder of the build tree for a language, which keeps what it compiled."""
    path = BUILD / "bindings" / language
    path.mkdir(parents=True, exist_ok=True)
    return path


def environment(**more):
    return {**os.environ, "LD_LIBRARY_PATH": str(LIBRARY), "THALWEG_TEST_MODEL": str(MODEL), "THALWEG_TEST_DIGITS": str(DIGITS), **more}


def run(*command, cwd=None, env=None, what=None):
    """Runs a command and returns its output. If it fails, its output is shown and the test ends."""
    done = subprocess.run([str(c) for c in command], cwd=cwd, env=env or environment(), capture_output=True, text=True, check=False)
    check(done.returncode == 0, what or " ".join(str(c) for c in command)[:100])
    if done.returncode:
        print((done.stdout + done.stderr)[:4000])
        end()  # what follows needs it
    return done.stdout + done.stderr


def pkg_config(out):
    """A folder with thalweg.pc for the build tree."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "thalweg.pc").write_text(f"libdir={LIBRARY}\nName: thalweg\nDescription: the build tree\nVersion: 0.1.0\n"
                                    f"Cflags: -I{SOURCE}/c_api/include\nLibs: -L{LIBRARY} -lthalweg\n")
    return out


def package(language, out):
    """Makes the package by the script of the binding; returns the archive's path."""
    return pathlib.Path(run("/usr/bin/python3", "-B", SOURCE / "bindings" / language / "make_package.py", "--build", BUILD, "--out", out,
                            what=f"{language}: make_package.py makes the package").strip().splitlines()[-1])


def lines(path, most, what):
    n = len(path.read_text().splitlines())
    check(n <= most, f"{what} has {n} lines, at most {most}")


def costs(text):
    """The two costs that a program printed: "cost rank 5 run 800"."""
    found = re.search(r"cost rank (\d+) run (\d+)", text)
    return [int(n) for n in found.groups()] if found else None


def check_cost(measure, out, most_step=MOST_OVER_C):
    """Compares the cost of calls with C's. Other programs of the machine only add, so that the least of up to three comparisons counts."""
    program = out / "call_cost"
    run("cc", "-O2", "-std=c11", f"-I{SOURCE}/c_api/include", SOURCE / "tests/bindings/call_cost.c", f"-L{LIBRARY}", "-lthalweg", "-o", program)
    over = [10**9, 10**9]
    for _ in range(3):
        in_c, here = costs(run(program, what="the cost in C")), costs(measure())
        if not in_c or not here:
            break
        print(f"in C {in_c} ns, here {here} ns (tw_tensor_rank, tw_callable_run)")
        over = [min(o, h - c) for o, h, c in zip(over, here, in_c)]
        if over[0] <= MOST_OVER_C and over[1] <= most_step:
            break
    check(over[0] <= MOST_OVER_C and over[1] <= most_step,
          f"a call costs {over[0]} ns and a step {over[1]} ns more than in C, at most {MOST_OVER_C} and {most_step}")


def check_digits(text):
    found = re.search(r"test accuracy ([0-9.]+) %", text)
    check(bool(found) and float(found[1]) >= 94, f"digits: test accuracy {found[1] if found else 'missing'} %, at least 94")


def end():
    sys.exit(bool(failures))
