"""The words of JavaScript: an addon with every function of the C API, layouts of records, a table of ops, and their TypeScript declarations."""
import json

from api import Unknown
from ops import camel, snake

# Bytes with a length, where other results of type const char* are texts.
NOT_TEXT = {"tw_buffer_data"}
WIDTHS = {"int8_t": "i8", "uint8_t": "u8", "int16_t": "i16", "uint16_t": "u16", "int32_t": "i32", "uint32_t": "u32", "int64_t": "i64",
          "uint64_t": "u64", "tw_output": "u64", "float": "f32", "double": "f64"}


def argument(api, p):
    """The type of C, the function that reads it, and the type of TypeScript."""
    if "callback" in p:
        return "void*", "arg_pointer", "Pointer"
    t = api.type(p["type"])
    if t.base == "tw_output" and not t.stars:
        return "uint64_t", "arg_output", "bigint"
    if t.kind == "char" and t.stars == 1 and t.constant:
        return "const char*", "arg_text", "Text"
    if t.is_pointer:
        return "void*", "arg_pointer", "Pointer"
    if t.kind != "number":
        raise Unknown(f"the parameter {p['name']} of type '{p['type']}'")
    reader = {"float": "arg_f64", "double": "arg_f64", "int64_t": "arg_i64", "uint64_t": "arg_u64"}.get(t.base)
    reader = reader or ("arg_i32" if t.base.startswith("int") else "arg_u32")
    return t.base, reader, "number | bigint" if "64_t" in t.base else "number"


def result(api, f):
    """The expression that makes a value of JavaScript of `r`, and the type of TypeScript."""
    t = api.type(f["result"]["type"])
    if t.kind == "void" and not t.stars:
        return None, "void"
    if t.base == "tw_output" and not t.stars:
        return "of_output(env, r)", "bigint"
    if t.kind == "char" and f["name"] not in NOT_TEXT:
        return "of_text(env, r)", "string | null"
    if t.is_pointer:
        return "of_pointer(env, r)", "number"
    return "of_number(env, (double)r)", "number"


def cast(api, p, i):
    if "callback" in p:
        r = ", ".join(q["type"] for q in p["callback"]["parameters"])
        return f"({p['callback']['result']['type']} (*)({r}))a{i}"
    t = api.type(p["type"])
    return f"({p['type']})a{i}" if t.is_pointer and t.kind in ("callback",) else f"a{i}"


def function(api, f):
    lines = [f"static napi_value call_{f['name']}(napi_env env, napi_callback_info info) {{", "  call c;",
             f'  if (!begin(&c, env, info, "{f["name"]}", {len(f["parameters"])})) return NULL;']
    for i, p in enumerate(f["parameters"]):
        kind, reader, _ = argument(api, p)
        convert = f"({kind})" if kind not in ("void*", "const char*") else ""
        lines.append(f'  {kind} a{i} = {convert}{reader}(&c, {i}, "{p["name"]}");')
    lines.append("  if (c.failed) return end(&c, NULL);")
    call = f"{f['name']}({', '.join(cast(api, p, i) for i, p in enumerate(f['parameters']))})"
    value, _ = result(api, f)
    if value is None:
        lines += [f"  {call};", "  return end(&c, NULL);"]
    else:
        lines += [f"  {f['result']['type']} r = {call};", f"  return end(&c, {value});"]
    return [*lines, "}", ""]


def declaration(api, f):
    doc = (f.get("doc") or "").replace("*/", "* /").split("\n")
    parameters = ", ".join(f"{word(p['name'])}: {argument(api, p)[2]}" for p in f["parameters"])
    return ["/** " + "\n * ".join(doc) + " */", f"export function {f['name']}({parameters}): {result(api, f)[1]};"]


RESERVED = set("break case catch class const continue debugger default delete do else enum export extends false finally for function if import "
               "in instanceof new null return super switch this throw true try typeof var void while with let static yield await async of "
               "arguments eval package interface private protected public implements".split())


def word(name):
    return name + "_" if name in RESERVED else name


def layout(api, s):
    fields = {}
    for field in s["fields"]:
        t = None if "result" in field else api.type(field["type"])
        fields[field["name"]] = [field["offset"], "p" if t is None or t.is_pointer else WIDTHS.get(t.base) or WIDTHS[api.type(field["type"]).base]]
    return f"  {s['name']}: {json.dumps({'size': s['size'], 'fields': fields})},"


def low(api):
    return {
        "src/low.c": ("low.c.in", {"functions": "\n".join(line for f in api.functions for line in function(api, f)),
                                   "table": "\n".join(f'    {{"{f["name"]}", call_{f["name"]}}},' for f in api.functions)}),
        "lib/low.d.ts": ("low.d.ts.in", {"functions": "\n".join(line for f in api.functions for line in declaration(api, f)),
                                         "constants": "\n".join(f"export const {c['name']}: {c['value']};" for c in api.constants)}),
        "lib/layouts.js": ("layouts.js.in", {"count": str(len(api.functions)),
                                             "structs": "\n".join(layout(api, s) for s in api.structs),
                                             "constants": "\n".join(f"  {c['name']}: {c['value']}," for c in api.constants)})}


TYPES = {"int": "number | bigint", "float": "number", "bool": "boolean", "string": "string", "type": "DType", "shape": "number[] | null",
         "tensor": "Tensor", "func": "string"}


def name_of(op):
    name = snake(op.name)
    return word(camel(name))


def attr_type(a):
    return f"({TYPES[a.kind]})[]" if a.is_list else TYPES[a.kind]


def op_declaration(op):
    doc = "\n * ".join(op.doc()).replace("*/", "* /")
    parameters = [f"{word(camel(a.name))}: {'Output[]' if a.is_list else 'Output'}" for a in op.inputs]
    parameters += [f"{word(camel(a.name))}_: {attr_type(a)}" if camel(a.name) in [camel(i.name) for i in op.inputs] else f"{word(camel(a.name))}: {attr_type(a)}"
                   for a in op.required]
    optional = "; ".join([f"{camel(a.name)}?: {attr_type(a)}" for a in op.optional if camel(a.name) not in ("name", "device")] + ["name?: string", "device?: string"])
    kinds = ["Output[]" if o.is_list else "Output" for o in op.outputs]
    if not kinds:
        result_type = "Operation"
    elif sum(o.is_list for o in op.outputs) > 1:
        result_type = "Output[]"
    else:
        result_type = kinds[0] if len(kinds) == 1 else "[" + ", ".join(kinds) + "]"
    return ["/** " + doc + " */", f"export function {name_of(op)}({', '.join(['scope: Scope', *parameters, f'attributes?: {{ {optional} }}'])}): {result_type};"]


def op_row(op):
    attrs = {camel(a.name): [a.name, a.kind, int(a.is_list)] for a in [*op.required, *op.optional]}
    row = [op.name, [int(a.is_list) for a in op.inputs], [camel(a.name) for a in op.required], attrs, [int(o.is_list) for o in op.outputs]]
    return f"  {name_of(op)}: {json.dumps(row)},"


def ops(found):
    return {"lib/ops.js": ("ops.js.in", {"table": "\n".join(op_row(op) for op in found)}),
            "lib/ops.d.ts": ("ops.d.ts.in", {"functions": "\n".join(line for op in found for line in op_declaration(op))})}
