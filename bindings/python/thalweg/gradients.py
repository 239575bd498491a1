"""Differentiation: adds the operations that compute gradients. They are placed, optimized and differentiated again like any others."""
import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional, Union

from . import _low
from .errors import check
from .output import Formula, Output, shape_text


class SparseGradient(NamedTuple):
    """The gradient of an x from which rows were gathered and which had no other use: values [n, ...] are the gradients of the rows of x
    that rows [n] names. The gradient of a row named twice is the sum of both; that of a row not named is zero."""
    values: Output
    rows: Output


Gradient = Union[Output, SparseGradient, None]


def _several(values: Any) -> list[Formula]:
    return list(values) if isinstance(values, (list, tuple)) else [values]


def gradients(ys: Any, xs: Any, dys: Optional[Sequence[Any]] = None, until: Sequence[Any] = (), recompute: bool = False,
              memory_budget: Optional[int] = None) -> Any:
    """Returns the gradient of the sum of all ys with respect to each of xs, or None if no y depends on it (functions copy small constants,
    see flow).

    ys: a value or a list of values, of real or complex numbers.   xs: values or variables; the result is a list if xs is one.
    dys: a weight for each y, of its shape; None: ones.   until: values that count as constants.
    recompute: gradients compute forward values again instead of keeping them, unless these have effects or random draws: less memory,
    more time, the same bits. Of operations outside of branches, loops and calls, planning chooses those that lower the peak.
    memory_budget: bytes that all loops together may keep for their gradients. A loop that would keep more, or an unknown amount,
    recomputes. None: no limit.
    Raises FailedPreconditionError for an op between that is not differentiable, UnimplementedError if a gradient is missing."""
    many, xs = isinstance(xs, (list, tuple)), _several(xs)
    found = [_python(_several(ys)[0].graph, g) for g in raw(ys, xs, dys, until, recompute, memory_budget)]
    return found if many else found[0]


def of_loss(loss: Any, variables: Sequence[Any], dys: Optional[Sequence[Any]] = None) -> list[Gradient]:
    """Returns the gradients of a loss. Raises ValueError for a loss that is known to be no scalar, because gradients would sum its
    elements."""
    shape = loss._value().shape
    if shape is None or shape == ():
        found: list[Gradient] = gradients(loss, list(variables), dys)
        return found
    raise ValueError(f"{loss!r} is no loss to minimize: its shape is {shape_text(shape)}, and that of a loss is []; "
                     "take its .mean() or .sum()")


def raw(ys: Any, xs: Sequence[Any], dys: Optional[Sequence[Any]] = None, until: Sequence[Any] = (), recompute: bool = False,
        memory_budget: Optional[int] = None) -> Any:
    """Returns the gradients as an array of tw_gradient."""
    ys = [y._value() for y in _several(ys)]
    if not ys:
        raise ValueError("there is no y to differentiate")
    graph = ys[0].graph
    if graph.computes:
        raise TypeError(f"{ys[0]!r} was computed without a graph; note it in a `with thalweg.Tape() as tape:` and ask tape.gradient")
    if dys is not None:
        dys = _several(dys)
        if len(dys) != len(ys):
            raise ValueError(f"there are {len(ys)} ys, but {len(dys)} dys")
        dys = [None if d is None else d._value() if isinstance(d, Formula) else graph.constant(d, y.dtype) for y, d in zip(ys, dys)]
    for value in [*ys, *xs, *until, *(d for d in dys or () if d is not None)]:
        if value.graph is not graph:
            raise ValueError(f"{value!r} is of another graph than {ys[0]!r}")
    out = (_low.tw_gradient * len(xs))()
    y, dy, x, stop = _numbers(ys), None if dys is None else _numbers(dys), _numbers(xs), _numbers(until)
    if memory_budget is not None and not recompute:
        check(_low.tw_gradients_add_within(graph._handle, y, dy, len(ys), x, len(xs), stop, len(until), memory_budget, out))
        return out
    add = _low.tw_gradients_add_recomputing if recompute else _low.tw_gradients_add_until
    check(add(graph._handle, y, dy, len(ys), x, len(xs), stop, len(until), out))
    return out


def _numbers(values: Sequence[Any]) -> Any:
    """Returns the numbers of values, and of the handles of variables; 0 for None."""
    return (ctypes.c_uint64 * len(values))(*(0 if v is None else v.number if isinstance(v, Output) else v.handle.number for v in values))


def _python(graph: Any, gradient: "_low.tw_gradient") -> Gradient:
    if not gradient.values:
        return None
    values = Output(graph, gradient.values)
    return SparseGradient(values, Output(graph, gradient.rows)) if gradient.rows else values
