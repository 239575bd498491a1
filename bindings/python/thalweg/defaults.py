"""Defaults of inputs that ops require but that NumPy, PyTorch and the functions of TensorFlow make optional: axes, steps, on and off.

    ops.sum(x), ops.one_hot(labels, 10), ops.concat_v2([a, b]), ops.range(0, 10), ops.transpose(x)"""
from typing import TYPE_CHECKING, Any

import numpy as np

from .op_text import DEFAULTS, is_list, python_name
from .output import Formula

if TYPE_CHECKING:
    from .graph import Graph


def filled(graph: "Graph", schema: dict[str, Any], inputs: tuple[Any, ...], named: dict[str, Any]) \
        -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Returns the inputs of an op, in order and by name, and its attributes. Inputs that are left out or None get their default, if any."""
    defaults = DEFAULTS.get(schema["name"])
    if defaults is None:
        return inputs, named
    order = [python_name(a["name"]) for a in schema["inputs"]]
    first = inputs[0] if inputs else named.get(order[0])
    if first is None or len(inputs) > len(order) or any(name in named for name in order[:len(inputs)]):
        return inputs, named  # the caller reports the error later
    given = {**dict(zip(order, inputs)), **{name: named[name] for name in order[len(inputs):] if name in named}}
    if isinstance(first, (list, tuple)) and not is_list(schema["inputs"][0]) and _holds_value(first):
        first = given[order[0]] = graph.op("Pack", list(first))
    if schema["name"] == "OneHot":
        given |= _on_and_off(given, typed=named.get("T") is not None)
    given |= {name: _value(graph, default, first) for name, default in defaults.items() if given.get(name) is None}
    return (), {**named, **given}


def _holds_value(x: Any) -> bool:
    return isinstance(x, Formula) or (isinstance(x, (list, tuple)) and any(_holds_value(part) for part in x))


def _value(graph: "Graph", default: str, x: Any) -> Any:
    """Returns the value of a text of DEFAULTS for a first input x."""
    if default not in ("all axes", "reversed"):
        return int(default)
    shape = x._value().shape if isinstance(x, Formula) else np.shape(x)
    if shape is not None:
        axes = list(range(len(shape)))
        return axes if default == "all axes" else axes[::-1]
    rank = graph.op("Rank", x)
    return graph.op("Range", 0, rank, 1) if default == "all axes" else graph.op("Range", rank - 1, -1, -1)


def _on_and_off(given: dict[str, Any], typed: bool) -> dict[str, Any]:
    """Returns missing ones of on_value and off_value, in the type of the other one, else float32. typed: the op knows its type."""
    lacking = {name: number for name, number in (("on_value", 1), ("off_value", 0)) if given.get(name) is None}
    other = next((given[name] for name in ("on_value", "off_value") if name not in lacking), None)
    if typed or isinstance(other, (Formula, int)):
        return lacking
    kind: Any = np.float32 if other is None or isinstance(other, float) else np.asarray(other).dtype.type
    return {name: kind(number) for name, number in lacking.items()}
