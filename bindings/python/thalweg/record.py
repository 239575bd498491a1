"""Recording of one step and its replay: everything that the results of a step depend on, in a folder.

    results = tw.record_step(session, [loss, train], {x: images, y: labels}, folder="step")     # runs the step
    print(tw.replay_step("step").differing)     # in any process: []

The folder has the graph (graph.pb), the names of what was fed and fetched (step.json), and checkpoints: `inputs` has the feeds, `drawn` the
results of operations that give something else in each step (random numbers, elements of iterators and queues, functions of Python),
`before` the variables that the step reads, `results` what it gave. A replay feeds `drawn` instead of running these operations, so it
depends on the folder alone. Dropout of thalweg.nn draws from a variable, so the replay computes its mask again.

Threads: no other step may change the variables during a recording."""
import hashlib
import json
import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Optional, Union

import numpy as np

from .errors import InvalidArgumentError, UnimplementedError
from .graph import Graph
from .nested import rebuild
from .output import Operation, Output
from .saver import Checkpoint, write_checkpoint
from .session import Session, _flatten
from .tensor import Tensor
from .variable import Variable

__all__ = ["Replay", "record_step", "replay_step"]

Path = Union[str, "os.PathLike[str]"]

_FORMAT = 1
_HANDLES = ("VarHandleOp",)
_REFERENCES = ("TemporaryVariable", "Variable", "VariableV2")
_LOCAL = ("TensorArray", "Stack")                 # their state lives in one step
_PASSING = ("Enter", "Exit", "Identity", "Merge", "NextIteration", "Switch")
_SILENT = ("Assert", "NoOp", "Print", "PrintV2")   # stateful, and the results of a step do not depend on them
_SAME = ("CheckNumerics", "StatelessRandomGetAlg")  # stateful for another reason: their results follow from their inputs


def __dir__() -> list[str]:
    return __all__


class Replay(NamedTuple):
    """What a replayed step gave. values: by the names of the fetches and, after `variable `, of the variables that the step updated.
    differing: for each of these whose bits are others than in the recorded step, the name and by how much it differs."""
    values: dict[str, Tensor]
    differing: list[str]

    @property
    def same(self) -> bool:
        """Whether all bits are those of the recorded step."""
        return not self.differing


def record_step(session: Session, fetches: Any, feeds: Optional[Mapping[Any, Any]] = None, *, folder: Path) -> Any:
    """Runs a step as session.run does, and writes to a new folder what a replay needs. Returns the results of the step.
    Raises FileExistsError for a folder that has files, UnimplementedError naming an operation whose state cannot be recorded (a table, a
    summary writer, random numbers, files or functions of Python inside of a function), and the errors of Session.run; the folder then has no step.json, and is no
    recording."""
    to = pathlib.Path(folder)
    to.mkdir(parents=True, exist_ok=True)
    if any(to.iterdir()):
        raise FileExistsError(f"record_step: the folder '{to}' has files already; give a new one")
    leaves: list[Any] = []
    form = _flatten(fetches, leaves)
    wanted = [session._resolve(x) for x in leaves]
    given = {(key := session._feed(k)): x if isinstance(x, Tensor) else Tensor(x, key.dtype) for k, x in (feeds or {}).items()}
    needs = _Needs(session.graph, wanted, set(given))

    graph = session.graph.to_bytes()
    before = _read(session, needs.variables)
    values, drawn = session.run([wanted, needs.drawn], given, as_tensors=True)
    after = _read(session, needs.variables)

    results = {x.name: v for x, v in zip(wanted, values) if isinstance(x, Output)}
    results |= {f"variable {v.name}": after[v.name] for v in needs.variables if _digest(before[v.name]) != _digest(after[v.name])}
    (to / "graph.pb").write_bytes(graph)
    parts = {"inputs": {x.name: t for x, t in given.items()}, "drawn": {x.name: t for x, t in zip(needs.drawn, drawn)}, "before": before,
             "results": results}
    for name, tensors in parts.items():
        if tensors:
            write_checkpoint(to / name, tensors)
    about = {"format": _FORMAT, "graph": hashlib.sha256(graph).hexdigest(), "fetches": [x.name for x in wanted if isinstance(x, Output)],
             "targets": [x.name for x in [*wanted, *needs.updates] if isinstance(x, Operation)], **{name: sorted(tensors) for name, tensors in parts.items()}}
    new = to / "step.json.new"
    new.write_text(json.dumps(about, indent=1) + "\n")
    os.replace(new, to / "step.json")  # the last file: a folder with it is whole
    return rebuild(form, iter([v if v is None else _plain(v) for v in values]))


def replay_step(folder: Path, **options: Any) -> Replay:
    """Runs a recorded step again, with a session of its own. options: of the session, as in Session(g, threads=1).
    The folder may come from a stranger: operations that read files or call functions of Python are refused, and memory is bounded as in
    sessions of other imported graphs.
    Raises InvalidArgumentError for a folder that is no recording, DataLossError for a damaged one, UnimplementedError for a graph that
    record_step would refuse, errors of the step."""
    of = pathlib.Path(folder)
    about = _about(of)
    data = (of / "graph.pb").read_bytes()
    if hashlib.sha256(data).hexdigest() != about["graph"]:
        raise InvalidArgumentError(f"'{of / 'graph.pb'}' is not the graph of the recording; it was changed")
    parts = {name: _tensors(of / name, about[name]) for name in ("inputs", "drawn", "before", "results")}
    graph = Graph.from_bytes(data)
    variables = {v.name: v for v in graph.variables()}
    placeholders = {name: graph.placeholder(t.dtype, t.shape) for name, t in parts["before"].items()}
    restore = [variables[name].assign(x) for name, x in placeholders.items()]
    feeds = {graph.output(name): t for part in ("inputs", "drawn") for name, t in parts[part].items()}
    wanted = [*(graph.output(name) for name in about["fetches"]), *(graph.operation(name) for name in about["targets"])]
    if drawn := _Needs(graph, wanted, set(feeds)).drawn:
        raise InvalidArgumentError(f"'{of}': {drawn[0].operation.type} '{drawn[0].operation.name}' would give something else than in the recorded "
                                   "step, and step.json does not list it under 'drawn'; the recording is damaged")
    with Session(graph, **options) as session:
        if restore:
            session.run(restore, {x: parts["before"][name] for name, x in placeholders.items()})
        found = dict(zip(about["fetches"], session.run(wanted, feeds, as_tensors=True)))
        updated = [variables[name.removeprefix("variable ")] for name in parts["results"] if name.startswith("variable ")]
        found |= {f"variable {name}": t for name, t in _read(session, updated).items()}
    return Replay(found, [f"{name}: {_difference(found[name], t)}" for name, t in parts["results"].items() if _digest(found[name]) != _digest(t)])


# ---- What a step depends on ----

class _Needs:
    """variables: that the step reads or updates.   drawn: the values that are others in each step.   updates: operations that change a
    variable before such a value, which a replay must run as targets."""

    def __init__(self, graph: Graph, wanted: list[Any], fed: set[Output]):
        self.graph, self.drawn, self.updates = graph, list[Output](), list[Operation]()
        self._fed, self._handles, self._seen = fed, set[int](), set[Operation]()
        self._functions: Optional[dict[str, tuple[set[str], set[str]]]] = None
        left = [x if isinstance(x, Operation) else x.operation for x in wanted if x not in fed]
        while left:
            self._walk(left)
            left = self._hidden_updates()
            self.updates += left
        self.variables: list[Variable] = [v for v in graph.variables() if v.handle.number in self._handles]

    def _walk(self, left: list[Operation]) -> None:
        """Looks at these operations and all that they need."""
        while left:
            operation = left.pop()
            if operation in self._seen:
                continue
            self._seen.add(operation)
            for called in _functions_of(operation):
                self._functions = _library(self.graph.to_bytes()) if self._functions is None else self._functions
                self._check_function(operation, called, self._functions)
            if operation.type in _REFERENCES:
                raise UnimplementedError(f"record_step: variable '{operation.name}' is a reference ({operation.type}); only variables with handles, as "
                                         "tw.Variable makes them, can be recorded")
            if operation.type in _HANDLES:
                self._handles.add(operation.outputs[0].number)
            elif self._draws(operation):
                self.drawn += [x for x in operation.outputs if x not in self._fed]
                continue  # its inputs are not needed: its outputs are fed
            left += [x.operation for x in operation.inputs if x not in self._fed] + operation.control_inputs

    def _hidden_updates(self) -> list[Operation]:
        """The operations that change a variable and that only drawn values need."""
        found, seen = list[Operation](), set[Operation]()
        left = [x.operation for x in self.drawn]
        while left:
            operation = left.pop()
            if operation in seen:
                continue
            seen.add(operation)
            if operation not in self._seen and not operation.outputs and any(x.dtype.name == "resource" and "VarHandleOp" in _origins(x)
                                                                             for x in operation.inputs):
                found.append(operation)
            left += [x.operation for x in operation.inputs if x.dtype.name not in ("resource", "variant")] + operation.control_inputs
        return found

    def _draws(self, operation: Operation) -> bool:
        """Whether its results are others in each step, apart from those of variables. Raises if they cannot be recorded."""
        kinds = set[str]().union(*(_origins(x) for x in operation.inputs if x.dtype.name == "resource"))
        others = any(kind not in _HANDLES and not kind.startswith(_LOCAL) for kind in kinds)
        stateful = (self.graph.runtime.op(operation.type) or {}).get("stateful", False)
        if operation.type in (*_SILENT, *_PASSING, *_SAME) or operation.type.startswith(_LOCAL):
            return False
        if not others and (kinds or not stateful or _functions_of(operation)):
            return False
        outputs = operation.outputs
        if not outputs or _functions_of(operation) or any(x.dtype.name in ("resource", "variant") for x in outputs):
            raise UnimplementedError(f"record_step: {operation.type} '{operation.name}' has state that is neither a variable nor read as a value of "
                                     "the step; leave it out of the fetches, or feed what depends on it")
        return True

    def _check_function(self, operation: Operation, name: str, functions: dict[str, tuple[set[str], set[str]]]) -> None:
        left, seen = [name], set[str]()
        while left:
            at = left.pop()
            if at in seen or at not in functions:
                continue
            seen.add(at)
            ops, called = functions[at]
            for op in ops:
                about = self.graph.runtime.op(op) or {"inputs": [], "attrs": []}
                if not about.get("stateful") or op in (*_SILENT, *_PASSING, *_SAME) or op.startswith(_LOCAL):
                    continue
                if any(a["kind"] == "func" for a in about["attrs"]) or any(x.get("type") == "resource" for x in about["inputs"]):
                    continue  # its state is that of a handle, which the caller gives
                random = {"seed", "seed2"} <= {a["name"] for a in about["attrs"]}
                raise UnimplementedError(f"record_step: {operation.type} '{operation.name}' calls the function '{at}', in which {op} " +
                                         ("draws random numbers that cannot be recorded; use the stateless form of the op" if random else
                                          "may give something else in each step, which cannot be recorded; call it outside of the function"))
            left += called


def _functions_of(operation: Operation) -> list[str]:
    """The names of the functions that it calls."""
    about = operation.graph.runtime.op(operation.type) or {"attrs": []}
    kinds = [a["name"] for a in about["attrs"] if a["kind"] == "func"]
    if not kinds:
        return []
    values = operation.attributes
    return [str(name) for kind in kinds for name in (values[kind] if isinstance(values[kind], (list, tuple)) else [values[kind]])]


def _origins(handle: Output) -> set[str]:
    """The types of the operations from which a handle may come, through those that pass handles on."""
    found, left, seen = set[str](), [handle], set[Operation]()
    while left:
        operation = left.pop().operation
        if operation in seen:
            continue
        seen.add(operation)
        if operation.type in _PASSING:
            left += [x for x in operation.inputs if x.dtype.name == "resource"]
        else:
            found.add(operation.type)
    return found


# ---- The library of a GraphDef, in the wire format of Protocol Buffers ----

def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of a message whose values have lengths."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        tag = varint()
        if tag & 7 == 2:
            size = varint()
            yield tag >> 3, data[at:at + size]
            at += size
        else:
            at += {1: 8, 5: 4}.get(tag & 7, 0)
            if tag & 7 == 0:
                varint()


def _library(graph: bytes) -> dict[str, tuple[set[str], set[str]]]:
    """For each function of a GraphDef the ops in it, and the functions that it calls."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    for library in (v for k, v in _fields(graph) if k == 2):
        for function in (v for k, v in _fields(library) if k == 1):
            name, ops, called = "", set[str](), set[str]()
            for k, part in _fields(function):
                if k == 1:
                    name = next((v.decode() for j, v in _fields(part) if j == 1), "")
                if k == 3:
                    for j, v in _fields(part):
                        if j == 2:
                            ops.add(v.decode())
                        if j == 5:
                            called |= {n.decode() for i, value in _fields(v) if i == 2 for h, one in _fields(value) if h == 10
                                       for g, n in _fields(one) if g == 1}
            found[name] = ops, called
    return found


# ---- Tensors ----

def _read(session: Session, variables: list[Variable]) -> dict[str, Tensor]:
    return dict(zip((v.name for v in variables), session.run(variables, as_tensors=True))) if variables else {}


def _digest(tensor: Tensor) -> bytes:
    """Of type, shape and bits."""
    array = tensor.numpy()
    digest = hashlib.sha256(f"{tensor.dtype.name} {tensor.shape}".encode())
    if array.dtype == object:
        for text in array.reshape(-1):
            digest.update(len(text).to_bytes(8, "little") + text)
    else:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.digest()


def _difference(now: Tensor, then: Tensor) -> str:
    if now.dtype != then.dtype or now.shape != then.shape:
        return f"{now.dtype.name} {list(now.shape)}, and {then.dtype.name} {list(then.shape)} in the recording"
    a, b = now.numpy(), then.numpy()
    if a.dtype == object or a.dtype == bool:
        return f"{int(np.sum(a != b))} of {a.size} elements differ"
    bits = [np.ascontiguousarray(x).reshape(-1, 1).view(np.uint8) for x in (a, b)]  # -0.0 and 0.0 differ, and so may two NaNs
    with np.errstate(all="ignore"):
        difference = np.abs(a.astype(np.float64) - b.astype(np.float64)) if a.dtype.kind != "c" else np.abs(a - b)
    most = np.max(difference[np.isfinite(difference)], initial=0)
    return f"{int(np.sum(np.any(bits[0] != bits[1], axis=1)))} of {a.size} elements differ, by up to {most:.6g}"


def _plain(tensor: Tensor) -> Any:
    array = tensor.numpy()
    return array[()] if array.ndim == 0 else array


def _about(of: pathlib.Path) -> dict[str, Any]:
    try:
        about = json.loads((of / "step.json").read_text())
    except (OSError, ValueError) as e:
        raise InvalidArgumentError(f"'{of}' is no recording of a step: {e}; tw.record_step makes one") from None
    if not isinstance(about, dict) or about.get("format") != _FORMAT:
        raise InvalidArgumentError(f"'{of / 'step.json'}' is of a format that is not known; this version reads format {_FORMAT}")
    lists = {key: about.get(key) for key in ("fetches", "targets", "inputs", "drawn", "before", "results")}
    for key, names in lists.items():
        if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
            raise InvalidArgumentError(f"'{of / 'step.json'}': '{key}' must be a list of names")
    return about


def _tensors(prefix: pathlib.Path, names: list[str]) -> dict[str, Tensor]:
    if not names:
        return {}
    with Checkpoint(prefix) as c:
        missing = [name for name in names if name not in c]
        if missing:
            raise InvalidArgumentError(f"'{prefix}' has no tensor '{missing[0]}', which step.json names; the recording is damaged")
        return {name: c.read(name) for name in names}
