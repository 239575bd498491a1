"""Tests of PrintV2: the destination and the order of its lines, and that imported graphs write only allowed files."""
import contextlib
import logging
import os
import pathlib
import sys
import tempfile

import numpy as np

import cases
import thalweg
import tw


@contextlib.contextmanager
def captured(descriptor):
    """Captures the output of the process to a descriptor; after the block the list has it as its one element."""
    found, before = [], os.dup(descriptor)
    with tempfile.TemporaryFile() as file:
        sys.stdout.flush()
        os.dup2(file.fileno(), descriptor)
        try:
            yield found
        finally:
            os.dup2(before, descriptor)
            os.close(before)
            file.seek(0)
            found.append(file.read())


def printing(text, **attrs):
    """Returns a graph that prints a text, and its operation."""
    graph = tw.Graph()
    return graph, graph.add("PrintV2", graph.constant(np.array(text, object)), name="op", **attrs)


def prints(text, **attrs):
    graph, op = printing(text, **attrs)
    graph.session().run([], targets=[op])


for descriptor, attrs, wanted in ((2, {}, b"to be seen\n"), (2, dict(output_stream="stderr", end=""), b"to be seen"),
                                  (1, dict(output_stream="stdout", end="!"), b"to be seen!")):
    with captured(descriptor) as found:
        prints(b"to be seen", **attrs)
    cases.holds(f"a line with {attrs}", found == [wanted], found)
before = os.dup(1)
for text in (b"too much", b"x" * 99999):
    with open("/dev/full", "w") as full:
        os.dup2(full.fileno(), 1)
        try:
            cases.refuses(f"{len(text)} bytes to a full disk", lambda: prints(text, output_stream="stdout"), "PrintV2 'op'", "stdout")
        finally:
            os.dup2(before, 1)
os.close(before)
with captured(1) as found:
    prints(b"heard again", output_stream="stdout")
cases.holds("lines that were refused do not come later", found == [b"heard again\n"], found)
with captured(1) as out, captured(2) as err:
    for level in ("info", "warning", "error"):
        prints(b"unasked for", output_stream=f"log({level})")
cases.holds("the log is silent by default", out == err == [b""], (out, err))
lines = []
thalweg.log.set(lambda level, text: lines.append((level, text)), "info")
for level in ("info", "warning", "error"):
    prints(b"a line", output_stream=f"log({level})")
thalweg.log.set(None)
heard = [level for level, text in lines if text.endswith("a line")]
cases.holds("lines reach the log with their level", heard == [logging.INFO, logging.WARNING, logging.ERROR], lines)


def imported(graph):
    copy = thalweg.Graph.from_bytes(graph.graph.to_bytes())
    return copy, copy.operation("op")


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    allowed = folder / "allowed"
    allowed.mkdir()
    graph, op = printing(b"line", output_stream=f"file://{folder}/own")
    session = graph.session()
    for _ in range(3):
        session.run([], targets=[op])
    cases.holds("lines to a file follow each other", (folder / "own").read_bytes() == b"line\n" * 3, list(folder.iterdir()))
    both = tw.Graph()
    text = both.constant(np.array(b"x" * 100, object))
    ops = [both.add("PrintV2", text, output_stream=f"file://{folder}/both", end="") for _ in range(8)]
    both.session(threads=8).run([], targets=ops)
    cases.holds("lines of several nodes are all there", (folder / "both").read_bytes() == b"x" * 800)
    cases.refuses("a file in no folder", lambda: prints(b"", output_stream=f"file://{folder}/none/file"), "PrintV2 'op'", "none/file")

    inside, op = imported(printing(b"line", output_stream="file://inside")[0])
    outside, beyond = imported(printing(b"line", output_stream=f"file://{folder}/outside")[0])
    for who, target in ((inside, op), (outside, beyond)):
        cases.refuses("an imported graph that was allowed nothing", lambda: tw.Session(who).run([], targets=[target]), "op", "allow_files")
    cases.refuses("an imported graph and a file outside",
                  lambda: tw.Session(outside, allow_files=allowed).run([], targets=[beyond]), "PrintV2 'op'", "outside")
    tw.Session(inside, allow_files=allowed).run([], targets=[op])
    cases.holds("an imported graph writes inside its folder", (allowed / "inside").read_bytes() == b"line\n", list(allowed.iterdir()))
    cases.holds("and nowhere else", not (folder / "outside").exists())

for stream in ("stdin", "log(debug)", "file://", ""):
    cases.refuses(f"stream '{stream}'", lambda: printing(b"", output_stream=stream), "PrintV2 'op'", f'"{stream}"')
cases.refuses("several texts", lambda: printing([b"a", b"b"]), "input", "[2]")
cases.finish()
