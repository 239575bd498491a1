"""Functions that are traced: a Python function becomes a function of the graph that calls it, or, without a graph, a list of operations
that are run at each call.

    @thalweg.function
    def power(x, n):
        y = x * 0 + 1
        for _ in range(n):      # n is a value: a loop of the graph
            y = y * x
        return y

`if`, `while`, `for`, `and`, `or`, `not`, `break`, `continue`, early `return` and `assert` become operations where values decide (module
control). Functions and modules of the program that it calls are treated alike."""
import contextlib
import functools
import inspect
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Optional, Union, overload

import numpy as np

from . import at_once, control, flow, nested, syntax, traced
from .dtypes import DType, DTypeLike, as_dtype
from .graph import Graph
from .output import Formula, Operation, Output
from .tensor import Tensor
from .variable import Variable

if TYPE_CHECKING:
    from .eager import Eager

Leaves = list[Any]


class _State(threading.local):
    inline = False


_state = _State()


@contextlib.contextmanager
def inlined() -> Iterator[None]:
    """Inside of the `with`, a Function adds its operations to the graph that calls it, in place of a call."""
    before, _state.inline = _state.inline, True
    try:
        yield
    finally:
        _state.inline = before


def inlines() -> bool:
    """Whether functions add their operations in place of a call."""
    return _state.inline


class Function:
    """A function of values, which is traced once for each signature with which it is called.

        @thalweg.function
        def norm(x): return (x * x).sum() ** 0.5

    Called with values of a graph, or inside of one, it adds a call of a function of that graph. Called with Values or arrays, it runs the
    traced operations; tapes note them. Arguments and results are nested tuples, lists and
    dicts. The signature is the dtypes and shapes of values and arrays. Whatever else is among the arguments (None, Python's numbers and
    truth values, texts, modules, functions, variables) is part of the signature itself, as is `nn.in_training()`.

    Python runs while the function is traced, not later: what it does besides values (print, attributes of objects, lists) happens once a
    trace, and a TraceWarning says so. In a body that a value decides on it is an error with its line. Operations on variables run in the
    order in which Python made them.

    results: the dtypes of its results; required only for a function that calls itself. rewrite: False: Python's control flow stays as it is."""

    def __init__(self, function: Callable[..., Any], name: Optional[str] = None, results: Optional[Sequence[DTypeLike]] = None,
                 rewrite: bool = True):
        functools.update_wrapper(self, function)
        self.function = function
        self.name = name or getattr(function, "__name__", "function").strip("<>_") or "function"
        self.results = None if results is None else [as_dtype(r) for r in results]
        self.rewrite = rewrite
        self._programs: dict[Any, Any] = {}
        self._told = False

    def __repr__(self) -> str:
        return f"<Function '{self.name}'>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, name: Optional[str] = None, **kwargs: Any) -> Any:
        leaves: Leaves = []
        form = nested.flatten((args, kwargs), leaves)
        eager = traced.eager_for(leaves)
        if eager is not None:
            return self._compute(eager, leaves, form)
        graph = flow.graph_for([leaves])
        if _state.inline:
            return self._rewriting(self.tracing())(*args, **kwargs)
        dynamic = [_varies(x) for x in leaves]
        values = [flow.own(graph, x) for x, d in zip(leaves, dynamic) if d]
        key = self, _key(leaves, dynamic, form), tuple((v.dtype, v.shape) for v in values), id(graph._root()._training)
        library = graph._root()._functions
        known = library.get(key)
        if known is None:
            known = library[key] = _Known(self, graph, leaves, form, dynamic, tuple((v.dtype, v.shape) for v in values))
            try:
                known.write(self.tracing())
            except BaseException:
                del library[key]
                raise
        return known.call(graph, values, name)

    # ---- For the other modules ----

    def tracing(self) -> Callable[..., Any]:
        """What is traced: the function, rewritten, with an error of a graph's value that decides told where it was not rewritten."""
        self._tell_effects()
        if not self.rewrite:
            return self.function
        function, why = control.converted(self.function, must=True), control.why_not(inspect.unwrap(self.function))
        if not why:
            return function  # type: ignore[no-any-return]

        def told(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except TypeError as e:
                if "neither true nor false" not in str(e) and "not iterable" not in str(e):
                    raise
                raise TypeError(f"{e}; `if` and loops of function '{self.name}' stay Python's: {why}") from None

        return told

    def _tell_effects(self) -> None:
        if self._told or not self.rewrite:
            return
        self._told = True
        effects = control.effects_of(self.function)
        if effects:
            line, text = effects[0]
            more = f" and {len(effects) - 1} more" if len(effects) > 1 else ""
            warnings.warn(f"{syntax.file_and_line(inspect.unwrap(self.function), line)}: `{text}`{more} in function '{self.name}' happens "
                          "while it is traced, once a signature, not in each call", control.TraceWarning, stacklevel=4)

    def _compute(self, eager: "Eager", leaves: Leaves, form: Any) -> Any:
        dynamic = [_varies(x) for x in leaves]
        leaves = [eager.constant(x._value() if isinstance(x, Formula) else x) if d else x for x, d in zip(leaves, dynamic)]
        values = [x for x, d in zip(leaves, dynamic) if d]
        key = (eager, _key(leaves, dynamic, form), tuple((v.dtype, v.shape) for v in values), at_once._state.training)
        program = self._programs.get(key)
        if program is None:
            program = self._programs[key] = traced.Program(eager, self._rewriting(self.tracing()), leaves, form, dynamic)
        return program.run(values)

    def _rewriting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Makes modules that the function calls rewrite theirs."""
        def run(*args: Any, **kwargs: Any) -> Any:
            from .graph import current_graph
            root = current_graph()._root()
            before, root.rewrites = root.rewrites, self.rewrite
            try:
                return function(*args, **kwargs)
            finally:
                root.rewrites = before
        return run


def _varies(x: Any) -> bool:
    """Whether an argument is a value of each call, not a part of the signature."""
    if isinstance(x, (Variable, bool, int, float, complex)) and not isinstance(x, np.generic):
        return False
    return isinstance(x, (Formula, Tensor)) or control._is_number(x) or hasattr(x, "__dlpack__") or hasattr(x, "__array__")


def _key(leaves: Leaves, dynamic: Sequence[bool], form: Any) -> Any:
    """The part of a signature that is no dtype or shape."""
    static = []
    for x, d in zip(leaves, dynamic):
        if d:
            continue
        try:
            hash(x)
            static.append((type(x), x) if not isinstance(x, Formula) else (Variable, id(x)))
        except TypeError:
            static.append((type(x), id(x)))
    return form, tuple(dynamic), tuple(static)


class _Known:
    """A Function for one signature, in a graph."""

    def __init__(self, function: Function, graph: Graph, leaves: Leaves, form: Any, dynamic: Sequence[bool],
                 signature: tuple[tuple[DType, Any], ...]):
        self.signature, self.label, self.owner = signature, function.name, function
        self.leaves, self.arguments, self.dynamic = leaves, form, dynamic
        self.root = graph._root()
        self.name: Optional[str] = None  # None while it is traced
        self.promised = function.results
        self.traced: Optional[flow.Traced] = None
        self.captured: list[Output] = []
        self.form: Any = None
        self.fixed: list[Any] = []  # results that are no values; a Formula stands for one that is

    def write(self, function: Callable[..., Any]) -> None:
        if self.promised is not None:
            self.name = self.root._function_name(self.label)
        run = self.owner._rewriting(function)

        def flat(*places: Output) -> list[Any]:
            given = iter(places)
            args, kwargs = nested.rebuild(self.arguments, iter([next(given) if d else x for x, d in zip(self.leaves, self.dynamic)]))
            found: Leaves = []
            self.form = nested.flatten(run(*args, **kwargs), found)
            for x in found:
                if isinstance(x, control.Undefined):
                    x._fail()
            self.fixed = [x if not (isinstance(x, Formula) or control._is_number(x)) else _VALUE for x in found]
            return [x for x in found if isinstance(x, Operation) or isinstance(x, Formula) or control._is_number(x)]

        order, self.root._order = self.root._order, self.root._order or traced.Order()
        try:
            self.traced = flow.Traced(self.root, flat, self.signature, f"function '{self.label}'")
        finally:
            self.root._order = order
        self.captured = self.traced.body.captured()
        if self.captured and self.promised is not None:
            raise ValueError(f"function '{self.label}' uses {self.captured[0]!r}, which is outside of it, and calls itself; give it as an argument")
        if self.promised is not None and [r.dtype for r in self.traced.results] != self.promised:
            raise TypeError(f"function '{self.label}' gives {[str(r.dtype) for r in self.traced.results]}, but its `results` say "
                            f"{[str(r) for r in self.promised]}")
        if self.name is None:
            self.name = self.root._function_name(self.label)
        self.traced.add(self.name, self.captured, exact=True)

    def call(self, graph: Graph, values: Sequence[Output], name: Optional[str]) -> Any:
        if self.name is None:
            raise ValueError(f"function '{self.label}' calls itself; say in `results` which dtypes it gives")
        types = self.promised if self.promised is not None else [r.dtype for r in self.traced.results] if self.traced else []
        stateless = self.traced is not None and not self.traced.stateful
        outputs, operation = flow._call(graph, "PartitionedCall" if stateless else "StatefulPartitionedCall", [*values, *self.captured],
                                        name=name, Tout=types, f=self.name)
        if self.traced is None:
            return flow._answer(outputs, operation, len(types) == 1)
        flow.keep(graph, operation, [self.traced])
        if not outputs:
            return operation
        found = iter(outputs)
        return nested.rebuild(self.form, iter([next(found) if x is _VALUE else None if isinstance(x, Operation) else x for x in self.fixed]))


_VALUE: Any = object()


@overload
def function(function: Callable[..., Any], *, name: Optional[str] = None, results: Optional[Sequence[DTypeLike]] = None,
             rewrite: bool = True) -> Function: ...


@overload
def function(function: None = None, *, name: Optional[str] = None, results: Optional[Sequence[DTypeLike]] = None,
             rewrite: bool = True) -> Callable[[Callable[..., Any]], Function]: ...


def function(function: Optional[Callable[..., Any]] = None, *, name: Optional[str] = None, results: Optional[Sequence[DTypeLike]] = None,
             rewrite: bool = True) -> Union[Function, Callable[[Callable[..., Any]], Function]]:
    """Makes a Function of a Python function, also as `@thalweg.function` and `@thalweg.function(results=["float32"])`; see Function."""
    if function is None:
        return lambda f: Function(f, name, results, rewrite)
    return Function(function, name, results, rewrite)
