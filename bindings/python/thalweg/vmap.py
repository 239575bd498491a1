"""vmap: a function of one example becomes one of a batch.

    distances = thalweg.vmap(lambda a, b: ((a - b) ** 2).sum() ** 0.5)
    distances(xs, ys)           # of each row

The function is traced once for the shapes of an example. Then each of its operations is made once for the whole batch, by a rule of its op
(module batching). An op without a rule runs for each example, and a VmapWarning says so once."""
import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Optional, Union

from . import at_once, batching, control, flow, functions, nested, traced
from .graph import Graph
from .op_text import is_list
from .output import Operation, Output, shape_text

Axes = Union[None, int, Sequence[Any]]


class VmapWarning(UserWarning):
    """An op has no rule for batches and runs for each example."""


_told: set[str] = set()


def vmap(function: Callable[..., Any], in_axes: Axes = 0, out_axes: int = 0) -> Callable[..., Any]:
    """A function that applies `function` to each example of a batch.

    in_axes: the axis of the batch, for all arguments, or a list with one for each; None for an argument that is the same for all.
    out_axes: the axis of the batch in the results. Variables are the same for all examples; random ops draw for each.
    Nested vmaps, gradients of it and gradients inside of it work. Raises ValueError where the batches of arguments differ."""
    if not callable(function):
        raise TypeError(f"vmap: {function!r} is no function")

    @functools.wraps(function)
    def batch(*args: Any, **kwargs: Any) -> Any:
        return _Batch(function, in_axes, out_axes).call(args, kwargs)

    return batch


def vmap_ops() -> list[str]:
    """The ops that have a rule for batches."""
    from .runtime import default_runtime
    return batching.covered(list(default_runtime().ops()))


class _Batch:
    def __init__(self, function: Callable[..., Any], in_axes: Axes, out_axes: int):
        self.function, self.in_axes, self.out_axes = function, in_axes, out_axes

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        leaves: list[Any] = []
        form = nested.flatten((args, kwargs), leaves)
        axes = self._axes(args, kwargs)
        eager = traced.eager_for(leaves)
        where: Any = eager if eager is not None else flow.graph_for([leaves])
        values: list[Any] = []
        for x, axis in zip(leaves, axes):
            if not functions._varies(x):
                values.append(x)
                continue
            value = where.constant(x) if not control.is_traced(x) or eager is not None else flow.own(where, x)
            values.append(value if axis is None else _moved(where, value, axis, 0))
        batched = [functions._varies(x) and axis is not None for x, axis in zip(leaves, axes)]
        size = self._size(where, values, batched)
        dynamic = [functions._varies(x) for x in leaves]
        return self._results(where, _Interpreter(where, eager, size), values, batched, dynamic, form)

    def _axes(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Optional[int]]:
        given = list(self.in_axes) if isinstance(self.in_axes, (list, tuple)) else [self.in_axes] * len(args)
        if len(given) != len(args):
            raise ValueError(f"vmap: there are {len(args)} arguments, but in_axes has {len(given)}")
        found: list[Optional[int]] = []
        for x, axis in [*zip(args, given), *((x, 0) for x in kwargs.values())]:
            inner: list[Any] = []
            nested.flatten(x, inner)
            found += [axis] * len(inner)
        return found

    def _size(self, where: Any, values: Sequence[Any], batched: Sequence[bool]) -> Any:
        sizes = {}
        for x, b in zip(values, batched):
            if not b:
                continue
            if not x.shape:
                raise ValueError(f"vmap: {x!r} has no axis for the batch; give it in_axes None if it is the same for all examples")
            sizes[x.shape[0]] = x
        known = {n for n in sizes if n is not None}
        if not sizes:
            raise ValueError("vmap: no argument has a batch")
        if len(known) > 1:
            raise ValueError(f"vmap: the batches have {' and '.join(str(n) for n in sorted(known))} examples")
        return known.pop() if known else where.op("Shape", next(iter(sizes.values())))[0]

    def _results(self, where: Any, interpreter: "_Interpreter", values: list[Any], batched: list[bool], dynamic: list[bool], form: Any) -> Any:
        results, out = interpreter.run(self.function, values, batched, dynamic, form)
        found = []
        for x, b in results:
            if not isinstance(x, Output):
                found.append(x)
                continue
            if not b:
                n = len(x.shape or ())
                sizes = batching.Call(where, "", [x], [False], [x.shape], {}, interpreter.size)
                x = where.op("BroadcastTo", x, sizes.sizes(interpreter.size, *([list(x.shape)] if n else [])))
            found.append(_moved(where, x, 0, self.out_axes))
        return nested.rebuild(out, iter(found))


def _moved(where: Any, x: Any, source: int, to: int) -> Any:
    """The value with one axis at another place."""
    if source == to:
        return x
    if x.shape is None:
        raise ValueError(f"vmap: the rank of {x!r} is unknown, so its axis {source} cannot be moved")
    order = list(range(len(x.shape)))
    if not -len(order) <= source < len(order) or not -len(order) <= to < len(order):
        raise ValueError(f"vmap: {x!r} of shape {shape_text(x.shape)} has no axis {source if source else to}")
    axis = order.pop(source)
    order.insert(to % (len(order) + 1), axis)
    return where.op("Transpose", x, order)


@contextlib.contextmanager
def _rewriting(root: Graph) -> Iterator[None]:
    """Inside of the `with`, tapes, gradients and modules work as in a traced function."""
    before, root.rewrites = root.rewrites, True
    try:
        yield
    finally:
        root.rewrites = before


class _Interpreter:
    """Makes the operations of a traced function for a batch."""

    def __init__(self, where: Any, eager: Any, size: Any):
        self.where, self.eager, self.size = where, eager, size
        self.env: dict[int, tuple[Any, bool]] = {}

    def run(self, function: Callable[..., Any], values: list[Any], batched: list[bool], dynamic: list[bool], form: Any) \
            -> tuple[list[tuple[Any, bool]], Any]:
        graph: Graph = traced.Trace(self.eager) if self.eager is not None else flow.Body(self.where)
        root = graph._root()
        with graph, functions.inlined(), _rewriting(root):
            if self.eager is not None:
                graph._training = graph.constant(at_once._state.training)
            places, given = [], []
            for x, b, d in zip(values, batched, dynamic):
                if d:
                    place = graph.placeholder(x.dtype, None if x.shape is None else x.shape[1:] if b else x.shape)
                    places.append(place)
                    self.env[place.number] = x, b
                given.append(place if d else x)
            args, kwargs = nested.rebuild(form, iter(given))
            answer = function(*args, **kwargs)
            leaves: list[Any] = []
            out = nested.flatten(answer, leaves)
            leaves = [graph.constant(x) if control._is_number(x) else graph._own(x._value()) if control.is_traced(x) else x for x in leaves]
        if self.eager is not None:
            self.eager._draws = graph._draws
            outside = [(o.number, x) for x, o in graph.given]  # type: ignore[attr-defined]
        else:
            outside = [(graph._own(x).number, x) for x in graph.captured()]  # type: ignore[attr-defined]
        for number, x in outside:
            self.env[number] = x, False
        needed = self._needed(graph, [x for x in leaves if isinstance(x, Output)])
        for operation in graph.operations():
            if operation in needed and not all(o.number in self.env for o in operation.outputs):
                self._make(operation)
            elif not operation.outputs and operation.type != "NoOp":
                self._make(operation)
        return [self.env[x.number] if isinstance(x, Output) else (x, False) for x in leaves], out

    @staticmethod
    def _needed(graph: Graph, results: Sequence[Output]) -> set[Operation]:
        found: set[Operation] = set()
        todo = [x.operation for x in results] + [o for o in graph.operations() if not o.outputs and o.type != "NoOp"]
        while todo:
            operation = todo.pop()
            if operation not in found:
                found.add(operation)
                todo += [x.operation for x in operation.inputs]
        return found

    def _make(self, operation: Operation) -> None:
        if operation.type == "Const":
            self.env[operation.outputs[0].number] = self.where.constant(operation.attributes["value"]), False
            return
        c = self._call(operation)
        any_batched = any(any(b) if isinstance(b, list) else b for b in c.batched)
        schema = operation.graph.runtime.op(operation.type)
        assert schema is not None
        if any(a["kind"].startswith(("func", "list(func")) for a in schema["attrs"]):
            raise TypeError(f"vmap: '{operation.name}' ({operation.type}) is a condition or loop that values decide; vmap maps only what runs "
                            "the same operations for all examples; choose elements with ops.select_v2, or use thalweg.map_fn")
        if any_batched and schema["stateful"] and not operation.outputs:
            raise TypeError(f"vmap: '{operation.name}' ({operation.type}) changes state, for which there is no order among examples")
        if not any_batched and operation.type not in batching.DRAWS:
            self._keep(operation, c.again(*c.inputs), False)
            return
        rule = batching.drawn if operation.type in batching.DRAWS else batching.RULES.get(operation.type)
        try:
            if rule is None:
                raise batching.Unknown("it has no rule")
            found = rule(c)
        except batching.Unknown as e:
            found = self._one_by_one(operation, c, str(e))
        if isinstance(found, tuple) and len(found) == 2 and found[1] is False:
            self._keep(operation, found[0], False)
        else:
            self._keep(operation, found, True)

    def _keep(self, operation: Operation, found: Any, batched: bool) -> None:
        flat: list[Any] = []
        for y in found if isinstance(found, (list, tuple)) else [found]:
            flat += y if isinstance(y, (list, tuple)) else [y]
        for output, y in zip(operation.outputs, flat):
            self.env[output.number] = y, batched

    def _call(self, operation: Operation) -> batching.Call:
        attributes = {k: v for k, v in operation.attributes.items() if not k.startswith("_")}
        schema = operation.graph.runtime.op(operation.type)
        assert schema is not None
        flat = iter(operation.inputs)
        inputs: list[Any] = []
        batched: list[Any] = []
        shapes: list[Any] = []
        for argument in schema["inputs"]:
            if is_list(argument):
                n = attributes[argument.get("number_attr") or argument["list_attr"]]
                several = [next(flat) for _ in range(n if isinstance(n, int) else len(n))]
                inputs.append([self.env[x.number][0] for x in several])
                batched.append([self.env[x.number][1] for x in several])
                shapes.append([x.shape for x in several])
            else:
                x = next(flat)
                inputs.append(self.env[x.number][0])
                batched.append(self.env[x.number][1])
                shapes.append(x.shape)
        if {"seed", "seed2"} <= attributes.keys() and attributes["seed"] == attributes["seed2"] == 0:
            del attributes["seed"], attributes["seed2"]
        return batching.Call(self.where, operation.type, inputs, batched, shapes, attributes, self.size)

    def _one_by_one(self, operation: Operation, c: batching.Call, why: str) -> Any:
        if not isinstance(self.size, int):
            raise TypeError(f"vmap: '{operation.name}' ({operation.type}) has no rule for batches here ({why}), and the number of examples is unknown; "
                            "give the placeholder its size, or use thalweg.map_fn")
        if operation.type not in _told:
            _told.add(operation.type)
            warnings.warn(f"vmap: op {operation.type} runs for each of the {self.size} examples ({why})", VmapWarning, stacklevel=6)

        def of(x: Any, b: Any, i: int) -> Any:
            return [of(y, z, i) for y, z in zip(x, b)] if isinstance(x, list) else x[i] if b else x

        results = []
        for i in range(self.size):
            found = c.again(*(of(x, b, i) for x, b in zip(c.inputs, c.batched)))
            flat: list[Any] = []
            for y in found if isinstance(found, (list, tuple)) else [found]:
                flat += y if isinstance(y, (list, tuple)) else [y]
            results.append(flat)
        return [self.where.op("Pack", [r[k] for r in results]) for k in range(len(results[0]))]
