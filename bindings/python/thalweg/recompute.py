"""Recomputation: a gradient computes the values inside a function again, instead of keeping them from the forward pass.

    block = thalweg.checkpoint(block)       # or @thalweg.checkpoint above a function
    for _ in range(16):
        x = block(x)                        # a tape, or a step, keeps sixteen values of x and nothing of the insides"""
import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from . import _low, build, control, flow, functions, nested, traced
from .graph import Graph
from .module import Module
from .output import Formula, Operation, Output


def checkpoint(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that computes what `function` does and whose gradient recomputes the values inside: less memory, more time, the same bits.

    function: takes and returns values, in nested tuples, lists and dicts; a module, whose variables and names stay as they are. It may use
    values and variables from around it, which have gradients too. Kept are its arguments, its results, and the results of stateful
    operations inside, so random draws (dropout) are the same in both computations and effects happen once. A condition or loop that reads
    variables or has effects counts as such an operation: what its own gradient reads inside is recomputed.
    Works with tapes, in traced functions and in graphs, for gradients of any order, and nested. Inside of vmap it has no effect; take the
    checkpoint of the mapped function. Raises TypeError if `function` cannot be called."""
    if not callable(function):
        raise TypeError(f"checkpoint: {function!r} is no function; write thalweg.checkpoint(f)(x)")
    return _Recomputed(function) if isinstance(function, Module) else Checkpoint(function)


class Checkpoint:
    """A function whose gradient recomputes; see checkpoint."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            with contextlib.suppress(AttributeError):
                setattr(self, name, getattr(function, name))

    def __repr__(self) -> str:
        return f"<Checkpoint of {_name_of(self.function)}>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else Checkpoint(self.function.__get__(instance, owner))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return call(self.function, args, kwargs)


class _Recomputed(Module):
    """A module whose gradient recomputes. It has no variables and no name of its own."""

    def __init__(self, inner: Module):
        super().__init__()
        self.inner = inner

    @property
    def _graph(self) -> Any:  # type: ignore[override]
        return self.inner._graph

    @_graph.setter
    def _graph(self, graph: Any) -> None:
        """That of the inner module counts."""

    @property
    def name(self) -> str:
        """That of the inner module."""
        return self.inner.name

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        result = call(self.inner, inputs, named)
        self._shape = self.inner._shape
        return result

    def __repr__(self) -> str:
        return f"<Checkpoint of {self.inner!r}>"


def call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls the function as a part whose values are recomputed."""
    leaves: list[Any] = []
    form = nested.flatten((args, kwargs), leaves)
    eager = traced.eager_for(leaves)
    if eager is not None:
        with eager.part():
            return function(*args, **kwargs)
    if functions.inlines():
        return _rewritten(flow.graph_for([leaves]), function)(*args, **kwargs)
    return _Call(flow.graph_for([leaves]), function, leaves, form).add()


def _name_of(function: Any) -> str:
    if isinstance(function, Module):
        return function.name.rsplit("/", 1)[-1]
    return (getattr(function, "__name__", "") or type(function).__name__).strip("<>_") or "function"


def _rewritten(graph: Graph, function: Callable[..., Any]) -> Callable[..., Any]:
    rewritten: Callable[..., Any] = control.converted(function) if graph._root().rewrites else function
    return rewritten


class _Part(flow.Body):
    """The graph of the function. Modules that are called for the first time in it make their variables in the graph around."""
    makes_variables_outside = True


_VALUE: Any = object()  # stands for a result that is a value


class _Call:
    """A call of the function in a graph: a function of the graph, marked for recomputation."""

    def __init__(self, graph: Graph, function: Callable[..., Any], leaves: Sequence[Any], form: Any):
        self.graph, self.label = graph, _name_of(function)
        self.values = [flow.own(graph, x) if _is_value(x) else None for x in leaves]
        given = [x for x in self.values if x is not None]
        self.fixed: list[Any] = []
        self.form: Any = None
        self.reads: dict[int, Output] = {}  # by the number of the handle in the function

        def flat(*places: Output) -> list[Any]:
            places_left = iter(places)
            args, kwargs = nested.rebuild(form, iter([next(places_left) if v is not None else x for x, v in zip(leaves, self.values)]))
            found: list[Any] = []
            self.form = nested.flatten(_rewritten(graph, function)(*args, **kwargs), found)
            for x in found:
                if isinstance(x, control.Undefined):
                    x._fail()
            self.fixed = [_VALUE if isinstance(x, Formula) or control._is_number(x) else x for x in found]
            return [x for x in found if isinstance(x, (Operation, Formula)) or control._is_number(x)]

        self.part = flow.Traced(graph, flat, [(v.dtype, v.shape) for v in given], f"checkpoint: function '{self.label}'", _Part)
        body = self.part.body
        self.outside = {body._own(c).number: c for c in body.captured()} | {a.number: v for a, v in zip(self.part.args, given)}

    def add(self) -> Any:
        """Adds the call and returns the results of the function."""
        part, body = self.part, self.part.body
        inner = flow.outlined(body, self._cuts(), part.results, part.targets, self.label)
        args, name = inner.inputs, inner.attributes["f"]
        name = name.decode() if isinstance(name, bytes) else name
        if body._root().traces is not None:
            body._root().store(name, body, args, part.results, part.targets, recomputed=True)  # type: ignore[attr-defined]
        attributes = {"Tout": [r.dtype for r in part.results], "f": name}
        operation = build.add_operation(self.graph, inner.type, ([self._from_outside(x) for x in args],), attributes, None,
                                        _low.tw_op_set_recompute)
        flow.keep(self.graph, operation, [part])
        found = iter(operation.outputs)
        return nested.rebuild(self.form, iter([next(found) if x is _VALUE else None if isinstance(x, Operation) else x for x in self.fixed]))

    def _cuts(self) -> list[Output]:
        """The values at which the function begins: arguments and captured values that it needs, and first reads of variables. These run
        outside, so that a function that only reads variables has no state."""
        cuts: dict[int, Output] = {}
        seen: set[Operation] = set()
        todo: list[Operation] = list(self.part.targets)

        def need(values: Sequence[Output]) -> None:
            for x in values:
                if x.number in self.outside or self._is_first_read(x.operation):
                    cuts[x.number] = x
                else:
                    todo.append(x.operation)

        need(self.part.results)
        while todo:
            operation = todo.pop()
            if operation not in seen:
                seen.add(operation)
                need(operation.inputs)
                todo += operation.control_inputs
        return list(cuts.values())

    def _is_first_read(self, operation: Operation) -> bool:
        return operation.type == "ReadVariableOp" and not operation.control_inputs and operation.inputs[0].number in self.outside

    def _from_outside(self, x: Output) -> Output:
        """The value of the graph for an argument of the function."""
        known = self.outside.get(x.number)
        if known is not None:
            return known
        handle = x.operation.inputs[0].number
        if handle not in self.reads:
            self.reads[handle] = self.graph.op("ReadVariableOp", self.outside[handle], dtype=x.dtype)
        return self.reads[handle]


def _is_value(x: Any) -> bool:
    return isinstance(x, Output) and not x.graph.computes
