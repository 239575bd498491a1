#!/usr/bin/env python3
"""Makes thalweg/_low.py, the ctypes face of the public C headers.

usage: generate.py API_JSON --out FILE

Reads c_api/api.json, which tools/abi/api makes from the headers, so that building the package needs no C parser. Stops at a type that it
has no name for, naming it. The plugin API has no face in Python."""
import argparse
import json
import pathlib
import re
import sys

NUMBERS = {"int8_t": "c_int8", "int16_t": "c_int16", "int32_t": "c_int32", "int64_t": "c_int64",
           "uint8_t": "c_uint8", "uint16_t": "c_uint16", "uint32_t": "c_uint32", "uint64_t": "c_uint64",
           "float": "c_float", "double": "c_double"}

# Texts are c_char_p, which ctypes turns into bytes up to the first zero byte. These are bytes with a length instead: results of functions
# and fields of structs. What callbacks are given is always left as an address.
NOT_TEXT = {"tw_buffer_data", "tw_string.data"}


class Unknown(Exception):
    """A type that this program does not know."""


class Module:
    """The lines of _low.py: constants and types as they come, then the functions."""

    def __init__(self):
        self.constants, self.aliases, self.types, self.functions = [], {}, [], []
        self.structs, self.callbacks, self.handles = set(), set(), set()
        self.not_text = set(NOT_TEXT)

    def add(self, declaration):
        getattr(self, "add_" + declaration["kind"])(declaration)

    def add_macro(self, macro):
        if isinstance(macro.get("value"), int):
            self.constants.append(f"{macro['name']} = {macro['value']}")

    def add_enum(self, enum):
        self.constants += [f"{v['name']} = {v['value']}" for v in enum["values"]]

    def add_handle(self, handle):
        self.handles.add(handle["name"])

    def add_alias(self, alias):
        self.aliases[alias["name"]] = self.ctype(alias["type"])

    def add_callback(self, callback):
        self.types += ["", f"{callback['name']} = {self.function_type(callback)}"]
        self.callbacks.add(callback["name"])

    def add_struct(self, struct):
        fields = []
        for field in struct["fields"]:
            kind = self.function_type(field) if "result" in field else self.ctype(field["type"])
            name = f"{struct['name']}.{field['name']}"
            fields.append((field["name"], self.text_or_address(name, kind)))
        self.types += ["", "", f"class {struct['name']}(Structure):", "    _fields_ = ["]
        self.types += [f'        ("{name}", {kind}),' for name, kind in fields] + ["    ]", ""]
        self.structs.add(struct["name"])

    def add_function(self, function):
        types = [self.text_or_address(function["name"], self.ctype(function["result"]["type"])), *self.parameter_types(function)]
        self.functions.append(f'{function["name"]} = bind("{function["name"]}", {", ".join(types)})')

    def text_or_address(self, name, kind):
        if name not in NOT_TEXT:
            return kind
        self.not_text.discard(name)
        return "c_void_p"

    def function_type(self, function):
        parameters = [t.replace("c_char_p", "c_void_p") for t in self.parameter_types(function)]
        return f"CFUNCTYPE({', '.join([self.ctype(function['result']['type']), *parameters])})"

    def parameter_types(self, function):
        return [self.function_type(p["callback"]) if "callback" in p else self.ctype(p["type"]) for p in function["parameters"]]

    def ctype(self, text):
        """The ctypes name of a C type; handles are c_void_p."""
        words = re.findall(r"\w+|\S", text)
        stars = words.count("*")
        base = [w for w in words if w not in ("const", "*")]
        name = base[0]
        if len(base) != 1:
            raise Unknown(text)
        if name in NUMBERS or name in self.structs or name in self.aliases:
            kind = NUMBERS.get(name) or self.aliases.get(name) or name
        elif name in self.callbacks:
            kind = name
        elif name == "char" and stars:
            kind, stars = "c_char_p", stars - 1
        elif (name == "void" or name in self.handles) and stars:
            kind, stars = "c_void_p", stars - 1
        elif name == "void":
            return "None"
        else:
            raise Unknown(text)
        return "POINTER(" * stars + kind + ")" * stars

    def text(self):
        if self.not_text:
            raise Unknown(f"NOT_TEXT names what no header declares: {', '.join(sorted(self.not_text))}")
        lines = ['"""Generated from the public C headers by bindings/python/generate.py: what they declare, under the same names.',
                 "", 'Functions that fail answer a status, to be given to errors.check; handles are plain addresses."""',
                 "from ctypes import *", "", "from ._library import bind", "", *self.constants, ""]
        lines += [f"{name} = {kind}" for name, kind in self.aliases.items()]
        return "\n".join(lines + self.types + [""] + self.functions) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("api", type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    module, declaration = Module(), {"name": "nothing"}
    try:
        headers = json.loads(arguments.api.read_text())["headers"]
        module.handles.update(d["name"] for h in headers if h["surface"] == "plugin" for d in h["declarations"] if d["kind"] == "struct")
        for header in headers:
            for declaration in header["declarations"] if header["surface"] == "application" else []:
                module.add(declaration)
        arguments.out.write_text(module.text())
    except Unknown as e:
        sys.exit(f"generate.py: {declaration['name']}: no ctypes name for '{e}'; teach generate.py, or write the header as the others are")


if __name__ == "__main__":
    main()
