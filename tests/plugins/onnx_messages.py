"""A reader of the messages in ONNX's test data: TensorProto, SequenceProto, OptionalProto, MapProto, and the parts of ModelProto that say
which values a model takes and returns. It decodes the wire format itself, so it shares no code with the plugin that it helps to test.

Values: arrays (8-bit floating-point numbers as float32, shorter integers as int8 and uint8); lists for sequences; EMPTY, or the element, for optionals; dictionaries for maps."""
import struct

import numpy as np

NUMPY = {1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16", 11: "float64",
         12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128"}
STRING, BFLOAT16 = 8, 16
# 8-bit floating-point types: bits of the mantissa, bias, and whether there are infinities and a negative zero.
FLOAT8 = {17: (3, 7, False, True), 18: (3, 8, False, False), 19: (2, 15, True, True), 20: (2, 16, False, False)}
PACKED = {21: (4, False), 22: (4, True), 25: (2, False), 26: (2, True)}  # integers: bits, and whether they are signed
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class Empty:
    """An optional without an element."""

    def __repr__(self):
        return "EMPTY"


EMPTY = Empty()


class Kind:
    """The type of a value. form: "tensor", "sequence", "optional" or "map".   element: the element type of a tensor, else the Kind inside."""

    def __init__(self, form, element):
        self.form, self.element = form, element

    def __repr__(self):
        return f"{self.form}({self.element})"


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data):
    """Returns the fields of a message: {number: [value, ...]}, with bytes for groups of bytes and integers for all others."""
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        form = key & 7
        if form == VARINT:
            value, at = varint(data, at)
        elif form in (FIXED64, FIXED32):
            end = at + (8 if form == FIXED64 else 4)
            value, at = int.from_bytes(data[at:end], "little"), end
        elif form == BYTES:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            if len(value) != size:
                raise ValueError("the message ends inside a field")
        else:
            raise ValueError(f"wire type {form} is unknown")
        found.setdefault(key >> 3, []).append(value)
    return found


def numbers(values):
    """Returns the numbers of a repeated field, packed or not, as signed 64-bit integers."""
    found = []
    for value in values:
        if isinstance(value, int):
            found.append(value)
            continue
        at = 0
        while at < len(value):
            number, at = varint(value, at)
            found.append(number)
    return [n - (1 << 64) if n >= 1 << 63 else n for n in found]


def fixed(values, code, size):
    """Returns the numbers of a repeated field of fixed size, packed or not."""
    data = b"".join(v if isinstance(v, bytes) else v.to_bytes(size, "little") for v in values)
    return [x for x, in struct.iter_unpack("<" + code, data)]


def half(bits):
    return np.array(bits, np.uint16).view(np.float16)


def widened(bits):
    """Returns the float32 numbers of bfloat16 bits."""
    return (np.asarray(bits, np.uint16).astype(np.uint32) << 16).view(np.float32)


def float8(codes, element):
    """Returns the numbers of 8-bit codes as float32."""
    mantissa, bias, infinite, negative_zero = FLOAT8[element]
    codes = np.asarray(codes, np.uint8)
    magnitude = (codes & 0x7f).astype(np.int64)
    exponent, fraction = magnitude >> mantissa, magnitude & ((1 << mantissa) - 1)
    x = np.where(exponent == 0, np.ldexp(fraction.astype(float), 1 - bias - mantissa),
                 np.ldexp(fraction + float(1 << mantissa), exponent - bias - mantissa))
    if negative_zero:
        top = 0x7c if infinite else 0x7f
        x = np.where(magnitude < top, x, np.where((magnitude == top) & infinite, np.inf, np.nan))
    x = np.where(codes & 0x80, -x, x).astype(np.float32)
    return x if negative_zero else np.where(codes == 0x80, np.float32(np.nan), x)


def unpacked(data, element, count):
    """Returns `count` integers of 4 or 2 bits, the first of each byte in its low bits."""
    bits, signed = PACKED[element]
    data = np.asarray(data, np.uint8)
    found = np.stack([data >> shift & ((1 << bits) - 1) for shift in range(0, 8, bits)], axis=1).reshape(-1)[:count]
    return np.where(found >> (bits - 1), found.astype(np.int64) - (1 << bits), found).astype(np.int8) if signed else found


def tensor(data):
    """Returns the element type of a TensorProto and its elements as an array; bfloat16 as the bits, in uint16."""
    f = fields(data)
    element, shape = f[2][0], tuple(numbers(f.get(1, [])))
    if element == STRING:
        return element, np.array(f.get(6, []), object).reshape(shape)
    if element in FLOAT8 or element in PACKED:
        codes = np.frombuffer(f[9][0], np.uint8) if 9 in f else np.array(numbers(f.get(5, []))).astype(np.uint8)
        count = int(np.prod(shape, dtype=np.int64))
        return element, (float8(codes, element) if element in FLOAT8 else unpacked(codes, element, count)).reshape(shape)
    stored = "uint16" if element == BFLOAT16 else NUMPY[element]
    if 9 in f:
        flat = np.frombuffer(f[9][0], np.dtype(stored).newbyteorder("<"))
    elif element in (1, 14):
        flat = np.array(fixed(f.get(4, []), "f", 4), np.float32).view(stored)
    elif element in (11, 15):
        flat = np.array(fixed(f.get(10, []), "d", 8), np.float64).view(stored)
    elif element == 10:
        flat = half([n & 0xffff for n in numbers(f.get(5, []))])
    else:
        field = {7: 7, 12: 11, 13: 11}.get(element, 5)
        flat = np.array([n & ((1 << 64) - 1) if field == 11 else n for n in numbers(f.get(field, []))]).astype(stored)
    return element, flat.reshape(shape).astype(stored)


def array(data, kind):
    """Returns the elements of a TensorProto for a value of that kind. Six files store bfloat16 as uint16, so the kind decides."""
    element, found = tensor(data)
    return widened(found) if BFLOAT16 in (element, kind.element if kind.form == "tensor" else None) else found


def sequence(data, kind):
    f = fields(data)
    inside = kind.element
    return [value(item, inside) for item in f.get(3, []) + f.get(5, []) + f.get(6, []) + f.get(7, [])]


def optional(data, kind):
    f = fields(data)
    for number in (3, 5, 6, 7):
        if number in f:
            return value(f[number][0], kind.element)
    return EMPTY


def mapping(data, kind):
    f = fields(data)
    keys = f[4] if 4 in f else numbers(f.get(3, []))
    return dict(zip(keys, sequence(f[5][0], Kind("sequence", kind.element))))


def value(data, kind):
    """Returns the value in the bytes of a file of that kind."""
    return {"tensor": array, "sequence": sequence, "optional": optional, "map": mapping}[kind.form](data, kind)


def kind_of(data):
    """Returns the Kind that a TypeProto describes."""
    f = fields(data)
    if 1 in f:
        return Kind("tensor", fields(f[1][0])[1][0])
    for number, form in ((4, "sequence"), (9, "optional")):
        if number in f:
            return Kind(form, kind_of(fields(f[number][0])[1][0]))
    if 5 in f:
        return Kind("map", kind_of(fields(f[5][0])[2][0]))
    raise ValueError("the type of a value is unknown")


def interface(data):
    """Returns the inputs and the outputs of a ModelProto: two lists of pairs of name and Kind."""
    graph = fields(fields(data)[7][0])
    lists = []
    for number in (11, 12):
        infos = [fields(info) for info in graph.get(number, [])]
        lists.append([(info[1][0].decode(), kind_of(info[2][0])) for info in infos])
    return lists
