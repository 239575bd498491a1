from declare import expect, op, refuses
from text import TEXTS, each, text, texts

SPACE = b" \t\n\x0b\x0c\r"
POOL = TEXTS + [t.encode() for t in ("\u0149 \ufb01 \u01c5 \u0390", "\u03a3 a\u03a3 a.\u03a3. \u03a3a a\u0301\u03a3", "\u0130I\u0131i", "a\u03a3a A\u03a3.b",
                                     "\U00010400\U00010428", "\u1c90\u10d0 \u2160 \ua64a\u1c88")]


def changed(name):
    """Changes the case in Python, by Python's own Unicode tables."""
    def one(t, encoding):
        return getattr(t.decode("utf-8", "replace"), name)().encode() if encoding else getattr(t, name)()
    return lambda x, *, encoding: each(lambda t: one(t, encoding), x)


op("StringLower", changed("lower"), lambda d: [texts(d, "input", POOL)], attrs=dict(encoding=["", "utf-8"]))
op("StringUpper", changed("upper"), lambda d: [texts(d, "input", POOL)], attrs=dict(encoding=["", "utf-8"]))
op("StringStrip", lambda x: each(lambda t: t.strip(SPACE), x),
   lambda d: [texts(d, "input", TEXTS + [b" ", SPACE + b"a b" + SPACE, b"\x1ca\xa0"])])

every = "\n".join(chr(c) for c in range(0x110000) if not 0xd800 <= c < 0xe000)
for name in ("lower", "upper"):
    expect(f"String{name.title()}", [text(every.encode())], [text(getattr(every, name)().encode())], encoding="utf-8")
    for encoding in ("utf8", "UTF-8", "ascii"):
        refuses(f"String{name.title()}", [text(b"a")], "encoding", encoding, encoding=encoding)
expect("StringLower", [text(b"A\xff\0B")], [text(b"a\xff\0b")])
