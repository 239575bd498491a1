"""Runs exports of Keras, TensorFlow and PyTorch through the importers and compares with the answers stored beside them.

usage: exports.py FOLDER [NAME ...] [--expected FILE] [--write FILE]
FOLDER: made by keras_exports.py and torch_exports.py. NAME: only these exports. --expected FILE: the models that must pass and those that are
known to fail, with reasons; without it all must pass. A difference may be 1e-4 of the largest expected element for ONNX files; for SavedModels
1e-5 of it, or ten times what a change of the input by 2e-7 does, if that is more. Each export runs in a process of its own.
Exit status: 0 as expected, 1 not, 77 there are no exports."""
import json
import pathlib
import subprocess
import sys
import time

import numpy as np


def arrays(file):
    """Returns the arrays of an npz file by name; those of hexadecimal texts as bytes."""
    out = {}
    with np.load(file) as members:
        for name in members.files:
            value = members[name]
            if name.endswith("#hex"):
                name = name[:-4]
                value = np.array([bytes.fromhex(v.decode()) for v in value.ravel()], object).reshape(value.shape)
            elif value.dtype.kind == "S":
                value = value.astype(object)
            out[name] = value
    return out


def difference(got, expected):
    """Returns the largest difference relative to the largest expected element; infinity for other types, shapes or places of NaN."""
    got = np.asarray(got)
    if expected.dtype == object:
        got = np.array([g if isinstance(g, bytes) else str(g).encode() for g in got.ravel()], object).reshape(got.shape)
        # NumPy drops zero bytes at the end of what it stores.
        return 0.0 if got.shape == expected.shape and all(a == b for a, b in zip(got.ravel(), expected.ravel())) else np.inf
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return np.inf
    if expected.dtype.kind not in "fc":
        return 0.0 if np.array_equal(got, expected) else np.inf
    if not expected.size or np.array_equal(got, expected, equal_nan=True):
        return 0.0
    kind = np.complex128 if expected.dtype.kind == "c" else np.float64
    a, b = got.astype(kind), expected.astype(kind)
    with np.errstate(invalid="ignore"):
        if not np.array_equal(np.isfinite(a), np.isfinite(b)) or not np.array_equal(a[~np.isfinite(a)], b[~np.isfinite(b)], equal_nan=True):
            return np.inf
    a, b = a[np.isfinite(a)], b[np.isfinite(b)]
    return float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30))


def describe(got, expected):
    got = np.asarray(got)
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return f"is {got.dtype} {list(got.shape)} instead of {expected.dtype} {list(expected.shape)}"
    return f"begins {got.ravel()[:4]} instead of {expected.ravel()[:4]}"


def run_one(folder):
    """Loads and runs the export in FOLDER. Prints its largest difference. Returns whether all outputs agree."""
    import thalweg as tw
    onnx = (folder / "model.onnx").is_file()
    begin = time.monotonic()
    model = tw.load(folder / ("model.onnx" if onnx else "model"))
    loaded = time.monotonic()
    wiggle = {} if onnx else json.loads((folder / "wiggle.json").read_text())
    worst, bad = (0.0, 1e-4 if onnx else 1e-5), []
    signature = None if onnx else "serving_default"
    for suffix in ("", "1"):
        if not (folder / f"inputs{suffix}.npz").is_file():
            continue
        got = model.run(arrays(folder / f"inputs{suffix}.npz"), signature=signature)
        for name, expected in arrays(folder / f"outputs{suffix}.npz").items():
            limit = 1e-4 if onnx else max(1e-5, 10 * wiggle.get(name, 0.0))
            error = difference(got[name], expected) if name in got else np.inf
            worst = max(worst, (error, limit), key=lambda pair: pair[0] / pair[1])
            if not error <= limit:
                bad.append(f"output '{name}'{' at another batch' if suffix else ''}: {error:.1e} above {limit:.1e}: "
                           + (describe(got[name], expected) if name in got else f"is missing; there are {', '.join(got)}"))
    print(f"{worst[0]:.1e} of {worst[1]:.1e}, loaded in {loaded - begin:.2f} s, run in {time.monotonic() - loaded:.2f} s" if not bad else "; ".join(bad[:4]))
    return not bad


def names(root):
    return sorted(p.name for p in root.iterdir() if (p / "outputs.npz").is_file())


def check(root, name):
    """Returns whether the export passes, and one line about it."""
    done = subprocess.run([sys.executable, "-B", __file__, "--one", str(root / name)], capture_output=True, text=True, timeout=900)
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    said = lines[-1] if lines else f"ended with status {done.returncode} and no word"
    if done.returncode < 0:
        said = f"ended by signal {-done.returncode}: {said}"
    return done.returncode == 0, said


def expectations(file):
    """Reads 'NAME' and 'NAME: reason' lines; returns a dict of reasons, "" for models that must pass."""
    known = {}
    for line in pathlib.Path(file).read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, reason = line.partition(": ")
            known[name] = reason
    return known


def main(arguments):
    if arguments[0] == "--one":
        return 0 if run_one(pathlib.Path(arguments[1])) else 1
    root = pathlib.Path(arguments.pop(0))
    known = {}
    if "--expected" in arguments:
        at = arguments.index("--expected")
        known = expectations(arguments[at + 1])
        del arguments[at:at + 2]
    good = True
    chosen = arguments or names(root)
    if not chosen:
        print(f"skipped: there are no exports in {root}")
        return 77
    passed = 0
    for name in chosen:
        fine, said = check(root, name)
        passed += fine
        surprise = fine == bool(known.get(name, ""))
        good &= not surprise
        print(f"{name}: {'equal' if fine else 'FAILED'}{' against the list' if surprise and known else ''}: {said}", flush=True)
    print(f"{passed} of {len(chosen)} are equal")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
