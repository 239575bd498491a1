import numpy as np

from declare import expect, op, refuses
from text import text, texts


def joined(d):
    d.set(separator=d.pick("", ", ", "\u20ac"))
    shape = (3001,) if d.large else d.shape()
    shapes = [d.pick(shape, ()) for _ in range(d.integer(0, 3))] + [shape]
    return [[texts(d, "inputs", shape=s) for s in shapes]]


def join(inputs, *, separator):
    shape = next((x.shape for x in inputs if x.ndim), ())
    lists = [np.broadcast_to(x, shape).reshape(-1) for x in inputs]
    return np.array([separator.encode().join(row) for row in zip(*lists)] + [b""], object)[:-1].reshape(shape)


def printed(d):
    """Draws attributes: integers have neither precision nor style; bool and string have no width."""
    kind = d.types["T"]
    if kind not in ("bool", "string"):
        d.set(width=d.pick(-1, -1, 3, 12), fill=d.pick("", " ", "+", "-", "0", "#"))
    real = kind in ("half", "bfloat16", "float", "double", "complex64", "complex128")
    style = d.pick("f", "e", "g") if real else "f"
    d.set(scientific=style == "e", shortest=style == "g", precision=d.pick(-1, 0, 2, 9) if real else -1)
    return [d("input", (3001,) if d.large else d.shape())]


def as_string(x, *, precision, scientific, shortest, width, fill):
    """Writes the numbers like C's printf."""
    style = "d" if x.dtype.kind in "iu" else "e" if scientific else "g" if shortest else "f"

    def number(v):
        v = int(v) if style == "d" else float(v)
        flags = "" if style == "d" and fill in ("#", *" +"[:2 * (x.dtype.kind == "u" and x.dtype.itemsize > 1)]) else fill
        if style != "d" and not np.isfinite(v):
            flags = flags.replace("0", "")  # infinities and NaN have no leading zeros
        return ("%" + flags + (str(width) if width >= 0 else "") + (f".{precision}" if precision >= 0 else "") + style) % v

    def written(v):
        if isinstance(v, bytes):
            return v
        if x.dtype == np.bool_:
            return b"true" if v else b"false"
        return (f"({number(v.real)},{number(v.imag)})" if x.dtype.kind == "c" else number(v)).encode()

    return np.array([written(v) for v in x.reshape(-1)] + [b""], object)[:-1].reshape(x.shape)


def shard(d):
    inputs = {"basename": texts(d, "basename", [b"", b"a/b", b"x-\xff"], ())}
    inputs |= {name: d(name, of=d.integer(0, 120000)) for name in d.inputs if name != "basename"}
    return [inputs[name] for name in d.inputs]


op("StringJoin", join, joined)
op("AsString", as_string, printed)
op("ShardedFilename", lambda name, k, n: np.array(name.item() + b"-%05d-of-%05d" % (k, n), object), shard)
op("ShardedFilespec", lambda name, n: np.array(name.item() + b"-?????-of-%05d" % n, object), shard)
expect("StringJoin", [], [text(b"")], N=0)
expect("StringJoin", [text(b"one")], [text(b"one")], N=1, separator="-")
refuses("StringJoin", [text(b"a", b"b"), text(b"c").reshape(1)], "[2]", "[1]", N=2)
refuses("ShardedFilename", [text(b"a").reshape(1), np.int32(0), np.int32(1)], "basename", "[1]")
refuses("ShardedFilespec", [text(b"a"), np.int32([1])], "num_shards", "[1]")
for attrs, parts in ((dict(scientific=True, shortest=True), ["scientific", "shortest"]), (dict(fill="xy"), ["fill", "xy"]),
                     (dict(fill="x"), ["fill", "x"]), (dict(width=5000), ["width", "5000"]), (dict(precision=2**40), ["precision", 2**40]),
                     (dict(width=2**63 - 1), ["width", 2**63 - 1])):
    refuses("AsString", [np.array([1.5])], *parts, **attrs)
for attrs in (dict(scientific=True), dict(shortest=True), dict(precision=2)):
    refuses("AsString", [np.int32([1])], "int32", *attrs, **attrs)
