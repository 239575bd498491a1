"""The generator of the low layer: it takes the headers as they are, and refuses what it does not know."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

from thalweg import _low

SOURCE = pathlib.Path(os.environ["THALWEG_SOURCE_DIR"])
HEADERS = SOURCE / "c_api/include/thalweg"


def generate(path, text):
    header = path / "extra.h"
    header.write_text(text)
    out = path / "_low.py"
    command = [sys.executable, "-B", SOURCE / "bindings/python/generate.py", *sorted(HEADERS.glob("*.h")), header, "--out", out]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done, out


def test_every_exported_function_is_there():
    exported = (SOURCE / "c_api/symbols.txt").read_text().split()
    assert len(exported) > 150 and [name for name in exported if not hasattr(_low, name)] == []


def test_constants_and_structs_have_their_values():
    text = (HEADERS / "types.h").read_text()
    for name, value in re.findall(r"^  (TW_\w+) = (\d+)", text, re.M):
        assert getattr(_low, name) == int(value)
    assert [name for name, *_ in _low.tw_run_options._fields_][:4] == ["size", "flags", "timeout_ns", "cancel"]
    assert _low.TW_VERSION_MINOR >= 1


def test_new_declarations_of_known_form_are_taken(tmp_path):
    done, out = generate(tmp_path, """
        #define TW_NEW 7
        enum { TW_NEW_A = -3, /* one */ TW_NEW_B = 4 };
        typedef struct tw_new tw_new;
        typedef void (*tw_new_callback)(void* user, const char* text, uint64_t bytes);
        typedef struct tw_new_options { uint32_t size, flags; const char *a, *b; void (*done)(void* user); } tw_new_options;
        TW_EXPORT tw_status* tw_new_make(tw_graph* graph, const tw_output* const* many, uint32_t n, tw_new_callback f, tw_new** out_new);
        typedef struct tw_new_pool { uint32_t size, flags; tw_new_callback f; } tw_new_pool;
        TW_EXPORT const char* tw_new_name(
            const tw_new* it);
        TW_EXPORT void tw_new_nothing(void);""")
    assert done.returncode == 0, done.stderr
    text = out.read_text()
    assert "TW_NEW_A = -3\nTW_NEW_B = 4\n" in text and "TW_NEW = 7\n" in text
    assert 'bind("tw_new_make", c_void_p, c_void_p, POINTER(POINTER(c_uint64)), c_uint32, tw_new_callback, POINTER(c_void_p))' in text
    assert 'bind("tw_new_name", c_char_p, c_void_p)' in text and 'bind("tw_new_nothing", None)' in text
    assert "tw_new_callback = CFUNCTYPE(None, c_void_p, c_void_p, c_uint64)" in text
    assert text.index("tw_new_callback =") < text.index("class tw_new_pool") < text.index('("f", tw_new_callback)')
    assert '("a", c_char_p),\n        ("b", c_char_p),\n        ("done", CFUNCTYPE(None, c_void_p)),' in text


@pytest.mark.parametrize("declaration", [
    "extern int tw_variable;", "TW_EXPORT int tw_f(void);", "TW_EXPORT void tw_f(long double x);", "#define TW_F(x) (x)",
    "#if defined(X)", "typedef union tw_u { int32_t a; } tw_u;", "static inline void f(void) {}", "enum { TW_A };",
    "enum { TW_A = 1 << 3 };", "typedef struct tw_s { int32_t bits : 3; } tw_s;", "typedef struct tw_s { int32_t a[4]; } tw_s;",
    "TW_EXPORT void tw_f(int32_t);", "TW_EXPORT void tw_f(tw_unknown* x);", "TW_EXPORT void tw_f(const char* x, ...);",
    "typedef struct tw_a tw_b;", "void tw_not_exported(void);", "TW_EXPORT void tw_f(int32_t x) __attribute__((noreturn));"])
def test_whatever_else_stands_there_fails_with_its_line(tmp_path, declaration):
    done, out = generate(tmp_path, "\n\n" + declaration + "\n")
    assert done.returncode != 0 and not out.exists()
    assert "extra.h:3" in done.stderr and "teach generate.py" in done.stderr
