"""Reads the facts about declarations in the comments of a header: doc, ownership, NULL, threads, since. README.md, "What a header says",
has the convention. A missing fact is a finding, and `api check` fails on it."""
import re

CONTRACT = {  # the defaults that plugin/abi.h states for all headers of its folder
    "threads": "any, several at once, no blocking",
    "since": "minor 0",
    "owner": "caller",
}


def fill(header):
    """Adds doc, threads and so on to the declarations of a header, and to the entries of its records."""
    header.threads = threads_of_all(header.doc)
    header.since = find_since(header.doc)
    if header.surface == "plugin":
        header.threads = header.threads or CONTRACT["threads"]
        header.since = header.since or CONTRACT["since"]
    for declaration in header.declarations:
        line, last = declaration["line"], declaration["last_line"]
        lead, trail = header.layout.lead(line), trail_of(header, declaration)
        declaration["block"] = header.layout.block(lead.first if lead else line)
        declaration["doc"] = "\n".join(c.text if c is lead else c.line for c in (lead, trail) if c)
        if declaration["kind"] in ("function", "callback"):
            if not declaration["doc"] or not lead:
                declaration["doc"] = inherited(header, declaration, trail)
            facts(declaration, said(header, declaration, line), header)
        for part in declaration.get("fields", []) + declaration.get("values", []):
            member(header, declaration, part)


def trail_of(header, declaration):
    """Returns the comment that follows the declaration. A comment after `enum {` describes the enum; one after `struct {` or inside the
    struct describes a member."""
    first, last = declaration["line"], declaration["last_line"]
    if declaration["kind"] == "enum" and last > first:
        return header.layout.trail(first, first)
    if declaration["kind"] == "struct":
        return None
    return header.layout.trail(first, last)


def inherited(header, declaration, trail):
    """Returns the doc of a function without a comment above it: that of the struct in its block, its trailing comment, or the last one
    above in the block."""
    above = [d for d in header.declarations if d["line"] < declaration["line"] and d["block"] == declaration["block"] and d["doc"]]
    records = [d for d in above if d["kind"] == "struct"]
    if records:
        return "\n".join(filter(None, (records[-1]["doc"], trail.line if trail else "")))
    if trail:
        return trail.line
    return above[-1]["doc"] if above else ""


def said(header, declaration, line):
    """Returns the texts that may state a fact, the nearest first: the declaration's own, that of the function that "As tw_..." names, the
    one above in its block if it has none of its own, its section's."""
    texts = [declaration["doc"]]
    model = re.match(r"As (tw_\w+)", declaration["doc"])
    texts += [d["doc"] for d in header.declarations if model and d["name"] == model[1]]
    section = header.layout.section(line)
    if header.layout.lead(line) and not declaration["doc"].startswith("The same"):
        return texts + ([section.text] if section else [])
    for other in range(line - 1, declaration["block"] - 1, -1):
        lead = header.layout.lead(other)
        if lead and header.layout.block(lead.first) == declaration["block"]:
            texts.append(lead.text)
            break
    return texts + ([section.text] if section else [])


def member(header, declaration, part):
    """Adds the doc of a field or of an enum's value; a field that is a function has facts of its own."""
    lead, trail = header.layout.lead(part["line"]), header.layout.trail(part["line"], part["last_line"])
    if lead and lead.first < declaration["line"]:
        lead = None
    if part["line"] == declaration["line"] != declaration["last_line"]:
        trail = None
    part["doc"] = " ".join(c.line for c in (lead, trail) if c)
    if "result" in part:
        facts(part, [part["doc"], declaration["doc"]], header)
        part["doc"] = part["doc"] or declaration["doc"]


# ---- Facts ----


def facts(function, texts, header):
    texts = [" ".join(t.split()) for t in texts]
    function["threads"] = first(map(find_threads, texts)) or header.threads
    function["since"] = function.get("since") or first(map(find_since, texts)) or header.since
    errors = first(map(find_errors, texts[:1]))
    if errors and function["result"]["type"] == "tw_status*":
        function["errors"] = errors
    for i, parameter in enumerate(function["parameters"]):
        if "*" in parameter["type"]:
            parameter["null"] = may_be_null(parameter, i, texts, header)
            parameter["owner"] = owner(function, parameter, i, texts) or CONTRACT["owner"] * (header.surface == "plugin") or None
    link_counts(function["parameters"])
    if "*" in function["result"]["type"]:
        function["result"].update(result_facts(function, texts))


NUMBERS = r"(?:const )?(?:u?int(?:8|16|32|64)_t|float|double) ?\*"
VALUES = r"(?:const )?tw_(?:output|edge|attr|shape|string|part_edge|gradient|token) ?\*"  # records stand in arrays of pointers
BYTES = r"(?:const )?(?:char|void) ?\*"
OBJECTS = {"user", "arg", "self", "state", "group", "endpoint", "stream", "object"}  # void* that is no memory


def link_counts(parameters):
    """Names for each array the parameter that counts it: n_NAME or NAME_len, else the next number, if it is called n, rank, len or bytes.
    Arrays of elements that stand side by side share a count."""
    names = [p["name"] for p in parameters]
    for i, p in enumerate(parameters):
        kind, name = p["type"], p["name"]
        own = next((c for c in (f"n_{name}", f"{name}_len", f"{name}_bytes") if c in names), None)
        if own:
            p["count"] = own
            continue
        elements = re.fullmatch(rf"{NUMBERS}|{VALUES}", kind) or kind.endswith("* const*")
        if not elements and not (re.fullmatch(BYTES, kind) and name not in OBJECTS):
            continue
        if name.startswith("out_") and not (elements and name.endswith("s")):
            continue  # one result
        after = i + 1
        while elements and after < len(parameters) and is_elements(parameters[after]):
            after += 1
        follows = names[after] if after < len(parameters) and "*" not in parameters[after]["type"] else ""
        wanted = r"n|n_\w+|rank|count" if elements else r"n|len|bytes"
        if re.fullmatch(wanted, follows):
            p["count"] = follows


def is_elements(parameter):
    return bool(re.fullmatch(rf"{NUMBERS}|{VALUES}", parameter["type"])) or parameter["type"].endswith("* const*")


def first(found):
    return next(filter(None, found), None)


def find_threads(text):
    match = re.search(r"\bThreads?: (.+?)(?=\.(?:\s|$)|\s*-{4}|$)", " ".join(text.split()))
    return match[1] if match else None


def threads_of_all(introduction):
    """Returns the thread rule of a header's introduction, which is the rest of the paragraph."""
    match = re.search(r"\bThreads?: (.+?)(?=\s+Everything here:\s+since|\n\s*\n|\n {4}|$)", introduction, re.S)
    return " ".join(match[1].split()).rstrip(".") if match else None


def find_since(text):
    match = re.search(r"\b[Ss]ince (\d+\.\d+)\b", text)
    return match[1] if match else None


def find_errors(text):
    match = re.search(r"\bErrors[^:.]{0,20}: (.+?)(?=\. (?!\.)|\.$|$)", text)
    return match[1] if match else None


def about(name, texts):
    """Returns the statements about a parameter: `name: ...` or `name(...) ...` up to the sentence's end or the next such word, or
    `name (...)`."""
    found = []
    for text in (t for t in texts if name in t):
        found += re.findall(rf"(?<![\w>.])`?{name}`?(?:, \w+)*(?:: |\(\w*\) )(.+?)(?=\. |\.$| [a-z]\w*(?:, \w+)*: |$)", text)
        found += re.findall(rf"`{name}` \((.+?)\)", text) + re.findall(rf"\b{name} (NULL)\b", text)
    return "; ".join(found)


def may_be_null(parameter, i, texts, header):
    name, kind = parameter["name"], parameter["type"]
    everything = " ".join(texts)
    if header.surface == "application" and (kind == "tw_runtime*" or i == 0 and kind in BUILDERS):
        return True  # NULL is the default runtime (runtime.h), or a builder that could not be made (op.h, scope.h)
    if kind == "void*" and name in ("user", "arg"):
        return True  # the pointer is passed on unchanged
    if name.startswith("out_"):
        anyway = re.search(r"(?:[Oo]utputs?|Either|Any)\b[^.]*\bmay be NULL", everything)
        return bool(anyway or "may be NULL" in about(name, texts))
    if re.search(r"\bNULL\b", about(name, texts)) and not re.match(r"never NULL", about(name, texts)):
        return True
    if name == "options" and re.search(r"\bNULL: the defaults|\bNULL: none", everything):
        return True
    return i == 0 and bool(re.search(r"NULL (?:is fine|does nothing)|\b(?:for|of) NULL\b|for a NULL \w+", everything))


BUILDERS = ("tw_op*", "tw_scope*")
ENDS = re.compile(r"(?:^|_)(?:destroy|close|release|finish|discard|commit|leave|unwatch|unlock)$")
OWNED = re.compile(r"\bcaller\b[^.]*\b(?:owns|releases)\b")


def owner(function, parameter, i, texts):
    """Returns the ownership of a pointer's target: borrowed, copied, retained, kept, taken, caller (the caller owns it after the call),
    object (the object of the call owns it), written (the caller's own memory). None: the comments do not say."""
    name, kind = parameter["name"], parameter["type"]
    words = about(name, texts)
    if "(*" in kind:
        return "kept" if i else "borrowed"
    if name.startswith("out_"):
        return out_owner(function, kind, texts)
    if kind == "void*" and name in ("user", "arg"):
        return "borrowed"
    if name == ended(function, texts) or f"takes {name};" in " ".join(texts) + ";" or f"takes {name}." in " ".join(texts):
        return "taken"
    word = re.search(r"\b(taken|copied|retained|borrowed)\b", words)
    if word:
        return word[1]
    if re.search(r"must (?:live|outlive|last)|kept alive", words):
        return "kept"
    return "borrowed"


def ended(function, texts):
    """Returns the parameter that does not outlive the call: the first pointer, or after a host the last. A close that may fail is not
    the end: a closed session still exists."""
    if not ENDS.search(function["name"]):
        return None
    if function["name"].endswith("close") and function["result"]["type"] != "void" and "frees" not in " ".join(texts):
        return None
    pointers = [p["name"] for p in function["parameters"] if "*" in p["type"]]
    return pointers[-1 if function["parameters"][0]["type"] == "const tw_host*" else 0]


def out_owner(function, kind, texts):
    handle = re.fullmatch(r"(?:tw_\w+|void)\*\*", kind)
    if not handle:
        return "object" if kind.endswith("**") else "written"
    if re.search(r"(?:^|_)(?:create|open|make|load|compile|connect|listen|join|watch)(?:_|$)", function["name"]):
        return "caller"
    everything = " ".join(texts)
    if OWNED.search(everything):
        return "caller"
    return "object" if re.search(r"\bborrowed\b", everything) else None


def result_facts(function, texts):
    kind, everything = function["result"]["type"], " ".join(texts)
    if kind == "tw_status*":
        return {"owner": "caller", "null": not re.search(r"[Nn]ever NULL", texts[0])}
    null = function["parameters"][:1] and function["parameters"][0]["type"] in BUILDERS or re.search(r"\bNULL\b", everything)
    null = bool(null) and not re.search(r"Never NULL", everything)
    if re.search(r"\bStatic\b", everything):
        return {"owner": "static", "null": null}
    if kind.startswith("const ") or kind == "void*":
        return {"owner": "object", "null": null}
    if re.search(r"_create(?:_|$)", function["name"]) or OWNED.search(everything):
        return {"owner": "caller", "null": null}
    return {"owner": "object" if re.search(r"\bborrowed\b", everything) else None, "null": null}


# ---- Findings ----


def findings(headers):
    """Returns the missing facts, one line each."""
    return [line for header in headers for line in missing(header)]


def missing(header):
    for declaration in header.declarations:
        entries = [declaration] if declaration["kind"] in ("function", "callback") else []
        for entry in entries + [f for f in declaration.get("fields", []) if "result" in f]:
            name = entry["name"] if entry is declaration else f"{declaration['name']}.{entry['name']}"
            where = f"{header.name}:{entry['line']}: {name}: "
            yield from (where + what for what in missing_of(entry))
            if entry is not declaration and header.surface == "plugin" and "mark" not in entry:
                yield where + "no mark; put TW_R, TW_O or TW_C before it"


def missing_of(entry):
    if not entry["doc"]:
        yield "nothing says what it does; write a comment above it or behind it"
    if not entry["threads"]:
        yield "nothing says which threads may call it; write 'Threads: ...' in its comment, its section's head or on top of the header"
    if not entry["since"]:
        yield "nothing says since when it is there; write 'since 0.1' in its comment or on top of the header"
    unsaid = [p["name"] for p in entry["parameters"] if p.get("owner", "") is None]
    unsaid += ["the result"] if entry["result"].get("owner", "") is None else []
    for name in unsaid:
        yield f"nothing says who owns {name}; write 'the caller owns ...' or 'borrowed'"
