"""The files by which the workers of `tools/bench ops` exchange a case and its results, and the timing of a call, which both use."""
import json
import pathlib
import statistics
import time
import traceback

import numpy as np

NEAR = 1e-3      # tolerance relative to the value, or to a tenth of the largest value
MOST_OFF = 1e-4  # share of the elements that may differ more, because rounding decides their value


def write_case(folder, op, inputs, attrs, steps=()):
    """Writes a case. inputs: arrays, lists of arrays, and {"variable": array}. attrs: values that JSON can hold.
    steps: each is [op, arguments, attributes, whether it runs once]; see op_cases.Step."""
    arrays = []

    def put(x):
        if isinstance(x, list):
            return [put(part) for part in x]
        if isinstance(x, dict):
            return {"variable": put(x["variable"])}
        arrays.append(x)
        return len(arrays) - 1
    form = [put(x) for x in inputs]
    write_arrays(folder, "inputs", arrays)
    (pathlib.Path(folder) / "case.json").write_text(json.dumps({"op": op, "inputs": form, "attrs": attrs, "steps": steps}))


def read_case(folder):
    """Returns the op, its inputs as write_case received them, its attributes and its steps."""
    arrays, what = read_arrays(folder, "inputs"), json.loads((pathlib.Path(folder) / "case.json").read_text())

    def get(x):
        if isinstance(x, list):
            return [get(part) for part in x]
        return {"variable": arrays[x["variable"]]} if isinstance(x, dict) else arrays[x]
    return what["op"], [get(x) for x in what["inputs"]], what["attrs"], what["steps"]


def write_arrays(folder, name, arrays):
    np.savez(pathlib.Path(folder) / f"{name}.npz", *[np.asarray(x, "S") if np.asarray(x).dtype == object else x for x in arrays])


def read_arrays(folder, name):
    with np.load(pathlib.Path(folder) / f"{name}.npz") as file:
        return [file[f"arr_{i}"] for i in range(len(file.files))]


def difference(ours, theirs):
    """Returns the first difference between the outputs, or ""."""
    if len(ours) != len(theirs):
        return f"{len(ours)} outputs against {len(theirs)}"
    for i, (a, b) in enumerate(zip(ours, theirs)):
        if a.shape != b.shape:
            return f"output {i} has the shape {list(a.shape)} against {list(b.shape)}"
        off = ~near(a, b) if a.dtype.kind in "fc" else a != b
        if np.count_nonzero(off) > MOST_OFF * a.size:
            at = tuple(np.argwhere(off)[0])
            return f"output {i} differs in {np.count_nonzero(off)} of {a.size} elements, first {a[at]} against {b[at]}"
    return ""


def near(a, b):
    with np.errstate(all="ignore"):
        finite = np.abs(b[np.isfinite(b)])
        return np.isclose(a, b, NEAR, NEAR * 0.1 * float(finite.max()) if finite.size else 0, equal_nan=True)


def median_ns(once, milliseconds):
    """Returns the median time of the calls that fit into that many milliseconds, of at least three and at most 1,000 calls."""
    begin = time.perf_counter_ns()
    once()
    calls = int(milliseconds * 1e6 / max(1, time.perf_counter_ns() - begin))
    taken = []
    for _ in range(min(1000, max(3, calls))):
        begin = time.perf_counter_ns()
        once()
        taken.append(time.perf_counter_ns() - begin)
    return [statistics.median(taken)]


def guarded(folder, answer):
    """Returns answer(). If it raises, writes the reason to the file `why` and returns [0], so that the sweep goes on."""
    try:
        return answer()
    except Exception as error:
        traceback.print_exc()
        (pathlib.Path(folder) / "why").write_text(" ".join(f"{type(error).__name__}: {error}".split()))
        return [0]
