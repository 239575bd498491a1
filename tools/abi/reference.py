"""The reference pages, c_api/reference, one per header, from the data of headers.py. They follow the header: each block of the header is
a block of the page, the comment first, then the code."""
import re
import textwrap

PLACE = "c_api/reference"


def pages(headers):
    """Returns {path below c_api/reference: text}."""
    made = {page_name(h): page(h) for h in headers if h.declarations}
    made["README.md"] = index([h for h in headers if h.declarations])
    return made


def page_name(header):
    return header.name.removeprefix("thalweg/").removesuffix(".h") + ".md"


def index(headers):
    lines = ["# Reference of the C API", "",
             "Made from the headers by `tools/abi/api write`; the headers are the manual, and these pages are for reading and linking.",
             "The contract that holds for all stands on top of `thalweg/thalweg.h` and `thalweg/plugin/abi.h`."]
    for surface, what in (("application", "For applications: `#include <thalweg/thalweg.h>`"),
                          ("plugin", "For plugins: `#include <thalweg/plugin/plugin.h>`")):
        lines += ["", f"## {what}", "", "| header | what it is |", "|---|---|"]
        lines += [f"| [{h.name.removeprefix('thalweg/')}]({page_name(h)}) | {prose(summary(h.doc))} |"
                  for h in sorted(headers, key=lambda h: h.name) if h.surface == surface]
    return "\n".join(lines) + "\n"


def summary(doc):
    return re.split(r"(?<=[.:])\s", " ".join(doc.split()), maxsplit=1)[0].rstrip(".:") if doc.count(".") else doc


def page(header):
    lines = [f"# {header.name}", "", markdown(header.doc), ""]
    for block in blocks(header):
        lines += block_text(header, block)
    table = [row for d in header.declarations for row in rows(header, d)]
    if table:
        rule = f"Threads, unless the row says otherwise: {prose(header.threads)}. " if header.threads else ""
        lines += ["## At a glance", "", f"{rule}Since {header.since}.", "",
                  "| function | pointers in | pointers out | threads |", "|---|---|---|---|"]
        lines += table
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


# ---- Blocks ----


def blocks(header):
    found = {}
    for declaration in header.declarations:
        found.setdefault(declaration["block"], []).append(declaration)
    return found.values()


def block_text(header, block):
    """Returns a block as Markdown: comments as prose, code as code, and a heading with the names that it declares."""
    lines, code = [f"## {title(block)}", ""], []
    for declaration in block:
        lead = header.layout.lead(declaration["line"])
        if lead:
            lines += fenced(code)
            code = []
            lines += [markdown(lead.text), ""]
        code += header.layout.lines[declaration["line"] - 1:declaration["last_line"]]
    return lines + fenced(code)


def title(block):
    names = [d["name"] or "constants" for d in block]
    return ", ".join(f"`{n}`" if n != "constants" else n for n in dict.fromkeys(names[:3])) + (", ..." if len(names) > 3 else "")


def fenced(code):
    return ["```c", *(line.removeprefix("TW_EXPORT ") for line in code), "```", ""] if code else []


# ---- The table ----


def rows(header, declaration):
    if declaration["kind"] in ("function", "callback"):
        return [row(header, declaration["name"], declaration)]
    return [row(header, f"{declaration['name']}.{f['name']}", f) for f in declaration.get("fields", []) if "result" in f]


def row(header, name, function):
    into = [f"`{p['name']}` {p['owner']}" + (", may be NULL" if p["null"] else "")
            for p in function["parameters"] if "owner" in p and not p["name"].startswith("out_")]
    out = [f"`{p['name']}` {p['owner']}" + (", may be NULL" if p["null"] else "")
           for p in function["parameters"] if p["name"].startswith("out_")]
    if "owner" in function["result"] and function["result"]["type"] != "tw_status*":
        out.append(f"answer {function['result']['owner']}" + (", may be NULL" if function["result"]["null"] else ""))
    threads = "" if function["threads"] == header.threads else prose(function["threads"])
    facts = [function["mark"]] if "mark" in function else []
    facts += [f"since {function['since']}"] if re.search(r"minor [1-9]", function["since"] or "") else []
    mark = f" ({', '.join(facts)})" if facts else ""
    return f"| `{name}`{mark} | {'; '.join(into)} | {'; '.join(out)} | {threads} |"


# ---- Text ----


def prose(text):
    """Escapes the text, so that Markdown shows it unchanged, except for parts between back quotes."""
    parts = re.split(r"(`[^`]*`)", text or "")
    return "".join(part if part.startswith("`") and len(part) > 1 else re.sub(r"([*<|])", r"\\\1", part) for part in parts)


def markdown(text):
    """Returns a comment as Markdown: lists stay lists, other indented lines are shown unchanged, the rest is prose."""
    lines, code, in_list = [], [], False
    for line in text.strip("- ").split("\n"):
        in_list = bool(re.match(r" ?- ", line)) or in_list and line.startswith("  ")
        if not in_list and (line.startswith("  ") or code and not line.strip()):
            code.append(line)
            continue
        lines += shown(code) + [prose(line.strip() if not line.startswith("  ") else line)]
        code = []
    return "\n".join(lines + shown(code))


def shown(code):
    code = textwrap.dedent("\n".join(code)).strip("\n")
    return ["", "```c" if "tw_" in code else "```text", *code.split("\n"), "```", ""] if code else []
