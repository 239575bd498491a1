import numpy as np

from declare import expect, op, refuses
from text import shape_of, text, texts

POOL = [b"", b"  ", b" a  b ", b"a,b,,c", b"xabyabz", b"aaaa", b"a b ", b"\t\x0ba\x0c\r\nb\x00c\x1cd", "a\u00a0b".encode(),
        b"\xff \xfe", b",", b"ab"]


def parts(t, sep, maxsplit):
    if maxsplit == 0:
        return [t]
    found = t.split(sep or None, maxsplit)
    return found + [b""] * (not sep and len(found) == maxsplit)  # if Python has nothing left, the op adds an empty part


def split(x, sep, *, maxsplit):
    rows = [parts(t, sep.item(), maxsplit) for t in x]
    pairs = [(i, k) for i, row in enumerate(rows) for k in range(len(row))]
    values = np.array([p for row in rows for p in row] + [b""], object)[:-1]
    return [np.array(pairs, np.int64).reshape(-1, 2), values, np.array([len(rows), max(map(len, rows), default=0)], np.int64)]


def draw(d):
    return [texts(d, "input", POOL, shape_of(d, least=1, most=1)), texts(d, "sep", [b"", b" ", b",", b"ab", b"aa"], ())]


op("StringSplitV2", split, draw, attrs=dict(maxsplit=[-5, -1, -1, -1, 0, 1, 2, 100]))

pairs = np.array([[0, 0], [0, 1], [2, 0]])
expect("StringSplitV2", [text(b"a b", b"", b" c"), text(b"")], [pairs, text(b"a", b"b", b"c"), np.array([3, 2])])
expect("StringSplitV2", [text(b"a b ", b"b"), text(b"")],
       [np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), text(b"a", b"b ", b"b", b""), np.array([2, 2])], maxsplit=1)
almost = b"a" * 200000  # a search with backtracking would take half a minute
expect("StringSplitV2", [text(almost).reshape(1), text(almost[:100000] + b"b")],
       [np.array([[0, 0]]), text(almost).reshape(1), np.array([1, 1])])
refuses("StringSplitV2", [text(b"a"), text(b"")], "input", "[]")
refuses("StringSplitV2", [text(b"a", b"b"), text(b"", b"")], "sep", "[2]")
