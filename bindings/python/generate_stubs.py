#!/usr/bin/env python3
"""Makes the type hints that depend on the library: thalweg/ops.pyi and thalweg/_options.pyi.

usage: generate_stubs.py DESCRIPTION.json --op-text OP_TEXT.py --out FOLDER

The description is what describe.c prints. Ops of plugins have no hints, and are added with graph.op("Name", ...)."""
import argparse
import importlib.util
import json
import pathlib

# Any name may be that of an op, so that the stub's own begin with an underscore.
KINDS = {"int": "int", "float": "float", "bool": "bool", "string": "str", "type": "_DTypeLike",
         "shape": "_Optional[_Sequence[_Optional[int]]]", "tensor": "_Union[_ArrayLike, _Tensor]", "func": "str"}
OPTION_KINDS = {0: "str", 1: "bool", 2: "int", 3: "_Union[int, str]", 4: "str", 5: "_Union[str, _Sequence[str]]"}

HEAD = '''"""Generated from what the library says of itself by bindings/python/generate_stubs.py."""
from collections.abc import Sequence as _Sequence
from typing import Any as _Any, Literal as _Literal, NamedTuple as _NamedTuple, Optional as _Optional
from typing import TypedDict as _TypedDict, Union as _Union
'''
OPS_HEAD = HEAD + '''
from numpy.typing import ArrayLike as _ArrayLike

from .dtypes import DTypeLike as _DTypeLike
from .output import Formula as _Formula, Operation as _Operation, Output as _Output
from .tensor import Tensor as _Tensor

_Value = _Union[_Formula, _Tensor, _ArrayLike, _Sequence[_Any]]
'''


def load(path):
    spec = importlib.util.spec_from_file_location("op_text", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def literal(choices):
    return f"_Literal[{', '.join(json.dumps(choice) for choice in choices)}]"


class Stubs:
    def __init__(self, op_text):
        self.text = op_text

    def attr_type(self, attr):
        kind = literal(attr["allowed"]) if attr["kind"] == "string" and "allowed" in attr else KINDS[attr["kind"]]
        return f"_Sequence[{kind}]" if attr["list"] else kind

    def parameters(self, schema):
        found = []
        for a in schema["inputs"]:
            kind = "_Sequence[_Value]" if self.text.is_list(a) else "_Value"
            kind = f"_Optional[{kind}]" if self.text.default_of(schema, a) else kind
            found.append(f"{self.text.python_name(a['name'])}: {kind}{' = ...' if self.text.may_be_left_out(schema, a) else ''}")
        found.append("*")
        for attr, needed in self.text.attributes(schema):
            kind = self.attr_type(attr)
            optional = kind if kind.startswith("_Optional") else f"_Optional[{kind}]"
            found.append(f"{self.text.python_name(attr['name'])}: {kind if needed else optional + ' = ...'}")
        return ", ".join(found + ["name: _Optional[str] = ..."])

    def result(self, schema):
        kinds = ["list[_Output]" if self.text.is_list(o) else "_Output" for o in schema["outputs"]]
        if len(kinds) < 2:
            return "_Operation" if not kinds else kinds[0], []
        name = "_" + self.text.result_name(schema)
        # Fields may have the names of a tuple's methods.
        fields = [f"    {self.text.python_name(o['name'])}: {kind}{'  # type: ignore' if hasattr(tuple, o['name']) else ''}"
                  for o, kind in zip(schema["outputs"], kinds)]
        return name, ["", "", f"class {name}(_NamedTuple):", *fields]

    def function(self, schema):
        result, lines = self.result(schema)
        snake, doc = self.text.snake_case(schema["name"]), self.text.doc(schema).replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
        doc = "\n    ".join(doc.split("\n"))
        lines += ["", "", f"def {snake}({self.parameters(schema)}) -> {result}:", f'    """{doc}"""', ""]
        return lines + ([f"{schema['name']} = {snake}"] if schema["name"] != snake else [])


def options(name, listing):
    lines = ["", "", f"class {name}(_TypedDict, total=False):"]
    for option in listing:
        if option["name"].isidentifier():  # others have a part that the user fills in
            kind = literal(option["choices"]) if option["choices"] else OPTION_KINDS[option["kind"]]
            lines.append(f"    {option['name']}: {f'_Union[{kind}, _Sequence[{kind}]]' if option['repeats'] else kind}")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("description", type=pathlib.Path)
    parser.add_argument("--op-text", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    found, stubs = json.loads(arguments.description.read_text()), Stubs(load(arguments.op_text))
    lines = [line for schema in found["ops"] for line in stubs.function(schema)]
    (arguments.out / "ops.pyi").write_text(OPS_HEAD + "\n".join(lines) + "\n")
    (arguments.out / "_options.pyi").write_text(HEAD + "\n".join(options("SessionOptions", found["session"])) + "\n")


if __name__ == "__main__":
    main()
