"""The public C headers as data: their declarations, as the compiler lays them out, and the facts in their comments."""
import pathlib
import re
import tempfile

import comments
import libclang
import manual


class Header:
    """One file: its introduction and its declarations, in order."""

    def __init__(self, path, root):
        self.path, self.name = path, str(path.relative_to(root))
        self.surface = "plugin" if "/plugin/" in self.name else "application"
        self.layout = comments.Layout(path.read_text())
        self.doc = self.layout.introduction()
        self.declarations = []
        self.includes = re.findall(r'#include "(thalweg/[\w/]+\.h)"', self.layout.text)


def read(root):
    """Returns all headers below the folder `root`, each after those that it includes."""
    root = pathlib.Path(root).resolve()
    headers = {str(p): Header(p, root) for p in sorted(root.rglob("*.h"))}
    with tempfile.TemporaryDirectory() as folder:
        unit = pathlib.Path(folder) / "all.c"
        unit.write_text("".join(f'#include "{h.name}"\n' for h in headers.values()))
        parsed = libclang.Clang(unit, ["-std=c11", "-DTHALWEG_NEWEST", "-I", str(root)])
        for cursor in parsed.root.children():
            header = headers.get(cursor.extent[0])
            if header:
                declare(header, cursor)
    for header in headers.values():
        header.declarations += macros(header)
        header.declarations.sort(key=lambda d: d["line"])
        manual.fill(header)
    return in_order(list(headers.values()))


def in_order(headers):
    by_name, done = {h.name: h for h in headers}, []

    def visit(header):
        if header not in done:
            for name in header.includes:
                visit(by_name[name])
            if header not in done:
                done.append(header)

    for header in sorted(headers, key=lambda h: (h.surface, h.name)):
        visit(header)
    return done


# ---- Declarations ----


def declare(header, cursor):
    makers = {"FunctionDecl": function, "StructDecl": struct, "EnumDecl": enum, "TypedefDecl": typedef}
    maker = makers.get(cursor.kind)
    if not maker:
        raise ValueError(f"{header.name}:{cursor.extent[2]}: a declaration of kind {cursor.kind}, which headers do not have")
    made = maker(header, cursor)
    if made:
        header.declarations.append({**made, "line": cursor.extent[2], "last_line": cursor.extent[3]})


def function(_header, cursor):
    return {"kind": "function", "name": cursor.name, "inline": cursor.is_inline, **signature(cursor.type, cursor)}


def signature(kind, cursor):
    """Returns result and parameters of a function type; the cursor's children give the names of the parameters."""
    if kind.variadic:
        raise ValueError(f"{cursor.where}: {cursor.name}: a variable number of arguments, which cannot cross")
    return {"result": {"type": spelled(kind.result)}, "parameters": [parameter(p) for p in cursor.children("ParmDecl")]}


def parameter(cursor):
    made = {"name": cursor.name, "type": spelled(cursor.type)}
    if "(*)" in made["type"]:
        made["callback"] = signature(cursor.type.pointee, cursor)
    return made


def spelled(kind):
    """Returns a type as the headers write it: `const tw_operation**`."""
    text = re.sub(r"\b(struct|enum) ", "", kind.spelling)
    return re.sub(r" ?\*", "*", text).replace("*const", "* const").replace("*(*)", "* (*)").replace("* const*", "* const*")


def struct(header, cursor):
    if not cursor.is_definition:
        return None  # the handle's typedef declares it
    fields = [field(header, f) for f in cursor.children("FieldDecl")]
    sort = "record" if fields and fields[0]["name"] == "size" and fields[0]["type"] == "uint32_t" else "value"
    return {"kind": "struct", "name": cursor.name, "sort": sort, "size": cursor.type.size, "align": cursor.type.align, "fields": fields}


def field(header, cursor):
    _, begin, first, last = cursor.extent
    if cursor.is_bit_field:
        raise ValueError(f"{header.name}:{first}: {cursor.name}: a bit-field, whose place compilers choose")
    made = {"name": cursor.name, "type": spelled(cursor.type), "offset": cursor.bit_offset // 8, "size": cursor.type.size,
            "line": first, "last_line": last}
    mark = header.layout.mark(begin)
    if mark:
        made["mark"] = mark
    since = header.layout.since(first, last, cursor.name)
    if since:
        made["since"] = since
    if "(*)" in made["type"]:
        made.update(signature(cursor.type.pointee, cursor))
    return made


def enum(_header, cursor):
    values = [{"name": c.name, "value": c.value, "line": c.extent[2], "last_line": c.extent[3]}
              for c in cursor.children("EnumConstantDecl")]
    return {"kind": "enum", "name": "", "values": values}


def typedef(_header, cursor):
    named = cursor.underlying
    if named.canonical.kind == "Record" and spelled(named) != cursor.name:
        raise ValueError(f"{cursor.where}: two names of one struct, {spelled(named)} and {cursor.name}")
    if named.canonical.kind == "Record":
        return None if named.canonical.declaration.is_definition else {"kind": "handle", "name": cursor.name}
    if named.kind == "Pointer":
        return {"kind": "callback", "name": cursor.name, **signature(named.pointee, cursor)}
    return {"kind": "alias", "name": cursor.name, "type": spelled(named), "size": named.size}


def macros(header):
    """Returns the macros for users, without include guards and helper macros, whose names end in `_` or begin with TW_CAT."""
    found = []
    for number, line in enumerate(header.layout.lines, 1):
        match = re.match(r"#define ((?:TW|THALWEG)_\w*[A-Z])(\([^)]*\))?(?: +(.*))?$", line)
        if not match or match[1].startswith("TW_CAT") or match[1].endswith("_H"):
            continue
        last = number
        while header.layout.lines[last - 1].endswith("\\"):
            last += 1
        made = {"kind": "macro", "name": match[1], "line": number, "last_line": last}
        value = re.match(r'(-?\d+|\(-\d+\)|"[^"]*")\s*(?:/\*.*)?$', match[3] or "")
        if value:
            made["value"] = value[1].strip('"') if value[1].startswith('"') else int(value[1].strip("()"))
        found.append(made)
    return found
