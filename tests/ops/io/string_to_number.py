import numpy as np

from declare import expect, op, refuses
from text import each, text, texts

WHOLE = [b"0", b"1", b" 12 ", b"\t+7\n", b"\x0b3\x0c\r", b"007", b"2147483647", b"00000000000000000000000000000009"]
SIGNED = [b"-1", b"-0", b" -2147483648"]
REAL = [b"1.5", b".5", b"5.", b"-12.5e3", b"1E-3", b"0.1", b"3.4028235e38", b"123456789012345678901234567890", b"16777217",
        b"9007199254740993", b"-0.0", b"1e-40", b"0." + b"3" * 300]


def draw(d):
    kind = d.dtype("out_type").kind
    return [texts(d, "string_tensor", WHOLE + SIGNED * (kind != "u") + REAL * (kind == "f"))]


def number(x, *, out_type):
    kind, parse = (np.longdouble, np.longdouble) if out_type.kind == "f" else (out_type, int)
    return each(lambda t: parse(t.decode().strip()), x, kind=kind)


op("StringToNumber", number, draw)

special = text(b"inf", b"-Infinity", b"NAN", b"+inf", b"1e999", b"-1e999", b"1e-999", b"nan(7)", b" 0x1.8p1 ", b"-0X10",
               b"0e99999999999999999999")
for dtype in (np.float32, np.float64):
    wanted = np.array([np.inf, -np.inf, np.nan, np.inf, np.inf, -np.inf, 0, np.nan, 3, -16, 0], dtype)
    expect("StringToNumber", [special], [wanted], out_type=dtype)
expect("StringToNumber", [text(b"3.4028236e38", b"5e-324")], [np.float32([np.inf, 0])])
for dtype in (np.int32, np.int64, np.uint32, np.uint64):
    info = np.iinfo(dtype)
    expect("StringToNumber", [text(b"%d" % info.min, b"%d" % info.max)], [np.array([info.min, info.max], dtype)], out_type=dtype)
    beyond = [b"%d" % (info.max + 1), b"%d" % (info.min - 1)]
    for wrong in (*beyond, b"", b" ", b"1.5", b"1e5", b"0x10", b"1_0", b"- 1", b"+-1", b"--1", b"+", b"-"):
        refuses("StringToNumber", [text(b"1", wrong)], f"'string_tensor'[1] is '{wrong.decode().strip()}", dtype.__name__, out_type=dtype)
for wrong in (b"", b".", b"1e", b"1e+", b"infinit", b"infx", b"1,5", b"1 2", b"1f", b"0x", b"0x1p", b"e5", b"- 1", b"1_0"):
    for dtype, name in ((np.float32, "float"), (np.float64, "double")):
        refuses("StringToNumber", [text(wrong)], f"'string_tensor' is '{wrong.decode()}'", f"no {name}", out_type=dtype)
refuses("StringToNumber", [text(b"1\0")], r"'1\x00'")
refuses("StringToNumber", [text(b"\xa01" + b"2" * 10**6)], r"'\xa01222", "...'")
