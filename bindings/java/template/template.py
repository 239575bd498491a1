"""The words of Java: class Low over JNI with every function of the C API, Layout with the records, and Ops with a method for each op."""
import json

from api import Unknown
from ops import camel, snake

NUMBERS = {"int8_t": "byte", "uint8_t": "byte", "int16_t": "short", "uint16_t": "short", "int32_t": "int", "uint32_t": "int", "int64_t": "long",
           "uint64_t": "long", "tw_output": "long", "float": "float", "double": "double"}
RESERVED = set("abstract assert boolean break byte case catch char class const continue default do double else enum extends final finally float "
               "for goto if implements import instanceof int interface long native new package private protected public return short static "
               "strictfp super switch synchronized this throw throws transient try void volatile while true false null record var yield "
               "wait notify hashCode toString equals getClass finalize clone".split())


def mark(name):
    """The name as it occurs in the generated sources."""
    return name


def word(name):
    return name + "_" if name in RESERVED else name


def java_type(api, p):
    """Addresses are long; texts are bytes that end with zero."""
    if "callback" in p:
        return "long"
    t = api.type(p["type"])
    if t.kind == "char" and t.stars == 1 and t.constant:
        return "byte[]"
    return "long" if t.is_pointer else NUMBERS[t.base]


def c_value(api, p, i):
    """What JNI's value is in C."""
    if "callback" in p:
        types = ", ".join(q["type"] for q in p["callback"]["parameters"])
        return f"({p['callback']['result']['type']} (*)({types}))(uintptr_t)a{i}"
    t = api.type(p["type"])
    if t.kind == "char" and t.stars == 1 and t.constant:
        return f"t{i}"
    return f"({p['type']})(uintptr_t)a{i}" if t.is_pointer else f"({p['type']})a{i}"


def jni_name(name):
    return "Java_org_thalweg_Low_" + name.replace("_", "_1")


def result_type(api, f):
    t = api.type(f["result"]["type"])
    return "void" if t.kind == "void" and not t.stars else "long" if t.is_pointer else NUMBERS[t.base]


def declaration(api, f):
    parameters = ", ".join(f"{java_type(api, p)} {word(p['name'])}" for p in f["parameters"])
    doc = (f.get("doc") or "").replace("*/", "*&#47;").replace("&", "&amp;").replace("<", "&lt;").replace("@", "&#64;").replace("\\u", "&#92;u").split("\n")
    return ["    /** " + "\n     * ".join(doc) + " */", f"    public static native {result_type(api, f)} {f['name']}({parameters});"]


def function(api, f):
    kinds = [java_type(api, p) for p in f["parameters"]]
    parameters = "".join(f", {'jbyteArray' if k == 'byte[]' else 'j' + k} a{i}" for i, k in enumerate(kinds))
    result = result_type(api, f)
    lines = [f"JNIEXPORT {'void' if result == 'void' else 'j' + result} JNICALL {jni_name(f['name'])}(JNIEnv* env, jclass self{parameters}) {{"]
    texts = [i for i, k in enumerate(kinds) if k == "byte[]"]
    lines.append("  (void)env, (void)self;")
    lines += [f"  char* t{i} = text(env, a{i});" for i in texts]
    call = f"{f['name']}({', '.join(c_value(api, p, i) for i, p in enumerate(f['parameters']))})"
    pointer = api.type(f["result"]["type"]).is_pointer
    if result == "void":
        lines.append(f"  {call};")
    else:
        lines.append(f"  const j{result} r = (j{result}){'(uintptr_t)' if pointer else ''}{call};")
    lines += [f"  free(t{i});" for i in texts]
    if result != "void":
        lines.append("  return r;")
    return [*lines, "}", ""]


def layout(api, s):
    lines = [f"    public static final int {s['name']} = {s['size']};"]
    return lines + [f"    public static final int {s['name']}__{field['name']} = {field['offset']};" for field in s["fields"]]


def low(api):
    return {
        "src/org/thalweg/Low.java": ("Low.java.in", {
            "count": str(len(api.functions)), "functions": "\n".join(line for f in api.functions for line in declaration(api, f)),
            "constants": "\n".join(f"    public static final int {c['name']} = {c['value']};" for c in api.constants),
            "structs": "\n".join(line for s in api.structs for line in layout(api, s))}),
        "native/low.c": ("low.c.in", {
            "functions": "\n".join(line for f in api.functions for line in function(api, f)),
            "checks": "\n".join(f"_Static_assert(offsetof({s['name']}, {field['name']}) == {field['offset']}, \"{s['name']}.{field['name']}\");"
                                for s in api.structs for field in s["fields"])})}


KINDS = {"int": "long", "float": "double", "bool": "boolean", "string": "String", "type": "DType", "shape": "long[]", "tensor": "Tensor", "func": "String"}


def attr_type(a):
    return KINDS[a.kind] + "[]" if a.is_list else KINDS[a.kind]


def op_method(op):
    doc = "<br>\n     * ".join(line.replace("*/", "*&#47;").replace("&", "&amp;").replace("<", "&lt;").replace("@", "&#64;").replace("\\u", "&#92;u")
                              for line in op.doc())
    names = [word(camel(a.name)) for a in op.inputs]
    names = [n + "_" if n in ("s", "attributes", "built") else n for n in names]
    parameters = [f"{'List<Output>' if a.is_list else 'Output'} {n}" for a, n in zip(op.inputs, names)]
    required = []
    for a in op.required:
        name = word(camel(a.name))
        required.append(name + "_" if name in names or name in ("s", "attributes", "built") else name)
    parameters += [f"{attr_type(a)} {n}" for a, n in zip(op.required, required)]
    kinds = " ".join(f"{a.name}:{a.kind}{'s' if a.is_list else ''}" for a in [*op.required, *op.optional])
    lists = sum(o.is_list for o in op.outputs)
    if not op.outputs:
        result, end = "Operation", "built.end()"
    elif len(op.outputs) == 1 and not lists:
        result, end = "Output", "built.end().output(0)"
    else:
        result, end = "List<Output>", "built.end().outputs()"
    lines = ["    /** " + doc + " */", f"    public static {result} {word(snake_camel(op.name))}({', '.join(['Scope s', *parameters, 'Attr... attributes'])}) {{",
             f'        Scope.Builder built = s.begin("{op.name}", {json.dumps(kinds)}, attributes);']
    lines += [f"        built.{'inputs' if a.is_list else 'input'}({n});" for a, n in zip(op.inputs, names)]
    lines += [f'        built.set("{a.name}", {n});' for a, n in zip(op.required, required)]
    return [*lines, f"        return {end};", "    }", ""]


def snake_camel(name):
    return camel(snake(name))


def ops(found):
    names = [snake_camel(op.name) for op in found]
    if len(set(names)) != len(names):
        raise Unknown("two ops of one name in Java")
    return {"src/org/thalweg/Ops.java": ("Ops.java.in", {"methods": "\n".join(line for op in found for line in op_method(op)).rstrip()})}
