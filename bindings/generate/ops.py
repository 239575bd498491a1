"""Ops as data: the schemas that the library describes (the objects of tw_ops_json in op.h), with what functions in any language need."""
import json
import re


class Argument:
    """An input or output: `is_list` if it is a list of values."""

    def __init__(self, schema):
        self.name, self.schema = schema["name"], schema
        self.is_list = "number_attr" in schema or "list_attr" in schema

    @property
    def kind(self):
        kind = self.schema.get("type") or self.schema.get("type_attr") or "any"
        return f"list of {kind}" if self.is_list else str(kind)


class Attribute:
    """An attribute: `kind`, `is_list`, and `default`, which `optional` says that it has."""

    def __init__(self, schema):
        self.name, self.schema = schema["name"], schema
        self.kind, self.is_list = schema["kind"], bool(schema["list"])
        self.optional, self.default = "default" in schema, schema.get("default")

    @property
    def text(self):
        kind = "one of " + ", ".join(map(str, self.schema["allowed"])) if "allowed" in self.schema else self.kind
        return f"list of {kind}" if self.is_list else str(kind)


class Op:
    """An op: `required` attributes are those that neither a default nor an input determines."""

    def __init__(self, schema):
        self.name, self.about, self.no_gradient = schema["name"], schema["doc"], schema["no_gradient"]
        self.inputs = [Argument(a) for a in schema["inputs"]]
        self.outputs = [Argument(a) for a in schema["outputs"]]
        inferred = {a.get(key) for a in schema["inputs"] for key in ("type_attr", "number_attr", "list_attr")}
        attributes = [Attribute(a) for a in schema["attrs"] if a["name"] not in inferred]
        self.required = [a for a in attributes if not a.optional]
        self.optional = [a for a in attributes if a.optional]

    def doc(self):
        """Lines: what it computes, then inputs, attributes and outputs."""
        lines = [self.about or "has no description", ""]
        lines += [f"{a.name}: {a.kind}" for a in self.inputs]
        lines += [f"{a.name}: {a.text}" for a in self.required]
        lines += [f"{a.name}: {a.text} = {json.dumps(a.default)}" for a in self.optional]
        outputs = ", ".join(f"{o.name}: {o.kind}" for o in self.outputs)
        lines.append(f"Returns {outputs}." if outputs else "Returns the operation.")
        if self.no_gradient:
            lines.append(f"Not differentiable: {self.no_gradient}.")
        return lines


def load(path):
    """The ops of a description that thalweg_describe printed; those whose names begin with an underscore are the runtime's own."""
    return [Op(schema) for schema in json.loads(path.read_text())["ops"] if not schema["name"].startswith("_")]


def snake(name):
    """ "BatchMatMulV2" as batch_mat_mul_v2, "Conv2DBackpropInput" as conv2d_backprop_input."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])", "_", name).lower()


def camel(name, first_upper=False):
    """ "transpose_a" as transposeA."""
    parts = [p for p in name.split("_") if p]
    joined = "".join(p[:1].upper() + p[1:] for p in parts)
    return joined if first_upper else joined[:1].lower() + joined[1:]
