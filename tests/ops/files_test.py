"""Tests of ReadFile, WriteFile and MatchingFiles: the contents of files at each time, and that imported graphs reach only allowed files."""
import os
import pathlib
import tempfile

import numpy as np

import cases
import thalweg
import tw


def operation(op, *values, **attrs):
    """Returns a graph with the op on constants, and the operation."""
    graph = tw.Graph()
    return graph.graph, graph.add(op, *[graph.constant(np.array(os.fsencode(v), object)) for v in values], name="op", **attrs)


def imported(op, *values):
    """Returns the same as an imported graph."""
    copy = thalweg.Graph.from_bytes(operation(op, *values)[0].to_bytes())
    return copy, copy.operation("op")


def run(graph, made, **options):
    outputs = made.outputs
    return [x.item() if x.ndim == 0 else x.tolist() for x in tw.Session(graph, **options).run(outputs, targets=[] if outputs else [made])]


def refused(what, op, *values, parts=(), **options):
    graph, made = imported(op, *values)
    cases.refuses(what, lambda: run(graph, made, **options), "op", *parts)


def allowed(what, wanted, op, *values, **options):
    try:
        got = run(*imported(op, *values), **options)
        cases.holds(what, got == wanted, got)
    except tw.Error as error:
        cases.holds(what, False, error)


def written_and_read(folder):
    """Within one graph, files are written and read in the order of control edges."""
    graph = tw.Graph()
    path, text = graph.placeholder(tw.string), graph.placeholder(tw.string)
    write = graph.add("WriteFile", path, text)
    read = graph.op("ReadFile", path, after=[write])
    session = graph.session()
    deep = "new/and/deep/x"
    for name, contents in ((deep, b"first\0"), (deep, b"second, longer" * 9999), (deep, b""), ("new/y", b"y")):
        feeds = {path: np.array(os.fsencode(folder / name), object), text: np.array(contents, object)}
        cases.holds(f"{len(contents)} bytes to {name}", session.run([read], feeds)[0].item() == contents)
        cases.holds(f"{name} holds them", (folder / name).read_bytes() == contents)
    left = sorted(str(p.relative_to(folder)) for p in (folder / "new").rglob("*"))
    cases.holds("no temporary files are left", left == ["new/and", "new/and/deep", "new/and/deep/x", "new/y"], left)


def read_anew(folder):
    """A file's contents and a folder's names are not folded as constants, although path and pattern are constants."""
    graph = tw.Graph()
    read, read_too = (graph.op("ReadFile", graph.constant(np.array(os.fsencode(folder / "x"), object))) for _ in range(2))
    names = graph.op("MatchingFiles", graph.constant(np.array(os.fsencode(folder / "x*"), object)))
    session = graph.session()
    for k in range(3):
        (folder / "x").write_bytes(b"%d" % k)
        (folder / f"x{k}").write_bytes(b"")
        a, b, found = session.run([read, read_too, names])
        cases.holds(f"step {k}", a.item() == b.item() == b"%d" % k and len(found) == k + 2, (a, b, found))


def patterns(folder):
    """Patterns with character sets, and with brackets that are not sets."""
    names = ("a", "b", "z", "-", "]", "!", "[", "\\", "ab", "a[", "B")
    for name in names:
        (folder / name).write_bytes(b"")
    found = {"[ab]": "a b", "[!a-z]": "- ] ! [ \\ B", "[^a-z]": "- ] ! [ \\ B", "[]]": "]", "[!]a]": "b z - ! [ \\ B", "[": "[", "a[": "a[",
             "[a": "", "[a-]": "a -", "[-a]": "a -", "[\\]]": "]", "[\\--b]": "- ] [ \\ a b B", "\\[": "[", "?[": "a[", "[z-a]": "",
             "\\a": "a", "a\\": "", "[a\\": "", "*b": "b ab", "*[ab]*": "a b ab a[", "[!": "", "nothing/*": ""}
    for pattern, wanted in found.items():
        got = sorted(os.fsdecode(path).rpartition("/")[2] for path in run(*operation("MatchingFiles", folder / pattern))[0])
        cases.holds(f"'{pattern}'", got == sorted(wanted.split()), got)


def confined(folder):
    inside, outside = folder / "inside", folder / "outside"
    (inside / "sub").mkdir(parents=True)
    outside.mkdir()
    (inside / "sub/x").write_bytes(b"mine")
    (outside / "secret").write_bytes(b"secret")
    os.symlink(outside / "secret", inside / "leak")
    os.symlink(outside, inside / "door")
    os.link(outside / "secret", inside / "twin")
    for op, *values in (("ReadFile", inside / "sub/x"), ("WriteFile", inside / "y", b"y"), ("MatchingFiles", inside / "*")):
        refused(f"{op} of an imported graph that was allowed nothing", op, *values, parts=[op, "touches files", "allow_files"])

    allowed("ReadFile by a relative path", [b"mine"], "ReadFile", "sub/x", allow_files=inside)
    allowed("ReadFile by an absolute path", [b"mine"], "ReadFile", inside / "sub/x", allow_files=inside)
    allowed("MatchingFiles by a relative pattern", [[b"sub/x"]], "MatchingFiles", "sub/*", allow_files=inside)
    allowed("MatchingFiles without a folder", [[b"./door", b"./leak", b"./sub", b"./twin"]], "MatchingFiles", "*", allow_files=inside)
    allowed("MatchingFiles through links", [[os.fsencode(inside / "sub/x")]], "MatchingFiles", inside / "*/*", allow_files=inside)
    allowed("MatchingFiles upwards behind a pattern", [[]], "MatchingFiles", inside / "s*/../../outside/*", allow_files=inside)
    allowed("WriteFile makes folders", [], "WriteFile", inside / "a/b/c", b"c", allow_files=inside)
    cases.holds("in its folder", (inside / "a/b/c").read_bytes() == b"c")
    allowed("WriteFile replaces a link", [], "WriteFile", "leak", b"mine", allow_files=inside)
    allowed("WriteFile replaces a file of two names", [], "WriteFile", "twin", b"mine", allow_files=inside)
    cases.holds("and not what it led to", (outside / "secret").read_bytes() == b"secret" and not (inside / "leak").is_symlink())
    os.unlink(inside / "leak")
    os.symlink(outside / "secret", inside / "leak")
    os.unlink(inside / "twin")
    os.link(outside / "secret", inside / "twin")

    before = sorted(outside.iterdir())
    for path in (outside / "secret", "../outside/secret", inside / "../outside/secret", "sub/../../outside/secret", "leak", "door/secret",
                 "twin", inside / "leak", "/etc/hostname", "mem://x", "file:///etc/hostname", f"{inside}x/../outside/secret"):
        refused(f"ReadFile of {path}", "ReadFile", path, allow_files=inside)
    for path in (outside / "new", "../new", inside / "../new", "door/new", "/nonexistent/new", "mem://new", "../outside/a/b/new",
                 "door/a/b/new"):
        refused(f"WriteFile to {path}", "WriteFile", path, b"x", allow_files=inside)
    for pattern in (outside / "*", "../*", "../outside/secret", "sub/../../*", "/*", "/etc/host*", "door/*", "mem://*",
                    folder / "*/secret", "/"):
        refused(f"MatchingFiles of {pattern}", "MatchingFiles", pattern, allow_files=inside)
    cases.holds("nothing was written outside", sorted(outside.iterdir()) == before and sorted(folder.iterdir()) == [inside, outside])


def other_places(folder):
    """Files in the file system of a plugin."""
    plugin = pathlib.Path(os.environ["THALWEG_BINARY_DIR"]) / "examples/plugins/libmem.so"
    if not plugin.exists():
        return print("without the example plugin 'mem'")
    thalweg.Runtime.default().load_plugin(plugin)
    for name in ("a/x", "a/y", "b/x"):
        run(*operation("WriteFile", f"mem://box/{name}", name))
    cases.holds("mem:// is read", run(*operation("ReadFile", "mem://box/a/y")) == [b"a/y"])
    cases.holds("mem:// is listed", run(*operation("MatchingFiles", "mem://box/*/x")) == [[b"mem://box/a/x", b"mem://box/b/x"]])
    allowed("an imported graph in a folder of mem://", [b"a/x"], "ReadFile", "x", allow_files="mem://box/a")
    allowed("and its folders", [], "WriteFile", "new/z", b"z", allow_files="mem://box/a")
    allowed("and its names", [[b"mem://box/a/x"]], "MatchingFiles", "mem://box/a/[x]", allow_files="mem://box/a")
    for op, *values in (("ReadFile", "mem://box/b/x"), ("ReadFile", "../b/x"), ("WriteFile", "mem://box/b/z", b""),
                        ("MatchingFiles", "mem://box/*"), ("MatchingFiles", "../b/*"), ("ReadFile", folder / "x")):
        refused(f"{op} {values} out of it", op, *values, allow_files="mem://box/a")


def too_large(folder):
    with open(folder / "huge", "wb") as file:
        file.truncate(1 << 30)
    limits = dict(allow_files=folder, memory_limit="64M")
    refused("a file that is larger than the session's memory", "ReadFile", "huge", parts=["memory_limit"], **limits)
    graph, made = operation("ReadFile", folder / "huge")
    cases.refuses("also in the program's own graph", lambda: run(graph, made, memory_limit="64M"), "ReadFile 'op'", "memory_limit")


for test in (written_and_read, read_anew, patterns, confined, other_places, too_large):
    with tempfile.TemporaryDirectory() as name:
        test(pathlib.Path(name))
cases.finish()
