"""The words of C#: class Low with every function, record and constant of the C API by P/Invoke, and class Ops with a method for each op."""
import json

from api import Unknown
from ops import camel

NUMBERS = {"int8_t": "sbyte", "uint8_t": "byte", "int16_t": "short", "uint16_t": "ushort", "int32_t": "int", "uint32_t": "uint", "int64_t": "long",
           "uint64_t": "ulong", "float": "float", "double": "double", "tw_output": "ulong"}
RESERVED = set("abstract as base bool break byte case catch char checked class const continue decimal default delegate do double else enum event "
               "explicit extern false finally fixed float for foreach goto if implicit in int interface internal is lock long namespace new null "
               "object operator out override params private protected public readonly ref return sbyte sealed short sizeof stackalloc static "
               "string struct switch this throw true try typeof uint ulong unchecked unsafe ushort using virtual void volatile while".split())


def word(name):
    return "@" + name if name in RESERVED else name


def type_of(api, text):
    """Handles and pointers to functions are IntPtr; other pointers keep their type."""
    t = api.type(text)
    if t.kind in ("function", "callback"):
        return "IntPtr" + "*" * t.stars
    if t.kind == "handle":
        if not t.stars:
            raise Unknown(f"the type '{text}'")
        return "IntPtr" + "*" * (t.stars - 1)
    base = {"char": "byte", "void": "void", "struct": t.base}.get(t.kind) or NUMBERS[t.base]
    return base + "*" * t.stars


def parameter(api, p):
    """A parameter; texts are arrays of bytes that end with zero."""
    if "callback" in p:
        kind = "IntPtr"
    else:
        t = api.type(p["type"])
        kind = "byte[]" if t.kind == "char" and t.stars == 1 and t.constant else type_of(api, p["type"])
    return f"{kind} {word(p['name'])}"


def xml(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def documented(lines, indent):
    """A comment of documentation; its lines stay lines."""
    lines = [xml(line) for line in lines]
    return [f"{indent}/// <summary>{lines[0]}", *[f"{indent}/// {line}".rstrip() for line in lines[1:]]] if lines and any(lines) else []


def comment(text, indent):
    lines = documented((text or "").split("\n"), indent)
    if lines:
        lines[-1] += "</summary>"
    return lines


def result_of(api, declaration):
    return type_of(api, declaration["result"]["type"])


def function(api, f):
    parameters = ", ".join(parameter(api, p) for p in f["parameters"])
    return [*comment(f.get("doc"), "        "), "        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]",
            f"        public static extern {result_of(api, f)} {f['name']}({parameters});", ""]


def callback(api, name, declaration):
    """A delegate; each of its parameters is as C has it."""
    parameters = ", ".join(f"{type_of(api, p['type'])} {word(p['name'])}" for p in declaration["parameters"])
    return [*comment(declaration.get("doc"), "        "), "        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]",
            f"        public delegate {result_of(api, declaration)} {name}({parameters});", ""]


def struct(api, s):
    lines = [*comment(s.get("doc"), "        "), f"        [StructLayout(LayoutKind.Explicit, Size = {s['size']})]", f"        public struct {s['name']}",
             "        {"]
    for field in s["fields"]:
        kind = "IntPtr" if "result" in field else type_of(api, field["type"])
        lines += [*comment(field.get("doc"), "            "), f"            [FieldOffset({field['offset']})] public {kind} {word(field['name'])};"]
    return [*lines, "        }", ""]


def constant(c):
    kind = "int" if c["value"] < 0 else "uint"
    return f"        public const {kind} {c['name']} = {c['value']};"


def low(api):
    delegates = [line for c in api.callbacks for line in callback(api, c["name"], c)]
    for s in api.structs:
        delegates += [line for field in s["fields"] if "result" in field for line in callback(api, f"{s['name']}__{field['name']}", field)]
    for f in api.functions:
        delegates += [line for p in f["parameters"] if "callback" in p for line in callback(api, f"{f['name']}__{p['name']}", p["callback"])]
    return {"src/Low.cs": ("Low.cs.in", {
        "count": str(len(api.functions)), "constants": "\n".join(constant(c) for c in api.constants), "callbacks": "\n".join(delegates).rstrip(),
        "structs": "\n".join(line for s in api.structs for line in struct(api, s)).rstrip(),
        "functions": "\n".join(line for f in api.functions for line in function(api, f)).rstrip()})}


KINDS = {"int": "long", "float": "double", "bool": "bool", "string": "string", "type": "DType", "shape": "long[]", "tensor": "Tensor", "func": "string"}
TAKEN = {"s", "o", "name", "file", "line"}


def setter(a):
    return "Set" + a.kind.capitalize() + ("s" if a.is_list else "")


def nullable(a):
    """Whether C# writes the type of an attribute that may be left out with a question mark."""
    return not a.is_list and a.kind in ("int", "float", "bool", "type")


def op_method(op):
    used = set(TAKEN)

    def name_for(name):
        found = camel(name)
        while found in used:
            found += "_"
        used.add(found)
        return word(found)

    inputs = [(a, name_for(a.name)) for a in op.inputs]
    required = [(a, name_for(a.name)) for a in op.required]
    optional = [(a, name_for(a.name)) for a in op.optional]
    parameters = ["this Scope s"] + [f"{'IList<Output>' if a.is_list else 'Output'} {n}" for a, n in inputs]
    parameters += [f"{KINDS[a.kind]}{'[]' if a.is_list else ''} {n}" for a, n in required]
    parameters += [f"{KINDS[a.kind]}{'[]' if a.is_list else '?' if nullable(a) else ''} {n} = null" for a, n in optional]
    parameters += ["string name = null", '[File] string file = ""', "[Line] int line = 0"]
    lists = sum(o.is_list for o in op.outputs)
    if not op.outputs:
        result, end = "Operation", ""
    elif len(op.outputs) == 1 and not lists:
        result, end = "Output", ".Output(0)"
    else:
        result, end = "Output[]", ".Outputs()"
    doc = documented(op.doc(), "        ")
    doc[-1] += "</summary>"
    lines = [*doc, f"        public static {result} {op.name}({', '.join(parameters)})", "        {",
             f"            var o = Scope.Begin(s, {json.dumps(op.name)}, name);"]
    lines += [f"            o.{'Inputs' if a.is_list else 'Input'}({n});" for a, n in inputs]
    lines += [f"            o.{setter(a)}({json.dumps(a.name)}, {n});" for a, n in required]
    lines += [f"            if ({n} != null) o.{setter(a)}({json.dumps(a.name)}, {n}{'.Value' if nullable(a) else ''});" for a, n in optional]
    return [*lines, f"            return o.End(file, line){end};", "        }", ""]


def ops(found):
    if len({op.name for op in found}) != len(found):
        raise Unknown("two ops of one name in C#")
    return {"src/Ops.cs": ("Ops.cs.in", {"methods": "\n".join(line for op in found for line in op_method(op)).rstrip()})}
