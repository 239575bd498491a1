"""Calls each function of the library with NULL for every pointer and 0 for every number, as api.json lists its parameters, each in a
process of its own. No call may crash or hang. A function that says of an argument that it may not be NULL must refuse the call, and one
that says so of none must not complain of NULL.

usage: null_everywhere_test.py LIBRARY"""
import ctypes
import json
import os
import pathlib
import re
import signal
import sys

API = pathlib.Path(os.environ["THALWEG_SOURCE_DIR"]) / "c_api/api.json"
INVALID_ARGUMENT = 3
BUILDERS = ("tw_op*", "tw_scope*")  # may be NULL, since a call that made none has failed; finish answers so
CRASHED, REFUSED, ACCEPTED, SILENT = "crashed", "refused", "accepted", "silent"
TYPES = {f"{sign}int{bits}_t": getattr(ctypes, f"c_{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)}
TYPES.update({"float": ctypes.c_float, "double": ctypes.c_double, "void": None})


def declarations():
    for header in json.loads(API.read_text(encoding="utf-8"))["headers"]:
        if header["surface"] == "application":
            yield from header["declarations"]


def ctype(name, aliases):
    if "*" in name or name in aliases["callbacks"]:
        return ctypes.c_void_p
    return TYPES[aliases["numbers"].get(name, name)]


def message(library, status):
    library.tw_status_message.restype, library.tw_status_message.argtypes = ctypes.c_char_p, [ctypes.c_void_p]
    return library.tw_status_message(status).decode()


def call(library, function, aliases):
    """Calls the function in a child. Returns (what became of it, words)."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        entry = getattr(library, function["name"])
        entry.restype = ctype(function["result"]["type"], aliases)
        entry.argtypes = [ctype(p["type"], aliases) for p in function["parameters"]]
        answer = entry(*(None if t is ctypes.c_void_p else 0 for t in entry.argtypes))
        said = SILENT
        if function["result"]["type"] == "tw_status*":
            library.tw_status_code.restype, library.tw_status_code.argtypes = ctypes.c_uint32, [ctypes.c_void_p]
            said = f"{library.tw_status_code(answer)} {message(library, answer)}" if answer else ACCEPTED
        os.write(writer, said.encode()[:4000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read().decode()
    status = os.waitpid(child, 0)[1]
    if status != 0:
        late = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM
        return CRASHED, "no end within 30 seconds" if late else f"it ended with status {status}"
    if said in (SILENT, ACCEPTED):
        return said, ""
    code, words = said.split(" ", 1)
    return REFUSED, words if int(code) == INVALID_ARGUMENT else f"(code {code}) {words}"


def judge(function, result, words):
    """Returns what is wrong, or None."""
    name = function["name"]
    if result == CRASHED:
        return f"{name}: {words}"
    needed = [p["name"] for p in function["parameters"] if p.get("null") is False and "count" not in p]
    if needed and result == ACCEPTED:
        return f"{name}: api.json says that {', '.join(needed)} may not be NULL, and the call succeeds"
    pointers = [p for p in function["parameters"] if "*" in p["type"]]
    builds = any(p["type"] in BUILDERS for p in pointers)
    if pointers and not needed and not builds and result == REFUSED and re.search(r"\bis NULL\b", words):
        return f"{name}: api.json says that every argument may be NULL, and it answers: {words}"
    return None


def main():
    library = ctypes.CDLL(sys.argv[1])
    found = list(declarations())
    aliases = {"callbacks": {d["name"] for d in found if d["kind"] == "callback"},
               "numbers": {d["name"]: d["type"] for d in found if d["kind"] == "alias"}}
    functions = [d for d in found if d["kind"] == "function" and not d.get("inline")]
    wrong, counts = [], {}
    for function in functions:
        result, words = call(library, function, aliases)
        counts[result] = counts.get(result, 0) + 1
        fault = judge(function, result, words)
        if fault:
            wrong.append(fault)
    print("\n".join(wrong) or f"{len(functions)} functions: " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
    if len(functions) < 400 or not counts.get(REFUSED):
        print(f"only {len(functions)} functions were called, {counts}; is api.json what it was?")
        return 1
    return 1 if wrong else 0


sys.exit(main())
