"""Functions for the ops of the runtime, made from their schemas; thalweg.ops returns them."""
import difflib
import importlib
import inspect
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Optional

from . import build, eager
from .elsewhere import NAMES, OF_MODULES, is_name, plain
from .op_text import attr_kind, attributes, default_of, doc, input_kind, may_be_left_out, python_name, snake_case
from .runtime import default_runtime


def _function(schema: dict[str, Any]) -> Any:
    op = schema["name"]

    def function(*inputs: Any, name: Optional[str] = None, **named: Any) -> Any:
        where: Any = build.graph_of([*inputs, *named.values()]) or eager.here()
        return where.run(op, inputs, named, name) if where.computes else build.add(where, op, inputs, named, name)

    function.__name__, function.__qualname__, function.__module__ = snake_case(op), snake_case(op), "thalweg.ops"
    function.__doc__ = doc(schema)
    function.__signature__ = _signature(schema)  # type: ignore[attr-defined]
    return function


def _default(schema: dict[str, Any], argument: dict[str, Any]) -> Any:
    default = default_of(schema, argument)
    if default:
        return int(default) if default.isdigit() else None
    return () if may_be_left_out(schema, argument) else inspect.Parameter.empty


def _signature(schema: dict[str, Any]) -> inspect.Signature:
    kinds, empty = inspect.Parameter, inspect.Parameter.empty
    parameters = [kinds(python_name(a["name"]), kinds.POSITIONAL_OR_KEYWORD, annotation=input_kind(a),
                        default=_default(schema, a)) for a in schema["inputs"]]
    for attr, needed in attributes(schema):
        default = empty if needed else attr.get("default")
        parameters.append(kinds(python_name(attr["name"]), kinds.KEYWORD_ONLY, default=default, annotation=attr_kind(attr)))
    parameters.append(kinds("name", kinds.KEYWORD_ONLY, default=None, annotation="text"))
    return inspect.Signature(parameters)


@lru_cache(None)
def of(op: str) -> Any:
    """Returns the function of an op of the default runtime."""
    return _function(default_runtime().ops()[op])


def names(fresh: bool = False) -> dict[str, str]:
    """Returns {both names: op}; an op's own name takes precedence."""
    known = default_runtime().ops(fresh)
    return {snake_case(op): op for op in sorted(known, reverse=True)} | {op: op for op in known}


def closest(name: str) -> Optional[str]:
    """Returns the likely equivalent of an unknown name: a name in thalweg ("ops.mat_mul"), or a formula."""
    known, wanted = names(), plain(name.lower().removeprefix("reduce_"))
    if wanted in NAMES:
        return NAMES[wanted]
    same = next((n for n in known if plain(n) == wanted), None) or next(iter(difflib.get_close_matches(name, known, 1, 0.75)), None)
    return same and f"ops.{snake_case(known[same])}"


def meant(name: str) -> str:
    """Returns a text that suggests what `closest` finds, or an empty one."""
    return said(closest(name))


def said(close: Optional[str]) -> str:
    """Returns the text that suggests a name of thalweg or a formula; empty for None."""
    return "" if close is None else f"did you mean thalweg.{close}?" if is_name(close) else f"write {close}"


_MODULES = ("nn", "train", "data", "losses", "metrics", "schedules", "random", "averages", "recurrent", "weights", "text", "generation")


def unknown(module: str, name: str, public: Sequence[str]) -> str:
    """Returns the message about a name that a module of the package does not have: a name of another spelling, of another module, or the
    equivalent of a name of PyTorch, Keras, NumPy or JAX."""
    begin, wanted = f"module 'thalweg.{module}' has no attribute '{name}'", plain(name)
    if name.startswith("_"):
        return begin
    if wanted in OF_MODULES.get(module, ()):
        return f"{begin}; {said(OF_MODULES[module][wanted])}"
    for where in (module, *_MODULES):
        there = public if where == module else dir(importlib.import_module(f"thalweg.{where}"))
        same = next((n for n in there if plain(n) == wanted), None)
        if same:
            return f"{begin}; did you mean thalweg.{where}.{same}?"
    close = None if wanted in NAMES else next(iter(difflib.get_close_matches(name, public, 1, 0.75)), None)
    told = f"did you mean thalweg.{module}.{close}?" if close else meant(name)
    return f"{begin}; {told}" if told else f"{begin}; `dir(thalweg.{module})` lists all"


def elsewhere(name: str, public: Sequence[str]) -> str:
    """Returns a hint for a name that the package has in a module or under another name; empty if there is none."""
    for module in ("train", "schedules", "recurrent", "losses", "averages"):
        if name in dir(importlib.import_module(f"thalweg.{module}")):
            return f"; it is thalweg.{module}.{name}"
    close = None if plain(name) in NAMES else next(iter(difflib.get_close_matches(name, public, 1, 0.75)), None)
    told = f"did you mean thalweg.{close}?" if close else meant(name)
    return f"; {told}" if told else ""
