"""Functions for the ops of the runtime, made from their schemas; thalweg.ops hands them out."""
import difflib
import importlib
import inspect
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Optional

from . import build, graph
from .op_text import attr_kind, attributes, doc, input_kind, may_be_left_out, python_name, snake_case
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
    parameters = [kinds(python_name(a["name"]), kinds.POSITIONAL_OR_KEYWORD, annotation=input_kind(a),
                        default=() if may_be_left_out(schema, a) else empty) for a in schema["inputs"]]
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


# Ops that TensorFlow's and PyTorch's functions call otherwise.
_OTHERWISE = {"batch_norm": "fused_batch_norm_v3", "cat": "concat_v2", "clip": "clip_by_value",
              "concatenate": "concat_v2", "cross_entropy": "sparse_softmax_cross_entropy_with_logits", "divide": "real_div",
              "multiply": "mul", "negative": "neg", "normal": "random_standard_normal", "ones": "fill",
              "permute": "transpose", "randn": "random_standard_normal", "random_normal": "random_standard_normal", "stack": "pack",
              "subtract": "sub", "unstack": "unpack", "zeros": "fill"}


def closest(name: str) -> Optional[str]:
    """The name of a function that somebody who wrote this may have meant."""
    known, wanted = names(), name.lower().removeprefix("reduce_")
    if wanted in _OTHERWISE or wanted in known:
        return _OTHERWISE.get(wanted, wanted)
    return next(iter(difflib.get_close_matches(name, known, 1, 0.75)), None)


def elsewhere(name: str, public: Sequence[str]) -> str:
    """For who looks in the package for what it has in a module, or under another name: words to that effect, or none."""
    for module in ("train", "schedules", "recurrent", "losses", "averages"):
        if hasattr(importlib.import_module(f"thalweg.{module}"), name):
            return f"; it is thalweg.{module}.{name}"
    close = next(iter(difflib.get_close_matches(name, public, 1, 0.75)), None) or (closest(name) and f"ops.{closest(name)}")
    return f"; did you mean thalweg.{close}?" if close else ""
