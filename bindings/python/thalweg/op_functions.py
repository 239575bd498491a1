"""Functions for the ops of the runtime, made from their schemas; thalweg.ops hands them out."""
import inspect
import re
from functools import lru_cache
from typing import Any, Optional

from . import build, graph
from .build import python_name
from .runtime import default_runtime


def snake_case(name: str) -> str:
    """ "BatchMatMulV2" as batch_mat_mul_v2, "Conv2DBackpropInput" as conv2d_backprop_input."""
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])", "_", name)
    return python_name(parted.lower())


def _function(schema: dict[str, Any]) -> Any:
    op = schema["name"]

    def function(*inputs: Any, name: Optional[str] = None, **named: Any) -> Any:
        where = build.graph_of(inputs) or build.graph_of(named.values()) or graph.current_graph()
        return build.add(where, op, inputs, named, name)

    function.__name__, function.__qualname__, function.__module__ = snake_case(op), snake_case(op), "thalweg.ops"
    function.__doc__ = _doc(schema)
    function.__signature__ = _signature(schema)  # type: ignore[attr-defined]
    return function


def _signature(schema: dict[str, Any]) -> inspect.Signature:
    kinds, empty = inspect.Parameter, inspect.Parameter.empty
    parameters = [kinds(python_name(a["name"]), kinds.POSITIONAL_OR_KEYWORD, annotation=_input_kind(a)) for a in schema["inputs"]]
    inferred = {a.get(key) for a in schema["inputs"] for key in ("type_attr", "number_attr", "list_attr")}
    needed = [a for a in schema["attrs"] if "default" not in a and a["name"] not in inferred]
    optional = [a for a in schema["attrs"] if a not in needed]
    for attr in needed + optional:
        default = empty if attr in needed else attr.get("default")
        parameters.append(kinds(python_name(attr["name"]), kinds.KEYWORD_ONLY, default=default, annotation=_attr_kind(attr)))
    parameters.append(kinds("name", kinds.KEYWORD_ONLY, default=None, annotation="text"))
    return inspect.Signature(parameters)


def _type_of(argument: dict[str, Any]) -> str:
    return argument.get("type") or argument.get("type_attr") or "any"


def _input_kind(argument: dict[str, Any]) -> str:
    many = "number_attr" in argument or "list_attr" in argument
    return f"list of {_type_of(argument)}" if many else _type_of(argument)


def _attr_kind(attr: dict[str, Any]) -> str:
    kind = "{" + ", ".join(map(str, attr["allowed"])) + "}" if "allowed" in attr else attr["kind"]
    return f"list of {kind}" if attr["list"] else kind


def _doc(schema: dict[str, Any]) -> str:
    doc = schema["doc"]
    lines = [f"{schema['name']}: {doc}" if doc else schema["name"], ""]
    lines += [f"{python_name(a['name'])}: {_input_kind(a)}" for a in schema["inputs"]]
    for attr in schema["attrs"]:
        default = f" = {attr['default']}" if "default" in attr else ""
        lines.append(f"{python_name(attr['name'])}: {_attr_kind(attr)}{default}")
    outputs = ", ".join(f"{o['name']}: {_input_kind(o)}" for o in schema["outputs"])
    lines.append(f"Answers {outputs}." if outputs else "Answers the operation.")
    if schema["no_gradient"]:
        lines.append(f"Not differentiable: {schema['no_gradient']}.")
    return "\n".join(lines)


@lru_cache(None)
def of(op: str) -> Any:
    """The function of an op of the default runtime."""
    return _function(default_runtime().ops()[op])


def names(fresh: bool = False) -> dict[str, str]:
    """{both names: op}; an op's own name wins."""
    known = default_runtime().ops(fresh)
    return {snake_case(op): op for op in sorted(known, reverse=True)} | {op: op for op in known}
