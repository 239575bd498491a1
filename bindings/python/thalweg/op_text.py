"""Python names, parameters and documentation of ops, made from schemas (the objects of tw_ops_json in op.h). The generator of the type
hints also uses this module, so it imports nothing of the package."""
import keyword
import re
from typing import Any

Schema = dict[str, Any]

# Inputs that may be left out although the schema requires them, and their defaults; see defaults.
DEFAULTS: dict[str, dict[str, str]] = {
    **{op: {"reduction_indices": "all axes"} for op in ("All", "Any", "EuclideanNorm", "Max", "Mean", "Min", "Prod", "Sum")},
    "ConcatV2": {"axis": "0"}, "GatherV2": {"axis": "0"}, "OneHot": {"on_value": "1", "off_value": "0"}, "Range": {"delta": "1"},
    "Transpose": {"perm": "reversed"}}


def python_name(name: str) -> str:
    return name + "_" if keyword.iskeyword(name) or name == "name" else name


def snake_case(name: str) -> str:
    """ "BatchMatMulV2" as batch_mat_mul_v2, "Conv2DBackpropInput" as conv2d_backprop_input."""
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])", "_", name)
    return python_name(parted.lower())


def is_list(argument: Schema) -> bool:
    return "number_attr" in argument or "list_attr" in argument


def may_be_left_out(schema: Schema, argument: Schema) -> bool:
    """Returns true if it has a default, or is the last input and a list that may be empty."""
    if default_of(schema, argument):
        return True
    count = next((a for a in schema["attrs"] if a["name"] == (argument.get("number_attr") or argument.get("list_attr"))), None)
    return argument is schema["inputs"][-1] and count is not None and count.get("minimum", 1) == 0


def default_of(schema: Schema, argument: Schema) -> str:
    """Returns the default of the input; "": it has none."""
    return DEFAULTS.get(schema["name"], {}).get(argument["name"], "")


def result_name(schema: Schema) -> str:
    """Returns the name of the named tuple that an op with several outputs returns."""
    return str(schema["name"]).lstrip("_")


def attributes(schema: Schema) -> list[tuple[Schema, bool]]:
    """Returns attributes in the order of parameters. The flag is true if one has no default and no input determines it."""
    inferred = {a.get(key) for a in schema["inputs"] for key in ("type_attr", "number_attr", "list_attr")}
    needed = [a for a in schema["attrs"] if "default" not in a and a["name"] not in inferred]
    return [(a, True) for a in needed] + [(a, False) for a in schema["attrs"] if a not in needed]


def input_kind(argument: Schema) -> str:
    kind = argument.get("type") or argument.get("type_attr") or "any"
    return f"list of {kind}" if is_list(argument) else str(kind)


def attr_kind(attr: Schema) -> str:
    kind = "{" + ", ".join(map(str, attr["allowed"])) + "}" if "allowed" in attr else attr["kind"]
    return f"list of {kind}" if attr["list"] else str(kind)


def doc(schema: Schema) -> str:
    about = schema["doc"]
    lines = [f"{schema['name']}: {about}" if about else schema["name"], ""]
    for argument in schema["inputs"]:
        default = default_of(schema, argument)
        lines.append(f"{python_name(argument['name'])}: {input_kind(argument)}" + (f" = {default}" if default else ""))
    for attr in schema["attrs"]:
        default = f" = {attr['default']}" if "default" in attr else ""
        lines.append(f"{python_name(attr['name'])}: {attr_kind(attr)}{default}")
    outputs = ", ".join(f"{o['name']}: {input_kind(o)}" for o in schema["outputs"])
    lines.append(f"Answers {outputs}." if outputs else "Answers the operation.")
    if schema["no_gradient"]:
        lines.append(f"Not differentiable: {schema['no_gradient']}.")
    return "\n".join(lines)
