"""TensorFlow's worker of `tools/bench ops`. It runs the case in the folder eagerly as a raw op, which is TensorFlow's shortest way to a
kernel and folds no constants. usage: tensorflow_ops_worker.py FOLDER THREADS"""
import inspect
import os
import pathlib
import sys

os.environ["CUDA_VISIBLE_DEVICES"] = ""
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

import op_files
import worker

FOLDER, THREADS = pathlib.Path(sys.argv[1]), int(sys.argv[2])
tf.config.threading.set_intra_op_parallelism_threads(THREADS)
tf.config.threading.set_inter_op_parallelism_threads(THREADS)
NAMES = {"half": "float16", "float": "float32", "double": "float64"}


def attribute(value):
    if isinstance(value, list):
        return [attribute(v) for v in value]
    if isinstance(value, dict):
        return tf.as_dtype(NAMES.get(value["type"], value["type"])) if "type" in value else tf.TensorShape(value["shape"])
    return value


def input_names(run, definition):
    """Returns the names of the inputs in Python; a few differ from those in the definition."""
    wanted, taken = [x.name for x in definition.input_arg], inspect.signature(run).parameters
    others = iter([name for name in taken if name not in wanted and name != "name" and name not in {a.name for a in definition.attr}])
    return [name if name in taken else next(others) for name in wanted]


def parts(found):
    """Returns the results of a raw op as one list."""
    found = [] if found is None or isinstance(found, tf.Operation) else list(found) if isinstance(found, (list, tuple)) else [found]
    return [y for part in found for y in (part if isinstance(part, list) else [part])]


class Call:
    """A raw op and its arguments."""

    def __init__(self, op, inputs, attrs):
        self.run, definition = getattr(tf.raw_ops, op, None), op_def_registry.get(op)
        if self.run is None:
            raise ValueError(f"TensorFlow has no op {op}")
        implied = {a for x in definition.input_arg for a in (x.type_attr, x.number_attr, x.type_list_attr)}
        self.names = input_names(self.run, definition)
        self.given = dict(zip(self.names, inputs)) | {a: attribute(v) for a, v in attrs.items() if a not in implied}

    def __call__(self):
        return self.run(**self.given)


class Step:
    def __init__(self):
        op, inputs, attrs, self.steps = op_files.read_case(FOLDER)
        self.variables = []
        self.inputs = [self.enter(value) for value in inputs]
        if not self.steps:
            self.once = Call(op, self.inputs, attrs)
            return
        self.kept = {}
        for k, (*_, once) in enumerate(self.steps):
            if once:
                self.kept[k] = parts(self.call(k, self.kept)())
        self.once = self.chained

    def enter(self, x):
        if isinstance(x, list):
            return [self.enter(part) for part in x]
        if isinstance(x, dict):
            self.variables.append(tf.Variable(x["variable"]))
            return self.variables[-1].handle
        return tf.constant(x.astype(object) if x.dtype.kind == "S" else x)

    def call(self, k, made):
        """Returns the call of step k. made: {step: its results}. JSON has turned the tuples of the arguments into lists."""
        op, args, attrs, _ = self.steps[k]

        def one(arg):
            return self.inputs[arg] if isinstance(arg, int) else made[arg[0]][arg[1]] if len(arg) == 2 else [one(a) for a in arg]
        return Call(op, [one(arg) for arg in args], attrs)

    def chained(self):
        made, found = dict(self.kept), None
        for k, (*_, once) in enumerate(self.steps):
            if not once:
                found = self.call(k, made)()
                made[k] = parts(found)
        return found

    def results(self):
        return [np.asarray(y) for y in [*parts(self.once()), *self.variables]]


step = None


def make():
    global step
    step = None  # frees the old step before the new one takes memory
    step = Step()
    op_files.write_arrays(FOLDER, "theirs", step.results())
    return [1]


worker.serve({
    "make": lambda _: op_files.guarded(FOLDER, make),
    "time": lambda ms: op_files.guarded(FOLDER, lambda: op_files.median_ns(step.once, float(ms))),
})
