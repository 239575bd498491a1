"""Writes small ONNX files: the wire format of the messages that a graph of tensors needs."""
import struct

import numpy as np

TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11}


def varint(number):
    number &= (1 << 64) - 1
    data = b""
    while number >= 0x80:
        data, number = data + bytes([number & 0x7f | 0x80]), number >> 7
    return data + bytes([number])


def field(number, value):
    """Returns a field: an integer, bytes, a text, or a float (32 bits)."""
    if isinstance(value, (int, np.integer)):
        return varint(number << 3) + varint(int(value))
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def tensor(array, name=""):
    """Returns a TensorProto."""
    array = np.asarray(array)
    dims = b"".join(field(1, n) for n in array.shape)
    return dims + field(2, TYPES[array.dtype.name]) + field(8, name) + field(9, np.ascontiguousarray(array).tobytes())


def value(name, dtype, shape):
    """Returns a ValueInfoProto. shape: a text is a symbolic size."""
    dims = b"".join(field(1, field(2 if isinstance(n, str) else 1, n)) for n in shape)
    return field(1, name) + field(2, field(1, field(1, TYPES[dtype]) + field(2, dims)))


def attribute(name, given):
    """Returns an AttributeProto of a number, a text, an array or a list of numbers."""
    if isinstance(given, np.ndarray):
        return field(1, name) + field(5, tensor(given)) + field(20, 4)
    if isinstance(given, (list, tuple)):
        return field(1, name) + b"".join(field(8, n) for n in given) + field(20, 7)
    number, kind = {int: (3, 2), float: (2, 1), str: (4, 3)}[type(given)]
    return field(1, name) + field(number, given) + field(20, kind)


def node(op, inputs, outputs, **attributes):
    """Returns a NodeProto."""
    names = b"".join(field(1, n) for n in inputs) + b"".join(field(2, n) for n in outputs)
    return names + field(4, op) + b"".join(field(5, attribute(k, v)) for k, v in attributes.items())


def model(nodes, inputs, outputs, weights=(), opset=17):
    """Returns the bytes of a file. weights: pairs of name and array."""
    graph = b"".join(field(1, n) for n in nodes) + field(2, "graph")
    graph += b"".join(field(5, tensor(array, name)) for name, array in weights)
    graph += b"".join(field(11, v) for v in inputs) + b"".join(field(12, v) for v in outputs)
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, opset))
