"""Compares the declared ops of a family (FAMILY/*.py) with their oracles: drawn uses, also with special numbers, in each of tw.WAYS. Then
compares the shape rule with the real shapes, and large uses on one thread with several.
`family_test.py FAMILY COUNT SEED` draws COUNT uses of each op, or three for each of its types, if that is more. THALWEG_TEST_OPS names the
ops to test; unset: all."""
import os
import sys

import numpy as np

import cases
import tw
import ulps
from declare import LARGE, count, declared, others, uses
from oracles import wanted

ONLY = os.environ.get("THALWEG_TEST_OPS", "").split()
FAMILY, COUNT, SEED = sys.argv[1], *(int(a) for a in (sys.argv[2:] + ["30", "0"][len(sys.argv) - 2:]))


def output_types(use, outputs):
    """Returns the element types that the schema gives to the outputs, then those of the variables, as names of NumPy's or ours."""
    kinds = []
    for y in tw.ops()[use.op]["outputs"]:
        if "list_attr" in y:
            kinds += use.attrs[y["list_attr"]]
        else:
            kinds += [use.attrs.get(y.get("type_attr"), y.get("type"))] * use.attrs.get(y.get("number_attr"), 1)
    kinds += [x.dtype for x in use.flat if isinstance(x, tw.Variable)]
    return [tw.numpy_of(tw.thalweg.as_dtype(tw.number_name(kind))) for kind in kinds][:outputs]


def check(declaration, use, ways):
    try:
        results = wanted(declaration, use)
    except Exception as error:  # an error of the oracle, which needs a fix
        cases.holds(use, False, f"the oracle: {type(error).__name__}: {error}")
        return
    kinds, problems = output_types(use, len(results)), {}
    for how in ways:
        try:
            got = tw.run(use.op, use.flat, len(results), how, **use.attrs)
            problem = difference(declaration, got, results, kinds)
        except tw.Error as error:
            problem = f"{error.code_name}: {error}"
        if problem:
            problems.setdefault(problem, []).append(how)
    cases.holds(use, not problems, "; ".join(f"{' '.join(ways)}: {problem}" for problem, ways in problems.items()))


def difference(declaration, got, results, kinds):
    """Returns the first error in the outputs, or None."""
    for k, (g, w, kind) in enumerate(zip(got, results, kinds)):
        problem = f"type {g.dtype}, not {kind}" if g.dtype != kind else None if w is None else ulps.difference(
            g, w, declaration.ulps, declaration.half_ulps, declaration.zero_signs, declaration.denormals)
        if problem:
            return f"output {k}: {problem}"
    return None


# ---- The shape rule ----


def some_of(shape, rng):
    """Returns a part of the shape that may be known before the step: nothing, the rank, some sizes, or all."""
    return None if rng.integers(4) == 0 else tuple(-1 if rng.integers(2) else size for size in shape)


def check_shapes(use, rng):
    """Checks that the output shapes that the rule infers from a part of the input shapes are compatible with the kernel's outputs."""
    known = []

    def enter(graph, x, feeds):
        if x.dtype.kind in "iu" and rng.integers(2):
            return graph.constant(x)
        known.append(some_of(x.shape, rng))
        value = graph.placeholder(x.dtype, known[-1])
        feeds[value] = x
        return value

    try:
        call = tw.Call(use.op, use.flat, "shaped", use.attrs, enter)
        outputs = call.operation.outputs
        got = call.step(len(outputs))
    except tw.Error as error:
        cases.holds(f"{use} of {known}", False, error)
        return
    for y, array in zip(outputs, got):
        admits = y.shape is None or len(y.shape) == array.ndim and all(n in (None, -1, m) for n, m in zip(y.shape, array.shape))
        cases.holds(f"{use} of {known}", admits, f"the rule says {y.shape}, the result is {array.shape}")


# ---- The same bits on any number of threads ----

SESSIONS = [dict(engine=engine, threads=threads) for engine in ("fixed", "counted") for threads in (1, 2, 3, 8)]


def bits(array):
    """Returns the bits of an array, with one NaN for all: processors differ in which of two NaNs they keep."""
    if array.dtype.kind == "O":
        return array.tolist()
    if array.dtype == tw.bfloat16:
        array = tw.from_bfloat16(array)
    if array.dtype.kind in "fc":
        array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
    return array.tobytes()


def check_threads(use):
    first = None
    try:
        call = tw.Call(use.op, use.flat, "fed", use.attrs)
        for options in SESSIONS:
            got = [bits(y) for y in call.step(**options)]
            first = first or got
            cases.holds(f"{use} on {options}", got == first, "other bits than on one thread")
    except tw.Error as error:
        cases.holds(f"{use} on threads", False, error)


# ---- All of it ----


def check_all(declaration):
    """Checks the uses of a declaration. Returns their number."""
    drawn = [*uses(declaration, count(declaration, COUNT), SEED)]
    rng = np.random.default_rng([SEED, 2, *declaration.op.encode()])
    for use in drawn:
        if cases.sampled(declaration.op):
            check(declaration, use, tw.WAYS)
            check_shapes(use, rng)
    more = [*others(declaration, SEED)] if cases.SAMPLE == 1 else []
    for use in more:
        check(declaration, use, ["fed"])
    for use in uses(declaration, LARGE if cases.SAMPLE == 1 else 0, SEED, "large"):
        check(declaration, use, ["fed"])
        check_threads(use)
    return len(drawn) + len(more) + LARGE


book = declared(FAMILY)
for path, error in book.broken.items():
    cases.holds(path, False, f"{type(error).__name__}: {error}")
for name in book.unknown:
    cases.holds(f"{name} is declared", False, "and is no op")
used = sum(check_all(declaration) for declaration in book.ops.values() if declaration.oracle and (not ONLY or declaration.op in ONLY))
for op, inputs, results, tolerance, attrs in book.expected:
    cases.expect(op, inputs, results, tolerance, **attrs)
print(f"{len(book.ops)} ops, {used} uses")
cases.finish()
