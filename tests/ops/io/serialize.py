"""Tensors as bytes. The bytes are written here from the description of TensorProto and of the wire format of Protocol Buffers."""
import struct

import numpy as np

import sparse
import tw
from arrays import i64
from declare import expect, op, refuses
from schema import ALL, type_of
from text import text

NUMBER = {name: tw.number_of(tw.numpy_of(type_of(name))) for name in ALL}


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def number(field_number, n):
    return varint(field_number << 3) + varint(n)


def shaped(dtype, shape, unknown=b""):
    """Returns the beginning of a serialized tensor: its type and its shape. dtype: a name, or a number."""
    dims = b"".join(field(2, number(1, n) if n else b"") for n in shape)
    return number(1, NUMBER.get(dtype, dtype)) + field(2, dims + unknown)


def serialized(x, content=False):
    """Returns a tensor's bytes. content: whether texts are written one after the other, not as a list."""
    head = shaped(tw.number_name(x.dtype), x.shape)
    if x.size == 0:
        return head
    if x.dtype != tw.string:
        return head + field(4, np.ascontiguousarray(x).tobytes())
    if content:
        return head + field(4, b"".join(varint(len(t)) for t in x.flat) + b"".join(x.flat))
    return head + b"".join(field(8, t) for t in x.flat)


def scalar(data):
    return np.array(data, object)


# The types whose arrays the oracle gets unchanged; expectations below have the others.
PLAIN = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool string qint8 quint8 qint16 quint16 qint32 int4 uint4"
op("SerializeTensor", lambda tensor: scalar(serialized(tensor)), lambda d: [d("tensor")], types=dict(T=PLAIN))
for x in (np.float32([[1, -0.0], [np.nan, np.inf]]), np.float64(2.5), np.float16([1, 2]), np.complex64([1 + 2j]), np.complex128([[3 - 1j]]),
          tw.to_bfloat16(np.array([1.5, -2])), np.zeros((0, 3), np.float32), np.array([], object), np.array([[b"a", b""], [b"\0b", b"long" * 99]], object)):
    expect("SerializeTensor", [x], [scalar(serialized(x))])

# ---- Sparse tensors ----

at, shape = i64([0, 2], [1, 0], [1, 1]), i64(3, 4)
letters = np.array([b"a", b"", b"ccc"], object)


def parts(indices, values, sizes):
    return [serialized(indices), serialized(values, True), serialized(sizes)]


def drawn(d):
    sizes = sparse.sizes(d, least=0)
    return sparse.tensor(d, "sparse_indices sparse_values sparse_shape", sizes, ordered=d.integer(0, 1) > 0)


def rows(d):
    return sparse.tensor(d, "sparse_indices sparse_values sparse_shape", sparse.sizes(d, least=2))


def many(indices, values, sizes):
    return np.array([parts(indices[mine, 1:], values[mine], sizes[1:]) for row in range(sizes[0]) for mine in [indices[:, 0] == row]],
                    object).reshape(-1, 3)


TEXT = dict(types=dict(T=PLAIN, out_type="string"))
op("SerializeSparse", lambda *tensor: np.array(parts(*tensor), object), drawn, **TEXT)
op("SerializeManySparse", many, rows, **TEXT)
expect("SerializeSparse", [at, np.float32([1, 2, 3]), shape], [np.array(parts(at, np.float32([1, 2, 3]), shape), object)])
expect("SerializeManySparse", [at, letters, shape], [many(at, letters, shape)])
expect("SerializeManySparse", [at[:0], letters[:0], i64(0, 4)], [np.zeros((0, 3), object)])
refuses("SerializeSparse", [at[0], letters, shape], "sparse_indices", "[2]")
refuses("SerializeSparse", [at, letters[:2], shape], "sparse_values", "3", "2")
refuses("SerializeSparse", [at, letters, i64(3, 4, 5)], "sparse_shape", "2", "3")
refuses("SerializeSparse", [at, letters, i64(3, -4)], "sparse_shape", "-4")
refuses("SerializeManySparse", [at[::-1], letters, shape], "sparse_indices[2, 0]", "0", "sorted")
refuses("SerializeManySparse", [at + i64(2, 0), letters, shape], "sparse_indices[1, 0]", "3")
refuses("SerializeManySparse", [at - i64(1, 0), letters, shape], "sparse_indices[0, 0]", "-1")
refuses("SerializeManySparse", [i64([0], [1], [2]), letters, i64(3)], "1", "batch")
refuses("SerializeManySparse", [at, letters[:1], shape], "sparse_values", "3", "1")
refuses("SerializeManySparse", [at, letters, i64(-3, 4)], "-3")


made = {}  # what drawn bytes stand for


def several(d, lead):
    """Draws serialized sparse tensors of one rank, in an array of these axes."""
    rank, at, values, largest, texts = d.integer(0, 2), [], [], np.zeros(0, np.int64), []
    for index in np.ndindex(*lead):
        size = np.array([d.integer(1, 4) for _ in range(rank)], np.int64)
        own = sparse.places(d, tuple(size))
        values.append(d("dtype", (len(own),)))
        at += [(*index, *place) for place in own.tolist()]
        largest = np.maximum(largest, size) if len(largest) else size
        texts.append(parts(own, values[-1], size))
    given = d("serialized_sparse", of=np.array(texts, object).reshape(*lead, 3))
    made[tuple(given.flat)] = [sparse.matrix(at, len(lead) + rank), np.concatenate(values), np.array([*lead, *largest], np.int64)]
    return [given]


def stood_for(given):
    return made[tuple(given.flat)]


op("DeserializeSparse", stood_for, lambda d: several(d, d.pick((), (1,), (2,), (2, 3))), types=dict(dtype=PLAIN, Tserialized="string"))
op("DeserializeManySparse", stood_for, lambda d: several(d, (d.integer(1, 3),)), types=dict(dtype=PLAIN))
two = np.array([parts(i64([0], [10], [20]), np.float32([1, 2, 3]), i64(50)), parts(i64([2], [10]), np.float32([4, 5]), i64(30))], object)
joined = [i64([0, 0], [0, 10], [0, 20], [1, 2], [1, 10]), np.float32([1, 2, 3, 4, 5]), i64(2, 50)]
FLOATS = dict(dtype=np.float32)
expect("DeserializeManySparse", [two], joined, **FLOATS)
expect("DeserializeSparse", [two], joined, **FLOATS)
expect("DeserializeSparse", [two[1]], [i64([2], [10]), np.float32([4, 5]), i64(30)], **FLOATS)
expect("DeserializeSparse", [two[:, None]], [np.insert(joined[0], 1, 0, 1), joined[1], i64(2, 1, 50)], **FLOATS)
expect("DeserializeSparse", [np.array(parts(at, letters, shape), object)], [at, letters, shape], dtype=np.dtype(object))
none = np.zeros((0, 2), np.int64)
expect("DeserializeSparse", [np.array(parts(none, np.float32([]), shape), object)], [none, np.float32([]), shape], **FLOATS)
for name, one in (("DeserializeSparse", two[0]), ("DeserializeManySparse", two[:1])):

    def spoilt(k, data):
        changed = np.array(one)
        changed.reshape(-1)[k] = data
        return changed

    refuses(name, [spoilt(0, b"abc")], "places of sparse tensor 0", "3 bytes", **FLOATS)
    refuses(name, [spoilt(0, serialized(np.float32([[1], [2], [3]])))], "places of sparse tensor 0", "float", "int64", **FLOATS)
    refuses(name, [spoilt(0, serialized(i64([0], [10], [50])))], "places of sparse tensor 0", "[2, 0]", "50", **FLOATS)
    refuses(name, [spoilt(0, serialized(i64([0], [10], [-1])))], "places of sparse tensor 0", "[2, 0]", "-1", **FLOATS)
    refuses(name, [spoilt(0, serialized(i64(0, 10, 20)))], "places of sparse tensor 0", "[3]", "matrix", **FLOATS)
    refuses(name, [spoilt(1, serialized(np.float32([1, 2])))], "values of sparse tensor 0", "[2]", **FLOATS)
    refuses(name, [spoilt(1, serialized(np.float64([1, 2, 3])))], "values of sparse tensor 0", "double", "float", **FLOATS)
    refuses(name, [spoilt(2, serialized(i64(50, 2)))], "sizes of sparse tensor 0", "[2]", **FLOATS)
    refuses(name, [spoilt(2, serialized(i64(-50)))], "sparse tensor 0", "-50", **FLOATS)
    refuses(name, [spoilt(2, serialized(np.int32([50])))], "sizes of sparse tensor 0", "int32", **FLOATS)
    # A few bytes may not stand for any number of elements.
    refuses(name, [spoilt(0, shaped("int64", (2**40, 1)))], "places of sparse tensor 0", str(2**40), **FLOATS)
    refuses(name, [spoilt(1, shaped("float", (2**40,)))], "values of sparse tensor 0", str(2**40), **FLOATS)
    refuses(name, [one[..., :2]], "serialized_sparse", "2", "3", **FLOATS)
    refuses(name, [one[..., :0]], "serialized_sparse", "0", "3", **FLOATS)
refuses("DeserializeManySparse", [two[0]], "serialized_sparse", "[3]", **FLOATS)
refuses("DeserializeManySparse", [two[:0]], "serialized_sparse", "[0, 3]", **FLOATS)
refuses("DeserializeSparse", [scalar(b"")], "serialized_sparse", "[]", **FLOATS)
mixed = np.array([two[0], parts(i64([0, 1]), np.float32([1]), i64(2, 2))], object)
refuses("DeserializeManySparse", [mixed], "sparse tensor 1", "2", "1", **FLOATS)

# ---- ParseTensor ----


def bytes_of(d):
    x = d("out_type")
    given = d("serialized", of=scalar(serialized(x)))
    made[given.item()] = x
    return [given]


op("ParseTensor", lambda given: made[given.item()], bytes_of)


def parsed(data, wanted):
    expect("ParseTensor", [scalar(data)], [np.asarray(wanted)], out_type=np.asarray(wanted).dtype.type)


for x in (np.float32([[1, 2], [3, np.nan]]), np.int8(-3), np.uint64([2**64 - 1]), np.bool_([True, False]), np.zeros((2, 0), np.int16)):
    parsed(serialized(x), x)
# Lists of elements, packed or one by one; the last one is repeated, and without any all are 0.
parsed(shaped("float", (3,)) + field(5, struct.pack("<2f", 1, 2)), np.float32([1, 2, 2]))
parsed(shaped("float", (2,)) + b"\x2d" + struct.pack("<f", 7), np.float32([7, 7]))
parsed(shaped("double", (2,)) + field(6, struct.pack("<d", 1)) + b"\x31" + struct.pack("<d", 5), [1.0, 5])
parsed(shaped("int32", (2, 2)) + number(7, -5) + field(7, varint(6)), np.int32([[-5, 6], [6, 6]]))
parsed(shaped("uint8", (2,)) + number(7, 200), np.uint8([200, 200]))
parsed(shaped("int16", ()) + number(7, -300), np.int16(-300))
parsed(shaped("int64", (1,)) + number(10, -2**63), i64(-2**63))
parsed(shaped("bool", (3,)) + field(11, b"\1\0\7"), np.bool_([1, 0, 1]))
parsed(shaped("bool", (2,)) + field(4, b"\xff\0"), np.bool_([1, 0]))
parsed(shaped("half", (2,)) + field(13, varint(0x3c00) + varint(0xc000)), np.float16([1, -2]))
parsed(shaped("uint32", (1,)) + number(16, 2**32 - 1), np.uint32([2**32 - 1]))
parsed(shaped("uint64", (1,)) + number(17, 2**64 - 1), np.uint64([2**64 - 1]))
parsed(shaped("complex64", (2,)) + field(9, struct.pack("<2f", 1, -2)), np.complex64([1 - 2j, 1 - 2j]))
parsed(shaped("complex128", (1,)) + field(12, struct.pack("<2d", 1, -2)), np.complex128([1 - 2j]))
parsed(shaped("int64", (2, 3)), np.zeros((2, 3), np.int64))
parsed(shaped("float", (1,)) + field(5, struct.pack("<3f", 1, 2, 3)), np.float32([1]))  # too many: the first ones count
parsed(number(3, 1) + shaped("int64", ()) + number(99, 5) + field(98, b"x") + number(10, 4), np.int64(4))  # other fields
for x, data in ((text(b"a", b"", b"\0c"), b"" + b"".join(field(8, t) for t in (b"a", b"", b"\0c"))),
                (text(b"a", b"b", b"b"), field(8, b"a") + field(8, b"b")), (text(b"", b""), b""),
                (text(b"abc", b""), field(4, b"\3\0abc"))):
    expect("ParseTensor", [scalar(shaped("string", x.shape) + data)], [x], out_type=np.dtype(object))
WHOLE = dict(out_type=np.int64)
five = serialized(i64(1, 2, 3, 4, 5))
refuses("ParseTensor", [scalar(five)], "int64", "out_type", "float", out_type=np.float32)
refuses("ParseTensor", [scalar(b"")], "serialized", "0 bytes", **WHOLE)
refuses("ParseTensor", [scalar(five[:-1])], "serialized", "bytes", **WHOLE)
refuses("ParseTensor", [scalar(b"\xff" * 20)], "serialized", "20 bytes", **WHOLE)
refuses("ParseTensor", [text(five, five)], "serialized", "[2]", **WHOLE)
refuses("ParseTensor", [scalar(shaped("int64", (2,)) + field(4, b"12345678"))], "8 bytes", "2 elements", **WHOLE)
refuses("ParseTensor", [scalar(shaped("int64", (2,)) + field(4, b"123"))], "3 bytes", "2 elements", **WHOLE)
refuses("ParseTensor", [scalar(shaped("int64", (-1,)))], "shape", **WHOLE)
refuses("ParseTensor", [scalar(shaped("int64", (2**32, 2**32)))], "2^63-1", **WHOLE)
refuses("ParseTensor", [scalar(shaped("int64", (1,) * 255))], "254", **WHOLE)
refuses("ParseTensor", [scalar(shaped("int64", (), number(3, 1)))], "rank", **WHOLE)
refuses("ParseTensor", [scalar(shaped(77, ()))], "77", **WHOLE)
refuses("ParseTensor", [scalar(shaped(20, ()))], "resource", **WHOLE)
refuses("ParseTensor", [scalar(shaped("int64", (2,)) + field(10, b"\x80"))], "damaged", **WHOLE)
refuses("ParseTensor", [scalar(shaped("int64", (2,)) + b"\x51" + b"12345678")], "damaged", **WHOLE)
refuses("ParseTensor", [scalar(shaped("float", (2,)) + field(5, b"12345"))], "damaged", out_type=np.float32)
refuses("ParseTensor", [scalar(shaped("complex64", (2,)) + field(9, struct.pack("<3f", 1, 2, 3)))], "imaginary", out_type=np.complex64)
TEXTS = dict(out_type=np.dtype(object))
refuses("ParseTensor", [scalar(shaped("string", (2,)) + field(4, b"\3"))], "2 texts", **TEXTS)
refuses("ParseTensor", [scalar(shaped("string", (1,)) + field(4, b"\3ab"))], "text", **TEXTS)
refuses("ParseTensor", [scalar(shaped("string", (1,)) + field(4, b"\1ab"))], "1 bytes", **TEXTS)
