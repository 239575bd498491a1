"""TFRecord files, written from the description of the format."""
import struct


def _table():
    table = []
    for b in range(256):
        for _ in range(8):
            b = b >> 1 ^ (0x82f63b78 if b & 1 else 0)
        table.append(b)
    return table


_TABLE = _table()


def crc32c(data):
    c = 0xffffffff
    for b in data:
        c = c >> 8 ^ _TABLE[(c ^ b) & 255]
    return c ^ 0xffffffff


def masked(data):
    c = crc32c(data)
    return (c >> 15 | c << 17) + 0xa282ead8 & 0xffffffff


def of(data):
    """The bytes of a record."""
    head = struct.pack("<Q", len(data))
    return head + struct.pack("<I", masked(head)) + data + struct.pack("<I", masked(data))


def written(path, contents):
    """Writes a file of records; returns its name."""
    path.write_bytes(b"".join(map(of, contents)))
    return str(path)
