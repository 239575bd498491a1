"""Functions for the ops of the runtime, made from their schemas; thalweg.ops hands them out."""
import difflib
import inspect
from functools import lru_cache
from typing import Any, Optional

from . import build, graph
from .op_text import attr_kind, attributes, doc, input_kind, python_name, snake_case
from .runtime import default_runtime


def _function(schema: dict[str, Any]) -> Any:
    op = schema["name"]

    def function(*inputs: Any, name: Optional[str] = None, **named: Any) -> Any:
        where = build.graph_of(inputs) or build.graph_of(named.values()) or graph.current_graph()
        return build.add(where, op, inputs, named, name)

    function.__name__, function.__qualname__, function.__module__ = snake_case(op), snake_case(op), "thalweg.ops"
    function.__doc__ = doc(schema)
    function.__signature__ = _signature(schema)  # type: ignore[attr-defined]
    return function


def _signature(schema: dict[str, Any]) -> inspect.Signature:
    kinds, empty = inspect.Parameter, inspect.Parameter.empty
    parameters = [kinds(python_name(a["name"]), kinds.POSITIONAL_OR_KEYWORD, annotation=input_kind(a)) for a in schema["inputs"]]
    for attr, needed in attributes(schema):
        default = empty if needed else attr.get("default")
        parameters.append(kinds(python_name(attr["name"]), kinds.KEYWORD_ONLY, default=default, annotation=attr_kind(attr)))
    parameters.append(kinds("name", kinds.KEYWORD_ONLY, default=None, annotation="text"))
    return inspect.Signature(parameters)


@lru_cache(None)
def of(op: str) -> Any:
    """The function of an op of the default runtime."""
    return _function(default_runtime().ops()[op])


def names(fresh: bool = False) -> dict[str, str]:
    """{both names: op}; an op's own name wins."""
    known = default_runtime().ops(fresh)
    return {snake_case(op): op for op in sorted(known, reverse=True)} | {op: op for op in known}


def closest(name: str) -> Optional[str]:
    """The name of a function that somebody who wrote this may have meant."""
    return next(iter(difflib.get_close_matches(name, names(), 1, 0.75)), None)
