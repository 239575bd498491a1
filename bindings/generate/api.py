"""The public application API as data: what c_api/api.json says, in a form from which declarations in any language follow."""
import json
import re


class Unknown(Exception):
    """A declaration that a language has no words for."""


class Type:
    """A C type: `base`, a number of pointers above it, and what the base is: number, text ("char" with a pointer), void, handle, struct,
    callback (a named function pointer) or function (a function pointer written in place)."""

    def __init__(self, api, text):
        self.text = text
        if "(*)" in text:
            self.base, self.stars, self.kind = text, 0, "function"
            return
        words = re.findall(r"\w+|\*", text)
        names = [w for w in words if w not in ("const", "*")]
        if len(names) != 1:
            raise Unknown(f"the type '{text}'")
        self.base, self.stars = names[0], words.count("*")
        self.base = api.aliases.get(self.base, self.base) if self.base != "tw_output" else self.base
        self.kind = api.kind_of(self.base)
        self.constant = words[0] == "const"

    @property
    def is_pointer(self):
        return self.stars > 0 or self.kind in ("callback", "function")


class Api:
    """What the application headers declare, in their order: functions, structs, callbacks, handles and constants."""

    NUMBERS = {"int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "float", "double"}

    def __init__(self, path):
        headers = json.loads(path.read_text())["headers"]
        self.functions, self.structs, self.callbacks, self.handles = [], [], [], []
        self.constants, self.aliases, self.headers = [], {}, []
        # Handles and structs of the plugin API occur in a signature or two; for applications they are opaque.
        self.opaque = {d["name"] for h in headers if h["surface"] == "plugin" for d in h["declarations"] if d["kind"] in ("struct", "handle")}
        for header in headers:
            if header["surface"] == "application":
                self.headers.append(header["path"])
                for declaration in header["declarations"]:
                    self.add(declaration)
        used = {w for f in self.functions for p in f["parameters"] for w in re.findall(r"tw_\w+", p["type"])}
        used |= {w for c in self.callbacks for t in [c["result"], *c["parameters"]] for w in re.findall(r"tw_\w+", t["type"])}
        self.handles += [{"name": name, "doc": "Of the plugin API."} for name in sorted(used & self.opaque)]
        self.opaque = {h["name"] for h in self.handles}

    def add(self, declaration):
        kind = declaration["kind"]
        if kind == "enum":
            self.constants += declaration["values"]
        elif kind == "macro":
            if isinstance(declaration.get("value"), int):
                self.constants.append(declaration)
        elif kind == "alias":
            self.aliases[declaration["name"]] = declaration["type"]
        else:
            {"function": self.functions, "struct": self.structs, "callback": self.callbacks, "handle": self.handles}[kind].append(declaration)

    def kind_of(self, base):
        if base in self.NUMBERS or base in self.aliases:
            return "number"
        if base in ("char", "void"):
            return base
        for kind, names in (("handle", self.handles), ("struct", self.structs), ("callback", self.callbacks)):
            if any(d["name"] == base for d in names):
                return kind
        raise Unknown(f"the type '{base}'")

    def type(self, text):
        return Type(self, text)


def camel(name, first_upper=True):
    """ "tw_graph_create" as GraphCreate or graphCreate."""
    parts = name.removeprefix("tw_").removeprefix("TW_").split("_")
    joined = "".join(p[:1].upper() + p[1:] for p in parts)
    return joined if first_upper else joined[:1].lower() + joined[1:]


def comment(text, prefix, width=100):
    """Lines of a comment; the line breaks of the text are kept."""
    return [(prefix + " " + line).rstrip() for line in (text or "").split("\n")] if text else []


def facts(function):
    """Lines that say who owns what, from the declaration."""
    lines = []
    for p in function["parameters"]:
        if p.get("owner") in ("taken", "kept", "retained", "copied"):
            lines.append(f"{p['name']}: {p['owner']}.")
    return lines
