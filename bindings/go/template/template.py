"""The words of Go: package low over cgo, and package ops with a function for each op."""
import json
import re

from api import Unknown, camel, comment, facts
from ops import camel as lower_camel

KEYWORDS = set("break case chan const continue default defer else fallthrough for func go goto if import interface map package range return "
               "select struct switch type var string len cap nil true false append error".split())
NUMBERS = {"int8_t": "int8", "int16_t": "int16", "int32_t": "int32", "int64_t": "int64", "uint8_t": "uint8", "uint16_t": "uint16",
           "uint32_t": "uint32", "uint64_t": "uint64", "float": "float32", "double": "float64", "tw_output": "uint64"}


def mark(name):
    return name


def word(name):
    return name + "_" if name in KEYWORDS else name


def go_type(t):
    if t.kind in ("callback", "function"):
        return "*" * t.stars + "unsafe.Pointer"
    if t.kind == "void":
        return "*" * (t.stars - 1) + "unsafe.Pointer"
    if t.kind == "number":
        return "*" * t.stars + NUMBERS[t.base]
    if t.kind == "char":
        return "*" * t.stars + "byte"
    return "*" * t.stars + camel(t.base)


def c_type(t):
    if t.kind == "function":
        return "*[0]byte"
    if t.kind == "callback":
        return "*" * t.stars + f"C.{t.base}"
    if t.kind == "void":
        return "*" * (t.stars - 1) + "unsafe.Pointer"
    return "*" * t.stars + f"C.{t.base}"


def to_c(t, name):
    if t.kind in ("number",) and not t.stars:
        return f"C.{t.base}({name})"
    if t.kind == "void" and t.stars == 1:
        return name
    if t.kind in ("callback", "function") and not t.stars:
        return f"(*[0]byte)({name})" if t.kind == "function" else f"(C.{t.base})({name})"
    return f"({c_type(t)})(unsafe.Pointer({name}))"


def from_c(t, call):
    if t.kind == "number" and not t.stars:
        return f"{go_type(t)}({call})"
    if t.kind == "void" and t.stars == 1:
        return call
    return f"({go_type(t)})(unsafe.Pointer({call}))"


def doc_of(declaration, name):
    """Go's tools take the first word for the name; the C name follows, so that it can be searched for."""
    text = declaration.get("doc") or ""
    lines = [f"// {name} is {declaration['name']}.", *comment(text, "//")]
    if declaration.get("threads"):
        lines += comment("Threads: " + declaration["threads"], "//")
    if declaration["kind"] == "function":
        lines += comment("\n".join(facts(declaration)), "//")
    return lines


def struct(api, s):
    name = camel(s["name"])
    lines = [*doc_of(s, name), f"type {name} struct {{"]
    checks = [f"var _ [{s['size']}]byte = [unsafe.Sizeof({name}{{}})]byte{{}}"]
    for field in s["fields"]:
        kind = "unsafe.Pointer" if "result" in field else go_type(api.type(field["type"]))
        doc = " // " + field["doc"].replace("\n", " ") if field.get("doc") else ""
        lines.append(f"\t{camel(field['name'])} {kind}{doc}")
        checks.append(f"var _ [{field['offset']}]byte = [unsafe.Offsetof({name}{{}}.{camel(field['name'])})]byte{{}}")
    return [*lines, "}", "", *checks, ""]


def function(api, f):
    name = camel(f["name"])
    types = [api.type(p["type"]) for p in f["parameters"]]
    names = [lower_camel(word(p["name"])) for p in f["parameters"]]
    names = [word(n) for n in names]
    signature = ", ".join(f"{n} {go_type(t)}" for n, t in zip(names, types))
    call = f"C.{f['name']}({', '.join(to_c(t, n) for n, t in zip(names, types))})"
    result = api.type(f["result"]["type"])
    if result.kind == "void" and not result.stars:
        return [*doc_of(f, name), f"func {name}({signature}) {{", f"\t{call}", "}", ""]
    return [*doc_of(f, name), f"func {name}({signature}) {go_type(result)} {{", f"\treturn {from_c(result, call)}", "}", ""]


def low(api):
    names = [camel(d["name"]) for d in [*api.handles, *api.structs, *api.functions]]
    twice = {n for n in names if names.count(n) > 1}
    if twice:
        raise Unknown(f"the names {', '.join(sorted(twice))}, which two declarations have in Go")
    handles = []
    for h in api.handles:
        handles += [f"// {camel(h['name'])} is {h['name']}, of which only addresses exist here.", f"type {camel(h['name'])} struct{{ _ [0]byte }}", ""]
    constants = []
    for c in api.constants:
        doc = " // " + c["doc"].replace("\n", " ") if c.get("doc") else ""
        constants.append(f"\t{c['name']} = {c['value']}{doc}")
    return {"low/low.go": ("low.go.in", {
        "constants": "\n".join(constants),
        "handles": "\n".join(handles),
        "structs": "\n".join(line for s in api.structs for line in struct(api, s)),
        "functions": "\n".join(line for f in api.functions for line in function(api, f)).rstrip()}),
        "low/every.go": ("every.go.in", {
            "count": str(len(api.functions)),
            "functions": "\n".join(f"\tuintptr(unsafe.Pointer(C.{f['name']}))," for f in api.functions)})}


KINDS = {"int": "int64", "float": "float64", "bool": "bool", "string": "string", "type": "tw.DType", "shape": "tw.Shape",
         "tensor": "*tw.Tensor", "func": "string"}
SETTERS = {"int": "Int", "float": "Float", "bool": "Bool", "string": "String", "type": "Type", "shape": "Shape", "tensor": "Tensor", "func": "Func"}


def is_zero(attribute):
    """Whether the default is what a field of Go has when nothing is assigned to it."""
    if attribute.is_list or attribute.kind in ("shape", "tensor"):
        return True  # nil: as the schema says
    return attribute.default in (0, 0.0, False, "", None)


def attr_type(attribute):
    kind = KINDS[attribute.kind]
    if attribute.is_list:
        return "[]" + kind
    return kind if not attribute.optional or is_zero(attribute) else "*" + kind


def op_word(name):
    name = word(lower_camel(name))
    return name + "_" if name in ("s", "o", "b", "tw", "options") else name


def setter(attribute):
    return f"Set{SETTERS[attribute.kind]}{'s' if attribute.is_list else ''}"


def op_options(op):
    name = f"{op.name}Options"
    lines = [f"// {name} are the attributes of {op.name} that may be left out.", f"type {name} struct {{", "\ttw.OpOptions"]
    for a in op.optional:
        nil = "" if a.is_list or a.kind in ("shape", "tensor") or is_zero(a) else "; nil: the default"
        lines.append(f"\t{field(a)} {attr_type(a)} // {a.text} = {json.dumps(a.default)}{nil}")
    return [*lines, "}", ""]


def field(attribute):
    name = lower_camel(attribute.name, True)
    return name + "_" if name in ("OpOptions", "Name", "Device", "After") else name


def op_function(op):
    lines = [f"// {op.name} {line}" if i == 0 else ("// " + line).rstrip() for i, line in enumerate(op.doc())]
    parameters = [f"{op_word(a.name)} {'[]' if a.is_list else ''}tw.Output" for a in op.inputs]
    parameters += [f"{op_word(a.name)} {attr_type(a)}" for a in op.required]
    parameters.append(f"options ...{op.name}Options")
    if not op.outputs:
        result = "*tw.Operation"
    elif len(op.outputs) == 1:
        result = "[]tw.Output" if op.outputs[0].is_list else "tw.Output"
    elif sum(o.is_list for o in op.outputs) > 1:
        result = "[]tw.Output"
        lines.insert(len(lines), "// The lists follow one another.")
    else:
        names = [op_word(o.name) for o in op.outputs]
        taken = [op_word(a.name) for a in [*op.inputs, *op.required]]
        names = [n + "Out" if n in taken else n for n in names]
        result = "(" + ", ".join(f"{n} {'[]' if o.is_list else ''}tw.Output" for n, o in zip(names, op.outputs)) + ")"
    lines.append(f"func {op.name}(s *tw.Scope, {', '.join(parameters)}) {result} {{")
    lines += [f"\tvar o {op.name}Options", "\tif len(options) > 0 {", "\t\to = options[0]", "\t}", f'\tb := s.Begin("{op.name}", o.OpOptions)']
    for a in op.inputs:
        lines.append(f"\tb.{'Inputs' if a.is_list else 'Input'}({op_word(a.name)}{'...' if a.is_list else ''})")
    for a in op.required:
        lines.append(f'\tb.{setter(a)}("{a.name}", {op_word(a.name)})')
    for a in op.optional:
        value = f"o.{field(a)}"
        if a.is_list or a.kind in ("shape", "tensor"):
            test, value = f"{value} != nil", value
        elif not is_zero(a):
            test, value = f"{value} != nil", "*" + value
        else:
            test = {"int": f"{value} != 0", "float": f"{value} != 0", "bool": value}.get(a.kind, f'{value} != {"0" if a.kind == "type" else chr(34) * 2}')
        lines += [f"\tif {test} {{", f'\t\tb.{setter(a)}("{a.name}", {value})', "\t}"]
    if not op.outputs:
        lines.append("\treturn b.End()")
    elif len(op.outputs) == 1 and not op.outputs[0].is_list:
        lines.append("\treturn b.End().Output(0)")
    else:
        if sum(o.is_list for o in op.outputs) > 1:
            return [*lines, "\treturn b.End().Outputs()", "}", ""]
        lines.append("\tall := b.End().Outputs()")
        before = next((i for i, o in enumerate(op.outputs) if o.is_list), len(op.outputs))
        after = len(op.outputs) - before - 1
        parts = []
        for i, o in enumerate(op.outputs):
            if i < before:
                parts.append(f"tw.At(all, {i})")
            elif i == before:
                parts.append(f"tw.Middle(all, {before}, {after})")
            else:
                parts.append(f"tw.At(all, len(all)-{len(op.outputs) - i})")
        lines.append("\treturn " + ", ".join(parts))
    return [*lines, "}", ""]


def ops(found):
    lines = []
    for op in found:
        lines += [*op_options(op), *op_function(op)]
    return {"ops/ops.go": ("ops.go.in", {"functions": "\n".join(lines).rstrip()})}
