"""The words of Rust: module low, declarations of the C API, and module ops with a function for each op."""
from api import Unknown, comment
from ops import snake

KEYWORDS = set("as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref "
               "return self static struct super trait true type unsafe use where while abstract become box do final macro override priv "
               "typeof unsized virtual yield try".split())
NUMBERS = {"int8_t": "i8", "int16_t": "i16", "int32_t": "i32", "int64_t": "i64", "uint8_t": "u8", "uint16_t": "u16", "uint32_t": "u32",
           "uint64_t": "u64", "float": "f32", "double": "f64"}


def word(name):
    return name + "_" if name in KEYWORDS else name


def rust_type(api, text):
    """The type of Rust: const belongs to the pointer in front of it."""
    t = api.type(text)
    if t.kind == "callback":
        return "*const " * t.stars + t.base
    base = {"void": "c_void", "char": "c_char"}.get(t.base) or NUMBERS.get(t.base) or t.base
    if t.kind == "void" and not t.stars:
        return "()"
    words, levels = text.replace("*", " * ").split(), []
    constant = False  # of what the next star points to
    for w in words:
        if w == "const":
            constant = True
        elif w == "*":
            levels.append("*const " if constant else "*mut ")
            constant = False
    return "".join(reversed(levels)) + base


def pointer_to_function(api, function):
    parameters = ", ".join(f"{word(p['name'])}: {rust_type(api, p['type'])}" for p in function["parameters"])
    result = rust_type(api, function["result"]["type"])
    return f"Option<unsafe extern \"C\" fn({parameters}){'' if result == '()' else ' -> ' + result}>"


def parameter_type(api, p):
    return pointer_to_function(api, p["callback"]) if "callback" in p else rust_type(api, p["type"])


def documented(declaration, indent):
    return comment(declaration.get("doc"), indent + "///")


def struct(api, s):
    lines = [*documented(s, ""), "#[repr(C)]", "#[derive(Clone, Copy)]", f"pub struct {s['name']} {{"]
    for field in s["fields"]:
        kind = pointer_to_function(api, field) if "result" in field else rust_type(api, field["type"])
        lines += [*documented(field, "    "), f"    pub {word(field['name'])}: {kind},"]
    return [*lines, "}", f"const _: () = assert!(std::mem::size_of::<{s['name']}>() == {s['size']});", ""]


def function(api, f):
    parameters = ", ".join(f"{word(p['name'])}: {parameter_type(api, p)}" for p in f["parameters"])
    result = rust_type(api, f["result"]["type"])
    return [*documented(f, "    "), f"    pub fn {f['name']}({parameters}){'' if result == '()' else ' -> ' + result};"]


def low(api):
    handles = []
    for h in api.handles:
        handles += [f"#[repr(C)]\npub struct {h['name']} {{\n    _private: [u8; 0],\n}}", ""]
    constants = [f"pub const {c['name']}: {'i64' if c['value'] < 0 else 'u32'} = {c['value']};" for c in api.constants]
    callbacks = []
    for c in api.callbacks:
        callbacks += [*documented(c, ""), f"pub type {c['name']} = {pointer_to_function(api, c)};"]
    offsets = []
    for s in api.structs:
        for field in s["fields"]:
            offsets.append(f"        offset!({s['name']}, {word(field['name'])}, {field['offset']}),")
    return {"src/low.rs": ("low.rs.in", {
        "handles": "\n".join(handles), "constants": "\n".join(constants), "callbacks": "\n".join(callbacks),
        "structs": "\n".join(line for s in api.structs for line in struct(api, s)),
        "functions": "\n".join(line for f in api.functions for line in function(api, f)),
        "every": "\n".join(f"        {f['name']} as *const () as usize," for f in api.functions),
        "offsets": "\n".join(offsets)})}


KINDS = {"int": "i64", "float": "f64", "bool": "bool", "string": "&str", "type": "tw::DType", "shape": "tw::Shape<'_>", "tensor": "&tw::Tensor", "func": "&str"}
OPTIONAL = {**KINDS, "string": "&'a str", "shape": "tw::Shape<'a>", "tensor": "&'a tw::Tensor", "func": "&'a str"}
SETTERS = {"int": "int", "float": "float", "bool": "bool", "string": "string", "type": "type", "shape": "shape", "tensor": "tensor", "func": "func"}


def attr_type(a, kinds=KINDS):
    life = "'a " if kinds is OPTIONAL else ""
    return f"&{life}[{kinds[a.kind]}]" if a.is_list else kinds[a.kind]


def setter(a):
    return f"set_{SETTERS[a.kind]}{'s' if a.is_list else ''}"


def op_word(name):
    name = word(snake(name)) if name.lower() != name else word(name)
    return name + "_" if name in ("s", "b", "options") else name


def function_name(op):
    return word(snake(op.name))


def op_items(op):
    doc = [f"/// {op.name}: {line}" if i == 0 else ("/// " + line).rstrip() for i, line in enumerate(op.doc())]
    doc = [line.replace("[", "\\[").replace("]", "\\]") for line in doc]
    name, lines = function_name(op), []
    parameters = [f"{op_word(a.name)}: {'&[tw::Output]' if a.is_list else 'tw::Output'}" for a in op.inputs]
    parameters += [f"{op_word(a.name)}: {attr_type(a)}" for a in op.required]
    arguments = [p.split(":")[0] for p in parameters]
    lists = [i for i, o in enumerate(op.outputs) if o.is_list]
    if len(lists) > 1:
        result, end = "Vec<tw::Output>", "s.end(b).map(|o| o.outputs()).unwrap_or_default()"
    elif not op.outputs:
        result, end = "Option<tw::Operation<'g>>", "s.end(b)"
    elif len(op.outputs) == 1 and not lists:
        result, end = "tw::Output", "s.end(b).map(|o| o.output(0)).unwrap_or_default()"
    else:
        kinds = ["Vec<tw::Output>" if o.is_list else "tw::Output" for o in op.outputs]
        result = kinds[0] if len(kinds) == 1 else "(" + ", ".join(kinds) + ")"
        before = lists[0] if lists else len(op.outputs)
        parts = []
        for i in range(len(op.outputs)):
            if i < before:
                parts.append(f"at(&all, {i})")
            elif i == before:
                parts.append(f"middle(&all, {before}, {len(op.outputs) - before - 1})")
            else:
                parts.append(f"at(&all, all.len().wrapping_sub({len(op.outputs) - i}))")
        end = "{ let all = s.end(b).map(|o| o.outputs()).unwrap_or_default(); " + (parts[0] if len(parts) == 1 else "(" + ", ".join(parts) + ")") + " }"
    generics = "'g" if "'g" in result else "'_"
    life = "<'g>" if generics == "'g" else ""
    body = [f'    let b = s.begin("{op.name}", None);']
    if op.optional:
        lines += [f"/// The attributes of {op.name} that may be left out; None is the default.", "#[derive(Clone, Copy, Default)]",
                  f"pub struct {op.name}Attrs<'a> {{", "    /// The name of the operation; None: made from the op's.", "    pub name: Option<&'a str>,"]
        for a in op.optional:
            text = f"{a.text} = {a.default}".replace("[", "\\[").replace("]", "\\]").replace("\n", " ")
            lines += [f"    /// {text}", f"    pub {field(a)}: Option<{attr_type(a, OPTIONAL)}>,"]
        lines += ["}", ""]
        body = [f'    let b = s.begin("{op.name}", options.name);']
    body += [f"    b.{'inputs' if a.is_list else 'input'}({op_word(a.name)});" for a in op.inputs]
    body += [f'    b.{setter(a)}("{a.name}", {op_word(a.name)});' for a in op.required]
    for a in op.optional:
        body += [f"    if let Some(value) = options.{field(a)} {{", f'        b.{setter(a)}("{a.name}", value);', "    }"]
    body.append(f"    {end}")
    if op.optional:
        lines += [*doc, "#[track_caller]", f"pub fn {name}{life}({', '.join([f's: &tw::Scope<{generics}>', *parameters])}) -> {result} {{",
                  f"    {snake(op.name)}_with({', '.join(['s', *arguments, f'&{op.name}Attrs::default()'])})", "}", ""]
        lines += [f"/// The same with attributes.", "#[track_caller]",
                  f"pub fn {snake(op.name)}_with{life}({', '.join([f's: &tw::Scope<{generics}>', *parameters, f'options: &{op.name}Attrs'])}) -> {result} {{", *body, "}", ""]
    else:
        lines += [*doc, "#[track_caller]", f"pub fn {name}{life}({', '.join([f's: &tw::Scope<{generics}>', *parameters])}) -> {result} {{", *body, "}", ""]
    return lines


def field(a):
    name = op_word(a.name)
    return name + "_" if name == "name" else name


def ops(found):
    names = [function_name(op) for op in found]
    if len(set(names)) != len(names):
        raise Unknown("two ops of one name in Rust")
    return {"src/ops.rs": ("ops.rs.in", {"functions": "\n".join(line for op in found for line in op_items(op)).rstrip()})}
