import re

import numpy as np

from declare import accepts, expect, op, refuses
from text import WHOLE, each, text, texts

# Patterns with the same meaning in Python, and the replacements of their matches there and here.
PATTERNS = {"a": ("X", "X"), "[a-c]+": (r"<\g<0>>", r"<\0>"), "(a|b)(c?)": (r"\2-\1", r"\2-\1"), r"\s+": (" ", " "), ".": ("-", "-"),
            "x,|,z": ("", ""), r"(?i)b": (r"\\", r"\\"), "[^a]": ("\u20ac", "\u20ac"), r"-?\d+": ("#", "#"),
            "o(?:n|p)g?": (r"\g<0>\g<0>", r"\0\0"), "\u20ac|\u00e9": ("?", "?"), "(?s).+": ("", "")}
POOL = WHOLE + [b"abcabc", b"cab", b"a", b"ongoing", "\u20ac".encode(), b"-12"]


def matched(x, pattern, *rest):
    return each(lambda t: re.fullmatch(pattern, t.decode()) is not None, x, kind=bool)


def replaced(x, pattern, ours, every):
    theirs = next(python for p, (python, rewrite) in PATTERNS.items() if p == pattern and rewrite == ours)
    return each(lambda t: re.sub(pattern, theirs, t.decode(), count=0 if every else 1).encode(), x)


def static(d):
    pattern = d.pick(*PATTERNS)
    d.set(pattern=pattern, **dict(rewrite=PATTERNS[pattern][1]) if d.declaration.op == "StaticRegexReplace" else {})
    return [texts(d, "input", POOL)]


def computed(d):
    pattern = d.pick(*PATTERNS)
    rewrite = [d("rewrite", of=PATTERNS[pattern][1].encode())] if d.declaration.op == "RegexReplace" else []
    return [texts(d, "input", POOL), d("pattern", of=pattern.encode()), *rewrite]


op("StaticRegexFullMatch", lambda x, *, pattern: matched(x, pattern), static, given=dict(pattern="a"))
op("StaticRegexReplace", lambda x, *, pattern, rewrite, replace_global: replaced(x, pattern, rewrite, replace_global), static,
   given=dict(pattern="a", rewrite="b"))
op("RegexFullMatch", lambda x, pattern: matched(x, pattern.item().decode()), computed)
op("RegexReplace",
   lambda x, pattern, rewrite, *, replace_global: replaced(x, pattern.item().decode(), rewrite.item().decode(), replace_global), computed)

# Patterns that RE2 treats differently; the results are TensorFlow's.
words = text(b"", b"a", b"abc", b"xaab ab", b"\xc3\xa9", b"\xffa")
for pattern, rewrite, wanted in (("", "-", [b"-", b"-a-", b"-a-b-c-", b"-x-a-a-b- -a-b-", b"-\xc3\xa9-", b"-\xff-a-"]),
                                 ("a*", "-", [b"-", b"-", b"-b-c-", b"-x-b- -b-", b"-\xc3\xa9-", b"-\xff-"]),
                                 ("b*", r"<\0>", [b"<>", b"<>a<>", b"<>a<b>c<>", b"<>x<>a<>a<b> <>a<b>", b"<>\xc3\xa9<>", b"<>\xff<>a<>"]),
                                 (r"\b", "|", [b"", b"|a|", b"|abc|", b"|xaab| |ab|", b"\xc3\xa9", b"\xff|a|"]),
                                 ("^", "-", [b"-", b"-a", b"-abc", b"-xaab ab", b"-\xc3\xa9", b"-\xffa"])):
    expect("StaticRegexReplace", [words], [text(*wanted)], pattern=pattern, rewrite=rewrite)
    expect("RegexReplace", [words, text(pattern.encode()), text(rewrite.encode())], [text(*wanted)])
expect("StaticRegexReplace", [words], [text(b"-", b"-a", b"-abc", b"-xaab ab", b"-\xc3\xa9", b"-\xffa")], pattern="", rewrite="-",
       replace_global=False)
for pattern, wanted in ((r"\pL+", [False, True, True, False, True, False]), (r"\Ca?", [False, True, False, False, False, True]),
                        ("^a$", [False, True, False, False, False, False]), ("", [True, False, False, False, False, False])):
    expect("StaticRegexFullMatch", [words], [np.array(wanted)], pattern=pattern)
accepts("RegexFullMatch", [text(b"a\0", b"a"), text(b"a\0")], [True, False])
# A backtracking engine would never end.
slow = text(b"a" * 5000)
for pattern in ("(a*)*b", "(a|aa)+b", "(.*)(.*)(.*)(.*)(.*)[^a]", "(?:a?){1000}a{1000}b"):
    accepts("StaticRegexFullMatch", [slow], False, pattern=pattern)
    accepts("StaticRegexReplace", [slow], slow, pattern=pattern, rewrite="")
accepts("StaticRegexFullMatch", [text(b"a")], True, pattern="(" * 900 + "a" + ")" * 900)
accepts("StaticRegexFullMatch", [text(b"")], True, pattern="(" * 5000 + ")" * 5000)

for pattern, why in (("(", "missing )"), ("[a", "missing ]"), ("a\\", "trailing"), ("a**", "a**"), (r"\1", r"\\1"), ("(?=a)", "(?="),
                     ("a{1001}", "1001"), ("((a{100}){100}){100}", "100"), ("((((a{30}){30}){30}){30}){30}", "30"), ("(" * 5000, "...'")):
    for name, more in (("StaticRegexFullMatch", {}), ("StaticRegexReplace", dict(rewrite=""))):
        refuses(name, [text(b"a")], "'pattern' is '", why.replace("\\\\", "\\"), pattern=pattern, **more)
    refuses("RegexFullMatch", [text(b"a"), text(pattern.encode())], "'pattern' is '", why.replace("\\\\", "\\"))
    refuses("RegexReplace", [text(b"a"), text(pattern.encode()), text(b"")], "'pattern' is '", why.replace("\\\\", "\\"))
refuses("RegexFullMatch", [text(b"a"), text(b"\xff")], r"'pattern' is '\xff'", "UTF-8")
for rewrite in ("\\1", "\\", "\\x"):
    refuses("StaticRegexReplace", [text(b"a")], f"'rewrite' is '{rewrite}'", pattern="a", rewrite=rewrite)
    refuses("RegexReplace", [text(b"a"), text(b"a"), text(rewrite.encode())], f"'rewrite' is '{rewrite}'")
refuses("RegexFullMatch", [text(b"a"), text(b"a", b"b")], "pattern", "[2]")
refuses("RegexReplace", [text(b"a"), text(b"a"), text(b"a", b"b")], "rewrite", "[2]")
