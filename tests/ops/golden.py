"""What TensorFlow makes of drawn uses of the ops, kept in goldens/FAMILY.json.gz: uses with their inputs, and the outputs or that there was
an error. peer_test.py writes them, golden_test.py reads them."""
import base64
import gzip
import json
import pathlib
import resource

import numpy as np

import cases
import tw
from differences import RESULTS, STRICTER
from schema import type_of

FOLDER = pathlib.Path(__file__).parent / "goldens"
KINDS = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 half bfloat16 float double complex64 complex128 string".split()
TINY = 2e-38  # about where the numbers of float become denormal, which TensorFlow turns into 0
MEMORY = 512 << 20  # for what wrong sizes ask for
# How near results of two runtimes are, relative to the largest magnitude.
NEAR = {"half": 4e-3, "bfloat16": 3e-2, "float": 3e-5, "double": 1e-11, "complex64": 3e-5, "complex128": 1e-11}


def kind_of(array):
    return tw.number_name(array.dtype)


def packed(array):
    """[type, shape, elements]."""
    data = [base64.b64encode(text).decode() for text in array.flat] if array.dtype == tw.string else \
        base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return [kind_of(array), list(array.shape), data]


def unpacked(kind, shape, data):
    dtype = tw.numpy_of(type_of(kind))
    if kind == "string":
        flat = np.array([base64.b64decode(text) for text in data] + [b""], object)[:-1]
    else:
        flat = np.frombuffer(base64.b64decode(data), dtype)
    return flat.reshape(shape)


def packed_attr(value):
    if isinstance(value, tw.TYPES):
        return {"type": tw.number_name(value)}
    if isinstance(value, tuple):
        return {"shape": list(value)}
    return [packed_attr(v) for v in value] if isinstance(value, list) else value


def unpacked_attr(value):
    if isinstance(value, dict):
        return type_of(value["type"]) if "type" in value else tuple(value["shape"])
    return [unpacked_attr(v) for v in value] if isinstance(value, list) else value


def load(family):
    with gzip.open(FOLDER / f"{family}.json.gz", "rt") as file:
        return [json.loads(line) for line in file]


def save(family, uses):
    FOLDER.mkdir(exist_ok=True)
    with open(FOLDER / f"{family}.json.gz", "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as file:
        file.writelines(json.dumps(use, separators=(",", ":")).encode() + b"\n" for use in uses)


def flat(inputs):
    return [x for group in inputs for x in (group if not group or isinstance(group[0], list) else [group])]


def ours(use):
    """The outputs of this runtime, or the error."""
    arrays = [unpacked(*x) for x in flat(use["inputs"])]
    try:
        return tw.run(use["op"], arrays, **{a: unpacked_attr(v) for a, v in use["attrs"].items()})
    except tw.Error as error:
        return error


def text(use):
    return f"{use['op']} {[x[:2] for x in flat(use['inputs'])]} {use['attrs']} {use['what']}"


def difference(use, results, stricter):
    """What is wrong with ours, beside theirs, or None. What TensorFlow lacks or refuses may be defined here. results: {op: why} of those whose
    results may differ; stricter: {op: why} of those that may refuse what TensorFlow takes, if something is wrong with it."""
    theirs, mine = use["theirs"], ours(use)
    if isinstance(theirs, str):
        return None
    if isinstance(mine, tw.Error):
        return None if use["what"] and use["op"] in stricter else f"theirs is no error, ours {mine}"
    if use["op"] in results:
        return None
    problems = (apart(a, unpacked(*b)) for a, b in zip(mine, theirs))
    return next((f"output {k}: {problem}" for k, problem in enumerate(problems) if problem), None)


def apart(mine, theirs):
    if kind_of(mine) != kind_of(theirs) or mine.shape != theirs.shape:
        return f"{kind_of(mine)} {mine.shape}, theirs {kind_of(theirs)} {theirs.shape}"
    near = NEAR.get(kind_of(mine))
    if near is None:
        return None if np.array_equal(mine, theirs) else f"{mine}, theirs {theirs}"
    a, b = (tw.from_bfloat16(x) if x.dtype == tw.bfloat16 else x for x in (mine, theirs))
    a, b = (x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble) for x in (a, b))
    with np.errstate(all="ignore"):
        size = np.abs(b[np.isfinite(b)]).max(initial=1e-38)
        same = (a == b) | (np.isnan(a) & np.isnan(b)) | (abs(a - b) <= near * np.minimum(size, 1 + 1e3 * abs(b)) + TINY)
    return None if same.all() else f"{mine[~same][:4]}, theirs {theirs[~same][:4]}"


def compare(uses):
    limit = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for use in uses:
        problem = difference(use, RESULTS, STRICTER)
        cases.holds(text(use), not problem, problem)
