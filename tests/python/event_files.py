"""Event files, read from the description of their format: records with checksums, messages field by field, PNG and WAV files."""
import pathlib
import struct
import zlib

import numpy as np
import records


def record_bytes(data):
    """The contents of each record. Raises AssertionError for a wrong checksum or a part of a record."""
    at = 0
    while at < len(data):
        head = data[at:at + 12]
        assert len(head) == 12, f"{len(head)} bytes of a record at byte {at}"
        n, = struct.unpack("<Q", head[:8])
        assert struct.unpack("<I", head[8:])[0] == records.masked(head[:8]), at
        body, tail = data[at + 12:at + 12 + n], data[at + 12 + n:at + 16 + n]
        assert len(body) == n and len(tail) == 4, f"a record at byte {at} is cut short"
        assert struct.unpack("<I", tail)[0] == records.masked(body), at
        yield body
        at += 16 + n


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """Field number -> the list of its values: integers, or bytes for the other kinds."""
    found, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
        else:
            n = {1: 8, 5: 4}.get(kind)
            if n is None:
                assert kind == 2, kind
                n, at = varint(data, at)
            value = data[at:at + n]
            assert len(value) == n
            at += n
        found.setdefault(tag >> 3, []).append(value)
    return found


def double(data):
    return struct.unpack("<d", data)[0]


def signed(value):
    return value - 2**64 if value >= 2**63 else value


def one(message, number, default=None):
    values = message.get(number, [default])
    assert len(values) == 1, (number, values)
    return values[0]


TYPES = {1: "<f4", 2: "<f8", 3: "<i4", 4: "u1", 9: "<i8", 10: "?"}


def tensor(data):
    """A TensorProto: an array, or a list of bytes with its shape."""
    message = fields(data)
    dims = [one(fields(d), 1, 0) for d in fields(one(message, 2, b"")).get(2, [])]
    if one(message, 1) == 7:
        return dims, message.get(8, [])
    return np.frombuffer(one(message, 4, b""), TYPES[one(message, 1)]).reshape(dims)


def histogram(data):
    message = fields(data)
    numbers = {name: double(one(message, i)) for i, name in enumerate(["min", "max", "num", "sum", "squares"], 1)}
    return {**numbers, "limits": np.frombuffer(one(message, 6), "<f8"), "counts": np.frombuffer(one(message, 7), "<f8")}


def png(data):
    """The pixels of a PNG of 8 bits a channel."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed, head = 8, b"", b""
    while at < len(data):
        n, = struct.unpack(">I", data[at:at + 4])
        kind, body = data[at + 4:at + 8], data[at + 8:at + 8 + n]
        assert struct.unpack(">I", data[at + 8 + n:at + 12 + n])[0] == zlib.crc32(kind + body)
        head, packed = (body, packed) if kind == b"IHDR" else (head, packed + body if kind == b"IDAT" else packed)
        at += 12 + n
    assert kind == b"IEND"
    width, height, bits, color = struct.unpack(">IIBB", head[:10])
    assert bits == 8 and head[10:] == b"\0\0\0"
    channels = {0: 1, 4: 2, 2: 3, 6: 4}[color]
    rows = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + width * channels)
    out = np.zeros((height + 1, width, channels), np.uint8)
    for y, row in enumerate(rows):
        pixels = row[1:].reshape(width, channels)
        assert row[0] in (0, 1, 2)
        if row[0] == 1:
            pixels = np.cumsum(pixels, axis=0, dtype=np.uint8)
        out[y + 1] = pixels + out[y] if row[0] == 2 else pixels
    return out[1:]


def wav(data):
    """The rate and the samples [frames, channels] of a WAV file of 16 bits."""
    assert data[:4] == b"RIFF" and data[8:16] == b"WAVEfmt " and struct.unpack("<I", data[4:8])[0] == len(data) - 8
    size, kind, channels, rate, per_second, block, bits = struct.unpack("<IHHIIHH", data[16:36])
    assert (size, kind, bits, block, per_second) == (16, 1, 16, 2 * channels, 2 * channels * rate) and data[36:40] == b"data"
    return rate, np.frombuffer(data[44:], "<i2").reshape(-1, channels)


def value(data):
    """The tag, kind and contents of a value of a Summary, and the plugin and content of its metadata."""
    message = fields(data)
    about = fields(one(fields(one(message, 9, b"")), 1, b""))
    kinds = {2: ("scalar", lambda v: struct.unpack("<f", v)[0]), 4: ("image", image), 5: ("histogram", histogram), 6: ("audio", audio),
             8: ("tensor", tensor)}
    number = next(n for n in kinds if n in message)
    kind, read = kinds[number]
    return one(message, 1).decode(), kind, read(one(message, number)), one(about, 1, b"").decode(), one(about, 2, b"")


def image(data):
    message = fields(data)
    pixels = png(one(message, 4))
    assert pixels.shape == (one(message, 1), one(message, 2), one(message, 3))
    return pixels


def audio(data):
    message = fields(data)
    rate, samples = wav(one(message, 4))
    assert struct.unpack("<f", one(message, 1))[0] == rate and samples.shape == (one(message, 3), one(message, 2))
    assert one(message, 5) == b"audio/wav"
    return rate, samples


def summary(data):
    """The values of a Summary message."""
    return [value(v) for v in fields(data).get(1, [])]


def events(path):
    """(wall time, step, fields) of each event of a file, behind the first one, which has the version."""
    all_events = [fields(r) for r in record_bytes(pathlib.Path(path).read_bytes())]
    assert one(all_events[0], 3) == b"brain.Event:2"
    return [(double(one(e, 1, bytes(8))), signed(one(e, 2, 0)), e) for e in all_events[1:]]


def values(path):
    """(step, tag, kind, contents, plugin, content) of each value in a file, or in the files of a folder in the order of their names."""
    path = pathlib.Path(path)
    files = sorted(path.glob("*tfevents*")) if path.is_dir() else [path]
    return [(step, *v) for file in files for _, step, e in events(file) for s in e.get(5, []) for v in summary(s)]


def scalars(path):
    """tag -> [(step, value)]"""
    found = {}
    for step, tag, kind, contents, _, _ in values(path):
        if kind == "scalar":
            found.setdefault(tag, []).append((step, contents))
    return found
