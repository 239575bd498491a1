"""Scopes set properties of operations added inside a `with`: their graph, name, device, container, priority and control dependencies.

A scope belongs to the thread that entered the `with`; other threads start without scopes."""
import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from .graph import Graph
    from .output import Operation


@dataclasses.dataclass(frozen=True)
class Scope:
    """prefix: of names, with its slash.   device: "" for any.   after: operations to wait for.   priority: 0 by default.
    container: of state; "" for the session's.   variables: gives the device of the next layer's variables; None: they are where the
    layer is."""
    graph: "Graph"
    prefix: str = ""
    device: str = ""
    after: tuple["Operation", ...] = ()
    priority: int = 0
    container: str = ""
    variables: Optional[Callable[[], str]] = None


class _Stack(threading.local):
    def __init__(self) -> None:
        self.scopes: list[Scope] = []


_stack = _Stack()


def no_graph() -> RuntimeError:
    """The error of a function that needs a graph."""
    return RuntimeError("no graph is current; write `with thalweg.Graph() as g:` around it, or use the graph's own methods")


def only_in_graphs(what: str) -> TypeError:
    """The error of a function that only adds to graphs, but was given a value that was computed without one."""
    return TypeError(f"{what} to a graph and cannot compute with a value that has no graph; build a graph: make the call inside of "
                     "`with thalweg.Graph():`, on a placeholder or a constant of that graph")


def building(graph: Any, what: str) -> "Graph":
    """The graph that a layer adds to if its input is of `graph`: that one, or the graph of the innermost `with` if the input is a Value,
    which then becomes a constant. Raises TypeError if the input is a Value and the innermost `with` is no graph's.   what: the layer, for
    the error."""
    scope = innermost()
    if graph.computes:
        if scope is None or scope.graph.computes:
            raise only_in_graphs(what)
        graph = scope.graph
    built: "Graph" = graph
    return built


def current(graph: Optional["Graph"] = None) -> Scope:
    """Returns the innermost scope, or the innermost of that graph. Raises RuntimeError if no graph is current."""
    if graph is None:
        if not _stack.scopes or _stack.scopes[-1].graph.computes:
            raise no_graph()
        return _stack.scopes[-1]
    for scope in reversed(_stack.scopes):
        if scope.graph is graph:
            return scope
    return Scope(graph)


def innermost() -> Optional[Scope]:
    """The innermost scope; None where there is none."""
    return _stack.scopes[-1] if _stack.scopes else None


default_context: Any = None  # the process's own, once eager has made it


def context() -> Any:
    """The context of the innermost `with`, if that is a context's, else the process's own, which is None before its first use."""
    graph = _stack.scopes[-1].graph if _stack.scopes else None
    return graph if graph is not None and graph.computes else default_context


def device_here() -> str:
    """The device of ops that compute at once, by the innermost `with`; "" for any."""
    return _stack.scopes[-1].device if _stack.scopes else ""


def _here(graph: Optional["Graph"]) -> Scope:
    """As current; if no graph is current, the scope of the context that computes at once."""
    if graph is not None:
        return current(graph)
    if _stack.scopes:
        return _stack.scopes[-1]
    from .eager import default_eager
    return Scope(default_eager())  # type: ignore[arg-type]


def working(graph: "Graph") -> "Graph":
    """Returns the graph for operations on values of the graph: the body of a function that is traced inside it, else the graph itself."""
    if _stack.scopes:
        inner = _stack.scopes[-1].graph
        around: Optional["Graph"] = inner
        while around is not None:
            if around is graph:
                return inner
            around = around.outer
    return graph


def push(scope: Scope) -> None:
    _stack.scopes.append(scope)


def pop() -> None:
    _stack.scopes.pop()


@contextlib.contextmanager
def _inside(scope: Scope) -> Iterator[Scope]:
    push(scope)
    try:
        yield scope
    finally:
        pop()


@contextlib.contextmanager
def name_scope(name: str, graph: Optional["Graph"] = None) -> Iterator[str]:
    """Names inside start with `name` and a slash, below the outer scope. If the name was a scope already, it gets a number: `dense`,
    `dense_1`. A name with a slash at its end, `dense/`, is used unchanged from the top, to re-enter a scope. Gives the prefix."""
    scope = current(graph)
    prefix = name if name.endswith("/") else scope.graph._new_prefix(scope.prefix + name)
    with _inside(dataclasses.replace(scope, prefix="" if prefix == "/" else prefix)):
        yield prefix


@contextlib.contextmanager
def device(name: Optional[str], graph: Optional["Graph"] = None) -> Iterator[None]:
    """Operations and variables inside run there: "CPU:0", "/device:OPENCL:0", "/job:ps/task:0"; "" or None: any. Gradients place their
    operations themselves, and do not wait for control_dependencies either."""
    if not isinstance(name, (str, type(None))):
        raise TypeError(f"a device is a name such as \"CPU:0\", or \"\" for anywhere, not {name!r}")
    with _inside(dataclasses.replace(_here(graph), device=name or "")):
        yield


@contextlib.contextmanager
def variables_on(devices: Callable[[], str], graph: Optional["Graph"] = None) -> Iterator[None]:
    """Inside, devices() gives the device of the variables of each layer, and of each other variable, when they are made; other operations
    are where they would be."""
    with _inside(dataclasses.replace(current(graph), variables=devices)):
        yield


@contextlib.contextmanager
def making_variables(graph: "Graph") -> Iterator[None]:
    """Variables that are made inside are where the scope of the graph says."""
    scope = current(graph)
    if scope.variables is None:
        yield
    else:
        with _inside(dataclasses.replace(scope, device=scope.variables(), variables=None)):
            yield


@contextlib.contextmanager
def priority(number: int, graph: Optional["Graph"] = None) -> Iterator[None]:
    """Of the ready operations, those with a larger number run first; the default is 0. It is a hint: see tw_op_set_priority (op.h).
    Variables, gradients and optimizers have none."""
    if not isinstance(number, int) or isinstance(number, bool) or not -2**31 <= number < 2**31:
        raise TypeError(f"a priority is a whole number of 32 bits, not {number!r}")
    with _inside(dataclasses.replace(current(graph), priority=number)):
        yield


@contextlib.contextmanager
def container(name: Optional[str], graph: Optional["Graph"] = None) -> Iterator[None]:
    """Variables, queues and tables made inside are in the container of that name, which all graphs and sessions with that name share. "" or
    None: in the session's, which without its option `container` is the graph's own. A name that begins with "<" is refused."""
    if not isinstance(name, (str, type(None))):
        raise TypeError(f"a container is a name such as \"shared\", or \"\" for the session's, not {name!r}")
    with _inside(dataclasses.replace(current(graph), container=name or "")):
        yield


@contextlib.contextmanager
def control_dependencies(before: Iterable[Any], graph: Optional["Graph"] = None) -> Iterator[None]:
    """Operations inside run after all of these (operations or values) in every step in which both run. Gradients, optimizers, layers and
    recurrent cells do not wait."""
    if not isinstance(before, Iterable):
        raise TypeError(f"control_dependencies takes a list of operations and values, not {before!r}")
    scope = current(graph)
    after = scope.after + tuple(scope.graph._operation_of(x) for x in before)
    with _inside(dataclasses.replace(scope, after=after)):
        yield
