"""Gradients of any order of values that were computed without a graph. A tape records calls and differentiates them.

    slope = thalweg.grad(lambda x: x * x * x)
    slope(2.0)                                  # Value(12, ...)
    thalweg.grad(slope)(2.0)                    # 12 too: the second derivative

Threads: a tape records the calls of the thread that made it, and only that thread may use it."""
import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any, Optional, Union

from . import _low, control
from ._handle import Handle
from .eager import current_eager
from .errors import check, made
from .gradients import SparseGradient, gradients
from .graph import current_graph
from .output import Formula
from .tensor import Tensor
from .traced import tapes
from .value import Value
from .variable import Variable


class Tape(Handle):
    """Records, until its `with` ends, the calls of the current context on watched values and on variables. `gradient` may be called
    inside of the `with` or after it, any number of times. Nested tapes give higher derivatives. A tape keeps the values that it recorded
    as long as it lives."""
    __slots__ = ("_handle", "eager", "held")

    def __init__(self) -> None:
        self._handle = 0
        self.eager = current_eager()
        self.held: list[Any] = []  # what its gradients call

    def __enter__(self) -> "Tape":
        if self._handle:
            raise RuntimeError("a tape is used in one `with`; make another")
        self._handle = made(_low.tw_tape_create, self.eager._handle)
        tapes().append(self)
        return self

    def __exit__(self, *_: Any) -> None:
        tapes()[:] = [tape for tape in tapes() if tape is not self]
        _low.tw_tape_stop(self._handle)

    def __del__(self, destroy: Any = _low.tw_tape_destroy) -> None:
        destroy(getattr(self, "_handle", None))

    def watch(self, *values: Any) -> None:
        """What is computed from these is noted from now on. Raises TypeError for what is no value, InvalidArgumentError for one of whole
        numbers, truth values or text."""
        for value in values:
            if control.in_trace(value):
                continue  # in a traced function, every value counts as watched
            check(_low.tw_tape_watch(self._begun(), _source(value).tensor._handle))

    def gradient(self, ys: Any, xs: Any, dys: Optional[Sequence[Any]] = None) -> Any:
        """The gradient of the sum of all ys by each of xs: None where no y depends on it, a SparseGradient for what was only gathered from.

        ys: a value or a list of values that were computed while the tape noted.   xs: watched values, values between, or variables;
        the answer is a list if this is one.   dys: what to weight each y by, of its shape; None: ones.
        Raises FailedPreconditionError for an op on the way that is not differentiable, UnimplementedError where a gradient is missing."""
        targets, many = _several(ys), isinstance(xs, (list, tuple))
        if any(control.in_trace(y) for y in targets):
            return gradients(ys, xs, dys)
        sources = [_source(x) for x in _several(xs)]
        if dys is not None:
            if len(_several(dys)) != len(targets):
                raise ValueError(f"there are {len(targets)} ys, but {len(_several(dys))} dys")
            dys = [None if d is None else self.eager.constant(d, y.dtype) for d, y in zip(_several(dys), targets)]
        out = (_low.tw_tape_result * len(sources))()
        y, x = _handles(targets), _handles(sources)
        check(_low.tw_tape_gradient(self._begun(), y, None if dys is None else _handles(dys), len(targets), x, len(sources), out))
        found = [self._result(r) for r in out]
        return found if many else found[0]

    def _begun(self) -> int:
        if not self._handle:
            raise RuntimeError("a tape notes inside its `with`: write `with thalweg.Tape() as tape:`")
        return self._handle

    def _result(self, r: "_low.tw_tape_result") -> Any:
        if not r.values:
            return None
        values = Value(self.eager, Tensor._adopt(r.values))
        return SparseGradient(values, Value(self.eager, Tensor._adopt(r.rows))) if r.rows else values


def _several(values: Any) -> list[Any]:
    return list(values) if isinstance(values, (list, tuple)) else [values]


def _handles(values: Sequence[Optional[Value]]) -> Any:
    return (ctypes.c_void_p * len(values))(*(None if v is None else v.tensor._handle for v in values))


def _source(x: Any) -> Value:
    value = x._handle_value() if isinstance(x, Formula) else x
    if not isinstance(value, Value):
        raise TypeError(f"{x!r} is neither a value without a graph nor a variable of such; "
                        "for values of a graph there is thalweg.gradients")
    return value


def value_and_grad(f: Callable[..., Any], argnums: Union[int, Sequence[int]] = 0) -> Callable[..., tuple[Any, Any]]:
    """A function that answers f's value, which must be a scalar, and its gradient by the arguments at argnums: a number or a list of them.

    These arguments are values, numbers, arrays or variables. f may use other values and variables, which count as constants. The
    function can be differentiated again. Raises ValueError where f gives no scalar."""
    many = isinstance(argnums, (list, tuple))
    positions = list(argnums) if isinstance(argnums, (list, tuple)) else [argnums]

    @functools.wraps(f)
    def both(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        if any(control.in_trace(args[i]) for i in positions):
            y, slopes = _in_graph(f, args, kwargs, positions)
            return y, slopes if many else slopes[0]
        with Tape() as tape:
            given = list(args)
            for i in positions:
                if not isinstance(given[i], Variable):
                    # A value of its own, so that what f uses of it otherwise is no part of the gradient.
                    given[i] = tape.eager.op("Identity", tape.eager.constant(given[i]))
                    tape.watch(given[i])
            y = f(*given, **kwargs)
            if not isinstance(y, Value) or y.shape != ():
                raise ValueError(f"the function to be differentiated gave {y!r}; a scalar is needed, the sum of a value for instance")
        gradients = tape.gradient(y, [given[i] for i in positions])
        return y, gradients if many else gradients[0]

    return both


def _in_graph(f: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], positions: Sequence[int]) -> tuple[Any, list[Any]]:
    """The value and the gradients in a graph, such as that of a traced function."""
    given = list(args)
    for i in positions:
        if not isinstance(given[i], Variable):
            x = given[i]._value() if isinstance(given[i], Formula) else current_graph().constant(given[i])
            given[i] = x.graph.op("Identity", x)
    y = f(*given, **kwargs)
    if not control.is_traced(y) or y._value().shape not in ((), None):
        raise ValueError(f"the function to be differentiated gave {y!r}; a scalar is needed, the sum of a value for instance")
    xs = [given[i] for i in positions]
    found = gradients(y, xs)
    return y, [xs[k]._value() * 0 if g is None and not isinstance(xs[k], Variable) else g for k, g in enumerate(found)]


def grad(f: Callable[..., Any], argnums: Union[int, Sequence[int]] = 0) -> Callable[..., Any]:
    """A function that answers the gradient alone; all else as with value_and_grad."""
    both = value_and_grad(f, argnums)

    @functools.wraps(f)
    def slope(*args: Any, **kwargs: Any) -> Any:
        return both(*args, **kwargs)[1]

    return slope
