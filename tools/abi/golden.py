"""The promised layout, tests/abi/golden. It holds only the parts of the ABI that binaries rely on: names, types, offsets, sizes, marks,
numbers. `api write --add` adds to it; existing entries stay."""
import json
import re

VERSIONS = {"application": ("TW_VERSION_MAJOR", "TW_VERSION_MINOR"), "plugin": ("TW_EPOCH", "TW_MINOR")}


def of(headers, surface):
    """Returns the promised layout of the headers of one surface."""
    version = {d["name"]: d["value"] for h in headers for d in h.declarations if d["kind"] == "macro" and "value" in d}
    made = {name: version[name] for name in VERSIONS[surface]}
    made |= {"functions": {}, "callbacks": {}, "structs": {}, "types": {}, "numbers": {}}
    for declaration in (d for h in headers if h.surface == surface for d in h.declarations):
        name = declaration["name"]
        if declaration["kind"] == "function" and not declaration["inline"]:
            made["functions"][name] = signature(declaration)
        elif declaration["kind"] == "callback":
            made["callbacks"][name] = signature(declaration)
        elif declaration["kind"] == "struct":
            made["structs"][name] = {"sort": declaration["sort"], "size": declaration["size"], "align": declaration["align"],
                                     "fields": [[f["name"], f["offset"], f["size"], f["type"], f.get("mark", "")]
                                                for f in declaration["fields"]]}
        elif declaration["kind"] == "alias":
            made["types"][name] = declaration["type"]
        elif declaration["kind"] == "handle":
            made["types"][name] = "handle"
        elif declaration["kind"] == "enum":
            made["numbers"].update({v["name"]: v["value"] for v in declaration["values"]})
    return made


def signature(declaration):
    return f"{declaration['result']['type']} ({', '.join(p['type'] for p in declaration['parameters']) or 'void'})"


def text(promise):
    """Returns the promise as it is stored, with a line for each name."""
    lines = []
    for kind, names in promise.items():
        if isinstance(names, dict):
            inner = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in sorted(names.items())]
            lines.append(f"{json.dumps(kind)}: {{" + ("\n" + ",\n".join(inner) + "\n" if inner else "") + "}")
        else:
            lines.append(f"{json.dumps(kind)}: {json.dumps(names)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def compare(old, new):
    """Returns (breaks, additions), one line each."""
    breaks = []
    additions = [f"{name} is {new[name]} and was {old[name]}" for name in old if name.startswith("TW_") and new[name] != old[name]]
    for kind in ("functions", "callbacks", "structs", "types", "numbers"):
        for name, was in old[kind].items():
            if name not in new[kind]:
                breaks.append(f"{name} is gone")
            elif kind == "structs":
                compare_struct(name, was, new[kind][name], breaks, additions)
            elif kind == "numbers" and is_minor(name) and new[kind][name] > was:
                additions.append(f"{name} is {new[kind][name]} and was {was}")
            elif new[kind][name] != was:
                breaks.append(f"{name} was {was} and is {new[kind][name]}")
        additions += [f"{name} is new" for name in new[kind] if name not in old[kind]]
    return breaks, additions


def is_minor(name):
    """Returns whether the number is the newest minor of a role, which grows with each addition to the role (plugin/role.h)."""
    return re.fullmatch(r"TW_[A-Z_]+_MINOR", name) is not None


def compare_struct(name, was, now, breaks, additions):
    have = {f[0]: f for f in now["fields"]}
    for field in was["fields"]:
        if field[0] not in have:
            breaks.append(f"{name}.{field[0]} is gone")
        elif have[field[0]] != field:
            breaks.append(f"{name}.{field[0]} was {described(field)} and is {described(have[field[0]])}")
    added = [f for f in now["fields"] if f[0] not in {w[0] for w in was["fields"]}]
    if added and was["sort"] == "value":
        breaks.append(f"{name}.{added[0][0]} is new, but {name} is a value, which is frozen")
    else:
        additions += [f"{name}.{f[0]} is new, {described(f)}" for f in added]
    if (was["sort"], was["align"]) != (now["sort"], now["align"]):
        breaks.append(f"{name} was a {was['sort']} aligned to {was['align']} and is a {now['sort']} aligned to {now['align']}")


def described(field):
    _, offset, size, kind, mark = field
    return f"{kind} at {offset}, {size} bytes" + (f", TW_{mark}" if mark else "")


# ---- Assertions for compilers ----


def asserts(promises):
    """Returns a file that compiles, as C11 and as C++17, only if the compiler lays the headers out as promised."""
    lines = ['#include "thalweg/plugin/plugin.h"', '#include "thalweg/plugin/group.h"', '#include "thalweg/plugin/host_function.h"',
             '#include "thalweg/plugin/rewriter.h"', '#include "thalweg/thalweg.h"', "#ifdef __cplusplus",
             "#define _Static_assert static_assert", "#endif", '#define CHECK(what) _Static_assert(what, #what)']
    for promise in promises:
        lines += [f"CHECK({name} == {value});" for name, value in promise["numbers"].items()]
        for name, struct in promise["structs"].items():
            lines.append(f"CHECK(sizeof({name}) == {struct['size']});")
            for field, offset, size, kind, _ in struct["fields"]:
                lines.append(f"CHECK(offsetof({name}, {field}) == {offset} && sizeof((({name}*)0)->{field}) == {size});")
                lines.append(pointer(f"{name}__{field}", kind, "*") + f" = &(({name}*)0)->{field};")
        lines += [pointer(name, kind) + f" = {name};" for name, kind in promise["functions"].items()]
        lines += [pointer(name, kind) + f" = ({name})0;" for name, kind in promise["callbacks"].items()]
        lines += [f"typedef {name} check_{name};" if kind == "handle" else f"CHECK(sizeof({name}) == sizeof({kind}));"
                  for name, kind in promise["types"].items()]
    return "\n".join(lines) + "\n"


def pointer(name, kind, star=""):
    """Declares check_NAME as a pointer to that type; compilers reject an initialiser of another type."""
    if re.match(r"[^()]*\(\*\)", kind):
        return "static " + kind.replace("(*)", f"(*{star}check_{name})", 1)
    if not star:
        return "static " + re.sub(r" \(", f" (*check_{name})(", kind, count=1)
    return f"static {kind} {star}check_{name}"
