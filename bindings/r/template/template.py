"""The words of R: a function by .Call for each function of the C API, layouts of records, and the list `op` with a function for each op."""
import json
import re

from api import Unknown

NUMBERS = {"int8_t": "i8", "uint8_t": "u8", "int16_t": "i16", "uint16_t": "u16", "int32_t": "i32", "uint32_t": "u32", "int64_t": "i64",
           "uint64_t": "u64", "float": "f32", "double": "f64", "tw_output": "u64"}
RANGES = {"int8_t": "INT8_MIN, INT8_MAX", "uint8_t": "0, UINT8_MAX", "int16_t": "INT16_MIN, INT16_MAX", "uint16_t": "0, UINT16_MAX",
          "int32_t": "INT32_MIN, INT32_MAX", "uint32_t": "0, UINT32_MAX", "int64_t": "-9007199254740992.0, 9007199254740992.0",
          "uint64_t": "0, 9007199254740992.0"}
# Bytes with a length, where other results of type const char* are texts.
NOT_TEXT = {"tw_buffer_data"}
RESERVED = {"if", "else", "repeat", "while", "function", "for", "next", "break", "in", "TRUE", "FALSE", "NULL", "NA", "Inf", "NaN"}


def word(name):
    return name + "_" if name in RESERVED else name


def argument(api, f, p, i):
    """The line of C that converts an argument, and the number of the handle that it may be, or None."""
    where = f'"{f["name"]}", "{p["name"]}"'
    if "callback" in p:
        return f"  void* v{i} = as_pointer(a{i}, &held[{i}], {where});"
    t = api.type(p["type"])
    if t.base == "tw_output" and not t.stars:
        return f"  const tw_output v{i} = as_output(a{i}, {where});"
    if t.kind == "char" and t.stars == 1 and t.constant:
        return f"  const char* v{i} = as_text(a{i}, {where});"
    if t.is_pointer:
        return f"  void* v{i} = as_pointer(a{i}, &held[{i}], {where});"
    if t.kind != "number":
        raise Unknown(f"the parameter {p['name']} of type '{p['type']}'")
    if t.base in ("float", "double"):
        return f"  const {t.base} v{i} = ({t.base})as_number(a{i}, {where});"
    return f"  const {t.base} v{i} = ({t.base})as_whole(a{i}, {RANGES[t.base]}, {where});"


def value(api, p, i):
    if "callback" in p:
        types = ", ".join(q["type"] for q in p["callback"]["parameters"])
        return f"({p['callback']['result']['type']} (*)({types}))v{i}"
    t = api.type(p["type"])
    return f"({p['type']})v{i}" if t.is_pointer and not (t.kind == "char" and t.stars == 1 and t.constant) else f"v{i}"


def function(api, f):
    n = len(f["parameters"])
    lines = [f"static SEXP R_{f['name']}({', '.join(f'SEXP a{i}' for i in range(n)) or 'void'}) {{", f"  handle* held[{max(n, 1)}] = {{NULL}};"]
    lines += [argument(api, f, p, i) for i, p in enumerate(f["parameters"])]
    call = f"{f['name']}({', '.join(value(api, p, i) for i, p in enumerate(f['parameters']))})"
    t = api.type(f["result"]["type"])
    lines.append(f"  hold(held, {n});")
    if t.kind == "void" and not t.stars:
        lines += [f"  {call};", f"  leave(held, {n});", "  return R_NilValue;"]
    else:
        kind = ("of_output" if t.base == "tw_output" and not t.stars else "of_text" if t.kind == "char" and f["name"] not in NOT_TEXT
                else "of_pointer" if t.is_pointer else "of_number")
        cast = "(void*)" if kind == "of_pointer" else "(double)" if kind == "of_number" else ""
        lines += [f"  {f['result']['type']} r = {call};", f"  leave(held, {n});", f"  return {kind}({cast}r);"]
    return [*lines, "}", ""]


def r_function(f):
    doc = [("# " + line).rstrip() for line in (f.get("doc") or "").split("\n")]
    names = [word(p["name"]) for p in f["parameters"]]
    return [*doc, f"{f['name']} <- function({', '.join(names)}) .Call({', '.join(['C_R_' + f['name'], *names])})", ""]


def layout(api, s):
    fields = []
    for field in s["fields"]:
        t = None if "result" in field else api.type(field["type"])
        kind = "p" if t is None or t.is_pointer else "o" if t.base == "tw_output" else NUMBERS[t.base]
        fields.append(f"`{field['name']}` = list({field['offset']}, \"{kind}\")")
    return f"  {s['name']} = list(size = {s['size']}, fields = list({', '.join(fields)})),"


def low(api):
    return {
        "src/low.c": ("low.c.in", {
            "functions": "\n".join(line for f in api.functions for line in function(api, f)),
            "table": "\n".join(f'    {{"R_{f["name"]}", (DL_FUNC)R_{f["name"]}, {len(f["parameters"])}}},' for f in api.functions),
            "checks": "\n".join(f"_Static_assert(offsetof({s['name']}, {field['name']}) == {field['offset']}, \"{s['name']}.{field['name']}\");"
                                for s in api.structs for field in s["fields"])}),
        "R/low.R": ("low.R.in", {
            "count": str(len(api.functions)), "functions": "\n".join(line for f in api.functions for line in r_function(f)).rstrip(),
            "structs": "\n".join(layout(api, s) for s in api.structs).rstrip(","),
            "constants": "\n".join(f"{c['name']} <- {c['value']}" for c in api.constants)})}


def op_names(op):
    """The names of the parameters: inputs, required and optional attributes."""
    used, found = {"s", "name"}, []
    for a in [*op.inputs, *op.required, *op.optional]:
        name = word(a.name)
        while name in used:
            name += "_"
        used.add(name)
        found.append(name)
    return found


def usage(op):
    names = op_names(op)
    needed = len(op.inputs) + len(op.required)
    return ", ".join(["s", *names[:needed], *[n + " = NULL" for n in names[needed:]], "name = NULL"])


def op_function(op):
    names = op_names(op)
    inputs = ", ".join(names[:len(op.inputs)])
    attributes = ", ".join(f'list("{a.name}", "{a.kind}{"s" if a.is_list else ""}", {n})' for a, n in zip([*op.required, *op.optional], names[len(op.inputs):]))
    lists = sum(o.is_list for o in op.outputs)
    shape = "operation" if not op.outputs else "value" if len(op.outputs) == 1 and not lists else "values"
    return [*[("# " + line).rstrip() for line in op.doc()],
            f"op${op.name} <- function({usage(op)})", f'  add_op(s, "{op.name}", name, list({inputs}), list({attributes}), "{shape}")', ""]


def escape(text):
    return re.sub(r"([\\%{}])", r"\\\1", text)


def page(op):
    """A page of R's help: the reader asks for ?MatMul."""
    about, *rest = op.doc()
    facts = "\n".join("\\item " + escape(line) for line in rest if line)
    return "\n".join([f"\\name{{op-{op.name}}}", f"\\alias{{{op.name}}}", f"\\title{{{op.name}}}", "\\description{" + escape(about) + "}",
                      "\\details{", f"\\code{{op${op.name}({escape(usage(op))})}}", "", "\\itemize{", facts, "}", "}", "\\keyword{op}", ""])


def ops(found):
    if len({op.name for op in found}) != len(found):
        raise Unknown("two ops of one name in R")
    files = {"R/ops.R": ("ops.R.in", {"functions": "\n".join(line for op in found for line in op_function(op)).rstrip(), "count": json.dumps(len(found))})}
    return files | {f"man/op-{op.name}.Rd": ("op.Rd.in", {"page": page(op)}) for op in found}
