"""The promised layout, tests/abi/golden. It holds only the parts of the ABI that binaries rely on: names, types, offsets, sizes, marks,
numbers, and the minor of a field that a later minor added. `api write --add` adds to it; existing entries stay."""
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
                                     "fields": [promised(f) for f in declaration["fields"]]}
        elif declaration["kind"] == "alias":
            made["types"][name] = declaration["type"]
        elif declaration["kind"] == "handle":
            made["types"][name] = "handle"
        elif declaration["kind"] == "enum":
            made["numbers"].update({v["name"]: v["value"] for v in declaration["values"]})
    return made


def promised(field):
    """Returns name, offset, size, type, mark of a field, and its minor if it is later than 0: "minor 1", "file_system minor 1"."""
    made = [field["name"], field["offset"], field["size"], field["type"], field.get("mark", "")]
    return made + [field["since"]] if "minor" in field.get("since", "") and not field["since"].endswith("minor 0") else made


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
    if new.get("TW_EPOCH") == old.get("TW_EPOCH") and new.get("TW_MINOR", 0) < old.get("TW_MINOR", 0):
        breaks.append(f"TW_MINOR was {old['TW_MINOR']} and is {new['TW_MINOR']}")
    for kind in ("functions", "callbacks", "structs", "types", "numbers"):
        for name, was in old[kind].items():
            if name not in new[kind]:
                breaks.append(f"{name} is gone")
            elif kind == "structs":
                compare_struct(name, was, new[kind][name], breaks, additions)
                breaks += unmarked(name, was, new[kind][name], old, new)
            elif kind == "numbers" and is_minor(name, new) and new[kind][name] > was:
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
    _, offset, size, kind, mark, *since = field
    return f"{kind} at {offset}, {size} bytes" + (f", TW_{mark}" if mark else "") + "".join(f", since {s}" for s in since)


# ---- Minors of the plugin ABI ----


def is_minor(name, promise):
    """Returns True for TW_OP_MINOR and so on: the numbers of a role, which has a major, too."""
    return name.endswith("_MINOR") and f"{name.removesuffix('_MINOR')}_MAJOR" in promise["numbers"]


def minor_of(since, promise):
    """Returns (macro, n, newest): for "file_system minor 1" TW_FILE_SYSTEM_MINOR, 1 and the value of that macro; None if there is none."""
    role, _, number = since.rpartition("minor ")
    macro = f"TW_{role.strip().upper()}_MINOR" if role else "TW_MINOR"
    return macro, int(number), promise["numbers"].get(macro) if role else promise.get(macro)


def unmarked(name, was, now, old, new):
    """Yields a line for each field that was appended to a record of the plugin ABI without a minor that is new, too."""
    if "TW_EPOCH" not in old or was["sort"] != "record" or old["TW_EPOCH"] != new["TW_EPOCH"]:
        return
    known = {f[0] for f in was["fields"]}
    for field in (f for f in now["fields"] if f[0] not in known):
        if len(field) < 6:
            yield (f"{name}.{field[0]} is new without a minor: raise TW_MINOR (abi.h) or the minor of its role (role.h), and mark the name, "
                   f"as in TW_SINCE_1({field[0]}) or TW_FILE_SYSTEM_SINCE_1({field[0]})")
            continue
        macro, number, newest = minor_of(field[5], new)
        before = minor_of(field[5], old)[2]
        if newest is None or number != newest or before is not None and number <= before:
            yield f"{name}.{field[0]} is new and marked as of {field[5]}, but {macro} was {before} and is {newest}: a new minor has it"


# ---- Assertions for compilers ----


def asserts(promises, headers):
    """Returns a file that compiles, as C11 and as C++17, only if the compiler lays the headers out as promised, whatever
    the target. headers: all of the tree."""
    lines = [f'#include "{header.name}"' for header in headers]
    lines += ["#ifdef __cplusplus", "#define _Static_assert static_assert", "#endif", '#define CHECK(what) _Static_assert(what, #what)']
    for promise in promises:
        lines += [f"CHECK({name} == {value});" for name, value in promise["numbers"].items()]
        for name, struct in promise["structs"].items():
            lines.append(f"CHECK(sizeof({name}) == {struct['size']});")
            for field, offset, size, kind, _, *since in struct["fields"]:
                there = since_macro(since[0], field) if since else field
                lines.append(f"CHECK(offsetof({name}, {there}) == {offset} && sizeof((({name}*)0)->{there}) == {size});")
                lines.append(pointer(f"{name}__{field}", kind, "*") + f" = &(({name}*)0)->{there};")
        lines += [pointer(name, kind) + f" = {name};" for name, kind in promise["functions"].items()]
        lines += [pointer(name, kind) + f" = ({name})0;" for name, kind in promise["callbacks"].items()]
        lines += [f"typedef {name} check_{name};" if kind == "handle" else f"CHECK(sizeof({name}) == sizeof({kind}));"
                  for name, kind in promise["types"].items()]
    return "\n".join(lines) + "\n"


def since_macro(since, field):
    """Returns how the header writes the name of a field: TW_SINCE_1(span) for "minor 1"."""
    role, _, number = since.rpartition("minor ")
    return f"TW_{role.strip().upper() + '_' if role else ''}SINCE_{number}({field})"


def pointer(name, kind, star=""):
    """Declares check_NAME as a pointer to that type; compilers reject an initialiser of another type."""
    if re.match(r"[^()]*\(\*\)", kind):
        return "static " + kind.replace("(*)", f"(*{star}check_{name})", 1)
    if not star:
        return "static " + re.sub(r" \(", f" (*check_{name})(", kind, count=1)
    return f"static {kind} {star}check_{name}"
