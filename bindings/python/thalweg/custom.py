"""Gradients that a program writes itself.

    @thalweg.custom_gradient
    def log1pexp(x):
        e = thalweg.ops.exp(x)
        return thalweg.ops.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))"""
import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

from . import _low, control, flow, nested, traced
from ._handle import c_text
from .errors import check
from .functions import Function
from .graph import Graph
from .output import Formula, Output


class CustomGradient:
    """A function of values with a gradient of its own; see custom_gradient."""

    def __init__(self, function: Callable[..., Any]):
        functools.update_wrapper(self, function)
        self.function = function
        self._at_once = Function(self._in_graph, name=getattr(function, "__name__", "custom"), rewrite=False)

    def __repr__(self) -> str:
        return f"<CustomGradient '{getattr(self.function, '__name__', '?')}'>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves: list[Any] = []
        nested.flatten((args, kwargs), leaves)
        if traced.eager_for(leaves) is not None:
            traced.refuse_tape(repr(self))
            return self._at_once(*args, **kwargs)
        return self._in_graph(*args, **kwargs)

    def _in_graph(self, *args: Any, **kwargs: Any) -> Any:
        graph = flow.graph_for([list(args)])
        xs = [flow.own(graph, x) for x in args]
        answer = control.converted(self.function)(*xs, **kwargs)
        if not isinstance(answer, tuple) or len(answer) != 2 or not callable(answer[1]):
            raise TypeError(f"custom_gradient: the function gives {answer!r}; it must give its result and the function of its gradient")
        result, gradient = answer
        ys: list[Any] = []
        form = nested.flatten(result, ys)
        # No gradient passes to what the ys are made of, which may be ops without a gradient.
        ys = [graph.op("StopGradient", flow.own(graph, y)) for y in ys]
        held = _call_with_gradient(graph, xs, ys, gradient, getattr(self.function, "__name__", "custom").strip("<>_") or "custom")
        return nested.rebuild(form, iter(held))


def custom_gradient(function: Callable[..., Any]) -> CustomGradient:
    """A function whose gradient the program gives.

    function: takes values and gives its result (a value, or nested tuples, lists and dicts of them) and a function. That takes the gradient
    of each value of the result, in order, and gives that of each positional argument, None for one without; it may use all values of
    `function`, and is differentiated in turn for higher orders. The gradient does not pass to these values, so they may overflow, and
    operations without a gradient may make them, such as those of py_function. For higher orders it does: then each value that the gradient
    uses must have a gradient itself. Keyword arguments are no values and are given on as they are.
    Works in graphs and traced functions, in conditions and loops. Without a graph, take gradients in a traced function:
    `thalweg.function(thalweg.grad(f))`; a tape outside of one is refused."""
    return CustomGradient(function)


def _call_with_gradient(graph: Graph, xs: Sequence[Output], ys: Sequence[Output], gradient: Callable[..., Any], label: str) -> list[Output]:
    """Calls a function that gives the ys, whose stored gradient is `gradient`.

    Its inputs are the xs, the ys and whatever the gradient uses. The stored gradient has results for the xs only, so the other inputs have
    none. Zeros would not do: operations without a gradient refuse them, and those before an infinite value make NaN of them."""
    given = [*xs, *ys]
    found: list[Any] = []

    def back(*args: Output) -> list[Any]:
        dys = args[len(given):]
        answer = gradient(*dys)
        slopes = list(answer) if isinstance(answer, (list, tuple)) else [answer]
        if len(slopes) != len(xs):
            raise TypeError(f"custom_gradient: the gradient of '{label}' gives {len(slopes)} values for {len(xs)} arguments")
        here = flow.graph_for([list(args)])
        found[:] = [here.op("ZerosLike", x) if s is None else s for s, x in zip(slopes, args)]
        for i, (s, x) in enumerate(zip(found, xs)):
            if isinstance(s, Formula) and s._value().dtype != x.dtype:
                raise TypeError(f"custom_gradient: the gradient of '{label}' by argument {i} is {s._value().dtype}, and the argument {x.dtype}")
        return found

    signature = [(v.dtype, v.shape) for v in given]
    slopes = flow.Traced(graph, back, signature + [(y.dtype, y.shape) for y in ys], f"the gradient of '{label}'")
    captured = slopes.body.captured()
    handle = next((c for c in captured if c.dtype.name in ("resource", "variant")), None)
    if handle is not None:
        what = "a variable" if handle.dtype.name == "resource" else f"'{handle.name}', a list"
        raise TypeError(f"custom_gradient: the gradient of '{label}' uses {what}; read it in the function itself")
    owned = [slopes.body._own(c) for c in captured]
    args, dys = slopes.args[:len(given)], slopes.args[len(given):]
    name_back = _add(slopes, f"{label}_gradient", [*args, *owned, *dys], slopes.results)
    forward = flow.Traced(graph, lambda *a: [a[0].graph.op("Identity", y) for y in a[len(xs):len(given)]],
                          signature + [(c.dtype, c.shape) for c in captured], f"'{label}'")
    name = forward.add(label, [])
    if name in graph._root()._bodies:
        graph._root()._bodies[name].has_gradient = True
    graph._root().import_bytes(_gradient_of(name, name_back))
    outputs, _ = flow._call(graph, "PartitionedCall", [*given, *captured], name=None, Tout=[y.dtype for y in ys], f=name)
    return outputs


def _add(f: flow.Traced, name: str, args: Sequence[Output], results: Sequence[Output]) -> str:
    """Adds a traced function with its arguments in that order. Returns its name."""
    targets = (ctypes.c_void_p * len(f.targets))(*(t._handle for t in f.targets))
    spec = _low.tw_function_spec(
        size=ctypes.sizeof(_low.tw_function_spec), name=c_text(name), args=flow._numbers(args), results=flow._numbers(results),
        targets=ctypes.cast(targets, type(_low.tw_function_spec().targets)), n_args=len(args), n_results=len(results),
        n_targets=len(f.targets), make_unique=True)
    found = ctypes.c_char_p()
    check(_low.tw_graph_add_function(f.body.outer._handle, f.body._handle, spec, found))
    added, root = (found.value or b"").decode(), f.body._root()
    if root.traces is not None:
        root.store(added, f.body, args, results, f.targets)  # type: ignore[attr-defined]
    return added


def _gradient_of(function: str, gradient: str) -> bytes:
    """A GraphDef that holds nothing but the GradientDef of a function: field 2 (library), field 2 (gradient), fields 1 and 2 (names)."""
    def field(number: int, data: bytes) -> bytes:
        n, size = len(data), b""
        while n >= 0x80:
            size += bytes([n & 0x7f | 0x80])
            n >>= 7
        return bytes([number << 3 | 2]) + size + bytes([n]) + data

    return field(2, field(2, field(1, function.encode()) + field(2, gradient.encode())))
