"""Writes goldens/variables.json.gz: the values that ops leave in variables in TensorFlow, and their results. variables_golden_test.py
reads it. Run it by hand after uses were added: `tools/cmake/peer-python tests/ops/variables_peer.py`."""
import base64
import gzip
import json
import os
import pathlib

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "TF_ENABLE_ONEDNN_OPTS": "0"}
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.python.framework import op_def_registry  # noqa: E402

NAMES = {"float16": "half", "float32": "float", "float64": "double"}
rng = np.random.default_rng(41)
lines = []


def packed(array):
    array = np.asarray(array)
    return [NAMES.get(array.dtype.name, array.dtype.name), list(array.shape), base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()]


def use(op, slots, inputs, **attrs):
    """Runs the op twice on variables with these initial values."""
    definition = op_def_registry.get(op)
    variables = [tf.Variable(x) for x in slots]
    typed = {a.name: attrs[a.name] for a in definition.attr if a.name in attrs}
    if definition.output_arg:
        typed["dtype"] = variables[0].dtype
    for _ in range(2):
        named = dict(zip((x.name for x in definition.input_arg), [v.handle for v in variables] + [tf.constant(x) for x in inputs]))
        answer = getattr(tf.raw_ops, op)(**named, **typed)
    lines.append({"op": op, "slots": [packed(x) for x in slots], "inputs": [packed(x) for x in inputs], "attrs": attrs,
                  "after": [packed(v.numpy()) for v in variables], "answer": packed(answer.numpy()) if definition.output_arg else None})


# op: the number of slots beside the variable, the factors, the position of the gradient among them, attributes.
OPTIMIZERS = {
    "GradientDescent": (0, [0.5], 1, [{}]), "Momentum": (1, [0.5, 0.75], 1, [{}, {"use_nesterov": True}]),
    "KerasMomentum": (1, [0.5, 0.75], 1, [{}, {"use_nesterov": True}]), "Adagrad": (1, [0.5], 1, [{}, {"update_slots": False}]),
    "AdagradV2": (1, [0.5, 0.125], 2, [{}]), "Adadelta": (2, [0.5, 0.875, 0.25], 3, [{}]), "RMSProp": (2, [0.5, 0.875, 0.75, 0.25], 4, [{}]),
    "CenteredRMSProp": (3, [0.5, 0.875, 0.75, 2.0], 4, [{}]),
    "Adam": (2, [0.75, 0.5, 0.0625, 0.875, 0.9375, 0.25], 6, [{}, {"use_nesterov": True}]),
    "AdamWithAmsgrad": (3, [0.75, 0.5, 0.0625, 0.875, 0.9375, 0.25], 6, [{}]), "AdaMax": (2, [0.75, 0.0625, 0.875, 0.9375, 0.25], 5, [{}]),
    "Ftrl": (2, [0.5, 0.125, 0.25, -0.5], 0, [{}, {"multiply_linear_by_lr": True}]), "FtrlV2": (2, [0.5, 0.125, 0.25, 0.0625, -0.5], 0, [{}])}
DENSE_ONLY = {"GradientDescent", "Adam", "AdamWithAmsgrad", "AdaMax"}

for name, (slots, factors, at, choices) in OPTIMIZERS.items():
    for dtype in (np.float32, np.float64, np.float16):
        for attrs in choices:
            def drawn(*shape):
                return np.asarray(rng.uniform(0.5, 1.5, shape), dtype)
            scalars = [np.asarray(f, dtype) for f in factors]
            for shape in ((), (5,), (2, 3)):
                use("ResourceApply" + name, [drawn(*shape) for _ in range(1 + slots)], scalars[:at] + [drawn(*shape) - dtype(1)] + scalars[at:], **attrs)
            if name in DENSE_ONLY:
                continue
            for index in (np.int32, np.int64):
                rows = [drawn(3, 2) - dtype(1), np.array([4, 0, 4], index)]
                use("ResourceSparseApply" + name, [drawn(5, 2) for _ in range(1 + slots)], scalars[:at] + rows + scalars[at:], **attrs)

for dtype in (np.float32, np.float64, np.int32, np.complex64):
    x, at = np.asarray(rng.integers(-9, 9, (4, 3)), dtype), np.array([3, 0, 3], np.int32)
    updates = np.asarray(rng.integers(-9, 9, (3, 3)), dtype)
    for name in ("Add", "Sub", "Update"):
        use("ResourceScatter" + name, [x], [at, updates])
        use("ResourceScatterNd" + name, [x], [at[:, None], updates])
        use("ResourceScatterNd" + name, [x], [np.array([[0, 1], [3, 2]]), updates[0, :2]])
    use("ResourceGather", [x], [at])
    use("ResourceGatherNd", [x], [at[:, None]])
    use("ResourceGatherNd", [x], [np.array([[[0, 1]], [[3, 2]]])])
    if dtype != np.complex64:
        for name in ("Max", "Min"):
            use("ResourceScatterNd" + name, [x], [at[:, None], updates])
    for name in ("Add", "Sub"):
        use(f"Assign{name}VariableOp", [x], [x])

with open(pathlib.Path(__file__).parent / "goldens" / "variables.json.gz", "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as file:
    file.writelines(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)
print(len(lines), "uses")
