"""Counts cases: each failed case prints one line, and finish() ends the process with the exit status for the test runner."""
import collections
import os
import sys

import numpy as np

import tw

cases = failures = 0
SAMPLE = int(os.environ.get("THALWEG_TEST_SAMPLE", "1"))
OWN = os.environ.get("THALWEG_TEST_OWN_OPS", "").split()
asked = collections.Counter()
taken = {}
TOLERANCES = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-12, "complex64": 2e-5, "complex128": 1e-12}


def sampled(key):
    """Returns whether this case runs: the first one of each key, and then every THALWEG_TEST_SAMPLEth."""
    asked[key] += 1
    return asked[key] % SAMPLE == 1 % SAMPLE


def takes(op):
    """Returns whether the cases of this op run. If THALWEG_TEST_OWN_OPS names the ops for which the device has kernels, these run and every
    THALWEG_TEST_SAMPLEth other one, since the others run on the CPU anyway."""
    if op not in taken:
        taken[op] = not OWN or op in OWN or sampled("ops that fall back")
    return taken[op]


def failed(where, problem):
    global failures
    failures += 1
    print(f"FAILED  {where}: {problem}")


def holds(where, condition, problem="does not hold"):
    global cases
    cases += 1
    if not condition:
        failed(where, problem)


def difference(got, wanted, tolerance=None):
    """Returns the difference between `got` and `wanted` as text, or None. Floats may differ by `tolerance`, relative to the wanted value or
    to 1, whichever is larger, or by default by a few ulps of their type. A bfloat16 result is compared after conversion to float."""
    wanted = np.asarray(wanted)
    if got.shape != wanted.shape:
        return f"shape {got.shape}, not {wanted.shape}"
    if got.size == 0:  # its axes may be too long for NumPy's arithmetic
        return None
    if got.dtype == tw.bfloat16:
        got, tolerance = tw.from_bfloat16(got), tolerance or 8e-3
    if got.dtype.kind in "fc":
        eps = tolerance or TOLERANCES[got.dtype.name]
        wide = np.complex128 if got.dtype.kind == "c" else np.float64
        return None if close(got.astype(wide), wanted.astype(wide), eps) else f"{got} is not {wanted}"
    return None if np.array_equal(got, wanted) else f"{got} is not {wanted}"


def close(a, b, eps):
    """Returns whether all elements are close. np.allclose takes longer, and is used only for values that are not finite."""
    with np.errstate(all="ignore"):
        return bool((abs(a - b) <= eps + eps * abs(b)).all()) and np.isfinite(b).all() or np.allclose(a, b, eps, eps, equal_nan=True)


def equal(where, got, wanted, tolerance=None):
    global cases
    cases += 1
    problem = difference(np.asarray(got), wanted, tolerance)
    if problem:
        failed(where, problem)


def expect(op, inputs, wanted, tolerance=None, **attrs):
    """Checks that all outputs of the op equal `wanted`, a list, for each way in which inputs are given."""
    use = f"{op} {[np.asarray(x).dtype.name + str(np.asarray(x).shape) for x in inputs]} {attrs}"
    for how in tw.WAYS:
        where = f"{use} {how}"
        try:
            got = tw.run(op, inputs, len(wanted), how, **attrs)
        except tw.Error as error:
            holds(where, False, error)
            continue
        for g, w in zip(got, wanted):
            equal(where, g, np.asarray(w, object) if g.dtype == tw.string else w, tolerance)


def refuses(where, action, *parts):
    """Checks that action() fails with an error that contains every part, and whose code blames the caller, not the runtime."""
    global cases
    cases += 1
    try:
        action()
    except tw.Error as error:
        if error.code_name in ("INTERNAL", "UNKNOWN"):
            failed(where, f"{error.code_name}: {error}")
            return
        for part in parts:
            if part not in str(error):
                failed(where, f"'{error}' does not say '{part}'")
                return
    else:
        failed(where, "no error" + (f" that says '{parts[0]}'" if parts else ""))


def finish():
    print(f"{cases - failures} of {cases} cases hold")
    sys.exit(failures > 0)
