"""Adds one operation to a graph, by its op's schema, from inputs and attributes as Python code writes them."""
import ctypes
import difflib
from collections import namedtuple
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Optional, Union

import numpy as np

from . import _low, attributes, defaults, random, scopes
from ._handle import c_text
from .dtypes import DType, as_dtype, from_numpy
from .elsewhere import NAMES, OLDER, is_name, plain
from .errors import here, made
from .op_text import is_list, may_be_left_out, python_name, result_name
from .output import Formula, Operation, Output
from .tensor import Tensor, as_array

if TYPE_CHECKING:
    from .graph import Graph

Made = Union[Operation, Output, list[Any], tuple[Any, ...]]


def graph_of(inputs: Any) -> Optional["Graph"]:
    """The graph of the first value of a graph among the inputs and in their lists; the context of the first Value if all are Values."""
    computing = None
    for x in inputs:
        found = x.graph if isinstance(x, Formula) else graph_of(x) if isinstance(x, (list, tuple)) else None
        if found is None:
            continue
        if not found.computes:
            return found
        computing = computing or found
    return computing


def add(graph: "Graph", op: str, inputs: tuple[Any, ...], named: dict[str, Any], name: Optional[str]) -> Made:
    """Adds an operation. inputs: in the schema's order; `named` has other inputs by name, and the attributes.
    Returns the value if the op has one output, the operation if it has none, else a named tuple."""
    operation = add_operation(scopes.working(graph), op, inputs, named, name)
    return _result(operation, graph.runtime.op(op))


def _newer(op: str) -> str:
    return f"; did you mean thalweg.{OLDER[op]}?" if op in OLDER else ""


def _like(op: str, known: Iterable[str]) -> str:
    """Returns a text that suggests similar names, or an empty one."""
    if found := NAMES.get(plain(op)):
        return f"; see thalweg.{found}" if is_name(found) else f"; write {found}"
    same = {plain(name): name for name in known}
    close = same.get(plain(op)) or next(iter(difflib.get_close_matches(op, same.values(), 1)), None)
    return f"; did you mean '{close}'?" if close else ""


def schema_of(graph: "Graph", op: str) -> dict[str, Any]:
    """The schema of an op of the graph's runtime. Raises AttributeError, with what may have been meant, where there is none."""
    schema: Optional[dict[str, Any]] = graph.runtime.op(op)
    if schema is None:
        raise AttributeError(f"no op is called '{op}'{_like(op, graph.runtime.ops())}")
    return schema


def add_operation(graph: "Graph", op: str, inputs: tuple[Any, ...], named: dict[str, Any], name: Optional[str],
                  describe: Optional[Callable[[int], None]] = None) -> Operation:
    """Adds an operation as `add` does, and answers the operation. describe: a function of the builder (tw_op) that says more of it."""
    schema = schema_of(graph, op)
    inputs, named = defaults.filled(graph, schema, inputs, named)
    values, given = arrange(schema, inputs, named)
    given = with_seeds(graph, schema, given)
    arguments = convert(graph, schema, values, given)
    return _finish(graph, schema, arguments, given, name, describe)


def with_seeds(graph: "Graph", schema: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The attributes; those of an op that draws random numbers and is given no seed, with the seeds that thalweg.random has for it."""
    draws = schema["stateful"] and {"seed", "seed2"} <= {a["name"] for a in schema["attrs"]}
    if not draws or any(given.get(name) for name in ("seed", "seed2", "shared_name")):
        return given
    return given | dict(zip(("seed", "seed2"), random.next_pair(graph) or ()))


# ---- Arguments ----

def arrange(schema: dict[str, Any], inputs: tuple[Any, ...], named: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Returns the inputs in order, and the attributes. Raises TypeError for too many, missing and unknown ones."""
    op, wanted = schema["name"], schema["inputs"]
    if len(inputs) > len(wanted):
        raise TypeError(f"{op} takes {len(wanted)} inputs ({', '.join(a['name'] for a in wanted)}), not {len(inputs)}; "
                        "attributes go by name")
    rest, values = dict(named), list(inputs)
    for argument in wanted[len(inputs):]:
        key = python_name(argument["name"])
        if key not in rest and not may_be_left_out(schema, argument):
            raise TypeError(f"{op} lacks its input '{argument['name']}'{_newer(op)}")
        values.append(rest.pop(key, []))
    known = {python_name(a["name"]): a for a in schema["attrs"]}
    for key in rest:
        if key not in known:
            close = difflib.get_close_matches(key, known, 1)
            raise TypeError(f"{op} has no attribute '{key}'" + (f"; did you mean '{close[0]}'?" if close else
                                                                 f"; there are: {', '.join(known) or 'none'}"))
    return values, {known[key]["name"]: value for key, value in rest.items()}


def convert(graph: "Graph", schema: dict[str, Any], values: list[Any], given: dict[str, Any]) -> list[Output]:
    """All inputs as values, flat. What is no value yet takes the type of the values that share its type attribute."""
    types = {a["name"]: as_dtype(given[a["name"]]) for a in schema["attrs"]
             if a["kind"] == "type" and not a["list"] and given.get(a["name"]) is not None}
    entries = []  # (position, argument, given object)
    for argument, value in zip(schema["inputs"], values):
        many = is_list(argument)
        if many and (isinstance(value, Formula) or not isinstance(value, (list, tuple))):
            raise TypeError(f"{schema['name']}: input '{argument['name']}' is a list of values{_newer(schema['name'])}")
        entries += [(argument, v) for v in value] if many else [(argument, value)]
    resolved: list[Any] = []
    for argument, value in entries:
        value = _as_value(graph, argument, value)
        if isinstance(value, Output) and "type_attr" in argument:
            types.setdefault(argument["type_attr"], value.dtype)
        resolved.append(value)
    for i, (argument, _) in enumerate(entries):
        if not isinstance(resolved[i], Output):
            resolved[i] = _constant(graph, schema, argument, resolved[i], types)
    return resolved


def _as_value(graph: "Graph", argument: dict[str, Any], value: Any) -> Any:
    """A variable as the op wants it, as its handle or its contents; a Value that goes into a graph as a tensor."""
    if isinstance(value, Formula) and value.graph.computes and not graph.computes:
        return graph._root()._take(value)
    if isinstance(value, Formula) and not isinstance(value, Output):
        return value._handle_value() if argument.get("type") == "resource" else value._value()
    if isinstance(value, Operation):
        raise TypeError(f"{value!r} is an operation, not a value; it has {len(value.outputs)} outputs")
    return value


def _constant(graph: "Graph", schema: dict[str, Any], argument: dict[str, Any], value: Any, types: dict[str, DType]) -> Output:
    if isinstance(value, (list, tuple)) and graph_of(value) is not None:
        return graph.op("Pack", list(value))
    attr = argument.get("type_attr")
    wanted = as_dtype(argument["type"]) if "type" in argument else types.get(attr or "")
    if isinstance(value, (bool, np.bool_)) and wanted is not None and wanted.name != "bool":
        raise TypeError(f"{schema['name']}: input '{argument['name']}' is {value!r}, a truth value of Python, where {wanted} is wanted; a "
                        "comparison was decided while the graph was built (by `is`, `in` or on Python's own numbers); write 1 or 0, or "
                        f"constant({value!r}).astype(\"{wanted}\"), if that is meant")
    try:
        if wanted is None and attr is not None and not isinstance(value, (np.ndarray, np.generic, Tensor)):
            wanted = _natural_type(next(a for a in schema["attrs"] if a["name"] == attr), value)
        constant = graph.constant(value, wanted)
    except TypeError as e:
        raise TypeError(f"{schema['name']}: input '{argument['name']}': {e}") from None
    if attr is not None:
        types.setdefault(attr, constant.dtype)
    return constant


def _natural_type(attr: dict[str, Any], value: Any) -> Optional[DType]:
    """Returns the type for Python's own numbers if no input determines it: theirs if the op takes it, else the first that can hold them."""
    array = as_array(value, None)[0]
    mine, default = from_numpy(array.dtype), attr.get("default")
    if array.size == 0 and default:  # an empty list fits any type
        return as_dtype(default)
    allowed = [as_dtype(name) for name in attr.get("allowed", ())]
    if not allowed or mine in allowed:
        return as_dtype(default) if mine.is_integer and default and as_dtype(default).is_integer else mine
    if array.size == 0 and as_dtype("int32") in allowed:  # a shape
        return as_dtype("int32")
    for choice in ("float32", "float64", "int64", "complex64"):
        if as_dtype(choice) in allowed and np.can_cast(mine.numpy, choice, "same_kind"):
            return as_dtype(choice)
    return mine


# ---- The operation ----

def _device_of(wish: str, inputs: list[Output]) -> str:
    """Returns `wish`, or the device of the state on which the op works: such an op runs there even inside another tw.device."""
    state = next((v for v in inputs if v.dtype.name == "resource"), None) if wish else None
    return wish if state is None else state.operation.device


def _finish(graph: "Graph", schema: dict[str, Any], inputs: list[Output], given: dict[str, Any], name: Optional[str],
            describe: Optional[Callable[[int], None]]) -> Operation:
    try:
        inputs = [graph._own(value) for value in inputs]
    except ValueError as e:
        raise ValueError(f"{schema['name']}: {e}") from None
    scope = scopes.current(graph)
    first = () if graph._order is None else graph._order.before(schema, inputs)
    numbers = (ctypes.c_uint64 * len(inputs))(*(v.number for v in inputs))
    with graph.naming(scope, name) as begin:
        builder = begin(schema["name"].encode())
        try:
            _low.tw_op_set_place(builder, here())
            _low.tw_op_add_inputs(builder, numbers, len(numbers))
            for before in (*scope.after, *first):
                _low.tw_op_add_control(builder, before._handle)
            if device := _device_of(scope.device, inputs):
                _low.tw_op_set_device(builder, c_text(device))
            if scope.priority:
                _low.tw_op_set_priority(builder, scope.priority)
            if describe is not None:
                describe(builder)
            for attr in schema["attrs"]:
                if attr["name"] == "container" and scope.container and not given.get("container"):
                    attributes.write(builder, schema["name"], attr, scope.container)
                elif attr["name"] in given and (given[attr["name"]] is not None or attr["kind"] == "shape"):
                    attributes.write(builder, schema["name"], attr, given[attr["name"]])
        except BaseException:
            _low.tw_op_destroy(builder)
            raise
        operation = Operation(graph, made(_low.tw_op_finish, builder))
    if graph._order is not None:
        graph._order.note(operation, schema, inputs)
    return operation


def _result(operation: Operation, schema: dict[str, Any]) -> Made:
    outputs = schema["outputs"]
    if not outputs:
        return operation
    graph, handle = operation.graph, operation._handle
    flat = [Output(graph, _low.tw_operation_output(handle, i)) for i in range(_low.tw_operation_output_count(handle))]
    counts = []
    for output in outputs:
        attr = output.get("number_attr") or output.get("list_attr")
        found = 1 if attr is None else attributes.read(handle, attr.encode())
        counts.append(found if isinstance(found, int) else len(found))
    return grouped(schema, flat, counts)


def grouped(schema: dict[str, Any], flat: list[Any], counts: list[int]) -> Any:
    """All outputs of an op as its function answers them. counts: how many values each is."""
    outputs, results, at = schema["outputs"], [], 0
    if not outputs:
        return None
    for output, n in zip(outputs, counts):
        results.append(flat[at:at + n] if is_list(output) else flat[at])
        at += n
    return results[0] if len(results) == 1 else _tuple_of(result_name(schema), tuple(o["name"] for o in outputs))(*results)


@lru_cache(None)
def _tuple_of(op: str, names: tuple[str, ...]) -> type:
    return namedtuple(op, [python_name(n) for n in names])
