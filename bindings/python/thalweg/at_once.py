"""Layers without a graph: a layer is written into a small graph of its own, whose operations an eager context then runs one after the
other. So a layer has one definition, and tapes note its operations like any others."""
import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from . import build, scopes
from .dtypes import DTypeLike
from .eager import here
from .output import Formula, Operation, Output
from .session import Session
from .tensor import Tensor
from .value import Value
from .variable import Variable

if TYPE_CHECKING:
    from .eager import Eager
    from .graph import Graph


class _State(threading.local):
    training = False
    prefix = ""  # of the module that is running


_state = _State()


@contextlib.contextmanager
def in_training(training: bool = True) -> Iterator[None]:
    """Inside the `with`, modules that compute without a graph behave as in training: dropout drops, and batch normalisation uses the batch
    and moves its averages. In graphs the flag thalweg.nn.training decides. Each thread has a state of its own."""
    before, _state.training = _state.training, training
    try:
        yield
    finally:
        _state.training = before


def context_of(inputs: Sequence[Any]) -> "Optional[Eager]":
    """The context that computes a module's result; None if a graph does. Values decide, then the innermost `with`."""
    given, scope = build.graph_of(inputs), scopes.innermost()
    if (given is not None and not given.computes) or (scope is not None and not scope.graph.computes):
        return None
    context: "Eager" = here() if given is None else given  # type: ignore[assignment]
    return context


@contextlib.contextmanager
def named(prefix: str) -> Iterator[None]:
    """Modules that are called inside the `with` have names below the prefix."""
    before, _state.prefix = _state.prefix, prefix
    try:
        yield
    finally:
        _state.prefix = before


def new_prefix(context: "Eager", wanted: str) -> str:
    """Returns a prefix that no module of the context has, below that of the module that is running."""
    return context.unique(_state.prefix + wanted) + "/"


class _Program:
    """Operations of a graph in their order, to be run one after the other."""

    def __init__(self, inputs: list[Output], results: list[Output], targets: list[Operation]):
        self.inputs, self.results = inputs, results
        needed: dict[str, Operation] = {}
        todo = [*(r.operation for r in results), *targets]
        fed = {x.operation.name for x in inputs}
        while todo:
            operation = todo.pop()
            if operation.name not in needed and operation.name not in fed:
                needed[operation.name] = operation
                todo += [*(x.operation for x in operation.inputs), *operation.control_inputs]
        graph = results[0].graph
        self.steps = [_Step(o) for o in graph.operations() if o.name in needed and o.type != "VarHandleOp"]

    def run(self, context: "Eager", given: Sequence[Value], handles: dict[int, Value]) -> list[Value]:
        values: dict[int, Value] = {**handles, **{x.number: v for x, v in zip(self.inputs, given)}}
        for step in self.steps:
            step.run(context, values)
        return [values[r.number] for r in self.results]


class _Step:
    """One operation."""

    def __init__(self, operation: Operation):
        schema = operation.graph.runtime.op(operation.type)
        assert schema is not None
        if any(a["kind"] in ("func", "list(func)") for a in schema["attrs"]):
            raise scopes.only_in_graphs(f"'{operation.name}' ({operation.type}) calls a function, which adds operations")
        self.schema, self.inputs = schema, [x.number for x in operation.inputs]
        self.outputs = [x.number for x in operation.outputs]
        self.given = {name: value for name, value in operation.attributes.items() if not name.startswith("_")}
        self.constant: Optional[Tensor] = self.given["value"] if operation.type == "Const" else None
        self.draws = {"seed", "seed2"} <= self.given.keys() and self.given["seed"] == self.given["seed2"] == 0

    def run(self, context: "Eager", values: dict[int, Value]) -> None:
        if self.constant is not None:
            values[self.outputs[0]] = Value(context, self.constant)
            return
        given = self.given
        if self.draws:
            given = build.with_seeds(context, self.schema, {k: v for k, v in given.items() if k not in ("seed", "seed2")})  # type: ignore[arg-type]
        made = context._call(self.schema, [values[number] for number in self.inputs], given, len(self.outputs))
        values.update((number, Value(context, tensor)) for number, tensor in zip(self.outputs, made))


class AtOnce:
    """The graph of one layer, the variables that stand for those of the graph, and a program for each kind of inputs."""

    def __init__(self, context: "Eager", layer: Any):
        from .graph import Graph
        self.restored = {name: own for name, own in vars(layer).items() if isinstance(own, Variable)}  # of a copy, which has variables already
        self.context, self.layer, self.graph = context, layer, Graph(context.runtime)
        self.handles: dict[int, Value] = {}
        self.kept: list[Variable] = []
        self.programs: dict[Any, Any] = {}

    def __call__(self, dtype: Optional[DTypeLike], inputs: tuple[Any, ...], named_: dict[str, Any]) -> Any:
        """The layer's result. dtype: of arrays among the inputs."""
        given: list[Value] = []
        flat = [_taken(x, self.context, given, dtype) for x in inputs], {k: _taken(x, self.context, given, dtype) for k, x in named_.items()}
        key = repr(flat), tuple((v.dtype.name, v.shape) for v in given), _state.training
        if key not in self.programs:
            self.programs[key] = self._written(flat, given)
        program, form = self.programs[key]
        results = program.run(self.context, given, self.handles)
        return tuple(results) if form is tuple else results[0]

    def _written(self, flat: Any, given: list[Value]) -> Any:
        with self._graph():
            places = [self.graph.placeholder(v.dtype, v.shape) for v in given]
            inputs = [_placed(x, places) for x in flat[0]]
            named_ = {k: _placed(x, places) for k, x in flat[1].items()}
            if not self.programs:
                self.layer.build(*inputs, **named_)
        self._make_variables()
        with self._graph():
            self.graph._training = self.graph.constant(_state.training)
            before = len(self.graph._layer_updates)
            result = self.layer.forward(*inputs, **named_)
            targets = [update for _, update in self.graph._layer_updates[before:]]
        self._make_variables()
        results = list(result) if isinstance(result, tuple) else [result]
        return _Program(places, results, targets), tuple if isinstance(result, tuple) else None

    @contextlib.contextmanager
    def _graph(self) -> Iterator[None]:
        """The graph is current; random operations count on from those of the context, so that no two layers start alike."""
        self.graph._draws = self.context._draws
        try:
            with self.graph:
                yield
        finally:
            self.context._draws = self.graph._draws

    def _make_variables(self) -> None:
        """Makes a variable without a graph for each new one of the layer, with its first value, in its place."""
        new = [v for v in self.graph.variables() if v.handle.number not in self.handles]
        if not new:
            return
        with Session(self.graph) as session:
            session.run([self.graph.operation(v.name + "/Assign") for v in new])
            values = session.run(new, as_tensors=True)
        for variable, value in zip(new, values):
            names = [name for name, own in vars(self.layer).items() if isinstance(own, Variable) and own.handle is variable.handle]
            made = next((self.restored[name] for name in names if name in self.restored), None)
            if made is None:
                made = Variable(Value(self.context, value), name=self.layer._prefix + variable.name,
                                trainable=variable.handle.number not in self.graph._fixed)
            self.handles[variable.handle.number] = made.handle  # type: ignore[assignment]
            self.kept.append(made)
            for name in names:
                setattr(self.layer, name, made)


class _Place:
    """Stands for input `number` of a program."""

    def __init__(self, number: int):
        self.number = number

    def __repr__(self) -> str:
        return f"<{self.number}>"


def _taken(x: Any, context: "Eager", given: list[Value], dtype: Optional[DTypeLike]) -> Any:
    """Notes a value among the inputs and answers its place; other things are answered as they are."""
    if isinstance(x, (tuple, list)):
        return tuple(_taken(one, context, given, dtype) for one in x)
    if x is None or isinstance(x, (bool, str)):
        return x
    if not isinstance(x, Formula):
        numbers = dtype is not None and not isinstance(x, Tensor) and np.asarray(x).dtype.kind in "iuf"
        x = context.constant(x, dtype if numbers else None)
    given.append(x._value())
    return _Place(len(given) - 1)


def _placed(x: Any, places: list[Output]) -> Any:
    if isinstance(x, tuple):
        return tuple(_placed(one, places) for one in x)
    return places[x.number] if isinstance(x, _Place) else x
