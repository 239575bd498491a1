"""Writes goldens/definitions.json.gz, TensorFlow's definitions of the ops that both have: names and types of inputs and outputs, attributes
with their kinds, defaults, bounds and choices. definitions_golden_test.py reads it. Run it by hand after ops were added:
`tools/cmake/peer-python tests/ops/definitions_peer.py` with the binding on PYTHONPATH."""
import gzip
import json
import os
import pathlib

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
import tensorflow as tf  # noqa: E402
from tensorflow.python.framework import op_def_registry  # noqa: E402

import tw  # noqa: E402

NAMES = {"float16": "half", "float32": "float", "float64": "double"}


def type_name(number):
    name = tf.as_dtype(number).name
    return NAMES.get(name, name)


def value(v):
    """Returns a value in a form for JSON; a shape is a list, or null if its rank is unknown."""
    kind = v.WhichOneof("value")
    if kind == "list":
        return [x.decode() if isinstance(x, bytes) else x for field in ("s", "i", "f", "b") for x in getattr(v.list, field)] + \
            [type_name(t) for t in v.list.type]
    if kind == "shape":
        return None if v.shape.unknown_rank else [d.size for d in v.shape.dim]
    return v.s.decode() if kind == "s" else type_name(v.type) if kind == "type" else getattr(v, kind)


def argument(x):
    """Returns the definition of an input or output, without its unset fields."""
    about = {"name": x.name, "type": type_name(x.type) if x.type else "", "type_attr": x.type_attr, "number_attr": x.number_attr,
             "list_attr": x.type_list_attr, "ref": x.is_ref}
    return {k: v for k, v in about.items() if v}


def attribute(a):
    listed = a.type.startswith("list(")
    about = {"name": a.name, "kind": a.type[5:-1] if listed else a.type, "list": listed}
    if a.HasField("default_value"):
        about["default"] = value(a.default_value)
    if a.has_minimum:
        about["minimum"] = a.minimum
    if a.HasField("allowed_values"):
        about["allowed"] = value(a.allowed_values)
    return about


definitions = {}
for op in tw.ops():
    d = op_def_registry.get(op)
    if d is not None:
        definitions[op] = {"inputs": [*map(argument, d.input_arg)], "outputs": [*map(argument, d.output_arg)], "attrs": [*map(attribute, d.attr)]}
path = pathlib.Path(__file__).parent / "goldens" / "definitions.json.gz"
path.write_bytes(gzip.compress(json.dumps(definitions, separators=(",", ":")).encode(), mtime=0))
print(len(definitions), "ops,", path.stat().st_size, "bytes")
