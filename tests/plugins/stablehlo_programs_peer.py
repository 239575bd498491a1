"""Compares the programs of stablehlo_programs.py with JAX: results may differ by 1e-5, absolute below 1 and relative above.

usage: stablehlo_programs_peer.py [--only NAME] [--least N]
Exit status: 0 enough programs agree (default: four of five), 1 not."""
import argparse
import pathlib
import sys
import tempfile
import traceback

import numpy as np
import thalweg as tw

import stablehlo_programs

TOLERANCE = 1e-5


def error_of(got, expected):
    """The largest difference, absolute below 1 and relative above; infinite for other shapes, types or non-finite elements."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return np.inf
    if expected.dtype.kind not in "fc":
        return 0.0 if np.array_equal(got, expected) else np.inf
    a, b = got.astype(np.complex128), expected.astype(np.complex128)
    with np.errstate(all="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        off = np.where(same, 0, np.abs(a - b) / np.maximum(1, np.abs(b)))
    return float(np.nan_to_num(off, nan=np.inf).max()) if off.size else 0.0


def outcome(name, folder):
    """Returns (state, text)."""
    _, inputs, expected, artifact = stablehlo_programs.build(name)
    path = pathlib.Path(folder) / (name + ".mlirbc")
    path.write_bytes(artifact)
    try:
        model = tw.load(path)
        given = dict(zip((port.name for port in model.signatures["main"].inputs), inputs))
        results = model(**given)
    except tw.Error as refused:
        return "refused", str(refused)
    got = [np.array(results[port.name]) for port in model.signatures["main"].outputs]
    worst = max((error_of(g, e) for g, e in zip(got, expected)), default=0.0)
    if len(got) != len(expected):
        return "differs", f"{len(got)} results in place of {len(expected)}"
    return ("agrees" if worst <= TOLERANCE else "differs"), f"{worst:.1e}"


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--only", default="")
    options.add_argument("--least", type=int)
    options = options.parse_args()
    names = [n for n in stablehlo_programs.PROGRAMS if options.only in n]
    agree = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            try:
                state, text = outcome(name, folder)
            except Exception as broken:  # of JAX or of the program: reported, and never counted as agreement
                where = traceback.extract_tb(broken.__traceback__)[-1]
                state, text = "broken", f"{type(broken).__name__}: {str(broken)[:300]} ({where.filename}:{where.lineno})"
            agree += state == "agrees"
            print(f"{state:8} {name}: {' '.join(text.split())[:400]}", flush=True)
    print(f"{agree} of {len(names)} programs agree within {TOLERANCE}")
    least = options.least if options.least is not None else -(-4 * len(names) // 5)
    return 0 if agree >= least else 1


if __name__ == "__main__":
    sys.exit(main())
