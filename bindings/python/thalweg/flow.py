"""Functions, and the conditions and loops that are built from them.

    y = thalweg.cond(x > 0, lambda: x * 2, lambda: -x)
    i, total = thalweg.while_loop(lambda i, t: i < 10, lambda i, t: (i + 1, t + i), [0, 0])

Operations added inside a function go into a graph of its own. They may use values and variables of the graphs around it; new
variables are made outside. Small constants are copied, so a gradient with respect to one does not include its uses in functions: take
the gradient with respect to a variable or a placeholder. Operations without results (assignments, for instance) run whenever their
function runs, even if nothing waits for them; others run only if the results need them."""
import ctypes
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Optional

import numpy as np

from . import _low, build, scopes
from ._handle import c_text
from .dtypes import DType
from .errors import check, made
from .graph import Graph, current_graph
from .output import Formula, Operation, Output, shape_text

Shape = Optional[tuple[Optional[int], ...]]


class Body(Graph):
    """The graph of a function during construction. A value of a graph around it becomes an argument at its first use."""

    def __init__(self, outer: Graph):
        self.outer: Graph = outer
        super().__init__(outer.runtime)
        self._order = None if outer._order is None else type(outer._order)()

    def _new_handle(self) -> int:
        return made(_low.tw_graph_open_body, self.outer._handle)

    def _own(self, value: Output) -> Output:
        if value.graph is self:
            return value
        number = ctypes.c_uint64()
        check(_low.tw_graph_own(self._handle, self.outer._own(value).number, number))
        return Output(self, number.value)

    def captured(self) -> list[Output]:
        """The values of the outer graph that became arguments."""
        values = []
        for i in range(_low.tw_graph_captured_count(self._handle)):
            number = ctypes.c_uint64()
            check(_low.tw_graph_captured(self._handle, i, number, None))
            values.append(Output(self.outer, number.value))
        return values


class Traced:
    """A traced function that is not yet in its graph's library: its body, the arguments of the call, and its results, flat."""

    def __init__(self, outer: Graph, function: Callable[..., Any], arguments: Sequence[tuple[DType, Shape]], what: str,
                 body: type[Body] = Body):
        if not callable(function):
            raise TypeError(f"{what} is {function!r}, which is no function; write `lambda: ...`")
        self.body, self.what = body(outer), what
        with self.body:
            self.args = [self.body.placeholder(dtype, shape) for dtype, shape in arguments]
            answer = function(*self.args)
            self.one = not isinstance(answer, (list, tuple))
            found = [] if answer is None else [answer] if self.one else list(answer)
            self.targets = [x for x in found if isinstance(x, Operation)]
            self.results = [self._value(i, x) for i, x in enumerate(x for x in found if not isinstance(x, Operation))]
        effects = [o for o in self.body.operations() if not o.outputs and o not in self.targets and o.type != "NoOp"]
        self.targets += effects + [o for o in self.body._kept if o not in effects]
        self.stateful = any((self.body.runtime.op(o.type) or {}).get("stateful") for o in self.body.operations())

    def _value(self, i: int, x: Any) -> Output:
        if isinstance(x, Formula) and not x.graph.computes:
            return self.body._own(x._value())
        try:
            return self.body.constant(x)
        except TypeError as e:
            raise TypeError(f"{self.what}: result {i}: {e}") from None

    def add(self, name: str, captures: Iterable[Output], results: Optional[Sequence[Output]] = None, exact: bool = False) -> str:
        """Adds it to the library, with the captured values after its arguments. exact: under that name; else the name may get a number.
        Returns its name there."""
        args = self.args + [self.body._own(value) for value in captures]
        results = self.results if results is None else results
        targets = (ctypes.c_void_p * len(self.targets))(*(t._handle for t in self.targets))
        spec = _low.tw_function_spec(
            size=ctypes.sizeof(_low.tw_function_spec), name=c_text(name), args=_numbers(args), results=_numbers(results),
            targets=ctypes.cast(targets, type(_low.tw_function_spec().targets)), n_args=len(args), n_results=len(results),
            n_targets=len(self.targets), make_unique=not exact)
        found = ctypes.c_char_p()
        check(_low.tw_graph_add_function(self.body.outer._handle, self.body._handle, spec, found))
        added, root = (found.value or b"").decode(), self.body._root()
        if root.traces is not None:
            root.store(added, self.body, args, results, self.targets)  # type: ignore[attr-defined]
        return added


def outline(args: Sequence[Output], results: Sequence[Output], targets: Sequence[Operation] = (), name: str = "outlined") -> list[Output]:
    """Moves a part of the graph into a new function, and returns the results of a call of it. The part is what the results and targets
    need and the args do not. Handles of variables, and other values from outside the part, become arguments too. The operations of
    the part stay in the graph, and run only if something else needs them."""
    return outlined(graph_for([*results, *args]), args, results, targets, name).outputs


def outlined(graph: Graph, args: Sequence[Output], results: Sequence[Output], targets: Sequence[Operation], name: str) -> Operation:
    """As outline, in that graph. Returns the call."""
    operations = (ctypes.c_void_p * len(targets))(*(t._handle for t in targets))
    spec = _low.tw_function_spec(
        size=ctypes.sizeof(_low.tw_function_spec), name=c_text(name), args=_numbers([graph._own(x) for x in args]),
        results=_numbers([graph._own(x) for x in results]), targets=ctypes.cast(operations, type(_low.tw_function_spec().targets)),
        n_args=len(args), n_results=len(results), n_targets=len(targets), make_unique=True)
    return Operation(graph, made(_low.tw_graph_outline, graph._handle, spec))


def _numbers(values: Sequence[Output]) -> Any:
    return (ctypes.c_uint64 * len(values))(*(v.number for v in values))


def _captures(*functions: Traced) -> list[Output]:
    """Returns the values that any of them captured, each once."""
    return list(dict.fromkeys(value for f in functions for value in f.body.captured()))


def graph_for(values: Any) -> Graph:
    """Returns the graph for an operation on the values."""
    found = build.graph_of(values)
    if found is not None and found.computes:
        raise TypeError("functions, conditions and loops belong to a graph; without one, write Python's own `if`, `for` and `while`")
    return scopes.working(found) if found is not None else current_graph()


def own(graph: Graph, value: Any) -> Output:
    """A value as one of the graph; numbers, arrays and Values as constants."""
    return graph._own(value._value()) if isinstance(value, Formula) and not value.graph.computes else graph.constant(value)


def _answer(outputs: Sequence[Output], operation: Operation, one: bool) -> Any:
    return operation if not outputs else outputs[0] if one else list(outputs)


def keep(graph: Graph, operation: Operation, bodies: Sequence[Traced]) -> None:
    """Notes a condition or loop of a traced function that has effects, so that it runs whatever needs its results."""
    if any(b.targets for b in bodies):
        scopes.working(graph)._kept.append(operation)


def _call(graph: Graph, op: str, *inputs: Any, name: Optional[str], **attributes: Any) -> tuple[list[Output], Operation]:
    """Adds an operation whose only output is a list; returns the list and the operation."""
    operation = build.add_operation(graph, op, inputs, attributes, name)
    return operation.outputs, operation


def cond(pred: Any, then: Callable[[], Any], otherwise: Callable[[], Any], name: Optional[str] = None) -> Any:
    """Returns the result of `then` if pred is true, else that of `otherwise`; only that function runs.

    pred: a value. A scalar is true if it is not zero; another value is true if it has elements.   then, otherwise: functions without
    arguments that return a value, a list of values, an operation or None, both as many and of the same dtypes. The result has the same
    form. Raises TypeError if they differ, naming the result, and for a pred that is a truth value of Python."""
    _want_value("cond: pred", pred)
    graph = graph_for([pred])
    branches = [Traced(graph, f, [], what) for f, what in ((then, "`then`"), (otherwise, "`otherwise`"))]
    return _choose(graph, "If", pred, branches, name)


def _want_value(what: str, pred: Any) -> None:
    """Refuses a truth value of Python as pred, because it was decided while the graph is built, not in a run."""
    if isinstance(pred, (bool, np.bool_)):
        raise TypeError(f"{what} is {pred!r}, a truth value of Python, which no step can change: it was decided while the graph was built "
                        f"(by `is`, `in` or on Python's own numbers); compare values of the graph, or write thalweg.constant({pred!r})")


def _undecided(cond: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps the condition of a loop, and refuses one that returns a truth value of Python."""
    if not callable(cond):
        return cond  # tracing it reports the error

    def asked(*variables: Output) -> Any:
        answer = cond(*variables)
        _want_value("while_loop: what `cond` gives", answer[0] if isinstance(answer, (list, tuple)) and len(answer) == 1 else answer)
        return answer

    return asked


_either = cond  # for while_loop, which has a parameter of that name


def switch_case(index: Any, branches: Sequence[Callable[[], Any]], name: Optional[str] = None) -> Any:
    """Returns the result of branch number `index`; of the last one if index is out of range. index: an int32 scalar. Otherwise as cond."""
    if not branches:
        raise ValueError("switch_case: there are no branches")
    graph = graph_for([index])
    return _choose(graph, "Case", index, [Traced(graph, f, [], f"branch {i}") for i, f in enumerate(branches)], name)


def _choose(graph: Graph, op: str, chooser: Any, branches: list[Traced], name: Optional[str]) -> Any:
    first = branches[0]
    shapes = [r.shape for r in first.results]
    for other in branches[1:]:
        if len(other.results) != len(first.results) or (other.one != first.one and first.results):
            raise TypeError(f"{op}: {first.what} gives {_counted(first)}, {other.what} {_counted(other)}; all must give the same")
        for i, (a, b) in enumerate(zip(first.results, other.results)):
            if a.dtype != b.dtype:
                raise TypeError(f"{op}: result {i} is {a.dtype} in {first.what} but {b.dtype} in {other.what}")
            shapes[i] = _common(shapes[i], b.shape)
    captures = _captures(*branches)
    names = [b.add(f"{name or op.lower()}_{i}", captures) for i, b in enumerate(branches)]
    functions: dict[str, Any] = {"then_branch": names[0], "else_branch": names[1]} if op == "If" else {"branches": names}
    stateless = not any(b.stateful for b in branches)
    outputs, operation = _call(graph, f"Stateless{op}" if stateless else op, chooser, captures, name=name,
                               Tout=[r.dtype for r in first.results], output_shapes=shapes, **functions)
    return _answer(outputs, operation, first.one)


def _counted(f: Traced) -> str:
    return f"{len(f.results)} results" if len(f.results) != 1 else "a value" if f.one else "a list of one"


def _common(a: Shape, b: Shape) -> Shape:
    """Returns the shape with the sizes that both share."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x if x == y else None for x, y in zip(a, b))


def while_loop(cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Sequence[Any],
               shape_invariants: Optional[Sequence[Any]] = None, maximum_iterations: Optional[Any] = None,
               name: Optional[str] = None) -> Any:
    """Runs body on the loop variables while cond is true, and returns their last values.

    cond: takes the loop variables and returns one value, which is no truth value of Python; see `cond`.   body: takes the loop
    variables and returns their next values: as many, of the same dtypes, and of shapes that fit their first ones, or shape_invariants.
    shape_invariants: a shape for each variable, None for sizes that change; None: any rank.   maximum_iterations: an int32 scalar, the
    number of iterations after which the loop ends in any case.
    Returns a list. Raises TypeError and ValueError naming the variable."""
    if isinstance(loop_vars, Formula) or not isinstance(loop_vars, Iterable):
        raise TypeError(f"while_loop: loop_vars is a list of values, not {loop_vars!r}")
    loop_vars = list(loop_vars)
    graph = graph_for(loop_vars)
    first = [own(graph, v) for v in loop_vars]
    shapes = [v.shape for v in first]
    if shape_invariants is not None:
        if len(shape_invariants) != len(first):
            raise ValueError(f"while_loop: {len(shape_invariants)} shape invariants for {len(first)} loop variables")
        shapes = [None if s is None else tuple(s) for s in shape_invariants]
        for i, (v, s) in enumerate(zip(first, shapes)):
            _want_fit(_variable(i, v), v.shape, s, "at first")
    cond = _undecided(cond)
    limited = maximum_iterations is not None
    if limited:
        first, shapes = [graph.constant(0, "int32"), *first], [(), *shapes]
        limit = maximum_iterations._value() if isinstance(maximum_iterations, Formula) else graph.constant(maximum_iterations, "int32")
        plain_cond, plain_body = cond, body

        def cond(i: Output, *variables: Output) -> Any:
            return _either(i < limit, lambda: plain_cond(*variables), lambda: False)

        def body(i: Output, *variables: Output) -> Any:
            found = plain_body(*variables)
            return [i + 1, *(found if isinstance(found, (list, tuple)) else [found])]

    arguments = [(v.dtype, s) for v, s in zip(first, shapes)]
    goes_on, next_ = Traced(graph, cond, arguments, "`cond`"), Traced(graph, body, arguments, "`body`")
    if len(goes_on.results) != 1:
        raise TypeError(f"while_loop: `cond` gives {_counted(goes_on)}; it must give one value")
    if len(next_.results) != len(first):
        raise TypeError(f"while_loop: there are {len(first) - limited} loop variables, but `body` gives {len(next_.results) - limited}")
    for i, (v, s, r) in enumerate(zip(first, shapes, next_.results)):
        if r.dtype != v.dtype:
            raise TypeError(f"while_loop: {_variable(i - limited, v)} is {v.dtype}, but `body` makes it {r.dtype}")
        _want_fit(_variable(i - limited, v), r.shape, s, "after `body`")
    outputs, operation = loop(graph, goes_on, next_, first, shapes, name)
    return outputs[int(limited):] if first else operation


def loop(graph: Graph, goes_on: Traced, next_: Traced, first: list[Output], shapes: list[Shape], name: Optional[str]) \
        -> tuple[list[Output], Operation]:
    """Adds a loop of two functions that fit its variables; returns their values at its end, and the operation."""
    captures = _captures(goes_on, next_)
    cond_name = goes_on.add(f"{name or 'while'}_cond", captures)
    body_name = next_.add(f"{name or 'while'}_body", captures, next_.results + [next_.body._own(v) for v in captures])
    stateless = not (goes_on.stateful or next_.stateful)
    outputs, operation = _call(graph, "StatelessWhile" if stateless else "While", first + captures, name=name, cond=cond_name,
                               body=body_name, output_shapes=shapes + [v.shape for v in captures])
    return outputs[:len(first)], operation


def _variable(i: int, first: Output) -> str:
    return f"loop variable {i} ('{first.name}')"


def _want_fit(variable: str, shape: Shape, wanted: Shape, when: str) -> None:
    if not fits(shape, wanted):
        raise ValueError(f"while_loop: {variable} has shape {shape_text(wanted)}, but {shape_text(shape)} {when}; "
                         "say in shape_invariants which of its sizes change")


def fits(shape: Shape, wanted: Shape) -> bool:
    """Returns true if every value of that shape has the wanted one."""
    return wanted is None or (shape is not None and len(shape) == len(wanted) and all(w is None or w == s for s, w in zip(shape, wanted)))
