import numpy as np

from declare import accepts, expect, op, refuses
from text import TEXTS, each, shape_of, text, texts


def starts(t):
    """Returns the positions at which characters begin."""
    return [k for k in range(len(t)) if k == 0 or t[k] & 0xc0 != 0x80]


def length(x, *, unit):
    return each(lambda t: len(t) if unit == "BYTE" else sum(c & 0xc0 != 0x80 for c in t), x, kind=np.int32)


def cut(d):
    shape = shape_of(d)
    range_shape = d.pick(shape, shape[d.integer(0, len(shape)):])
    pool = [t for t in TEXTS if len(t) > 3 and len(starts(t)) > 2]
    pos, length = d.rng.integers(-2, 3, range_shape), d.rng.integers(-1, 9, range_shape)
    return [texts(d, "input", pool, shape), d("pos", of=pos), d("len", of=length)]


def substr(x, pos, len_, *, unit):
    def part(t, p, n):
        at = (list(range(len(t))) if unit == "BYTE" else starts(t)) + [len(t)]
        first = p if p >= 0 else p + len(at) - 1
        return t[at[first]:at[len(at) - 1 if n < 0 else min(first + n, len(at) - 1)]]
    return each(part, x, pos, len_)


op("StringLength", length, lambda d: [texts(d, "input")])
op("Substr", substr, cut)

i32, i64 = (lambda *v: np.array(v, np.int32)), np.int64
expect("StringLength", [text("a\u20ac".encode(), b"\x80", b"")], [i32(4, 1, 0)])
expect("StringLength", [text("a\u20ac".encode(), b"\x80", b"")], [i32(2, 0, 0)], unit="UTF8_CHAR")
expect("Substr", [text(b"abc"), i64(3), i64(1)], [text(b"")])
expect("Substr", [text(b"abc"), i64(-3), i64(2**63 - 1)], [text(b"abc")])
expect("Substr", [text(b"abc"), i32(0, 1), i32(1, 2)], [text(b"a", b"bc")])
expect("Substr", [text(b"\x80\x80b"), i32(0, 1, 2, -1, -2), i32(1, 1, 1, 1, 1)], [text(b"\x80\x80", b"b", b"", b"b", b"\x80\x80")],
       unit="UTF8_CHAR")
accepts("Substr", [np.zeros((0, 2), object), np.zeros(2, np.int32), np.zeros(2, np.int32)], np.zeros((0, 2), object))
for unit in ("BYTE", "UTF8_CHAR"):
    for pos in (4, -4, 2**63 - 1, -2**63):
        refuses("Substr", [text(b"x", b"abc"), np.full(2, pos), np.ones(2, np.int64)], f"'pos' is {pos}", "'x'", unit=unit)
    refuses("Substr", [text(b""), i64(-1), i64(0)], "'pos' is -1", "''", unit=unit)
refuses("Substr", [text(b"\xff\n" + b"a" * 1000), i64(2000), i64(0)], "2000", r"'\xff\x0aaaa", "...'", "1002 bytes")
refuses("Substr", [text(b"abc"), i32(0, 1), i32(1)], "pos", "len", "[2]", "[1]")
refuses("Substr", [text(b"a", b"b", b"c"), i32(0, 1), i32(1, 1)], "[3]", "[2]")
refuses("StringLength", [text(b"a")], "unit", "elsewhere", unit="elsewhere")
