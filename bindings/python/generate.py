#!/usr/bin/env python3
"""Makes thalweg/_low.py, the ctypes face of the public C headers.

usage: generate.py HEADER... --out FILE

The headers are regular by design; this reads the few forms that they use (see FORMS) and stops at anything else, naming file and line."""
import argparse
import pathlib
import re
import sys

NUMBERS = {"int8_t": "c_int8", "int16_t": "c_int16", "int32_t": "c_int32", "int64_t": "c_int64",
           "uint8_t": "c_uint8", "uint16_t": "c_uint16", "uint32_t": "c_uint32", "uint64_t": "c_uint64",
           "float": "c_float", "double": "c_double"}

# Texts are c_char_p, which ctypes turns into bytes up to the first zero byte. These are bytes with a length instead: results of functions
# and fields of structs. What callbacks are given is always left as an address.
NOT_TEXT = {"tw_buffer_data", "tw_string.data"}

NAME = r"[A-Za-z_]\w*"
FORMS = (
    ("extern", re.compile(r'extern "C" \{')),
    ("close", re.compile(r"\}")),
    ("enum", re.compile(r"enum \{(?P<body>[^{}]*)\};")),
    ("opaque", re.compile(rf"typedef struct (?P<tag>{NAME}) (?P<name>{NAME});")),
    ("struct", re.compile(rf"typedef struct (?P<tag>{NAME}) \{{(?P<body>[^{{}}]*)\}} (?P<name>{NAME});")),
    ("callback", re.compile(rf"typedef (?P<result>[^();{{}}]+?)\(\*(?P<name>{NAME})\)\((?P<parameters>[^(){{}}]*)\);")),
    ("alias", re.compile(rf"typedef (?P<type>{NAME}) (?P<name>{NAME});")),
    ("function", re.compile(rf"TW_EXPORT (?P<result>[^();{{}}]+?)(?P<name>{NAME})\((?P<parameters>(?:[^();{{}}]|\([^();{{}}]*\))*)\);")),
)
# Lines for the preprocessor that say nothing to a binding.
SKIPPED = re.compile(r"#(ifndef TW_\w+|ifndef THALWEG_\w+_H|define THALWEG_\w+_H|include [<\"][\w/.]+[>\"]|ifdef __cplusplus|endif"
                     r"|define TW_EXPORT __attribute__\(\(visibility\(\"default\"\)\)\)|define TW_PLACE(_TEXT_?\(line\))? .*)$")
NUMBER_MACRO = re.compile(rf"#define (?P<name>TW_{NAME}) (?P<value>-?\d+)$")


class Unknown(Exception):
    """A construct that this program does not know."""


class Headers:
    """What the headers declare, in their order."""

    def __init__(self):
        self.constants, self.structs, self.callbacks, self.functions = {}, {}, {}, {}
        self.aliases, self.opaque, self.order = {}, set(), []  # order: structs and callbacks, which may name each other

    # ---- Reading ----

    def read(self, path):
        text = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group()), path.read_text(), flags=re.S)
        code = []
        for number, line in enumerate(text.split("\n"), 1):
            line = line.strip()
            macro = NUMBER_MACRO.match(line)
            if macro:
                self.constants[macro["name"]] = int(macro["value"])
            elif line.startswith("#"):
                if not SKIPPED.match(line):
                    raise Unknown(f"{path}:{number}: {line}")
                line = ""
            code.append("" if macro else line)
        self.read_code(path, "\n".join(code))

    def read_code(self, path, text):
        at = 0
        while True:
            at += len(text[at:]) - len(text[at:].lstrip())
            if at == len(text):
                return
            where = f"{path}:{text.count(chr(10), 0, at) + 1}"
            end = declaration_end(text, at)
            declaration = re.sub(r"\s+", " ", text[at:end]).strip()
            for form, pattern in FORMS:
                match = pattern.fullmatch(declaration)
                if match:
                    try:
                        getattr(self, "add_" + form)(**match.groupdict())
                    except Unknown as e:
                        raise Unknown(f"{where}: {e} in: {declaration}") from None
                    break
            else:
                raise Unknown(f"{where}: {declaration}")
            at = end

    # ---- One method per form ----

    def add_extern(self):
        pass

    def add_close(self):
        pass

    def add_enum(self, body):
        for entry in filter(None, (e.strip() for e in body.split(","))):
            match = re.fullmatch(rf"({NAME}) = (-?\d+)", entry)
            if not match:
                raise Unknown(f"the entry '{entry}'")
            self.constants[match[1]] = int(match[2])

    def add_opaque(self, tag, name):
        if tag != name:
            raise Unknown(f"two names of one struct, {tag} and {name},")
        self.opaque.add(name)

    def add_alias(self, type, name):  # pylint: disable=redefined-builtin
        self.aliases[name] = self.ctype(type)

    def add_struct(self, tag, body, name):
        if tag != name:
            raise Unknown(f"two names of one struct, {tag} and {name},")
        fields = []
        for field in filter(None, (f.strip() for f in body.split(";"))):
            function = re.fullmatch(rf"([^()]+?)\(\*({NAME})\)\(([^()]*)\)", field)
            if function:
                fields.append((function[2], self.function_type(function[1], function[3])))
                continue
            first, *others = field.split(",")
            declared = re.fullmatch(rf"(.*[ *])({NAME})", first.strip())
            if not declared:
                raise Unknown(f"the field '{field}'")
            # In `const char *a, *b` the star belongs to each name.
            base, stars = declared[1].rstrip(" *"), declared[1].count("*") if others else 0
            fields.append((declared[2], self.ctype(declared[1])))
            for other in others:
                match = re.fullmatch(rf"(\**)({NAME})", other.strip())
                if not match or (stars > 0) != (match[1] != ""):
                    raise Unknown(f"the field '{field}'")
                fields.append((match[2], self.ctype(base + " " + match[1])))
        self.opaque.discard(name)
        self.order.append(name)
        self.structs[name] = [(field, "c_void_p" if f"{name}.{field}" in NOT_TEXT else kind) for field, kind in fields]

    def add_callback(self, result, name, parameters):
        self.callbacks[name] = self.function_type(result, parameters)
        self.order.append(name)

    def add_function(self, result, name, parameters):
        kind = "c_void_p" if name in NOT_TEXT else self.ctype(result)
        self.functions[name] = (kind, self.parameter_types(parameters))

    # ---- Types ----

    def function_type(self, result, parameters):
        parameters = [t.replace("c_char_p", "c_void_p") for t in self.parameter_types(parameters)]
        return f"CFUNCTYPE({', '.join([self.ctype(result), *parameters])})"

    def parameter_types(self, parameters):
        if parameters.strip() == "void":
            return []
        types = []
        for parameter in re.split(r",(?![^()]*\))", parameters):
            function = re.fullmatch(rf"([^()]+?)\(\*{NAME}\)\(([^()]*)\)", parameter.strip())
            if function:
                types.append(self.function_type(function[1], function[2]))
                continue
            match = re.fullmatch(rf"(.*[ *]){NAME}", parameter.strip())
            if not match:
                raise Unknown(f"the parameter '{parameter.strip()}'")
            types.append(self.ctype(match[1]))
        return types

    def ctype(self, text):
        """The ctypes name of a C type; handles are c_void_p."""
        words = re.findall(r"\w+|\*", text)
        stars = words.count("*")
        base = [w for w in words if w not in ("const", "struct", "*")]
        if len(base) != 1 or "".join(words).rstrip("*const").count("*"):
            raise Unknown(f"the type '{text.strip()}'")
        name = base[0]
        if name in NUMBERS or name in self.structs or name in self.aliases:
            kind = NUMBERS.get(name) or self.aliases.get(name) or name
        elif name in self.callbacks and stars == 0:
            return name
        elif name == "char" and stars:
            kind, stars = "c_char_p", stars - 1
        elif (name == "void" or name in self.opaque) and stars:
            kind, stars = "c_void_p", stars - 1
        elif name == "void":
            return "None"
        else:
            raise Unknown(f"the type '{text.strip()}'")
        return "POINTER(" * stars + kind + ")" * stars

    # ---- Writing ----

    def module(self):
        lines = ['"""Generated from the public C headers by bindings/python/generate.py: what they declare, under the same names.',
                 "", 'Functions that fail answer a status, to be given to errors.check; handles are plain addresses."""',
                 "from ctypes import *", "", "from ._library import bind", ""]
        lines += [f"{name} = {value}" for name, value in self.constants.items()]
        lines += [""] + [f"{name} = {kind}" for name, kind in self.aliases.items()]
        for name in self.order:
            if name in self.callbacks:
                lines += ["", f"{name} = {self.callbacks[name]}"]
                continue
            lines += ["", "", f"class {name}(Structure):", "    _fields_ = ["]
            lines += [f'        ("{field}", {kind}),' for field, kind in self.structs[name]] + ["    ]", ""]
        lines += [""]
        lines += [f'{name} = bind("{name}", {", ".join([result, *parameters])})'
                  for name, (result, parameters) in self.functions.items()]
        return "\n".join(lines) + "\n"


def declaration_end(text, at):
    """Behind the declaration that starts at `at`: its semicolon outside braces, or a brace of extern "C"."""
    if text.startswith("}", at):
        return at + 1
    linkage = re.compile(r'extern "C" \{').match(text, at)
    if linkage:
        return linkage.end()
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "{") - (text[i] == "}")
        if text[i] == ";" and depth == 0:
            return i + 1
    return len(text)


def read_all(paths):
    """Reads each header after those that it includes."""
    headers, done = Headers(), set()
    by_name = {path.name: path for path in paths}

    def visit(path):
        if path in done:
            return
        done.add(path)
        for included in re.findall(r'#include "thalweg/(\w+\.h)"', path.read_text()):
            if included in by_name:
                visit(by_name[included])
        headers.read(path)

    for path in paths:
        visit(path)
    fields = {f"{name}.{field}" for name, fields in headers.structs.items() for field, _ in fields}
    missing = NOT_TEXT - headers.functions.keys() - fields
    if missing:
        raise Unknown(f"NOT_TEXT names what no header declares: {', '.join(sorted(missing))}")
    return headers


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("headers", nargs="+", type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    try:
        text = read_all(arguments.headers).module()
    except Unknown as e:
        sys.exit(f"generate.py: no form for {e}; teach generate.py, or write the header as the others are")
    arguments.out.write_text(text)


if __name__ == "__main__":
    main()
