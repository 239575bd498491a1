"""Control flow of rewritten functions (syntax): Python's own where Python's values decide, operations of the graph where its values do.

A condition and a loop keep their state, the names that their bodies bind, in Python's variables. Where a value of a graph decides, each
body is traced into a function of the graph, and the names whose values differ become results."""
import functools
import inspect
import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Optional

import numpy as np

from . import flow, syntax
from .errors import here
from .graph import Graph
from .nested import flatten, rebuild
from .output import Formula, Operation, Output, shape_text
from .tensor import Tensor

State = tuple[Any, ...]
Get = Callable[[], State]
Set = Callable[[Sequence[Any]], None]
Names = Sequence[str]
Effects = Sequence[tuple[int, str]]


class TraceWarning(UserWarning):
    """Something in a traced function happens once, while it is traced, and not in each run."""


class Undefined:
    """The value of a name that is not bound. Each use raises NameError, which gives the reason."""

    def __init__(self, name: str, why: str = "nothing has set it"):
        self._ag_name, self._ag_why = name, why

    def _fail(self, *_: Any, **__: Any) -> Any:
        raise NameError(f"'{self._ag_name}' has no value here: {self._ag_why}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name.startswith("_ag_"):
            raise AttributeError(name)
        return self._fail()

    def __repr__(self) -> str:
        return f"<no value of '{self._ag_name}'>"


for _operator in ("add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow matmul rmatmul lt le gt ge eq ne neg pos "
                  "abs bool int float index iter len call getitem setitem contains and rand or ror xor rxor invert array format enter").split():
    setattr(Undefined, f"__{_operator}__", Undefined._fail)
Undefined.__hash__ = object.__hash__  # type: ignore[method-assign]


def is_traced(x: Any) -> bool:
    """Whether it is a value or variable of a graph, whose elements only a run has."""
    return isinstance(x, Formula) and not x.graph.computes


def in_trace(x: Any) -> bool:
    """Whether it is a value of a graph whose function is traced for what is written without a graph: tapes and gradients of functions."""
    return is_traced(x) and (x.graph._root().traces is not None or x.graph._root().rewrites)


def _line() -> str:
    return (here() or b"?").decode(errors="replace")


def error(kind: Any, text: str) -> Exception:
    """An error with the line of the program that is traced."""
    made: Exception = kind(f"{_line()}: {text}")
    return made


# ---- Functions ----

def call(f: Any) -> Any:
    """What a rewritten function calls in place of f."""
    if f is range:
        return _range
    if f is print:
        return _print
    if isinstance(f, types.FunctionType):
        return converted(f)
    if isinstance(f, types.MethodType) and isinstance(f.__func__, types.FunctionType):
        made = converted(f.__func__)
        return f if made is f.__func__ else types.MethodType(made, f.__self__)
    if isinstance(f, functools.partial):
        return functools.partial(call(f.func), *f.args, **f.keywords)
    return f


def converted(f: Any, must: bool = False) -> Any:
    """The rewritten function; f itself where it cannot be rewritten.   must: f is rewritten whatever module it is of."""
    if isinstance(f, types.MethodType):
        return types.MethodType(converted(f.__func__, must), f.__self__)
    if not isinstance(f, types.FunctionType) or not (must or syntax.is_program(f)) or "ag__" in f.__code__.co_freevars:
        return f
    try:
        return syntax.rewritten(f).function_of(f, _control)
    except syntax.CannotRewrite:
        return f


def effects_of(f: Any) -> Effects:
    """The statements of a function that change objects outside of it."""
    f = inspect.unwrap(f) if not isinstance(f, types.MethodType) else f.__func__
    try:
        return syntax.rewritten(f).effects if isinstance(f, types.FunctionType) else ()
    except syntax.CannotRewrite:
        return ()


def why_not(f: Any) -> str:
    """Why a function cannot be rewritten; "" where it can."""
    try:
        if isinstance(f, types.FunctionType):
            syntax.rewritten(f)
        return ""
    except syntax.CannotRewrite as e:
        return str(e)


class _Range:
    """A range whose bounds are values of a graph."""

    def __init__(self, *bounds: Any):
        start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1) if len(bounds) == 2 else bounds
        self.start, self.stop, self.step = start, stop, step


def _range(*bounds: Any) -> Any:
    return _Range(*bounds) if any(is_traced(b) for b in bounds) else range(*bounds)


def _print(*values: Any, **how: Any) -> None:
    if any(is_traced(v) for v in values):
        warnings.warn(f"{_line()}: print shows a value while it is traced, before it has elements, and once; return the value instead",
                      TraceWarning, stacklevel=2)
    print(*values, **how)


# ---- Expressions ----

def and_(*parts: Callable[[], Any]) -> Any:
    """`a and b`: elements that are true in both, where one is a value of a graph."""
    return _combined("LogicalAnd", parts, lambda v: not v)


def or_(*parts: Callable[[], Any]) -> Any:
    """`a or b`."""
    return _combined("LogicalOr", parts, bool)


def _combined(op: str, parts: Sequence[Callable[[], Any]], decides: Callable[[Any], bool]) -> Any:
    result: Any = None
    for i, part in enumerate(parts):
        value = part()
        if is_traced(result):
            result = _truth(result).graph.op(op, _truth(result), _truth(value))
            continue
        result = value
        if not is_traced(value) and i + 1 < len(parts) and decides(value):
            return value
    return result


def _truth(x: Any) -> Any:
    if isinstance(x, Formula):
        return x if x._value().dtype.name == "bool" else x != 0
    return bool(x)


def not_(x: Any) -> Any:
    """`not x`."""
    return ~_truth(x) if is_traced(x) else not x


def choose(test: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """`a if test else b`."""
    if not is_traced(test):
        return then() if test else otherwise()
    held: list[Any] = [None]

    def put(state: Sequence[Any]) -> None:
        held[0] = state[0]

    if_(test, lambda: put([then()]), lambda: put([otherwise()]), lambda: (held[0],), put, ("ag__value: the expression",))
    return held[0]


def assert_(test: Any, told: Callable[[], Any]) -> None:
    """`assert test, told`: an operation that fails where the test is false."""
    if is_traced(test):
        message = told()
        test.graph.op("Assert", _truth(test).reshape(-1).graph.op("All", _truth(test), list(range(len(test.shape or ())))),
                      [f"{_line()}: assertion failed" + ("" if message is None else f": {message}")])
    else:
        assert test, told()


# ---- Leaves of nested values ----

def _is_number(x: Any) -> bool:
    return isinstance(x, (bool, int, float, complex, np.ndarray, np.generic, Tensor))


def _same(a: Any, b: Any) -> bool:
    """Whether two leaves are one value of Python, which no run changes."""
    if a is b:
        return True
    if isinstance(a, Formula) or isinstance(b, Formula) or type(a) is not type(b):
        return False
    return np.array_equal(a, b) if isinstance(a, np.ndarray) else isinstance(a, (bool, int, float, str, bytes, tuple)) and bool(a == b)


def refuse(effects: Effects, what: str) -> None:
    """Raises TypeError for statements that would change objects while a body is traced, which happens once whatever the run decides."""
    if not effects:
        return
    file = _line().rpartition(":")[0]
    line, text = effects[0]
    raise TypeError(f"{file}:{line}: `{text}` is inside of {what} that a value of the graph decides ({_line()}), and would happen while it is "
                    "traced, whatever the run decides; bind a name of the function instead, or return the value")


# ---- Conditions ----

def if_(test: Any, then: Callable[[], Any], otherwise: Callable[[], Any], get: Get, put: Set, names: Names, effects: Effects = ()) -> None:
    """`if test: then() else: otherwise()`."""
    if not is_traced(test):
        (then if test else otherwise)()
        return
    refuse(effects, "an `if`")
    shape = test._value().shape
    if shape:
        raise error(TypeError, f"the condition has shape {shape_text(shape)}; a single truth value is needed, such as that of .any() or .all()")
    graph = flow.graph_for([test])
    before, ends = get(), []

    def branch(run: Callable[[], Any]) -> Callable[[], None]:
        def traced() -> None:
            put(before)
            run()
            ends.append(get())
        return traced

    try:
        bodies = [flow.Traced(graph, branch(f), [], what) for f, what in ((then, "`if`"), (otherwise, "`else`"))]
    finally:
        put(before)
    put(_Merge(graph, test, bodies, ends, names).state())


class _Merge:
    """What the names are after a condition."""

    def __init__(self, graph: Graph, test: Any, bodies: Sequence[flow.Traced], ends: Sequence[State], names: Names):
        self.graph, self.test, self.bodies, self.names = graph, test, bodies, names
        self.pairs: list[tuple[Any, Any]] = []  # leaves that become results
        self.plans = [self._plan(name, a, b) for name, a, b in zip(names, *ends)]

    def _plan(self, name: str, a: Any, b: Any) -> Any:
        """A function of the results' iterator that gives the name's value."""
        must, line = name.startswith("ag__value"), _line()
        if isinstance(a, Undefined) != isinstance(b, Undefined):
            if not must:
                return lambda _: Undefined(name, f"only one branch of the condition at {line} sets it")
            a, b = (self._zero(b, self.bodies[1], self.bodies[0]), b) if isinstance(a, Undefined) else (a, self._zero(a, *self.bodies))
        ours: list[Any] = []
        theirs: list[Any] = []
        form = flatten(a, ours)
        problem = "" if form == flatten(b, theirs) else "a nested value of another form"
        found = [] if problem else [self._leaf(x, y) for x, y in zip(ours, theirs)]
        problem = problem or next((p for p in found if isinstance(p, str)), "")
        if problem:
            what = "the result" if must else f"'{name}'"
            told = f"{what} is {problem} in the branches of the condition at {line}"
            if must:
                raise TypeError(f"{line}: {told}; both must give values of one dtype, or the same")
            return lambda _: Undefined(name, told)
        where = []
        for p in found:
            where.append(p if p[0] == "same" else ("result", len(self.pairs)))
            if p[0] != "same":
                self.pairs.append(p[1])
        return lambda results: rebuild(form, iter([x if kind == "same" else results[x] for kind, x in where]))

    def _zero(self, like: Any, of: flow.Traced, into: flow.Traced) -> Any:
        """A value in place of an unset result, which another flag keeps from being used."""
        leaves: list[Any] = []
        form = flatten(like, leaves)

        def zero(x: Any) -> Any:
            if not is_traced(x):
                return x
            shape = of.body._own(x._value()).shape
            if shape is None or None in shape:
                raise error(TypeError, f"a `return` inside of a loop gives a value of shape {shape_text(shape)}; all sizes must be known there")
            return into.body.constant(np.zeros(shape, x._value().dtype.numpy))

        return rebuild(form, iter([zero(x) for x in leaves]))

    def _leaf(self, a: Any, b: Any) -> Any:
        if _same(a, b):
            return "same", a
        for x in (a, b):
            if not (is_traced(x) or _is_number(x) or isinstance(x, Formula)):
                return f"{a!r} and {b!r}"
        one, two = self._value(0, a, b), self._value(1, b, a)
        if one.dtype != two.dtype:
            return f"{one.dtype} and {two.dtype}"
        return "pair", (one, two)

    def _value(self, i: int, x: Any, other: Any) -> Output:
        """A leaf as a value of branch i. Python's own numbers take the type of the other branch's value."""
        if isinstance(x, (bool, int, float, complex)) and isinstance(other, Formula):
            wanted = other._value().dtype
            if isinstance(x, bool) == (wanted.name == "bool"):
                return self.bodies[i].body.constant(x, wanted)
        if isinstance(x, int) and isinstance(other, float) and not isinstance(x, bool):
            x = float(x)
        return self.bodies[i]._value(0, x)

    def state(self) -> list[Any]:
        for i, body in enumerate(self.bodies):
            body.results, body.one = [p[i] for p in self.pairs], False
        results: Any = []
        if self.pairs or any(body.targets for body in self.bodies):
            found = flow._choose(self.graph, "If", self.test._value(), list(self.bodies), None)
            results = found if isinstance(found, list) else []
            flow.keep(self.graph, found if isinstance(found, Operation) else found[0].operation, self.bodies)
        return [plan(results) for plan in self.plans]


# ---- Loops ----

def while_(test: Callable[[], Any], body: Callable[[], Any], get: Get, put: Set, names: Names, effects: Effects = ()) -> None:
    """`while test(): body()`."""
    while True:
        goes_on = test()
        if is_traced(goes_on):
            refuse(effects, "a `while`")
            _Loop(flow.graph_for([goes_on]), test, body, get, put, names).run()
            return
        if not goes_on:
            return
        body()


def for_(items: Any, body: Callable[[Any], Any], get: Get, put: Set, names: Names, effects: Effects, stopped: Optional[str]) -> None:
    """`for item in items: body(item)`.   stopped: the name that becomes true by `break`."""
    if isinstance(items, _Range) or is_traced(items):
        refuse(effects, "a `for`")
        _counted(items, body, get, put, names, stopped)
        return
    for item in items:
        over = get()[names.index(stopped)] if stopped else False
        if is_traced(over):
            refuse(effects, "a `for`")
            if_(not_(over), functools.partial(body, item), lambda: None, get, put, names)
        elif over:
            return
        else:
            body(item)


def _counted(items: Any, body: Callable[[Any], Any], get: Get, put: Set, names: Names, stopped: Optional[str]) -> None:
    """A loop over the first axis of a value, or over a range."""
    if isinstance(items, _Range):
        graph = flow.graph_for([items.start, items.stop, items.step])
        start, stop, step = _one_type(graph, items)
        item = lambda i: i  # noqa: E731
    else:
        value = items._value()
        graph = flow.graph_for([value])
        if value.shape == ():
            raise error(TypeError, f"{value!r} is a scalar and has no elements to go through; write range(...)")
        start, stop, step = graph.constant(0), graph.op("Shape", value)[0], 1
        item = lambda i: graph_here(value).op("GatherV2", value, i, 0)  # noqa: E731
    state = [start]

    def goes_on() -> Any:
        i = state[0]
        inside = (i < stop) if isinstance(step, (int, np.integer)) and step > 0 else \
            (i > stop) if isinstance(step, (int, np.integer)) else ((i < stop) & (step > 0)) | ((i > stop) & (step < 0))
        over = get()[names.index(stopped)] if stopped else False
        return inside if over is False else and_(lambda: inside, lambda: not_(over))

    def turn() -> None:
        i = state[0]
        body(item(i))
        state[0] = i + step

    def all_of() -> State:
        return (*get(), state[0])

    def put_all(values: Sequence[Any]) -> None:
        put(values[:-1])
        state[0] = values[-1]

    _Loop(graph, goes_on, turn, all_of, put_all, [*names, "the loop's counter"]).run()


def graph_here(value: Output) -> Any:
    """The graph for an operation on the value here."""
    return flow.graph_for([value])


def _one_type(graph: Graph, r: _Range) -> tuple[Any, Any, Any]:
    traced = next(b for b in (r.start, r.stop, r.step) if is_traced(b))
    kind = traced._value().dtype
    if not kind.is_integer:
        raise error(TypeError, f"a bound of range is {kind}; whole numbers are needed")
    start = r.start if is_traced(r.start) else graph.constant(r.start, kind)
    step = r.step if not isinstance(r.step, (int, np.integer)) else int(r.step)
    if step == 0:
        raise error(ValueError, "the step of range is 0")
    return start, r.stop, step


class _Loop:
    """A loop whose condition is a value of the graph."""

    def __init__(self, graph: Graph, test: Callable[[], Any], body: Callable[[], Any], get: Get, put: Set, names: Names):
        self.graph, self.test, self.body, self.get, self.put, self.names = graph, test, body, get, put, names
        self.line = _line()
        self.first: list[Any] = []  # leaves before the loop
        self.forms = [flatten(x, self.first) if not isinstance(x, Undefined) else "unset" for x in get()]
        self.unset = [x for x in get() if isinstance(x, Undefined)]
        self.owners = [name for name, form in zip(names, self.forms) if form != "unset" for _ in range(_count(form))]
        self.varies = [isinstance(x, Formula) or _is_number(x) for x in self.first]
        self.values: list[Output] = []
        self.shapes: list[Any] = []

    def run(self) -> None:
        before = self.get()
        self.values = [self._own(x, None) for x, v in zip(self.first, self.varies) if v]
        self.shapes = [v.shape for v in self.values]
        for _ in range(8):
            try:
                goes_on, next_, results, ends = self._trace()
            finally:
                self.put(before)
            if self._fits(results, ends):
                break
            before = self.get()
        else:
            raise error(TypeError, "the shapes of the loop's names change without end")
        next_.results, next_.one = results, False
        outputs, operation = flow.loop(self.graph, goes_on, next_, self.values, self.shapes, None)
        flow.keep(self.graph, operation, [goes_on, next_])
        self._finish(outputs)

    def _own(self, x: Any, dtype: Any) -> Output:
        if isinstance(x, Formula) and not x.graph.computes:
            return self.graph._own(x._value())
        return self.graph.constant(x, dtype) if not isinstance(x, Formula) else flow.own(self.graph, x)

    def _state(self, values: Sequence[Any]) -> list[Any]:
        """The state with these values for what varies."""
        it = iter(values)
        leaves = iter([next(it) if v else x for x, v in zip(self.first, self.varies)])
        unset = iter(self.unset)
        return [next(unset) if form == "unset" else rebuild(form, leaves) for form in self.forms]

    def _trace(self) -> tuple[flow.Traced, flow.Traced, list[Output], State]:
        ends: list[State] = []

        def goes_on(*values: Output) -> Any:
            self.put(self._state(values))
            found = self.test()
            return _truth(found) if is_traced(found) else self.graph.constant(bool(found)) if not isinstance(found, Formula) else found

        def turn(*values: Output) -> None:
            self.put(self._state(values))
            self.body()
            ends.append(self.get())

        arguments = [(v.dtype, s) for v, s in zip(self.values, self.shapes)]
        cond = flow.Traced(self.graph, goes_on, arguments, "the loop's condition")
        if cond.results[0].shape:
            raise error(TypeError, f"the loop's condition has shape {shape_text(cond.results[0].shape)}; a single truth value is needed")
        next_ = flow.Traced(self.graph, turn, arguments, "the loop's body")
        return cond, next_, self._results(next_, ends[0]), ends[0]

    def _results(self, next_: flow.Traced, ends: State) -> list[Output]:
        leaves: list[Any] = []
        for name, form, end in zip(self.names, self.forms, ends):
            if form == "unset":
                continue
            mine: list[Any] = []
            if isinstance(end, Undefined) or flatten(end, mine) != form:
                raise TypeError(f"{self.line}: '{name}' has another form after a turn of the loop than before it, which no run can change")
            leaves += mine
        results, n = [], 0
        for owner, x, first, varies in zip(self.owners, leaves, self.first, self.varies):
            if not varies:
                if not _same(x, first):
                    raise TypeError(f"{self.line}: '{owner}' is {first!r} before the loop and {x!r} after a turn; only numbers and values change in "
                                    "a loop that a value of the graph decides")
                continue
            if not (isinstance(x, Formula) or _is_number(x)):
                raise TypeError(f"{self.line}: '{owner}' is a value before the loop and {x!r} after a turn")
            number = isinstance(x, (int, float)) and not isinstance(x, bool) and self.values[n].dtype.name != "bool"
            results.append(next_.body.constant(x, self.values[n].dtype) if number else next_._value(n, x))
            n += 1
        return results

    def _fits(self, results: Sequence[Output], ends: State) -> bool:
        """Whether the results fit the loop's variables. Otherwise makes the variables fit the results."""
        ok, n = True, 0
        for k, (owner, varies) in enumerate(zip(self.owners, self.varies)):
            if not varies:
                continue
            value, result = self.values[n], results[n]
            if value.dtype != result.dtype:
                if not isinstance(self.first[k], (int, float)) or isinstance(self.first[k], bool):
                    raise TypeError(f"{self.line}: '{owner}' is {value.dtype} before the loop and {result.dtype} after a turn")
                self.values[n], ok = self.graph.constant(self.first[k], result.dtype), False
            if not flow.fits(result.shape, self.shapes[n]):
                self.shapes[n], ok = flow._common(self.shapes[n], result.shape), False
            n += 1
        return ok and self._returns(ends)

    def _returns(self, ends: State) -> bool:
        """Makes a variable of a result that only a `return` in the loop sets. Returns true if there is none."""
        ok = True
        for i, (name, form, end) in enumerate(zip(self.names, self.forms, ends)):
            if form != "unset" or not name.startswith("ag__value") or isinstance(end, Undefined):
                continue
            leaves: list[Any] = []
            form = flatten(end, leaves)
            start = []
            for x in leaves:
                shape = x._value().shape if is_traced(x) else ()
                if shape is None or None in shape:
                    raise TypeError(f"{self.line}: a `return` inside of a loop gives a value of shape {shape_text(shape)}; all sizes must be known")
                start.append(np.zeros(shape, x._value().dtype.numpy) if is_traced(x) else x)
            at = sum(_count(f) for f in self.forms[:i] if f != "unset")
            self.unset.pop(sum(f == "unset" for f in self.forms[:i]))
            self.forms[i] = form
            self.first[at:at] = start
            self.owners[at:at] = [name] * len(start)
            self.varies[at:at] = [isinstance(x, Formula) or _is_number(x) for x in start]
            n = sum(self.varies[:at])
            new = [self._own(x, None) for x in start if _is_number(x)]
            self.values[n:n] = new
            self.shapes[n:n] = [v.shape for v in new]
            ok = False
        return ok

    def _finish(self, outputs: Sequence[Output]) -> None:
        state = self._state(outputs)
        for i, (name, form) in enumerate(zip(self.names, self.forms)):
            if form == "unset":
                state[i] = Undefined(name, f"only the body of the loop at {self.line} sets it; set it before the loop")
        self.put(state)


def _count(form: Any) -> int:
    return 1 if form is None else sum(_count(p) for p in form[2])


class _Control:
    """What rewritten functions call, as `ag__`."""
    Undefined = Undefined
    if_, while_, for_, and_, or_, not_ = map(staticmethod, (if_, while_, for_, and_, or_, not_))  # type: ignore[assignment]
    choose, call, assert_ = map(staticmethod, (choose, call, assert_))  # type: ignore[assignment]


_control = _Control()
