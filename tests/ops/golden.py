"""TensorFlow's results for drawn uses of the ops, stored in goldens/FAMILY.json.gz: uses with their inputs, and the outputs or the fact
that the use failed. peer_test.py writes them, golden_test.py reads them."""
import base64
import gzip
import json
import pathlib
import resource

import numpy as np

import cases
import tw
import oracles
import ulps
from declare import declared
from differences import LOOSER, RESULTS, STRICTER
from draws import Use
from schema import type_of

FOLDER = pathlib.Path(__file__).parent / "goldens"
KINDS = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 half bfloat16 float double complex64 complex128 string".split()
TINY = 2e-38  # slightly above the largest denormal float; TensorFlow turns denormals into 0
MEMORY = 512 << 20  # limit for allocations of wrong sizes
# The allowed difference from TensorFlow: TIMES as much as a declaration allows, and at least LEAST ulps.
TIMES, LEAST = 4, dict(half=4, bfloat16=4, float=16, double=16, complex64=16, complex128=16)


def kind_of(array):
    return tw.number_name(array.dtype)


def packed(array):
    """Returns [type, shape, elements]."""
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


def asked(use):
    """Returns the use as it was drawn."""
    inputs = [[unpacked(*x) for x in group] if not group or isinstance(group[0], list) else unpacked(*group) for group in use["inputs"]]
    return Use(use["op"], inputs, {a: unpacked_attr(v) for a, v in use["attrs"].items()}, {})


def ours(use):
    """Returns the outputs of this runtime, or the error."""
    try:
        return tw.run(use.op, use.flat, **use.attrs)
    except tw.Error as error:
        return error


def text(use):
    return f"{use['op']} {[x[:2] for x in flat(use['inputs'])]} {use['attrs']} {use['what']}"


def difference(use):
    """Returns the difference between our result and TensorFlow's, or None. Uses that TensorFlow lacks or rejects may be valid here."""
    theirs, own = use["theirs"], asked(use)
    if isinstance(theirs, str):
        return None
    mine = ours(own)
    if isinstance(mine, tw.Error):
        return None if use["what"] and use["op"] in STRICTER else f"theirs is no error, ours {mine}"
    for k, (a, b, size) in enumerate(zip(mine, theirs, sizes(own, len(mine)))):
        exempt = RESULTS[own.op][0]([*map(ulps.widened, own.flat)], own.attrs, k) if own.op in RESULTS else False
        problem = exempt is not True and apart(a, unpacked(*b), size, limit(own.op, kind_of(a)), exempt)
        if problem:
            return f"output {k}: {problem}"
    return None


def sizes(use, count):
    """Returns, for each output, the size to which the oracle says that errors are relative, or None."""
    try:
        return [np.abs(y.size) if isinstance(y, ulps.Near) else None for y in oracles.wanted(declared().ops[use.op], use)]
    except Exception:  # an invalid use that both accept
        return [None] * count


def limit(op, kind):
    """Returns the allowed difference in ulps."""
    declaration, short = declared().ops[op], kind in ("half", "bfloat16")
    allowed = declaration.half_ulps or 1 if short else declaration.ulps
    return max(TIMES * allowed, LEAST.get(kind, 0), LOOSER.get(op, [{}])[0].get(kind, 0))


def apart(mine, theirs, size, limit, exempt):
    """Returns the difference between two outputs, element by element, or None."""
    if kind_of(mine) != kind_of(theirs) or mine.shape != theirs.shape:
        return f"{kind_of(mine)} {mine.shape}, theirs {kind_of(theirs)} {theirs.shape}"
    if kind_of(mine) not in LEAST:
        same = np.asarray(mine == theirs) | exempt
    else:
        a, b = (ulps.widened(x) for x in (mine, theirs))
        with np.errstate(all="ignore"):
            form = ulps.FORMATS[ulps.name_of(mine.dtype)]
            one = ulps.unit(np.abs(b) if size is None else np.fmax(np.abs(b), size), form)
            same = (a == b) | (np.isnan(a) & np.isnan(b)) | (abs(a - b) <= limit * one + TINY) | exempt
    if same.all():
        return None
    off = "" if kind_of(mine) not in LEAST else f", {worst(same, a, b, one):.4g} ulps, {limit} are allowed"
    return f"{mine[~same][:4]}, theirs {theirs[~same][:4]}{off}"


def worst(same, a, b, one):
    with np.errstate(all="ignore"):
        off = np.where(same, 0, abs(a - b) / one)
    return np.where(np.isnan(off), np.inf, off).max()


def compare(uses):
    limit = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for use in uses:
        problem = difference(use)
        cases.holds(text(use), not problem, problem)
