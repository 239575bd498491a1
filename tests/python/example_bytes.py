"""Serialized tf.train.Example and SequenceExample messages, written from the description of the wire format of Protocol Buffers."""
import struct

import numpy as np


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def feature(values, packed=True):
    if values is None:
        return b""
    if isinstance(values, list):
        return field(1, b"".join(field(1, v) for v in values))
    if values.dtype == np.float32:
        body = field(1, values.tobytes()) if packed else b"".join(varint(1 << 3 | 5) + struct.pack("<f", v) for v in values)
        return field(2, body)
    body = field(1, b"".join(map(varint, values.tolist()))) if packed else b"".join(varint(1 << 3) + varint(v) for v in values.tolist())
    return field(3, body)


def entry(key, values, packed=True):
    return field(1, field(1, key) + field(2, feature(values, packed)))


def example(features, packed=True):
    return field(1, b"".join(entry(k, v, packed) for k, v in features.items()))


def sequence_example(context, lists, packed=True):
    """lists: the values of each step, by key."""
    entries = (field(1, field(1, key) + field(2, b"".join(field(1, feature(v, packed)) for v in steps))) for key, steps in lists.items())
    return field(1, b"".join(entry(k, v, packed) for k, v in context.items())) + field(2, b"".join(entries))
