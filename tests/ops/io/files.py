import atexit
import glob
import os
import pathlib
import shutil
import tempfile

import numpy as np

from declare import expect, op, refuses
from text import text, texts

FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="thalweg-files-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
CONTENTS = {"empty": b"", "short": b"a\0b\xff\n", "long": bytes(range(256)) * 999, "sub/1.txt": b"1", "sub/2.txt": b"2", "sub/.dot": b"",
            "more/1.txt": b"", "more/deep/x": b"x", "br[1]": b"", "st*r": b"", "a-b": b"", "caf\u00e9": b""}
for name, contents in CONTENTS.items():
    (FOLDER / name).parent.mkdir(exist_ok=True)
    (FOLDER / name).write_bytes(contents)
os.symlink("sub", FOLDER / "link")


def path(name):
    return os.fsencode(FOLDER / name)


def named(pattern):
    return os.fsencode(FOLDER) + b"/" + pattern.encode()


# Patterns with the same meaning in Python.
PATTERNS = ["*", "*.txt", "sub/*", "sub/1.txt", "sub/nope", "nope/*", "*/1.txt", "*/*", "*/*/*", "[ml]*/1.txt", "?-?", "s*", "*[*]*",
            "br[[]1]", "[a-c]*", "[a-]-b", "[!a-s]*", "sub", "long/*", "**", "*e*t*", "caf*", "./sub/*", "sub/../more/*"]


def found(patterns):
    """Returns the matches that Python finds. Python leaves out hidden names unless the pattern names the dot."""
    paths = [p for pattern in np.asarray(patterns, object).flat for p in glob.glob(os.fsdecode(pattern), include_hidden=True)]
    return np.array(sorted(map(os.fsencode, paths)) + [b""], object)[:-1]


op("ReadFile", lambda name: text(pathlib.Path(os.fsdecode(name.item())).read_bytes()),
   lambda d: [texts(d, "filename", [path(n) for n in CONTENTS], ())])
op("WriteFile", None, lambda d: [text(path(f"written/{d.integer(0, 3)}/file")), texts(d, "contents", [b"", b"a", b"b" * 100000], ())],
   no_oracle="it has no outputs; files_test.py reads what it wrote")
op("MatchingFiles", found, lambda d: [texts(d, "pattern", [named(p) for p in PATTERNS], d.pick((), (0,), (1,), (3,)))])

expect("MatchingFiles", [text(named("sub/*.txt"), named("sub/1*"))], [text(path("sub/1.txt"), path("sub/1.txt"), path("sub/2.txt"))])
for pattern, wanted in ((r"br\[1\]", ["br[1]"]), (r"st\*r", ["st*r"]), (r"sub/1\.tx\t", ["sub/1.txt"]), ("[^a-s]*", []), ("[", []),
                        ("sub\\", []), ("su[b", []), ("[]b]r*", ["br[1]"]), ("{sub,more}", []), ("[\\]a]-b", ["a-b"]), ("[b-a]-b", []),
                        ("link/*.txt", ["link/1.txt", "link/2.txt"]), ("sub/", ["sub/"]), ("sub/.", ["sub/."]), ("sub/*/..", []),
                        ("sub/?dot", ["sub/.dot"]),
                        ("caf?", []), ("caf??", ["caf\u00e9"]), ("*" * 60 + "x" + "*" * 60, [])):
    found_paths = [os.fsencode(FOLDER) + b"/" + w.encode() for w in wanted]
    expect("MatchingFiles", [text(named(pattern))], [np.array(found_paths + [b""], object)[:-1]])
expect("MatchingFiles", [text(b"")], [np.zeros(0, object)])
refuses("MatchingFiles", [np.full((1, 1), b"x", object)], "pattern", "[1, 1]")
refuses("MatchingFiles", [text(b"/tmp\0/*")], "NUL")
refuses("ReadFile", [text(path("nope"))], "nope", "No such file")
refuses("ReadFile", [text(path("sub"))], "sub")
refuses("ReadFile", [text(b"")], "empty")
refuses("ReadFile", [text(path("short") + b"\0")], "NUL")
refuses("ReadFile", [text(b"a" * 100000)], "aaaa")
refuses("ReadFile", [text(b"a", b"b")], "filename", "[2]")
refuses("WriteFile", [text(path("short/x")), text(b"")], "short/x")
refuses("WriteFile", [text(path("sub")), text(b"")], "sub")
refuses("WriteFile", [text(b""), text(b"")], "empty")
refuses("WriteFile", [text(b"a\0b"), text(b"")], "NUL")
refuses("WriteFile", [text(b"a"), text(b"a", b"b")], "contents", "[2]")
