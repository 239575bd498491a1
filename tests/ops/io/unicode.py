import numpy as np

from arrays import i32, i64
from declare import expect, op, refuses
from text import text, texts

# Whole and broken texts; Python replaces the longest run of bytes that could have begun a character, as the op does.
BYTES = [b"", b"a", "caf\u00e9 \u20ac\U0001f600".encode(), b"\x80\x80b", b"a\xc3", b"\xff\xfe", b"\xed\xa0\x80.", b"\xf0\x9f\x98", b"\xf0\x9f\x98x",
         b"\xe2\x82", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\xe0\x80\x80", b"\0\x1f\n", b"\xd8\x3d\xde\x00", b"\xd8\x3d\x00a", b"\xdc\x00\x00b", b"abc",
         b"\x00\x11\x00\x00", b"\x00\x00\xd8\x00"]
ENCODINGS = ["UTF-8", "UTF-16-BE", "UTF-16-LE", "UTF-32-BE", "UTF-32-LE", "US-ASCII", "ISO-8859-1"]
NAMES = {"UTF-8": "utf-8", "UTF-16-BE": "utf-16-be", "UTF-16-LE": "utf-16-le", "UTF-32-BE": "utf-32-be", "UTF-32-LE": "utf-32-le",
         "US-ASCII": "ascii", "ISO-8859-1": "latin-1"}
LOST = 0xfffd


def characters(data, encoding):
    """Returns (number or None, first byte) of each character, found by decoding ever longer parts of the rest."""
    name, found, at = NAMES[encoding], [], 0
    width = {"utf-16": 2, "utf-32": 4}.get(name[:6], 1)
    while at < len(data):
        for size in range(width, min(4, len(data) - at) + 1):
            try:
                char = data[at:at + size].decode(name)
            except UnicodeDecodeError:
                continue
            found.append((ord(char), at))
            at += size
            break
        else:
            size = bad_length(data[at:], name, width)
            found.append((None, at))
            at += size
    return found


def bad_length(rest, name, width):
    """Returns the number of bytes that become one replacement."""
    if width > 1:
        return min(width, len(rest))
    try:
        rest.decode(name)
    except UnicodeDecodeError as error:
        return error.end - error.start
    raise AssertionError(rest)


def handled(found, errors, replacement, controls=False):
    out = []
    for c, at in found:
        if c is None or controls and c <= 0x1f:
            if errors == "ignore":
                continue
            c = replacement
        out.append((c, at))
    return out


def drawn(d):
    kind = d.attrs["input_encoding"]
    if d.attrs["errors"] == "strict":
        pool = [b"", "plain".encode(NAMES[kind])]
    else:
        pool = BYTES
    return [texts(d, "input", pool, (2000,) if d.large else d.shape(most=2))]


def decoded(x, *, input_encoding, errors, replacement_char, replace_control_characters, Tsplits):
    rows = [handled(characters(t, input_encoding), errors, replacement_char, replace_control_characters) for t in x.ravel()]
    flat = [pair for row in rows for pair in row]
    return [np.cumsum([0, *map(len, rows)]).astype(Tsplits), np.array([c for c, _ in flat], np.int32), np.array([at for _, at in flat], np.int64)]


def decoded_plain(x, *, input_encoding, errors, replacement_char, replace_control_characters, Tsplits):
    return decoded(x, input_encoding=input_encoding, errors=errors, replacement_char=replacement_char,
                   replace_control_characters=replace_control_characters, Tsplits=Tsplits)[:2]


attrs = dict(input_encoding=ENCODINGS, replacement_char=[LOST, 33])
op("UnicodeDecode", decoded_plain, drawn, attrs=attrs, given=dict(input_encoding="UTF-8"))
op("UnicodeDecodeWithOffsets", decoded, drawn, attrs=attrs, given=dict(input_encoding="UTF-8"))
expect("UnicodeDecode", [text(b"a\xe2\x82\xac", b"\xff")], [i64(0, 2, 3), i32(97, 0x20ac, LOST)], input_encoding="UTF-8")
for name in ("UnicodeDecode", "UnicodeDecodeWithOffsets"):
    refuses(name, [text(b"ab", b"a\xff")], "'input'[1]", "byte 1", input_encoding="UTF-8", errors="strict")
    refuses(name, [text(b"ab", b"a")], "EBCDIC", "UTF-8", input_encoding="EBCDIC")
    refuses(name, [text(b"ab", b"a")], "replacement_char", "55296", input_encoding="UTF-8", replacement_char=0xd800)

# ---- Encoding ----

NUMBERS = [0, 65, 0x7f, 0x80, 0x7ff, 0x800, 0xffff, 0x10000, 0x10ffff, 0x20ac]


def rows(d):
    lengths = [d.integer(0, 4) for _ in range(1000 if d.large else d.integer(0, 4))]
    strict = d.attrs["errors"] == "strict"
    pool = NUMBERS if strict else [*NUMBERS, -1, 0xd800, 0xdfff, 0x110000, 2**31 - 1]
    return [d("input_values", of=d.rng.choice(pool, sum(lengths))), d("input_splits", of=np.cumsum([0, *lengths]))]


def encoded(values, splits, *, errors, output_encoding, replacement_char):
    numbers = [(int(c) if 0 <= c <= 0x10ffff and not 0xd800 <= c < 0xe000 else None, 0) for c in values]
    name = NAMES[output_encoding]
    out = ["".join(chr(c) for c, _ in handled(numbers[a:b], errors, replacement_char)).encode(name) for a, b in zip(splits[:-1], splits[1:])]
    return np.array(out + [b""], object)[:-1]


op("UnicodeEncode", encoded, rows, attrs=dict(replacement_char=[LOST, 0x1f600]), given=dict(output_encoding="UTF-8"))
refuses("UnicodeEncode", [i32(65, 0xd800), i64(0, 2)], "input_values[1]", "55296", output_encoding="UTF-8", errors="strict")
refuses("UnicodeEncode", [i32(65, 66), i64(0, 1)], "1", "2", output_encoding="UTF-8")
refuses("UnicodeEncode", [i32(65, 66), i64()], "input_splits", output_encoding="UTF-8")
refuses("UnicodeEncode", [np.int32(65), i64(0, 1)], "input_values", output_encoding="UTF-8")
refuses("UnicodeEncode", [i32(65, 66), i64(0, 2)], "replacement_char", "-1", output_encoding="UTF-8", replacement_char=-1)


def transcoded(x, *, input_encoding, output_encoding, errors, replacement_char, replace_control_characters):
    name = NAMES[output_encoding]
    out = np.empty(x.shape, object)
    for place in np.ndindex(x.shape):
        found = handled(characters(x[place], input_encoding), errors, replacement_char, replace_control_characters)
        out[place] = "".join(chr(c) for c, _ in found).encode(name)
    return out


op("UnicodeTranscode", transcoded, drawn, attrs=attrs, given=dict(input_encoding="UTF-8", output_encoding="UTF-8"))
refuses("UnicodeTranscode", [text(b"ab", b"a\xff")], "'input'[1]", "byte 1", input_encoding="UTF-8", output_encoding="UTF-8", errors="strict")
refuses("UnicodeTranscode", [text(b"ab", b"a")], "EBCDIC", input_encoding="EBCDIC", output_encoding="UTF-8")
refuses("UnicodeTranscode", [text(b"ab", b"a")], "replacement_char", "1114112", input_encoding="UTF-8", output_encoding="UTF-8",
        replacement_char=0x110000)
