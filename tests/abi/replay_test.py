"""Replays the archived plugins: this host runs all plugins of its own epoch and rejects those of earlier epochs with the documented
message."""
import json
import os
import pathlib
import platform
import re
import sys

import numpy as np
import thalweg as tw

SOURCE = pathlib.Path(os.environ["THALWEG_SOURCE_DIR"])
ARCHIVE = pathlib.Path(os.environ.get("THALWEG_TEST_ARCHIVE", SOURCE / "tests/abi/archive"))
MACROS = dict(re.findall(r"^#define (TW_EPOCH|TW_MINOR) (\d+)", (SOURCE / "c_api/include/thalweg/plugin/abi.h").read_text(), re.M))


def documented(library, epoch, entry):
    """Returns the error message that archive/README.md promises."""
    text = re.search(r"^ +(plugin 'ID' .*)$", (SOURCE / "tests/abi/archive/README.md").read_text(), re.M)[1]
    words = {"ID": entry["id"], "PATH": str(library), "OLD": str(epoch), "WHAT": entry["floor_adds"], "NEW": MACROS["TW_EPOCH"],
             "MINOR": MACROS["TW_MINOR"]}
    return re.sub(rf"\b({'|'.join(words)})\b", lambda m: words[m[1]], text)


def refuse(library, epoch, entry):
    want = documented(library, epoch, entry)
    runtime = tw.Runtime(threads=1, trust_plugin_folders=True)
    before = len(runtime.ops())
    try:
        runtime.load_plugin(library)
    except tw.errors.FailedPreconditionError as e:
        assert str(e) == want, f"it says\n{e}\nand should say\n{want}"
    else:
        raise AssertionError("it was loaded")
    assert len(runtime.ops(fresh=True)) == before
    with tw.Graph(runtime) as graph:
        assert tw.Session(graph, threads=1).run(graph.op("Neg", graph.constant(np.float32(1)))) == -1


def run(library, entry):
    runtime = tw.Runtime(threads=1, trust_plugin_folders=True)
    runtime.load_plugin(library)
    for number, one in enumerate(entry["runs"]):
        with tw.Graph(runtime) as graph:
            try:
                (files if "save" in one else steps)(graph, one, f"run {number}")
            except tw.Error as e:
                if "fails" not in one:
                    raise
                code, words = one["fails"]
                assert e.code_name == code and words in str(e), f"{one['op']}: {e.code_name}: {e}"
            else:
                assert "fails" not in one, f"{one['op']} did not fail"


def steps(graph, one, container):
    """Runs the op once, and once more for each entry of `then`."""
    feeds = {}
    y = built(graph, one, feeds)
    wanted = {"expect": y}
    if "gradient" in one:
        wanted["gradient"] = tw.gradients(y, list(feeds)[0])
    session = tw.Session(graph, threads=1, container=container, **one.get("session", {}))
    for name, value in session.run(wanted, feeds).items():
        equal(value, one[name], f"{one['op']}: {name}")
    for more in one.get("then", []):
        equal(session.run(y, feeds), more, f"{one['op']}: then")
    if "planned" in one:
        ops = [node["op"] for node in session.plan(y, {x: value.shape for x, value in feeds.items()})["nodes"]]
        assert one["planned"] in ops, f"{one['op']}: the plan has {ops}"


def built(graph, given, feeds):
    """Builds an op over its inputs, or a placeholder for a value that is fed."""
    if "op" in given:
        inputs = [built(graph, i, feeds) for i in given.get("inputs", [])]
        with tw.device(given.get("device", "")):
            return graph.op(given["op"], *inputs, **given.get("attributes", {}))
    value = tw.placeholder(given["type"], np.shape(given["values"]))
    feeds[value] = np.array(given["values"], given["type"])
    return value


def files(graph, one, container):
    """Saves and restores a checkpoint through the plugin's file system."""
    names = [graph.constant(one["save"]), graph.constant(["w"]), graph.constant([""])]
    save = graph.op("SaveV2", *names, [graph.constant(np.array(one["values"], "float32"))])
    session = tw.Session(graph, threads=1, container=container)
    session.run(save)
    equal(session.run(graph.op("RestoreV2", *names, dtypes=["float32"])[0]), one["values"], "what was saved")


def equal(found, expected, what):
    expected = np.array(expected)
    if expected.dtype.kind == "U":
        found = np.vectorize(lambda s: s.decode() if isinstance(s, bytes) else s)(found)
    np.testing.assert_array_equal(found, expected.astype(found.dtype), err_msg=what)


def replay(library):
    """Runs the plugin in a process of its own, because the plugin may crash it."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            entry = json.loads((library.parent / f"{library.stem.removeprefix('lib')}.json").read_text())
            epoch = int(library.parent.name.removeprefix("epoch"))
            if epoch < int(MACROS["TW_EPOCH"]):
                refuse(library, epoch, entry)
            else:
                run(library, entry)
            status = 0
        except Exception as e:  # pylint: disable=broad-exception-caught
            print(f"{type(e).__name__}: {e}", flush=True)
        os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main():
    if platform.machine() != "x86_64":
        print(f"skipped: the archive is for x86-64, and this is {platform.machine()}")
        sys.exit(77)
    found = {library: replay(library) for library in sorted(ARCHIVE.glob("epoch*/*.so"))}
    for library, status in found.items():
        print(f"{'FAILED' if status else 'passed'}  {library.relative_to(ARCHIVE)}{f': signal {-status}' if status < 0 else ''}")
    sys.exit(any(found.values()) or not found)


if __name__ == "__main__":
    main()
