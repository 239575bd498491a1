"""Functions over the slices of values along their first axis, in loops with one iteration for each slice.

    squares = thalweg.map_fn(lambda row: row * row, x)
    total = thalweg.foldl(lambda sum, row: sum + row, x)
    sums = thalweg.scan(lambda sum, row: sum + row, x)

elems is a value, or a list of values with the same first size; then the function gets a list of slices. The state (initializer) may
be a list too; it keeps its dtype and shape. A function may be any callable, including a `thalweg.function`."""
from collections.abc import Callable, Sequence
from typing import Any, Optional

import numpy as np

from . import flow
from .dtypes import as_dtype
from .graph import Graph
from .output import Output, shape_text

Step = Callable[[list[Output], list[Output]], tuple[list[Any], list[Any]]]


def map_fn(fn: Callable[[Any], Any], elems: Any, name: Optional[str] = None) -> Any:
    """Returns the results of fn for the slices, along a new first axis. fn returns a value or a list of values, of one shape for all
    slices."""
    one = True

    def step(_: list[Output], slices: list[Output]) -> tuple[list[Any], list[Any]]:
        nonlocal one
        answer = fn(_like(elems, slices))
        if answer is None:
            raise TypeError("map_fn: `fn` gives None; it must give a value or a list of values")
        one = not isinstance(answer, (list, tuple))
        return [], [answer] if one else list(answer)

    results = each("map_fn", step, elems, [], False, name)[1]
    return results[0] if one else results


def foldl(fn: Callable[[Any, Any], Any], elems: Any, initializer: Any = None, name: Optional[str] = None) -> Any:
    """fn(... fn(fn(initializer, slice 0), slice 1) ..., last slice). initializer: None: the first slice; the loop then begins with the
    second."""
    return _fold("foldl", fn, elems, initializer, False, False, name)


def foldr(fn: Callable[[Any, Any], Any], elems: Any, initializer: Any = None, name: Optional[str] = None) -> Any:
    """As foldl, from the last slice to the first."""
    return _fold("foldr", fn, elems, initializer, True, False, name)


def scan(fn: Callable[[Any, Any], Any], elems: Any, initializer: Any = None, reverse: bool = False, name: Optional[str] = None) -> Any:
    """Returns the state of foldl after each slice, along a new first axis. If initializer is None, the first state is the first slice.
    reverse: from the last slice to the first."""
    return _fold("scan", fn, elems, initializer, reverse, True, name)


def _like(elems: Any, values: list[Output]) -> Any:
    return values if isinstance(elems, (list, tuple)) else values[0]


def _listed(values: Any) -> list[Any]:
    return list(values) if isinstance(values, (list, tuple)) else [values]


def _fold(what: str, fn: Callable[[Any, Any], Any], elems: Any, initializer: Any, reverse: bool, every: bool, name: Optional[str]) -> Any:
    graph = flow.graph_for([elems, initializer])
    values = _values(graph, what, elems)
    begun = initializer is not None
    like = initializer if begun else elems
    first = [flow.own(graph, v) for v in _listed(initializer)] if begun else [v[-1 if reverse else 0] for v in values]
    rest = values if begun else [v[:-1] if reverse else v[1:] for v in values]

    def step(states: list[Output], slices: list[Output]) -> tuple[list[Any], list[Any]]:
        answer = _listed(fn(_like(like, states), _like(elems, slices)))
        return answer, answer if every else []

    last, all_ = each(what, step, rest, first, reverse, name)
    if every and not begun:
        parts = [[a, graph.op("ExpandDims", f, 0)] for a, f in zip(all_, first)]
        all_ = [graph.op("ConcatV2", p if reverse else p[::-1], 0) for p in parts]
    return _like(like, all_ if every else last)


def _size(n: Optional[int]) -> int:
    return -1 if n is None else n


def _values(graph: Graph, what: str, elems: Any) -> list[Output]:
    values = [flow.own(graph, v) for v in _listed(elems)]
    if not values:
        raise ValueError(f"{what}: there are no elems")
    sizes: dict[int, int] = {}
    for i, v in enumerate(values):
        if v.shape == ():
            raise ValueError(f"{what}: elems[{i}] is a scalar, which has no slices")
        if v.shape is not None and v.shape[0] is not None:
            sizes.setdefault(v.shape[0], i)
    if len(sizes) > 1:
        raise ValueError(f"{what}: elems have {' and '.join(map(str, sizes))} slices; their first sizes must be the same")
    return values


def each(what: str, step: Step, elems: Any, initial: Sequence[Any], reverse: bool, name: Optional[str]) \
        -> tuple[list[Output], list[Output]]:
    """Runs step for each slice. step takes states and slices, and returns the next states and results. Returns the last states, and all
    results of each."""
    graph = flow.graph_for([elems, list(initial)])
    values = _values(graph, what, elems)
    first = [flow.own(graph, v) for v in initial]
    size = next((v.shape[0] for v in values if v.shape is not None and v.shape[0] is not None), None)
    count = graph.op("Shape", values[0])[0] if size is None else graph.constant(size, "int32")
    lists = [graph.op("TensorListFromTensor", v, _sizes(None if v.shape is None else v.shape[1:]), element_dtype=v.dtype) for v in values]
    gathered: list[Output] = []

    gathered_in: list[Output] = []

    def body(i: Output, *states: Output) -> list[Any]:
        inside = i.graph
        at = count - 1 - i if reverse else i
        slices = [inside.op("TensorListGetItem", x, at, _sizes(None if v.shape is None else v.shape[1:]), element_dtype=v.dtype)
                  for x, v in zip(lists, values)]
        next_, results = step(list(states), slices)
        gathered.extend(flow.own(inside, r) for r in results)
        gathered_in.extend(inside.placeholder("variant", ()) for _ in gathered)
        return [i + 1, *next_, *(inside.op("TensorListSetItem", x, at, r, element_dtype=r.dtype) for x, r in zip(gathered_in, gathered))]

    kept = [(v.dtype, v.shape) for v in first]
    next_ = flow.Traced(graph, body, [(as_dtype("int32"), ()), *kept], "`fn`")
    _check_states(what, first, next_.results[1:len(next_.results) - len(gathered)])
    next_.args += gathered_in
    all_first = [graph.constant(0, "int32"), *first]
    all_first += [graph.op("TensorListReserve", _sizes(r.shape), count, element_dtype=r.dtype) for r in gathered]
    shapes = [v.shape for v in all_first]
    goes_on = flow.Traced(graph, lambda i, *_: i < count, [(v.dtype, v.shape) for v in all_first], "`cond`")
    last = flow.loop(graph, goes_on, next_, all_first, shapes, name)[0]
    stacks = [graph.op("TensorListStack", x, _sizes(r.shape), element_dtype=r.dtype, num_elements=_size(size))
              for x, r in zip(last[1 + len(first):], gathered)]
    return last[1:1 + len(first)], stacks


def _sizes(shape: flow.Shape) -> Any:
    """Converts a shape for list ops; -1 for an unknown size."""
    return np.int32(-1) if shape is None else np.array([_size(n) for n in shape], np.int32)


def _check_states(what: str, first: list[Output], next_: list[Output]) -> None:
    if len(next_) != len(first):
        raise TypeError(f"{what}: the function gives {len(next_)} values, but goes on from {len(first)}")
    for i, (a, b) in enumerate(zip(first, next_)):
        if a.dtype != b.dtype:
            raise TypeError(f"{what}: value {i} ('{a.name}') is {a.dtype} at first, but the function makes it {b.dtype}")
        if not flow.fits(b.shape, a.shape):
            raise ValueError(f"{what}: value {i} ('{a.name}') has shape {shape_text(a.shape)} at first, but the function makes it "
                             f"{shape_text(b.shape)}")
