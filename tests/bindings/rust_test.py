"""The program in Rust goes on training what `digits` has left, exactly as the same steps taken from Python do, and says what fails."""
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import thalweg as tw

programs = pathlib.Path(sys.argv[1])
data = pathlib.Path(os.environ["THALWEG_DATA_PATH"]) / "digits.csv"
steps, batch = 100, 32
failures = 0


def check(condition, what):
    global failures
    print(("passed  " if condition else "FAILED  ") + what)
    failures += not condition


def rust(*arguments, status=0):
    done = subprocess.run([str(a) for a in (programs / "train_rs", *arguments)], capture_output=True, text=True, check=False)
    check(done.returncode == status, f"exit status {status}, found {done.returncode}: {(done.stdout + done.stderr).strip()[:200]}")
    return done.stdout + done.stderr


def python(folder):
    """The losses and variables of the same steps."""
    graph = tw.Graph.from_bytes((folder / "graph.pb").read_bytes())
    session, saver = tw.Session(graph), tw.Saver()
    saver.restore(session, folder / "model")
    step = session.callable("loss", ["image", "label", "learning_rate"], targets=["Adam"])
    digits, losses = np.loadtxt(data, delimiter=",", dtype=np.float32), []
    for i in range(steps):
        at = i * batch % (len(digits) - batch + 1)
        rows = digits[at:at + batch]
        losses.append(step(rows[:, :64], rows[:, 64].astype(np.int32), 0.001))
    return losses, {v.name: session.run(v) for v in graph.variables()}


if not data.exists():
    print(f"skipped  {data} is not there; run tools/setup")
    sys.exit(77)

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    subprocess.run([programs / "digits", "--data", data, "--out", folder, "--epochs", "1", "--quiet"], check=True)
    text = rust(folder, data, folder / "more", steps)
    losses, variables = python(folder)
    first, last = np.mean(losses[:10]), np.mean(losses[-10:])
    check(f"loss {first:.4f} over" in text and f"{last:.4f} over the last" in text, "the losses are those of Python")
    check(last < 0.5 * first, "it learns")
    with tw.Checkpoint(folder / "more") as saved:
        same = [n for n in variables if np.array_equal(saved[n], variables[n])]
        check(len(same) == len(variables) == len(saved) > 20, f"{len(same)} of {len(variables)} variables are those of Python, bit for bit")
    with tw.Checkpoint(folder / "model") as old:
        check(not np.array_equal(old["output/weights"], variables["output/weights"]), "which are not those that it began with")

    check("NOT_FOUND" in rust(folder, data, folder / "no/such/where", 1, status=1), "a folder that is not there is a status, by its code")
    (folder / "model.index").write_bytes(b"")
    check("model.index" in rust(folder, data, folder / "more", 1, status=1), "a torn checkpoint is named")
    (folder / "graph.pb").write_bytes(b"no graph")
    check("INVALID_ARGUMENT" in rust(folder, data, folder / "more", 1, status=1), "so is a graph that is none")
    check("usage: train" in rust(folder, status=2), "missing arguments are told")

sys.exit(bool(failures))
