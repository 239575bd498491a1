"""Each gate of the ABI fires: the test runs it on a copy of the tree with one fault, and the gate must name the fault."""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

import pytest

SOURCE = pathlib.Path(os.environ["THALWEG_SOURCE_DIR"])
ABI = SOURCE / "tools/abi"


def load(command):
    loader = importlib.machinery.SourceFileLoader(command, str(ABI / command))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(command, loader))
    loader.exec_module(module)
    return module


api, compilation = load("api"), load("compile")


def run(command, *arguments):
    done = subprocess.run([sys.executable, "-B", ABI / command, *map(str, arguments)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def change(path, old, new):
    text = path.read_text()
    assert old in text, f"{path} has no '{old}' any more; change this test"
    path.write_text(text.replace(old, new, 1))


def findings(root):
    return "\n".join(api.check(api.Tree(root)))


@pytest.fixture(name="headers")
def copied_headers(tmp_path):
    """Copies the part of the tree that the layout gate needs."""
    for folder in ("c_api/include", "tests/abi/golden"):
        shutil.copytree(SOURCE / folder, tmp_path / folder)
    shutil.copy(SOURCE / "c_api/CHANGELOG.md", tmp_path / "c_api")
    return tmp_path


@pytest.fixture(name="tree")
def copied_tree(headers):
    shutil.copytree(SOURCE / "c_api/reference", headers / "c_api/reference")
    shutil.copy(SOURCE / "c_api/api.json", headers / "c_api")
    return headers


# ---- api check: the golden layout ----

HEADER_CHANGES = {
    "a moved field": ("step_stats.h", "  uint64_t count;\n  int64_t busy_ns; /* sums over its nodes */",
                      "  int64_t busy_ns; /* sums over its nodes */\n  uint64_t count;",
                      "tw_step_op.count was uint64_t at 16, 8 bytes and is uint64_t at 24, 8 bytes; binaries rely on it"),
    "a field in the middle": ("step_stats.h", "  uint64_t count;\n", "  uint64_t more;\n  uint64_t count;\n",
                              "tw_step_op.count was uint64_t at 16"),
    "a field of another type": ("step_stats.h", "  uint64_t count;\n", "  double count;\n",
                                "tw_step_op.count was uint64_t at 16, 8 bytes and is double"),
    "a removed field": ("step_stats.h", "  uint64_t count;\n", "", "tw_step_op.count is gone"),
    "a removed function": ("tensor.h", "TW_EXPORT void tw_tensor_retain(tw_tensor* tensor);", "", "tw_tensor_retain is gone"),
    "another result": ("tensor.h", "TW_EXPORT uint32_t tw_tensor_rank(", "TW_EXPORT uint64_t tw_tensor_rank(",
                       "tw_tensor_rank was uint32_t (const tw_tensor*) and is uint64_t (const tw_tensor*)"),
    "one more parameter": ("buffer.h", "tw_buffer_bytes(const tw_buffer* buffer)",
                           "tw_buffer_bytes(const tw_buffer* buffer, uint32_t unit)",
                           "tw_buffer_bytes was uint64_t (const tw_buffer*)"),
    "another number": ("types.h", "TW_ABORTED = 10,", "TW_ABORTED = 17,", "TW_ABORTED was 10 and is 17"),
    "a removed number": ("types.h", "  TW_UINT2 = 32, /* one element a byte */\n", "", "TW_UINT2 is gone"),
    "another callback": ("thread_pool.h", "typedef void (*tw_thread_work)(void* arg);",
                         "typedef void (*tw_thread_work)(void* arg, uint32_t i);",
                         "tw_thread_work was void (void*) and is void (void*, uint32_t)"),
    "another alias": ("graph.h", "typedef uint64_t tw_output;", "typedef uint32_t tw_output;", "tw_output was uint64_t and is uint32_t"),
    "another mark": ("plugin/resource.h", "TW_C tw_status* (*save)", "TW_R tw_status* (*save)",
                     "tw_resource_def.save was tw_status* (*)(const tw_host*, const void*, tw_sink*) at 48, 8 bytes, TW_C and is"),
    "an entry with another parameter": ("plugin/abi.h", "(*put)(struct tw_sink* s, const void* bytes, uint64_t len)",
                                        "(*put)(struct tw_sink* s, const void* bytes)", "tw_sink.put was"),
    "a grown value": ("types.h", "  uint64_t size;\n} tw_string;", "  uint64_t size;\n  uint64_t hash;\n} tw_string;",
                      "tw_string.hash is new, but tw_string is a value, which is frozen"),
    "another minor": ("plugin/abi.h", "#define TW_MINOR 1", "#define TW_MINOR 2", "TW_MINOR is 2 and was 1; declare it"),
    "a lower minor": ("plugin/abi.h", "#define TW_MINOR 1", "#define TW_MINOR 0", "TW_MINOR was 1 and is 0; binaries rely on it"),
    "a lower minor of a role": ("plugin/role.h", "TW_FILE_SYSTEM_MINOR = 1", "TW_FILE_SYSTEM_MINOR = 0",
                                "TW_FILE_SYSTEM_MINOR was 1 and is 0; binaries rely on it"),
    "a lower minor of the role collective": ("plugin/role.h", "TW_COLLECTIVE_MINOR = 1,", "TW_COLLECTIVE_MINOR = 0,",
                                  "TW_COLLECTIVE_MINOR was 1 and is 0; binaries rely on it"),
    "another major of a role": ("plugin/role.h", "TW_OP_MAJOR = 1", "TW_OP_MAJOR = 2", "TW_OP_MAJOR was 1 and is 2; binaries rely on it"),
    "an undeclared function": ("buffer.h", "#ifdef __cplusplus\n}",
                               "/* Nothing. */\nTW_EXPORT void tw_buffer_ping(void);\n\n#ifdef __cplusplus\n}",
                               "tw_buffer_ping is new; declare it"),
    "an undeclared field": ("plugin/compiler.h", "\n} tw_claims;", "\n  uint64_t more;\n} tw_claims;",
                            "tw_claims.more is new without a minor"),
    "a field of a minor that is there": ("plugin/compiler.h", "\n} tw_claims;", "\n  uint64_t TW_SINCE_1(more);\n} tw_claims;",
                                         "tw_claims.more is new and marked as of minor 1, but TW_MINOR was 1 and is 1"),
    "a field without its minor": ("plugin/kernel.h", "(*TW_SINCE_1(count))", "(*count)", "tw_run_api.count was"),
}


@pytest.mark.parametrize("what", HEADER_CHANGES)
def test_the_golden_layout_sees(headers, what):
    header, old, new, named = HEADER_CHANGES[what]
    change(headers / "c_api/include/thalweg" / header, old, new)
    assert f"golden layout: {named}" in findings(headers)


def test_the_command_fails_with_its_findings(tree):
    assert run("api", "write", "--add", "--root", tree) == (0, "") and run("api", "check", "--root", tree) == (0, "")
    header, old, new, named = HEADER_CHANGES["a moved field"]
    change(tree / "c_api/include/thalweg" / header, old, new)
    status, said = run("api", "check", "--root", tree)
    assert status == 1 and named in said


# ---- api check: required facts of headers, and types that may cross ----

UNSAID = {
    "a missing comment": ("checkpoint.h", "/* The tensors of the checkpoint, sorted by name. Names and dims live until it is closed. */\n", "\n",
                          "tw_checkpoint_count: nothing says what it does"),
    "missing threads": ("buffer.h", " * Threads: any. Everything", " * Everything",
                        "tw_buffer_create: nothing says which threads may call it"),
    "a missing since": ("buffer.h", "Everything here: since 0.1. */", "*/", "tw_buffer_create: nothing says since when it is there"),
    "a missing owner": ("tensor.h", "The caller owns *out_text.", "The text is new.",
                        "tw_tensor_text: nothing says who owns out_text"),
    "a missing mark": ("plugin/abi.h", "TW_R tw_status* (*put)", "tw_status* (*put)", "tw_sink.put: no mark"),
    "a hole": ("option.h", "  uint32_t separator;\n  uint32_t reserved;\n", "  uint32_t separator;\n",
               "tw_option: 4 bytes of padding at the end"),
    "a stale page": ("buffer.h", "Returns the bytes, followed by", "Returns all bytes, followed by",
                     "c_api/reference/buffer.md is not what the headers say"),
    "a stale api.json": ("buffer.h", "Returns the bytes, followed by", "Returns all bytes, followed by",
                         "c_api/api.json is not what the headers say"),
}


@pytest.mark.parametrize("what", UNSAID)
def test_the_tree_is_told_of(tree, what):
    header, old, new, named = UNSAID[what]
    change(tree / "c_api/include/thalweg" / header, old, new)
    assert named in findings(tree)


def test_pages_of_no_header_are_found(tree):
    (tree / "c_api/reference/extra.md").write_text("old")
    assert "c_api/reference/extra.md belongs to no header" in findings(tree)


@pytest.mark.parametrize("declaration, named", [
    ("extern int tw_variable;", "a declaration of kind VarDecl"),
    ("TW_EXPORT int tw_f(void);", "the type 'int', which may not cross"),
    ("TW_EXPORT void tw_f(long double x);", "the type 'long double', which has no fixed width"),
    ("TW_EXPORT void tw_f(_Bool x);", "the type '_Bool', which may not cross"),
    ("typedef union tw_u { int32_t a; } tw_u;", "a declaration of kind UnionDecl"),
    ("static inline void tw_f(void) {}", "functions of the application API are exported"),
    ("void tw_not_exported(void);", "functions of the application API are exported"),
    ("typedef struct tw_s { int32_t bits : 3; } tw_s;", "bits: a bit-field"),
    ("typedef struct tw_s { int32_t a[4]; } tw_s;", "the type 'int32_t[4]', which has no fixed width"),
    ("typedef struct tw_s { uint8_t a; uint32_t b; } tw_s;", "3 bytes of padding before b"),
    ("typedef struct tw_s { uint32_t size, flags; } tw_s;\nTW_EXPORT void tw_f(tw_s s);", "'tw_s' by value"),
    ("TW_EXPORT void tw_f(int32_t);", "a parameter without a name"),
    ("TW_EXPORT void tw_f(FILE* x);", "unknown type name 'FILE'"),
    ("TW_EXPORT void tw_f(const char* x, ...);", "a variable number of arguments"),
    ("enum tw_e { TW_E = 1 };\nTW_EXPORT void tw_f(enum tw_e e);", "the type 'tw_e', which may not cross"),
    ("typedef struct tw_a tw_b;", "two names of one struct"),
    ("#ifdef WIDE\n#endif", "may not depend on a macro")])
def test_what_may_not_cross_is_refused_with_its_line(tmp_path, declaration, named):
    thalweg = tmp_path / "c_api/include/thalweg"
    thalweg.mkdir(parents=True)
    (thalweg / "extra.h").write_text('#include <stdint.h>\n#define TW_EXPORT __attribute__((visibility("default")))\n' + declaration + "\n")
    try:
        headers = api.parser.read(thalweg.parent)
        said = "\n".join(api.rules.findings(headers))
    except ValueError as e:
        said = str(e)
    assert named in said and re.search(r"extra\.h:[34]\b", said), said


# ---- api write ----


def test_additions_are_declared_and_breaks_are_blessed(tree):
    buffer = tree / "c_api/include/thalweg/buffer.h"
    change(buffer, *HEADER_CHANGES["an undeclared function"][1:3])
    assert api.write(api.Tree(tree), add=False, bless=False) == [] and "tw_buffer_ping is new" in findings(tree)
    assert api.write(api.Tree(tree), add=True, bless=False) == [] and findings(tree) == ""
    change(buffer, "TW_EXPORT void tw_buffer_ping(void);", "TW_EXPORT uint32_t tw_buffer_ping(void);")
    assert "--add takes what is new only" in "\n".join(api.write(api.Tree(tree), add=True, bless=False))
    assert api.write(api.Tree(tree), add=False, bless=True) == [] and findings(tree) == ""


def test_nothing_is_blessed_that_is_promised(tree):
    change(tree / "c_api/include/thalweg/plugin/abi.h", *HEADER_CHANGES["an entry with another parameter"][1:3])
    archive = tree / f"tests/abi/archive/epoch{epoch_of(tree)}"
    archive.mkdir(parents=True)
    (archive / "libold.so").touch()
    assert "are archived: raise TW_EPOCH" in "\n".join(api.write(api.Tree(tree), add=False, bless=True))
    epoch = epoch_of(tree)
    change(tree / "c_api/include/thalweg/plugin/abi.h", f"#define TW_EPOCH {epoch}", f"#define TW_EPOCH {epoch + 1}")
    change(tree / "c_api/CHANGELOG.md", f"## Plugin epoch {epoch}\n", f"## Plugin epoch {epoch + 1}\n")
    assert api.write(api.Tree(tree), add=False, bless=True) == []
    change(tree / "c_api/include/thalweg/tensor.h", *HEADER_CHANGES["a removed function"][1:3])
    change(tree / "tests/abi/golden/application.json", '"TW_VERSION_MAJOR": 0', '"TW_VERSION_MAJOR": 1')
    assert "tw_tensor_retain is gone; version 1 keeps it" in "\n".join(api.write(api.Tree(tree), add=False, bless=True))


# ---- minors of the plugin ABI ----

# A minor of the role compiler, and one of all roles: a mark with its macro, the number, the section of the log.
ROLE_MINOR = ('#include "thalweg/plugin/tensor.h"\n', """#include "thalweg/plugin/tensor.h"
#ifndef THALWEG_COMPILER_TARGET
#ifdef THALWEG_NEWEST
#define THALWEG_COMPILER_TARGET 1
#else
#define THALWEG_COMPILER_TARGET 0
#endif
#endif
#if THALWEG_COMPILER_TARGET < 1
#define TW_COMPILER_SINCE_1(name) name##_needs_THALWEG_COMPILER_TARGET_1
#else
#define TW_COMPILER_SINCE_1(name) name
#endif
""")


def raised(tree, log="### Role compiler 1.1"):
    """Raises the minor of the role compiler in a copy of the tree."""
    change(tree / "c_api/include/thalweg/plugin/role.h", "TW_COMPILER_MINOR = 0", "TW_COMPILER_MINOR = 1")
    if log:
        change(tree / "c_api/CHANGELOG.md", "### Role compiler 1.0\n", f"{log}\nMore.\n\n### Role compiler 1.0\n")


def append(tree, field):
    plugin = tree / "c_api/include/thalweg/plugin"
    change(plugin / "compiler.h", *ROLE_MINOR)
    change(plugin / "compiler.h", "\n} tw_claims;", f"\n  {field}\n}} tw_claims;")


def added(tree):
    return "\n".join(api.write(api.Tree(tree), add=True, bless=False))


def test_a_raised_minor_may_append(tree):
    raised(tree)
    append(tree, "uint64_t TW_COMPILER_SINCE_1(more); /* more of them */")
    assert "tw_claims.more is new, uint64_t at" in findings(tree)
    assert added(tree) == "" and findings(tree) == ""
    promise = (tree / "tests/abi/golden/plugin.json").read_text()
    assert '"TW_COMPILER_MINOR": 1' in promise and '"uint64_t", "", "compiler minor 1"]' in promise
    change(tree / "c_api/include/thalweg/plugin/compiler.h", "  uint64_t TW_COMPILER_SINCE_1(more);", "  uint32_t TW_COMPILER_SINCE_1(more), less;")
    assert "tw_claims.more was uint64_t" in added(tree)


@pytest.mark.parametrize("field, named", [
    ("uint64_t more;", "tw_claims.more is new without a minor"),
    ("uint64_t more; /* not TW_COMPILER_SINCE_1(more) */", "tw_claims.more is new without a minor"),
    ("uint64_t TW_COMPILER_SINCE_1(more);", "tw_claims.more is new and marked as of compiler minor 1, but TW_COMPILER_MINOR was 0 and is 0")])
def test_an_append_without_a_raised_minor_is_refused(tree, field, named):
    append(tree, field)
    assert named in added(tree) and named in findings(tree)


def test_a_raised_minor_does_not_excuse_what_it_does_not_mark(tree):
    raised(tree)
    append(tree, "uint64_t more;")
    assert "tw_claims.more is new without a minor" in added(tree)
    assert '"TW_COMPILER_MINOR": 0' in (tree / "tests/abi/golden/plugin.json").read_text()


def test_a_minor_may_bring_words_alone_and_the_log_must_say_them(tree):
    raised(tree, log="")
    assert added(tree) == "c_api/CHANGELOG.md: 'Plugin epoch 3' has no section '### Role compiler 1.1'; say what the minor adds"
    change(tree / "c_api/CHANGELOG.md", "### Role compiler 1.0\n", "### Role compiler 1.1\nA word.\n\n### Role compiler 1.0\n")
    assert added(tree) == "" and findings(tree) == ""


def test_a_target_hides_names_and_no_bytes(tmp_path):
    (tmp_path / "use.c").write_text('''#include "thalweg/plugin/plugin.h"
extern char size[sizeof(tw_run_api) == 80 && sizeof(tw_file_system_def) == 160 ? 1 : -1];
#ifdef USE
void use(const tw_frame* f, tw_file_system_def* d) {
  if (TW_HAS(f->host->run, span)) f->host->run->span(f, NULL);
  d->identify = NULL;
}
#endif
''')
    (tmp_path / "use.cc").write_text((tmp_path / "use.c").read_text())
    for compiler in compilation.compilers():
        for file, standard in (("use.c", "-std=c11"), ("use.cc", "-std=c++17")):
            def said(*flags, name=file, std=standard, by=compiler):
                command = [by, std, "-fsyntax-only", "-I", SOURCE / "c_api/include", *flags, tmp_path / name]
                return subprocess.run(command, capture_output=True, text=True, check=False).stderr

            assert said() == ""
            hidden = said("-DUSE")
            assert "span" in hidden and "identify" in hidden and "error" in hidden, hidden
            assert "identify" in said("-DUSE", "-DTHALWEG_TARGET_MINOR=1") and "span" in said("-DUSE", "-DTHALWEG_FILE_SYSTEM_TARGET=1")
            assert said("-DUSE", "-DTHALWEG_TARGET_MINOR=1", "-DTHALWEG_FILE_SYSTEM_TARGET=1") == ""
            assert said("-DUSE", "-DTHALWEG_NEWEST") == ""


def test_records_that_grew_have_their_former_sizes():
    """The runtime cuts definitions, and the kit the host's records, where a minor ended."""
    written = "".join((SOURCE / path).read_text() for path in ("framework/registry/role.h", "tools/conformance/played_host.h"))
    structs = json.loads((SOURCE / "tests/abi/golden/plugin.json").read_text())["structs"]
    grown = {(name, field[5], field[0]) for name, struct in structs.items() for field in struct["fields"] if len(field) > 5}
    assert {name for name, _, _ in grown} >= {"tw_run_api", "tw_file_system_def"}
    for name, since in {(name, since) for name, since, _ in grown}:
        first = next(f for n, s, f in sorted(grown, key=lambda g: place(structs[g[0]], g[2])) if (n, s) == (name, since))
        assert f"offsetof({name}, {first})" in written, f"no former size of {name} before {since}: see DefinitionBytes and SizeAt"


def place(struct, field):
    return next(f[1] for f in struct["fields"] if f[0] == field)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the archive is for x86-64")
def test_what_is_archived_stays(headers):
    for file in ("plugins/examples/twice.c", "tests/abi/archive/plugins/twice.json"):
        (headers / file).parent.mkdir(parents=True)
        shutil.copy(SOURCE / file, headers / file)
    library = headers / f"tests/abi/archive/epoch{epoch_of(headers)}/libtwice.so"
    status, said = run("archive", "twice", "--root", headers)
    assert status == 0 and library.exists() and '"floor_adds"' in (library.parent / "twice.json").read_text(), said
    assert run("exports", library) == (0, "") and str(headers).encode() not in library.read_bytes()
    status, said = run("archive", "twice", "--root", headers)
    assert status == 1 and "libtwice.so is there already; what is archived stays" in said
    assert run("archive", "twice", "--replace", "--root", headers)[0] == 0
    assert run("archive", "nothing", "--root", headers) == (1, "archive: no tests/abi/archive/plugins/nothing.json; write it first\n")


def epoch_of(tree):
    return int(re.search(r"#define TW_EPOCH (\d+)", (tree / "c_api/include/thalweg/plugin/abi.h").read_text())[1])


def test_a_machine_without_libclang_fails(tmp_path):
    shutil.copytree(ABI, tmp_path / "abi")
    change(tmp_path / "abi/libclang.py", "VERSIONS = (15,", "VERSIONS = (1,) or (15,")
    command = [sys.executable, "-B", tmp_path / "abi/api", "check", "--root", SOURCE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "tools/setup installs clang-15" in done.stderr


# ---- compile ----


@pytest.mark.parametrize("text, named", [
    ("uint32_t tw_f(void);", "unknown type name"),
    ("#include <stdint.h>\ntypedef struct tw_s { uint8_t a; uint32_t b; } tw_s;", "padd"),
    ("#include <stdint.h>\nuint32_t tw_f(uint32_t class);", "C++17"),
    ("typedef struct tw_s tw_s;\ntypedef struct tw_s tw_s;", "C99"),
    ("#include <stdint.h>\nstatic inline uint32_t tw_f(uint32_t unused) { return 1; }", "unused"),
    ("enum { TW_TWICE = 1 };", "TW_TWICE"),
    ('#include "thalweg/missing.h"', "missing.h")])
def test_headers_that_do_not_compile_alone_are_found(tmp_path, text, named):
    (tmp_path / "thalweg").mkdir()
    (tmp_path / "thalweg/broken.h").write_text(text + "\n")
    status, said = run("compile", tmp_path)
    assert status == 1 and named in said, said


def test_compilers_that_lay_out_otherwise_are_found(tree, tmp_path):
    for old, new in (('"tw_string": {"sort": "value", "size": 16', '"tw_string": {"sort": "value", "size": 24'),
                     ('"tw_tensor_rank": "uint32_t (const tw_tensor*)"', '"tw_tensor_rank": "uint32_t (tw_tensor*, uint32_t)"')):
        change(tree / "tests/abi/golden/application.json", old, new)
    _, asserts = run("api", "asserts", "--root", tree)
    (tmp_path / "asserts.c").write_text(asserts)
    found = [compilation.of_asserts(c, language, SOURCE / "c_api/include", tmp_path / "asserts.c")
             for c in compilation.compilers() for language in compilation.ASSERTING]
    assert len(found) == 4 and all("sizeof(tw_string) == 24" in said and "tw_tensor_rank" in said for said in found), found


def test_assertions_cover_every_header_of_the_folder(headers):
    """A header that no other includes is asserted as soon as its names are promised."""
    alone = headers / "c_api/include/thalweg/plugin/alone.h"
    alone.write_text("/* A record. */\n#ifndef ALONE_H\n#define ALONE_H\n#include <stdint.h>\ntypedef struct tw_alone {\n  uint32_t a;\n} tw_alone;\n#endif\n")
    _, said = run("api", "asserts", "--root", headers)
    included = re.findall(r'#include "(.*)"', said)
    assert sorted(included) == sorted(str(p.relative_to(headers / "c_api/include")) for p in (headers / "c_api/include").rglob("*.h"))
    assert "thalweg/plugin/alone.h" in included


def test_layouts_that_differ_on_other_systems_are_found(headers, tmp_path):
    """`unsigned long` is what this system calls uint64_t, but has four bytes on Windows, and is another type on macOS."""
    (tmp_path / "asserts.c").write_text(run("api", "asserts")[1])
    clang = list(compilation.compilers())[-1]

    def found():
        include = headers / "c_api/include"
        return {t for t in compilation.TARGETS if compilation.of_target(clang, t, include, {}, tmp_path / "asserts.c")}

    assert found() == set()
    change(headers / "c_api/include/thalweg/types.h", "  uint64_t size;\n} tw_string;", "  unsigned long size;\n} tw_string;")
    assert found() == set(compilation.TARGETS) - {"aarch64-linux-gnu"}


def test_a_machine_without_a_compiler_fails(tmp_path, monkeypatch):
    (tmp_path / "thalweg").mkdir()
    (tmp_path / "thalweg/fine.h").touch()
    assert run("compile", tmp_path)[0] == 0
    monkeypatch.setenv("PATH", "/nowhere")
    assert run("compile", tmp_path) == (1, "compile: no gcc on this machine; tools/setup installs gcc\n")
    assert run("compile", tmp_path / "empty")[0] == 1


# ---- exports ----


def built(path, code, *flags):
    path.with_suffix(".c").write_text(code)
    subprocess.run(["cc", "-shared", "-fPIC", *flags, "-o", path, path.with_suffix(".c")], check=True)
    return path


@pytest.mark.parametrize("code, named", [
    ("void tw_plugin_query_v0(void) {} int helper;", "exports helper"),
    ("void other(void) {}", "does not export tw_plugin_query_v0"),
    ("void tw_tensor_release(void*); void tw_plugin_query_v0(void) { tw_tensor_release(0); }", "imports tw_tensor_release"),
    ("extern int thalweg_thing __attribute__((weak)); void tw_plugin_query_v0(void) { thalweg_thing = 1; }", "imports thalweg_thing")])
def test_plugins_that_export_or_import_too_much_are_found(tmp_path, code, named):
    good = built(tmp_path / "good.so", "void tw_plugin_query_v0(void) {}")
    assert run("exports", good) == (0, "")
    status, said = run("exports", good, built(tmp_path / "bad.so", code))
    assert status == 1 and f"bad.so: {named}" in said and "good.so" not in said


def test_what_is_no_library_fails(tmp_path, monkeypatch):
    (tmp_path / "text.so").write_text("text")
    for path in (tmp_path / "text.so", tmp_path / "missing.so"):
        status, said = run("exports", path)
        assert status == 1 and said.startswith("exports: ") and path.name in said and said.count("\n") == 1
    monkeypatch.setenv("PATH", "/nowhere")
    assert run("exports", tmp_path / "text.so") == (1, "exports: no nm on this machine; it comes with the compiler\n")


def test_arrays_name_the_parameter_that_counts_them():
    described = json.loads((SOURCE / "c_api/api.json").read_text())
    functions = {f["name"]: f for h in described["headers"] for d in h["declarations"] for f in [d, *d.get("fields", [])] if "parameters" in f}
    counts = {name: {p["name"]: p["count"] for p in f["parameters"] if "count" in p} for name, f in functions.items()}
    assert counts["tw_session_create"] == {"options": "n_options"}
    assert counts["tw_tensor_create"] == {"dims": "rank"}
    assert counts["tw_buffer_create"] == {"data": "bytes"}
    assert counts["tw_tensor_set_string"] == {"data": "bytes"} and counts["tw_op_set_strings"] == {"values": "n"}
    assert counts["tw_tape_gradient"] == {"targets": "n_targets", "dys": "n_targets", "sources": "n_sources"}
    assert counts["tw_clip_by_global_norm"] == {"gradients": "n"}
    assert counts["tw_train_adam"] == {"variables": "n", "gradients": "n"}
    assert not counts["tw_tensor_dim"] and not counts["tw_graph_operation"]  # a number that counts nothing
    for f in functions.values():  # each n_X counts something
        names = [p["name"] for p in f["parameters"]]
        for n in names:
            if n.startswith("n_") and n[2:] in names:
                assert counts[f["name"]].get(n[2:]) == n, f"{f['name']}: {n}"


@pytest.fixture(name="small")
def small_tree(tmp_path):
    (tmp_path / "c_api").mkdir()
    (tmp_path / "c_api/thalweg.map").write_text("THALWEG_0.1 {\n  global: tw_*;\n  local: *;\n};\n")
    (tmp_path / "c_api/symbols.txt").write_text("tw_a\ntw_b\n")
    functions = ", ".join(f'{{"kind": "function", "name": "{n}"}}' for n in ("tw_a", "tw_b"))
    (tmp_path / "c_api/api.json").write_text(f'{{"headers": [{{"surface": "application", "declarations": [{functions}]}}]}}')
    return tmp_path


@pytest.mark.parametrize("code, script, named", [
    ("void tw_a(void) {} void tw_b(void) {}", None, ""),
    ("void tw_a(void) {}", None, "in c_api/symbols.txt but not exported: tw_b"),
    ("void tw_a(void) {} void tw_b(void) {} void tw_c(void) {}", None, "exported but not in c_api/symbols.txt: tw_c"),
    ("void tw_a(void) {} void tw_b(void) {} void helper(void) {}", "THALWEG_0.1 { global: *; };",
     "exported but not in c_api/symbols.txt: helper"),
    ("void tw_a(void) {} void tw_b(void) {}", "OTHER { global: tw_b; };\nTHALWEG_0.1 { global: tw_a; };",
     "exported outside the version node THALWEG_0.1: tw_b@@OTHER")])
def test_libraries_that_export_otherwise_are_found(small, code, script, named):
    versions = small / "script.map"
    versions.write_text(script or (small / "c_api/thalweg.map").read_text())
    library = built(small / "libthalweg.so", code, f"-Wl,--version-script={versions}")
    status, said = run("exports", "--root", small, "--library", library)
    assert (status, named in said) == (1 if named else 0, True), said


# ---- words ----


@pytest.mark.parametrize("path, line, good", [
    ("framework/plan/pass.cc", 'if (kind == "GPU") return;', False), ("ops/math/add.cc", "// as with Cuda", False),
    ("c_api/device.cc", "int opencl_thing;", False), ("c_api/include/thalweg/device.h", "/* OPENCL, ... */", True),
    ("ops/nn/conv2d.cc", '"use_cudnn_on_gpu: bool = true;"', True), ("framework/README.md", "such as a gpu", False)])
def test_names_of_devices_in_the_core_are_found(tmp_path, path, line, good):
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text("\n" + line + "\n")
    (tmp_path / "ops").mkdir(exist_ok=True)
    (tmp_path / "ops/fine.cc").touch()
    status, said = run("words", "--root", tmp_path)
    assert (status, said) == ((0, "") if good else (1, f"{path}:2: names a device: {line}\n"))


def test_a_tree_without_sources_fails(tmp_path):
    assert run("words", "--root", tmp_path)[0] == 1


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "--basetemp", folder + "/pytest", *sys.argv[1:], __file__]))
