"""The rules for types that cross the ABI, as far as a parser can check them."""
import re

NUMBERS = {f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)} | {"float", "double"}


def findings(headers):
    """Yields one line for each type that may not cross, each hole in a struct, each record without a head."""
    declared = {d["name"]: d for h in headers for d in h.declarations if d["kind"] in ("struct", "handle", "alias", "callback")}
    for header in headers:
        yield from of_preprocessor(header)
        for declaration in header.declarations:
            where = f"{header.name}:{declaration['line']}: {declaration['name']}"
            if declaration["kind"] == "function":
                yield from (f"{where}: {what}" for what in of_function(header, declaration))
            if declaration["kind"] == "struct":
                yield from (f"{where}: {what}" for what in of_struct(declaration))
                for field in declaration["fields"]:
                    if "(*" not in field["type"]:
                        yield from (f"{where}.{field['name']}: {what}" for what in of_type(field["type"], declared, True))
            for holder in [declaration] + declaration.get("fields", []):
                if "result" in holder and not declaration.get("inline"):
                    types = [holder["result"]["type"]] + [p["type"] for p in holder["parameters"] if "callback" not in p]
                    name = where if holder is declaration else f"{where}.{holder['name']}"
                    yield from (f"{name}: {what}" for kind in types for what in of_type(kind, declared, False))


def of_preprocessor(header):
    """Checks that no layout depends on a macro, and that application headers depend on no macro at all."""
    inside = set()
    for struct in header.declarations:
        if struct["kind"] == "struct":
            inside.update(range(struct["line"], struct["last_line"] + 1))
    for number, line in enumerate(header.layout.lines, 1):
        allowed = header.surface == "plugin" or re.match(r"#(ifndef THALWEG_\w+_H|ifdef __cplusplus)$", line)
        if line.startswith("#if") and (number in inside or not allowed):
            yield f"{header.name}:{number}: {line}: what the header declares may not depend on a macro"


def of_function(header, function):
    line = header.layout.lines[function["line"] - 1]
    if header.surface == "application" and (function["inline"] or not line.startswith("TW_EXPORT ")):
        yield "functions of the application API are exported: TW_EXPORT before it, and no body"
    if any(not p["name"] for p in function["parameters"]):
        yield "a parameter without a name"


def of_struct(struct):
    names = [f["name"] for f in struct["fields"]]
    if struct["sort"] == "record" and len(names) > 1 and struct["fields"][1]["type"] != "uint32_t":
        yield "a record begins with uint32_t size, flags"
    end = 0
    for field in struct["fields"]:
        if field["offset"] != end:
            yield f"{field['offset'] - end} bytes of padding before {field['name']}; order the fields, or add a reserved one"
        end = field["offset"] + field["size"]
    if end != struct["size"]:
        yield f"{struct['size'] - end} bytes of padding at the end; add a reserved field"


def of_type(kind, declared, in_struct):
    base = re.sub(r"\bconst\b|\*", " ", kind.replace("[", " [")).split()
    if len(base) != 1:
        yield f"the type '{kind}', which has no fixed width"
        return
    name, pointer = base[0], "*" in kind
    if name in NUMBERS or pointer and name in ("char", "void") or name == "void" and not in_struct:
        return
    if name not in declared:
        if not (pointer and name.startswith("tw_")):
            yield f"the type '{kind}', which may not cross; see plugin/abi.h"
    elif declared[name]["kind"] in ("struct", "handle") and not pointer:
        yield f"'{name}' by value; records and values cross by pointer"
