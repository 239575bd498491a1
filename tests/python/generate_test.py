"""The generator of the low layer: it takes what api.json describes, and refuses what it has no name for."""
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from thalweg import _low

SOURCE = pathlib.Path(os.environ["THALWEG_SOURCE_DIR"])
HEADERS = SOURCE / "c_api/include/thalweg"


def generate(path, *declarations):
    """The tree's own headers and one more."""
    api = json.loads((SOURCE / "c_api/api.json").read_text())
    api["headers"].append({"path": "thalweg/extra.h", "surface": "application", "declarations": declarations})
    (path / "api.json").write_text(json.dumps(api))
    out = path / "_low.py"
    command = [sys.executable, "-B", SOURCE / "bindings/python/generate.py", path / "api.json", "--out", out]
    return subprocess.run(command, capture_output=True, text=True, check=False), out


def function(name, result, *types):
    return {"kind": "function", "name": name, "result": {"type": result}, "parameters": [{"name": "p", "type": t} for t in types]}


def struct(name, **fields):
    described = {n: t if isinstance(t, dict) else {"type": t} for n, t in fields.items()}
    return {"kind": "struct", "name": name, "fields": [{"name": n, **t} for n, t in described.items()]}


def test_every_exported_function_is_there():
    exported = (SOURCE / "c_api/symbols.txt").read_text().split()
    assert len(exported) > 150 and [name for name in exported if not hasattr(_low, name)] == []


def test_constants_and_structs_have_their_values():
    text = (HEADERS / "types.h").read_text()
    for name, value in re.findall(r"^  (TW_\w+) = (\d+)", text, re.M):
        assert getattr(_low, name) == int(value)
    assert [name for name, *_ in _low.tw_run_options._fields_][:4] == ["size", "flags", "timeout_ns", "cancel"]
    assert _low.TW_VERSION_MINOR >= 1


def test_structs_are_as_large_as_the_compiler_says():
    api = json.loads((SOURCE / "c_api/api.json").read_text())
    structs = [d for h in api["headers"] if h["surface"] == "application" for d in h["declarations"] if d["kind"] == "struct"]
    for declared in structs:
        made = getattr(_low, declared["name"])
        assert _low.sizeof(made) == declared["size"]
        assert [(n, getattr(made, n).offset) for n, _ in made._fields_] == [(f["name"], f["offset"]) for f in declared["fields"]]
    assert len(structs) > 20


def test_new_declarations_are_taken(tmp_path):
    done = {"result": {"type": "void"}, "parameters": [{"name": "user", "type": "void*"}]}
    status, out = generate(
        tmp_path,
        {"kind": "macro", "name": "TW_NEW", "value": 7},
        {"kind": "macro", "name": "TW_NEW_TEXT", "value": "text"},
        {"kind": "enum", "name": "", "values": [{"name": "TW_NEW_A", "value": -3}, {"name": "TW_NEW_B", "value": 4}]},
        {"kind": "handle", "name": "tw_new"},
        {**function("tw_new_callback", "void", "void*", "const char*", "uint64_t"), "kind": "callback"},
        struct("tw_new_options", size="uint32_t", a="const char*", done={"type": "void (*)(void*)", **done}),
        function("tw_new_make", "tw_status*", "tw_graph*", "const tw_output* const*", "uint32_t", "tw_new_callback", "tw_new**"),
        struct("tw_new_pool", size="uint32_t", f="tw_new_callback", many="const tw_new_callback*"),
        function("tw_new_name", "const char*", "const tw_new*"),
        function("tw_new_nothing", "void"))
    assert status.returncode == 0, status.stderr
    text = out.read_text()
    assert "TW_NEW_A = -3\nTW_NEW_B = 4\n" in text and "TW_NEW = 7\n" in text and "TW_NEW_TEXT" not in text
    assert 'bind("tw_new_make", c_void_p, c_void_p, POINTER(POINTER(c_uint64)), c_uint32, tw_new_callback, POINTER(c_void_p))' in text
    assert 'bind("tw_new_name", c_char_p, c_void_p)' in text and 'bind("tw_new_nothing", None)' in text
    assert "tw_new_callback = CFUNCTYPE(None, c_void_p, c_void_p, c_uint64)" in text
    assert text.index("tw_new_callback =") < text.index("class tw_new_pool") < text.index('("f", tw_new_callback)')
    assert '("many", POINTER(tw_new_callback)),' in text
    assert '("a", c_char_p),\n        ("done", CFUNCTYPE(None, c_void_p)),' in text


def test_the_plugin_api_stays_outside():
    assert hasattr(_low, "tw_signature") and not hasattr(_low, "tw_device_def") and not hasattr(_low, "TW_EPOCH")


@pytest.mark.parametrize("declaration", [
    function("tw_f", "int"), function("tw_f", "void", "long double"), function("tw_f", "void", "tw_unknown*"), function("tw_f", "char"),
    struct("tw_s", a="int32_t[4]"), struct("tw_s", a="bool")])
def test_types_without_a_name_fail_with_what_has_them(tmp_path, declaration):
    done, out = generate(tmp_path, declaration)
    assert done.returncode != 0 and not out.exists()
    assert f"generate.py: {declaration['name']}: no ctypes name for" in done.stderr and "teach generate.py" in done.stderr
