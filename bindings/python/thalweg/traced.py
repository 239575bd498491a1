"""Functions called without a graph: traced once for each signature into a graph of their own, whose operations the context then runs one
after the other, with Python's conditions and loops around the functions of the graph's.

Tapes note the operations like any others, so gradients of any order pass through. Values and variables from outside are inputs."""
import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from . import at_once, control, nested, scopes
from .graph import Graph
from .session import Session
from .output import Formula, Operation, Output, shape_text
from .value import Value
from .variable import Variable

if TYPE_CHECKING:
    from .eager import Eager


class Trace(Graph):
    """The graph of a function that computes with the values of a context."""

    def __init__(self, eager: "Eager"):
        super().__init__(eager.runtime)
        self.traces = eager
        self._order = Order()
        self._draws = eager._draws  # random operations count on from those of the context
        self.given: list[tuple[Any, Output]] = []  # values and handles from outside, and what stands for them

    def _take(self, value: Any) -> Any:
        """What stands for a Value in operations: an input for numbers that may have gradients, else a constant."""
        if not isinstance(value, Value):
            return super()._take(value)
        if value.dtype.name in ("resource", "variant") or value.dtype.numpy.kind not in "fcV" or value.device:
            return super()._take(value) if value.dtype.name not in ("resource", "variant") else self._stand_in(value)
        return self._stand_in(value)

    def _stand_in(self, value: Value) -> Output:
        for known, output in self.given:
            if known.tensor is value.tensor:
                return output
        with self:
            output = self.placeholder(value.dtype, value.shape)
        self.given.append((value, output))
        return output

    def store(self, name: str, body: Graph, args: Sequence[Output], results: Sequence[Output], targets: Sequence[Operation],
              recomputed: bool = False) -> None:
        """Keeps a function of the library, to be run. recomputed: see recompute.checkpoint."""
        self._bodies[name] = Stored(body, args, results, targets, recomputed)

    def handle_of(self, variable: Variable) -> Output:
        """The handle, in this graph, of a variable that has no graph."""
        own: Any = variable._own_handle
        for known, output in self.given:
            if known.tensor is own.tensor:
                return output
        with self:
            output = self.op("VarHandleOp", dtype=variable.dtype, shape=variable.shape, shared_name=f"{variable.name}/{len(self.given)}")
        self.given.append((own, output))
        self._standing[output.number] = variable
        return output


class Order:
    """The order of operations on state in a traced function: that in which Python made them, as if each had run at once."""
    READS = {"ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VarIsInitializedOp", "VariableShape"}

    def __init__(self) -> None:
        self.write: dict[int, Operation] = {}
        self.reads: dict[int, list[Operation]] = {}

    def _touched(self, inputs: Sequence[Output]) -> list[int]:
        return [x.number for x in inputs if x.dtype.name == "resource"]

    def before(self, schema: Any, inputs: Sequence[Output]) -> list[Operation]:
        """The operations that an operation on these inputs waits for."""
        found: list[Operation] = []
        for number in self._touched(inputs):
            if number in self.write:
                found.append(self.write[number])
            if schema["stateful"] and schema["name"] not in self.READS:
                found += self.reads.get(number, [])
        return list(dict.fromkeys(found))

    def note(self, operation: Operation, schema: Any, inputs: Sequence[Output]) -> None:
        for number in self._touched(inputs):
            if schema["stateful"] and schema["name"] not in self.READS:
                self.write[number], self.reads[number] = operation, []
            else:
                self.reads.setdefault(number, []).append(operation)

    def look(self, operations: Sequence[Operation], runtime: Any) -> None:
        """Notes operations that a layer has added, which waited for none."""
        for operation in operations:
            schema, inputs = runtime.op(operation.type), operation.inputs
            if any(number in self.write for number in self._touched(inputs)):
                raise control.error(ValueError, f"'{operation.name}' ({operation.type}) of a layer comes after an update of a variable that it reads; "
                                                "in a traced function, call the layer before the update")
            if schema is not None:
                self.note(operation, schema, inputs)


class _State(threading.local):
    def __init__(self) -> None:
        self.tapes: list[Any] = []  # that note calls of this thread


_state = _State()


def tapes() -> list[Any]:
    """The tapes that note calls of this thread."""
    return _state.tapes


def refuse_tape(what: str) -> None:
    """Raises TypeError if a tape notes: it would differentiate the operations inside, not use the gradient of the program."""
    if _state.tapes:
        raise TypeError(f"{what} has a gradient of its own, which tapes without a graph do not use; take the gradient in a traced function: "
                        "thalweg.function(thalweg.grad(f))")


class Stored:
    """A function of a graph's library, as it was written: its body, arguments, results and the operations that run for their effects."""

    def __init__(self, body: Graph, args: Sequence[Output], results: Sequence[Output], targets: Sequence[Operation],
                 recomputed: bool = False):
        self.recomputed = recomputed
        self.args, self.results = [x.number for x in args], [x.number for x in results]
        self.has_gradient = False  # of the program, by custom_gradient
        self.steps = _steps(body, results, targets, set(self.args))

    def run(self, context: "Eager", functions: dict[str, "Stored"], given: Sequence[Value]) -> list[Value]:
        values = dict(zip(self.args, given))
        for step in self.steps:
            step.run(context, values, functions)
        return [values[number] for number in self.results]


def _steps(graph: Graph, results: Sequence[Output], targets: Sequence[Operation], given: set[int]) -> list[Any]:
    """The operations that results and targets need, in the order in which Python made them."""
    needed: set[Operation] = set()
    todo = [*(x.operation for x in results), *targets]
    while todo:
        operation = todo.pop()
        if operation not in needed and not any(x.number in given for x in operation.outputs):
            needed.add(operation)
            todo += [*(x.operation for x in operation.inputs), *operation.control_inputs]
    return [_Flow(o) if o.type in _FLOW else _Op(o) for o in graph.operations() if o in needed and o.type != "NoOp"]


class _Op(at_once._Step):
    """An operation that the context runs."""

    def run(self, context: "Eager", values: dict[int, Value], _: Any = None) -> None:
        super().run(context, values)


_FLOW = {"If", "StatelessIf", "Case", "StatelessCase", "While", "StatelessWhile", "PartitionedCall", "StatefulPartitionedCall"}


class _Flow:
    """A condition, a loop or a call, whose functions are run in turn."""

    def __init__(self, operation: Operation):
        self.type, self.name = operation.type.removeprefix("Stateless"), operation.name
        self.inputs, self.outputs = [x.number for x in operation.inputs], [x.number for x in operation.outputs]
        known = operation.attributes
        self.functions = [_text(known[k]) for k in ("then_branch", "else_branch", "cond", "body", "f") if k in known] + \
            [_text(f) for f in known.get("branches", ())]

    def run(self, context: "Eager", values: dict[int, Value], functions: dict[str, Stored]) -> None:
        given = [values[number] for number in self.inputs]
        stored = [functions[name] for name in self.functions]
        if self.type == "If":
            found = stored[0 if _is_true(given[0]) else 1].run(context, functions, given[1:])
        elif self.type == "Case":
            index = int(given[0])
            found = stored[index if 0 <= index < len(stored) else -1].run(context, functions, given[1:])
        elif self.type == "While":
            found = given
            while _is_true(stored[0].run(context, functions, found)[0]):
                found = stored[1].run(context, functions, found)
        else:
            if stored[0].has_gradient:
                refuse_tape(f"function '{self.functions[0]}'")
            with context.part() if stored[0].recomputed else contextlib.nullcontext():
                found = stored[0].run(context, functions, given)
        values.update(zip(self.outputs, found))


def _text(function: Any) -> str:
    return function.decode() if isinstance(function, bytes) else str(function)


def _is_true(value: Value) -> bool:
    """As conditions of graphs decide: a scalar is true if it is not zero, another value if it has elements."""
    return bool(value.item()) if value.shape == () else value.tensor.size > 0


class _Step:
    """A traced function that computes gradients of conditions, loops or calls: a step of a session, with the reads of variables before it
    and their updates after it."""

    def __init__(self, eager: "Eager", graph: Graph, given: Sequence[Output], results: Sequence[Output], targets: Sequence[Operation]):
        self.reads: list[tuple[int, Output]] = []  # of input number i
        self.writes: list[tuple[int, Any, list[int]]] = []  # of input number i: the operation, and what it takes
        handles = {x.number: i for i, x in enumerate(given) if x.dtype.name == "resource"}
        fetches, rest = list(results), []
        for operation in graph.operations():
            touched = [x.number for x in operation.inputs if x.dtype.name == "resource"]
            if not touched:
                if operation in targets:
                    rest.append(operation)
                continue
            if len(touched) > 1 or touched[0] not in handles or any(x.dtype.name == "resource" for x in operation.outputs):
                raise self._unfit(operation, "uses a variable in a condition, loop or call")
            if operation.type == "ReadVariableOp":
                if operation.control_inputs:
                    raise self._unfit(operation, "reads a variable after its update")
                self.reads.append((handles[touched[0]], operation.outputs[0]))
            elif not operation.outputs:
                taken = [x for x in operation.inputs if x.dtype.name != "resource"]
                self.writes.append((handles[touched[0]], at_once._Step(operation), list(range(len(fetches), len(fetches) + len(taken)))))
                fetches += taken
            else:
                raise self._unfit(operation, "uses a variable other than by reading and updating it")
        self.values = [i for i, x in enumerate(given) if x.dtype.name != "resource"]
        feeds = [given[i] for i in self.values] + [x for _, x in self.reads]
        self.n = len(results)
        self.call = Session(graph).callable(fetches, feeds=feeds, targets=rest)

    @staticmethod
    def _unfit(operation: Operation, why: str) -> TypeError:
        return TypeError(f"'{operation.name}' ({operation.type}) {why}, in a traced function that computes gradients of conditions or loops; "
                         "update variables after the gradients, outside of conditions and loops")

    def run(self, eager: "Eager", given: Sequence[Value]) -> list[Value]:
        if _state.tapes:
            raise TypeError("a tape cannot pass through a traced function that computes gradients of conditions or loops itself; take all "
                            "gradients in one traced function")
        read = [eager.op("ReadVariableOp", given[i], dtype=x.dtype) for i, x in self.reads]
        found = [Value(eager, t) for t in self.call(*(given[i].tensor for i in self.values), *(x.tensor for x in read), as_tensors=True)]
        for i, step, taken in self.writes:
            step.run(eager, {step.inputs[0]: given[i], **dict(zip(step.inputs[1:], (found[k] for k in taken)))})
        return found[:self.n]


class Program:
    """A function for one signature, ready to run on Values."""

    def __init__(self, eager: "Eager", function: Callable[..., Any], leaves: Sequence[Any], form: Any, dynamic: Sequence[bool]):
        self.eager, self.graph = eager, Trace(eager)
        graph = self.graph
        with graph:
            graph._training = graph.constant(at_once._state.training)
            places = [graph.placeholder(x.dtype, x.shape) for x, d in zip(leaves, dynamic) if d]
            given = iter(places)
            args, kwargs = nested.rebuild(form, iter([next(given) if d else x for x, d in zip(leaves, dynamic)]))
            self.results: list[Any] = []
            self.form = nested.flatten(function(*args, **kwargs), self.results)
            self.results = [self._result(x) for x in self.results]
        eager._draws = graph._draws
        targets = [o for o in graph.operations() if not o.outputs and o.type != "NoOp"] + list(graph._kept)
        if at_once._state.training:
            targets += [update for _, update in graph._layer_updates]
        outside = [output for _, output in graph.given]
        fetches = [x for x in self.results if isinstance(x, Output)]
        self.whole = Stored(graph, [*places, *outside], fetches, targets)
        self.step = _Step(eager, graph, [*places, *outside], fetches, targets) if self._calls_unknown(self.whole) else None

    def _calls_unknown(self, stored: Stored) -> bool:
        """Whether functions are called that the graph made itself: those of gradients of conditions, loops and calls."""
        names = [name for step in stored.steps if isinstance(step, _Flow) for name in step.functions]
        bodies = self.graph._bodies
        return any(name not in bodies or self._calls_unknown(bodies[name]) for name in names)

    def _result(self, x: Any) -> Any:
        if isinstance(x, Operation):
            return None
        if isinstance(x, control.Undefined):
            x._fail()
        if isinstance(x, Formula) and not x.graph.computes:
            value = x._value()
            if value.graph is not self.graph:
                raise TypeError(f"the function returns {value!r}, which is of a condition or loop inside of it; bind it to a name of the function")
            return value
        return self.graph.constant(x) if control._is_number(x) else x

    def run(self, values: Sequence[Value]) -> Any:
        outside = [x for x, _ in self.graph.given]
        if self.step is not None:
            found = iter(self.step.run(self.eager, [*values, *outside]))
        else:
            found = iter(self.whole.run(self.eager, self.graph._bodies, [*values, *outside]))
        return nested.rebuild(self.form, iter([next(found) if isinstance(x, Output) else x for x in self.results]))


def build_module(module: Any, graph: Graph, inputs: Sequence[Any], named: dict[str, Any]) -> None:
    """Makes the variables of a module that is called for the first time while a function is traced, by a call on zeros."""
    eager = graph._root().traces

    def zeros(x: Any) -> Any:
        if isinstance(x, (tuple, list)):
            return type(x)(map(zeros, x))
        if not control.is_traced(x):
            return x
        shape = x._value().shape
        if shape is None or None in shape:
            raise ValueError(f"module '{module.name}' is called for the first time in a traced function, on a value of shape {shape_text(shape)}; "
                             "call it once before, so that it has its variables")
        return eager.constant(np.zeros(shape, x._value().dtype.numpy))

    with eager, at_once.in_training(False):
        module(*map(zeros, inputs), **{k: zeros(x) for k, x in named.items()})


def eager_for(leaves: Sequence[Any]) -> "Optional[Eager]":
    """The context that computes a call on these; None if a graph does."""
    from .eager import default_eager
    for x in leaves:
        if isinstance(x, Formula) and not x.graph.computes:
            return None
    scope = scopes.innermost()
    if scope is not None and not scope.graph.computes:
        return None
    found: Any = next((x.graph for x in leaves if isinstance(x, Formula)), None) or (default_eager() if scope is None else scope.graph)
    context: "Eager" = found
    return context
