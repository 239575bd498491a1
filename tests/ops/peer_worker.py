"""Runs uses of ops in TensorFlow: `peer_worker.py FILE FIRST` reads FILE, a JSON line per use, from line FIRST on, and answers each with a
line on standard output: the outputs, "error" or "absent". If a use crashes the process, its reader detects the missing line."""
import base64
import inspect
import json
import os
import resource
import signal
import sys

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "TF_ENABLE_ONEDNN_OPTS": "0"}
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.python.framework import op_def_registry  # noqa: E402

SECONDS, MEMORY = 20, 512 << 20
NAMES = {"half": "float16", "float": "float32", "double": "float64"}


def dtype(kind):
    return tf.as_dtype(NAMES.get(kind, kind))


def tensor(kind, shape, data):
    if kind == "string":
        return tf.constant(np.array([base64.b64decode(text) for text in data] + [b""], object)[:-1].reshape(shape), tf.string)
    return tf.constant(np.frombuffer(base64.b64decode(data), dtype(kind).as_numpy_dtype).reshape(shape), dtype(kind))


def attribute(value):
    if isinstance(value, dict):
        return dtype(value["type"]) if "type" in value else tf.TensorShape([None if n < 0 else n for n in value["shape"]])
    return [attribute(v) for v in value] if isinstance(value, list) else value


def packed(array, dtype, shape):
    kind = {v: k for k, v in NAMES.items()}.get(dtype.name, dtype.name)
    if kind == "string":
        return [kind, list(shape), [base64.b64encode(text).decode() for text in np.asarray(array, object).flat]]
    return [kind, list(shape), base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()]


def names(run, definition):
    """Returns the function's names of the op's inputs; some differ from the op's, but have the same order."""
    own = [x.name for x in definition.input_arg]
    known = {*own, "name", *(a.name for a in definition.attr)}
    others = (p for p in inspect.signature(run).parameters if p not in known)
    return [name if name in inspect.signature(run).parameters else next(others) for name in own]


def results(use, run, definition, known):
    """Returns the outputs as tensors."""
    inputs = [[tensor(*x) for x in group] if not group or isinstance(group[0], list) else tensor(*group) for group in use["inputs"]]
    attrs = {a: attribute(v) for a, v in use["attrs"].items() if a in known}
    found = run(**dict(zip(names(run, definition), inputs)), **attrs)
    found = [] if found is None else list(found) if isinstance(found, (list, tuple)) else [found]
    return [y for part in found for y in (part if isinstance(part, list) else [part])]


def answer(use):
    run, definition = getattr(tf.raw_ops, use["op"], None), op_def_registry.get(use["op"])
    if run is None or definition is None:
        return "absent"
    implied = {a for x in definition.input_arg for a in (x.type_attr, x.number_attr, x.type_list_attr)}
    known = {a.name for a in definition.attr} - implied
    if any(a not in known | implied for a in use["attrs"]):
        return "absent"
    try:
        if definition.is_stateful:  # the first step of a session, where a stream begins
            with tf.Graph().as_default(), tf.compat.v1.Session() as session:
                found = results(use, run, definition, known)
                return [packed(array, y.dtype, array.shape) for y, array in zip(found, session.run(found))]
        return [packed(y.numpy(), y.dtype, y.shape) for y in results(use, run, definition, known)]
    except Exception:
        return "error"


def main(path, first):
    with open(path) as file:
        uses = [json.loads(line) for line in file]
    answer(uses[0])  # starts lazy parts of TensorFlow
    limit = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for use in uses[int(first):]:
        signal.alarm(SECONDS)
        print(json.dumps(answer(use), separators=(",", ":")), flush=True)


main(*sys.argv[1:])
