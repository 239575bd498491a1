"""Thalweg's worker of `tools/bench ops`: one op at a time, fed with a case's arrays, prepared. usage: ops_worker.py FOLDER THREADS; the
modules of tests/ops and the binding are on PYTHONPATH."""
import ctypes
import itertools
import json
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import op_cases
import op_files
import tw
import worker
from thalweg import _low as low
from thalweg.errors import check

FOLDER = pathlib.Path(sys.argv[1])
cases, left_out = op_cases.cases()
flat_cases = [case for found in cases.values() for case in found]
containers = map("ops{}".format, itertools.count())


def plain_attr(value):
    """Returns an attribute's value in the form that JSON can hold and TensorFlow's worker reads."""
    if isinstance(value, tw.TYPES):
        return {"type": tw.number_name(value)}
    if isinstance(value, list):
        return [plain_attr(v) for v in value]
    return {"shape": list(value)} if isinstance(value, tuple) else value


def array_of(x):
    x = np.asarray(x)
    return x.astype(object) if x.dtype.kind == "S" else x


class Step:
    """The op in a graph of its own. Its inputs are fed, so that constant folding cannot compute anything in advance."""

    def __init__(self, case):
        self.graph, self.feeds, self.variables = tw.Graph(), {}, []
        self.session = self.graph.session(container=next(containers))
        given = case.made()
        values = [value for x in given for value in map(self.enter, x if isinstance(x, list) else [x])]
        variable = lambda x: {"variable": x.value} if isinstance(x, op_cases.Variable) else x  # noqa: E731
        told = [[s.op, s.args, {a: plain_attr(v) for a, v in s.attrs.items()}, s.once] for s in case.steps]
        op_files.write_case(FOLDER, case.op, list(map(variable, given)), {a: plain_attr(v) for a, v in case.attrs.items()}, told)
        if case.steps:
            self.operation = self.chained(case.steps, values)
            return self.prepare()
        about = tw.ops()[case.op]
        implied = op_cases.declare.draws.implied(about, [[array_of(p) for p in x] if isinstance(x, list) else x for x in given], {})
        self.operation = self.graph.add(case.op, *values, **case.attrs | implied)
        self.prepare()

    def chained(self, steps, values):
        """Adds a chain of operations and runs those that run once. Returns the last one."""
        results, last = [], {True: [], False: []}
        for s in steps:
            args = [values[a] if isinstance(a, int) else results[a[0]][a[1]] for arg in s.args for a in (arg if isinstance(arg, list) else [arg])]
            last[s.once] = [self.graph.add(s.op, *args, after=last[s.once], **s.attrs)]
            results.append(last[s.once][0].outputs)
        if last[True]:
            self.session.run([], self.feeds, last[True])
        return last[False][0]

    def enter(self, x):
        if not isinstance(x, op_cases.Variable):
            x = array_of(x)
            value = self.graph.placeholder(x.dtype, x.shape)
            self.feeds[value] = x
            return value
        handle = self.graph.op("VarHandleOp", dtype=x.value.dtype, shape=x.value.shape, shared_name=f"v{len(self.variables)}")
        value = self.graph.placeholder(x.value.dtype, x.value.shape)
        self.session.run([], {value: x.value}, [self.graph.add("AssignVariableOp", handle, value, dtype=x.value.dtype)])
        self.variables.append(self.graph.op("ReadVariableOp", handle, dtype=x.value.dtype))
        return handle

    def prepare(self):
        """Makes `once`, the bare call of the C API."""
        outputs = self.operation.outputs
        targets = () if outputs else (self.operation,)
        self.callable = self.session.callable(list(outputs), list(self.feeds), targets)
        self.tensors = [tw.to_tensor(x) for x in self.feeds.values()]
        handles = (ctypes.c_void_p * len(self.tensors))(*(t._handle for t in self.tensors))
        results, n, step = (ctypes.c_void_p * len(outputs))(), len(outputs), self.callable._prepared._handle

        def once():
            check(low.tw_callable_run(step, handles, None, results))
            for i in range(n):
                low.tw_tensor_release(results[i])
        self.once = once

    def results(self):
        outputs = self.session.run(list(self.operation.outputs), self.feeds, () if self.operation.outputs else (self.operation,))
        return outputs + self.session.run(self.variables)


step = None


def make(number):
    """Makes the step of that case and writes its results to files. Returns [1]."""
    global step
    step = None  # frees the old step before the new one takes memory
    step = Step(flat_cases[int(number)])
    op_files.write_arrays(FOLDER, "ours", step.results())
    return [1]


def agree(number):
    case = flat_cases[int(number)]
    why = op_files.difference(*(op_files.read_arrays(FOLDER, side)[:case.agree] for side in ("ours", "theirs")))
    if why:
        raise ValueError(why)
    return [1]


def list_cases(_):
    """Writes the cases, and the ops without one, to `cases.json`."""
    (FOLDER / "cases.json").write_text(json.dumps({"cases": [[c.op, c.name] for c in flat_cases], "left out": left_out}))
    return [len(flat_cases)]


worker.serve({
    "list": list_cases,
    "make": lambda number: op_files.guarded(FOLDER, lambda: make(number)),
    "agree": lambda number: op_files.guarded(FOLDER, lambda: agree(number)),
    "time": lambda ms: op_files.guarded(FOLDER, lambda: op_files.median_ns(step.once, float(ms))),
})
