"""Tests of `thalweg plugins index, search, add, remove, verify`: over a folder and over HTTP, signed and not, with plugins that a compiler
makes here. THALWEG_SOURCE_DIR has the headers."""
import functools
import hashlib
import http.server
import json
import os
import pathlib
import subprocess
import sys
import threading

from thalweg_command import run, run_both, run_tests

HEADERS = pathlib.Path(os.environ["THALWEG_SOURCE_DIR"]) / "c_api/include"
CODE = """
#include "thalweg/plugin/plugin.h"
static tw_status* run(const tw_frame* f) {
  for (uint64_t i = 0; i < f->in[0]->count; ++i) ((float*)f->out[0]->data)[i] = NUMBER;
  return NULL;
}
static tw_status* init(const tw_host* host, tw_registrar* r, void** out_instance) {
  static const tw_kernel_def kernel = {TW_SIZED(tw_kernel_def), TW_S("OP(float) @CPU"), .execute = run};
  const tw_op_def op = {TW_SIZED(tw_op_def), TW_S("OP(x: T[*s]) -> (y: T[*s]); T: {float}; no_gradient \\"constant\\"; doc \\"a number\\""), .gradient = NULL};
  (void)host, (void)out_instance;
  TW_TRY(tw_add_op(r, &op));
  return tw_add_kernel(r, &kernel);
}
TW_PLUGIN("org.example.OP", "VERSION", init)
"""


def compiled(folder, op, version, number=1, file=None):
    """Makes a plugin with one op, whose result is `number` everywhere."""
    source = folder / f"{op}.c"
    source.write_text(CODE.replace("NUMBER", str(number)).replace("OP", op).replace("VERSION", version))
    subprocess.run(["cc", "-std=c11", "-shared", "-fPIC", "-I", HEADERS, source, "-o", folder / (file or f"lib{op}.so")], check=True)
    source.unlink()


def made(folder):
    """Returns a folder of two plugins with an index, and an environment with an own folder for the user."""
    plugins = pathlib.Path(folder) / "published"
    plugins.mkdir()
    compiled(plugins, "Seven", "1.2", 7)
    compiled(plugins, "Eight", "2.0", 8)
    (plugins / "libSeven.md").write_text("# Seven\n")
    assert run("plugins", "index", plugins).startswith(f"{plugins}/index.json\n")
    return plugins, {"XDG_DATA_HOME": f"{folder}/data"}


def signed(folder, plugins, name="author"):
    """Signs the index. Returns the file of signers."""
    key = pathlib.Path(folder) / name
    if not key.exists():
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", key], check=True)
    (plugins / "index.json.sig").unlink(missing_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", "thalweg-index", plugins / "index.json"], check=True, capture_output=True)
    signers = pathlib.Path(folder) / f"{name}.signers"
    signers.write_text(f"{name}@example.org {key.with_suffix('.pub').read_text()}")
    return signers


def left(environment):
    """Returns the names of all files in the user's folder."""
    folder = pathlib.Path(environment["XDG_DATA_HOME"]) / "thalweg/plugins"
    return sorted(str(f.relative_to(folder)) for f in folder.rglob("*")) if folder.exists() else []


def listed(environment):
    """Returns the version of org.example.Seven that a runtime finds, or None."""
    found = [p for p in json.loads(run("plugins", "--json", environment=environment)) if p["id"] == "org.example.Seven"]
    assert all(p["state"] == "known" for p in found), found
    return found[0]["version"] if found else None


def changed_index(plugins, change):
    index = json.loads((plugins / "index.json").read_text())
    change(index["plugins"])
    (plugins / "index.json").write_text(json.dumps(index))


def test_a_plugin_is_found_added_used_and_removed(folder):
    plugins, environment = made(folder)
    at = ("--index", plugins, "--unsigned")
    found = json.loads(run("plugins", "search", "Seven", *at, "--json", environment=environment))
    assert [(p["id"], p["version"], p["added"], p["contents"]) for p in found] == [("org.example.Seven", "1.2", False, "1 ops, 1 kernels")], found
    assert run("plugins", "search", *at, environment=environment).count("org.example.") == 2
    assert "'none'" in run_both("plugins", "search", "none", *at, environment=environment, status=1)[1]
    run("plugins", "add", "org.example.Seven", *at, environment=environment)
    assert left(environment) == ["added.json", "libSeven.md", "libSeven.so"]
    assert listed(environment) == "1.2"
    assert "a number" in run("ops", "Seven", environment=environment)
    assert json.loads(run("plugins", "search", "Seven", *at, "--json", environment=environment))[0]["added"]
    assert "intact" in run("plugins", "verify", environment=environment)
    assert "org.example.Seven" in run("plugins", "remove", "org.example.Eight", environment=environment, status=1)
    run("plugins", "remove", "org.example.Seven", environment=environment)
    assert left(environment) == ["added.json"]
    assert listed(environment) is None


def test_a_signed_index_over_http(folder):
    plugins, environment = made(folder)
    signers = signed(folder, plugins)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=plugins)
    handler.func.log_message = lambda *_: None
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place = f"http://127.0.0.1:{server.server_port}/"
        environment |= {"THALWEG_PLUGIN_INDEX": place, "THALWEG_PLUGIN_SIGNERS": str(signers), "no_proxy": "127.0.0.1"}
        run("plugins", "add", "org.example.Seven=1.2", "org.example.Eight", environment=environment)
        assert "404" in run_both("plugins", "search", "--index", f"{place}none", environment=environment, status=1)[1]
        server.shutdown()
    assert left(environment) == ["added.json", "libEight.so", "libSeven.md", "libSeven.so"]
    said = run_both("plugins", "search", environment=environment, status=1)[1]
    assert f"cannot fetch '{place}index.json'" in said, said


def test_an_index_that_others_signed_or_changed_is_refused(folder):
    plugins, environment = made(folder)
    at = ("--index", plugins, "--signers")
    assert "--signers" in run("plugins", "add", "org.example.Seven", "--index", plugins, environment=environment, status=2)
    author = pathlib.Path(folder) / "none"
    assert "'index.json.sig'" in run("plugins", "add", "org.example.Seven", *at, author, environment=environment, status=1).replace(f"{plugins}/", "")
    author = signed(folder, plugins)
    assert "does not exist" in run("plugins", "add", "org.example.Seven", *at, author.with_name("none"), environment=environment, status=1)
    right = (plugins / "index.json.sig").read_bytes()
    other = signed(folder, plugins, "other")
    assert "nobody in" in run("plugins", "add", "org.example.Seven", *at, author, environment=environment, status=1)
    (plugins / "index.json.sig").write_bytes(right)
    run("plugins", "search", *at, author, environment=environment)
    assert "nobody in" in run("plugins", "search", *at, other, environment=environment, status=1)
    (plugins / "index.json").write_text((plugins / "index.json").read_text() + " ")
    assert "does not fit" in run("plugins", "add", "org.example.Seven", *at, author, environment=environment, status=1)
    (plugins / "index.json.sig").write_text("text")
    assert "nobody in" in run("plugins", "add", "org.example.Seven", *at, author, environment=environment, status=1)
    assert left(environment) == []


def test_a_changed_file_is_refused_and_an_older_one_is_not_taken_instead(folder):
    plugins, environment = made(folder)
    at = ("--index", plugins, "--unsigned")
    compiled(plugins, "Seven", "1.10", file="libSeven-1.10.so")
    run("plugins", "index", plugins)
    whole = (plugins / "libSeven-1.10.so").read_bytes()
    for bytes_ in (whole[:-1], whole[:-1] + b"x", whole + b"x", b""):
        (plugins / "libSeven-1.10.so").write_bytes(bytes_)
        said = run("plugins", "add", "org.example.Seven", *at, environment=environment, status=1)
        assert "digest" in said or "more than" in said, said
        assert left(environment) == []
    (plugins / "libSeven-1.10.so").unlink()
    assert "No such file" in run("plugins", "add", "org.example.Seven", *at, environment=environment, status=1)
    assert left(environment) == []


def test_the_newest_version_that_can_be_used_replaces_another(folder):
    plugins, environment = made(folder)
    at = ("--index", plugins, "--unsigned")
    run("plugins", "add", "org.example.Seven", *at, environment=environment)
    compiled(plugins, "Seven", "1.10", 70, file="libSeven-1.10.so")
    compiled(plugins, "Seven", "2.0", file="libSeven-2.0.so")
    run("plugins", "index", plugins)
    (plugins / "libSeven-2.0.so").write_bytes(b"no library")  # as of a newer ABI: intact, but not usable

    def change(index):
        for p in index:
            if p["version"] == "2.0" and "Seven" in p["id"]:
                p["files"][0] |= {"bytes": 10, "sha256": hashlib.sha256(b"no library").hexdigest()}
    changed_index(plugins, change)
    out, error = run_both("plugins", "add", "org.example.Seven", *at, environment=environment)
    assert "1.10 is in" in out and "2.0: " in error and "cannot be used" in error, (out, error)
    assert left(environment) == ["added.json", "libSeven-1.10.so"]
    assert listed(environment) == "1.10"
    run("plugins", "add", "org.example.Seven=1.2", *at, environment=environment)
    assert left(environment) == ["added.json", "libSeven.md", "libSeven.so"]
    assert "cannot be used" in run("plugins", "add", "org.example.Seven=2.0", *at, environment=environment, status=1)
    assert left(environment) == ["added.json", "libSeven.md", "libSeven.so"]
    assert "'org.example.Seven=3'" in run("plugins", "add", "org.example.Seven=3", *at, environment=environment, status=1)


def test_files_of_others_stay(folder):
    plugins, environment = made(folder)
    at = ("--index", plugins, "--unsigned")
    own = pathlib.Path(environment["XDG_DATA_HOME"]) / "thalweg/plugins"
    own.mkdir(parents=True)
    (own / "libSeven.md").write_text("mine")
    assert "move it away" in run("plugins", "add", "org.example.Seven", *at, environment=environment, status=1)
    assert (own / "libSeven.md").read_text() == "mine" and left(environment) == ["libSeven.md"]
    run("plugins", "add", "org.example.Seven", *at, "--to", f"{folder}/elsewhere", environment=environment)
    (pathlib.Path(folder) / "elsewhere/libSeven.so").write_bytes(b"x")
    assert "libSeven.so was changed" in run_both("plugins", "verify", "--to", f"{folder}/elsewhere", status=1)[0]
    (pathlib.Path(folder) / "elsewhere/libSeven.md").unlink()
    run("plugins", "remove", "org.example.Seven", "--to", f"{folder}/elsewhere")
    assert run("plugins", "verify", "--to", f"{folder}/elsewhere") == ""


def test_a_hostile_index_is_refused(folder):
    plugins, environment = made(folder)
    whole = (plugins / "index.json").read_text()
    changes = [lambda p: p[0]["files"][0].update(name="../libx.so"), lambda p: p[0]["files"][0].update(name="/lib/libx.so"),
               lambda p: p[0]["files"][0].update(name="libx.sh"), lambda p: p[0]["files"][0].update(sha256=""), lambda p: p[0].update(id=""),
               lambda p: p[0]["files"][0].update(bytes=-1), lambda p: p[0]["files"][0].update(bytes=1e30), lambda p: p[0].update(files=[]),
               lambda p: p[0].update(files=p[0]["files"] * 3), lambda p: p[0]["files"][0].update(bytes="text")]
    for change in changes:
        (plugins / "index.json").write_text(whole)
        changed_index(plugins, change)
        assert "malformed" in run("plugins", "add", "org.example.Eight", "--index", plugins, "--unsigned", environment=environment, status=1)
    for text in ("", "{", "[]", "{}", "null", "[" * 100000):
        (plugins / "index.json").write_text(text)
        assert run("plugins", "search", "--index", plugins, "--unsigned", environment=environment, status=1)
    (plugins / "index.json").write_text(whole)
    changed_index(plugins, lambda p: [q.update(id="org.example.Other") for q in p])
    assert "the index says" in run("plugins", "add", "org.example.Other", "--index", plugins, "--unsigned", environment=environment, status=1)
    assert left(environment) == []


def test_missing_programs_and_wrong_words_are_named(folder):
    plugins, environment = made(folder)
    signers = signed(folder, plugins)
    nothing = {**environment, "PATH": folder}
    assert "install curl" in run("plugins", "search", "--index", "http://127.0.0.1:1", "--unsigned", environment=nothing, status=1)
    assert "openssh-client" in run("plugins", "search", "--index", plugins, "--signers", signers, environment=nothing, status=1)
    assert "https://" in run("plugins", "search", "--index", "ftp://x", "--unsigned", environment=environment, status=1)
    assert "--index" in run("plugins", "search", "--unsigned", environment=environment, status=2)
    for words in (["add"], ["remove"], ["index"], ["verify", "x"], ["search", "a", "b"], ["check"], ["other"]):
        run("plugins", *words, "--index", plugins, "--unsigned", environment=environment, status=2)
    (pathlib.Path(folder) / "empty").mkdir()
    assert "libNAME.so" in run("plugins", "index", f"{folder}/empty", status=1)
    assert "none" in run("plugins", "index", f"{folder}/none", status=1)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
