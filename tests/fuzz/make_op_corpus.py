"""Makes the seeds of op_fuzz: for each op, a file of its name with valid uses, and the same uses with one fault; op/use.h describes the
format. The uses come from the declarations of tests/ops or, for an op without one, from its schema.
usage: PYTHONPATH=build/release/python make_op_corpus.py [OP...]     (default: all ops without a file in corpus/op)"""
import pathlib
import struct
import sys
import zlib

import numpy as np

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "ops"))
import kept  # noqa: E402
import thalweg  # noqa: E402
import tw  # noqa: E402
from attempts import state_of  # noqa: E402
from declare import declared, uses  # noqa: E402
from draws import Use  # noqa: E402
from mutations import mutations  # noqa: E402
from simple import simple_use  # noqa: E402

FOLDER = here / "corpus" / "op"
RICH, SMALL, WRONG, MOST_BYTES, MOST_ELEMENTS = 3, 1, 5, 300, 80
ALONE = 0x7f  # known facts of an input: its shape, and that it has no other reader
STATES = ["sound", "uninitialised", "other type", "same as before", "destroyed", "of another runtime", "not fed"]  # states of a handle
DRAWN = 40  # number of drawn uses, of which the smallest are taken
TYPES = [thalweg._low.tw_dtype_name(n).decode() for n in range(1, 33)]
REALS = [np.inf, -np.inf, np.nan]  # kRealEdges begins with them
rng = np.random.default_rng(5)


def hash_of(name):
    h = 2166136261
    for c in name.encode():
        h = (h ^ c) * 16777619 % 2**32
    return struct.pack("<I", h)


def number(v):
    v = int(v)
    return bytes([v + 16]) if -16 <= v < 192 else b"\xff" + struct.pack("<Q", v % 2**64)


def real(v):
    v = float(v)
    special = [k for k, r in enumerate(REALS) if v == r or v != v and r != r]
    eighths = 0 if special else int(np.clip(np.rint(v * 8), -112, 111)) or int(np.sign(v))
    return bytes([224 + special[0] if special else eighths + 112])


def text(v):
    v = (v.encode() if isinstance(v, str) else bytes(v))[:127]
    return bytes([128 + len(v)]) + v


def element(v, dtype):
    if dtype == tw.string:
        return text(v)
    if dtype == np.bool_:
        return bytes([bool(v)])
    if dtype.kind == "c":
        return real(v.real) + real(v.imag)
    if dtype.kind == "f" or dtype == tw.bfloat16:
        return real(tw.from_bfloat16(v) if dtype == tw.bfloat16 else v)
    if dtype.names and dtype.names[0].startswith("q"):  # a quantised number
        return number(v[0])
    return number(v) if dtype.kind in "iu" else bytes([int(v[0]) % 256])


def tensor(array, known=None):
    array = np.asarray(array)
    known = int(rng.integers(256)) if known is None else known
    if array.ndim > 12 or any(n > 247 for n in array.shape) or array.size > MOST_ELEMENTS:
        raise ValueError("too large")
    values = [element(v, array.dtype) for v in array.reshape(-1)]
    return bytes([known, array.ndim, *array.shape, len(values)]) + b"".join(values)


def index_of(attr, kind):
    return attr.get("allowed", TYPES).index(tw.number_name(kind))


def attribute(attr, use, about, given):
    """Returns one attribute as bytes. given: the arrays of each input."""
    name, kind, value = attr["name"], attr["kind"], use.attrs.get(attr["name"])
    if kind == "type" and attr["list"]:
        types = value or [x.dtype for x, arg in zip(given, about["inputs"]) if arg.get("list_attr") == name for x in x]
        return bytes([len(types), *(index_of(attr, t) for t in types)])
    if kind == "type":
        of_inputs = [x[0].dtype for x, arg in zip(given, about["inputs"]) if arg.get("type_attr") == name and x]
        return bytes([index_of(attr, value or (of_inputs or [attr["default"]])[0]) + (0 if value or rng.integers(2) else 64)])
    counts = [len(x) for x, arg in zip(given, about["inputs"]) if arg.get("number_attr") == name]
    if counts:
        return bytes([counts[0]]) if value in (None, counts[0]) else bytes([counts[0] + 32]) + number(value)
    return b"\0" if value is None else plain(attr, kind, value)


def plain(attr, kind, value):
    if kind == "shape" and attr["list"]:
        if any(s is None for s in value):
            return bytes([1, len(value)])
        return bytes([128, len(value)]) + b"".join(bytes([len(s)]) + b"".join(map(number, s)) for s in value)
    if kind == "shape":
        return bytes([1 + len(value)]) + b"".join(map(number, value))
    if kind == "tensor":
        return b"\1" + tensor(value, 0)
    write = {"int": number, "bool": lambda v: bytes([v]), "float": real, "string": text}[kind]
    if kind == "string" and "allowed" in attr and value in attr["allowed"]:
        return bytes([1, attr["allowed"].index(value)])
    first = b"\x80" if kind == "string" else b"\1"
    return first + (bytes([len(value)]) + b"".join(map(write, value)) if attr["list"] else write(value))


SHAPED = {"FIFOQueueV2", "TensorArrayV3"}  # resources whose ops need the shape of the elements


def state_of_kept(x):
    other = any(v in ([np.int32], np.int32) for v in x.attrs.values())
    return STATES.index(x.state if x.state != "sound" else "other type" if other else "sound" if x.before else "uninitialised")


def filling(x):
    """Returns the contents that op/kept.cc gives to the resource."""
    if x.attrs.get("key_dtype") == tw.string:
        return np.array([b"a"], object)
    floats = [v for v in (x.before[0][1] if x.before else []) if v.dtype == np.float32 and v.ndim]
    return floats[0] if floats and x.maker != "TensorArrayV3" else np.ones(2, np.float32)


def encoded(use, spoilt=None, known=None):
    """Returns a use as bytes. spoilt: the state of all handles, instead of their own. known: the known facts of all inputs."""
    about = tw.ops()[use.op]
    groups = [group if isinstance(group, list) else [group] for group in use.inputs]
    given = [[x if isinstance(x, (tw.List, kept.Kept)) else np.asarray(x) for x in group] for group in groups]
    out = hash_of(use.op) + b"".join(attribute(a, use, about, given) for a in about["attrs"])
    for group, arg in zip(groups, about["inputs"]):
        told = arg.get("type") or use.attrs.get(arg.get("type_attr"), use.types.get(arg.get("type_attr")))
        for x in group:
            if isinstance(x, kept.Kept):
                out += bytes([state_of_kept(x) if spoilt is None else spoilt]) + tensor(filling(x), int(bool(x.before) and x.maker in SHAPED))
                continue
            if isinstance(x, tw.List):
                kind, x = int(rng.integers(2)) * 4, x.array
            elif isinstance(x, tw.Variable):
                kind = STATES.index(state_of(x)) if spoilt is None else spoilt
            else:
                same = told is None or tw.number_of(thalweg.as_dtype(told) if isinstance(told, str) else told) == tw.number_of(x.dtype)
                kind = 0 if same else tw.number_of(x.dtype)
            out += bytes([kind]) + tensor(x, known)
    return out


def attempt(use, **more):
    """Returns the bytes of a use, or None if the format cannot express an input or attribute, or if it is large."""
    try:
        found = encoded(use, **more)
        return found if len(found) < MOST_BYTES else None
    except (ValueError, IndexError, OverflowError, TypeError, KeyError):
        return None


# ---- All ops ----


def is_right(use):
    try:
        tw.run(use.op, use.flat, **use.attrs)
        return True
    except tw.Error:
        return False


def some_right(drawn, count):
    """Returns the first `count` valid uses that have different types."""
    chosen, met = [], set()
    for use in drawn:
        if len(chosen) < count and tuple(use.types.values()) not in met and is_right(use):
            chosen.append(use)
            met.add(tuple(use.types.values()))
    return chosen


# ---- Datasets, optionals, files of images and sounds ----


def png():
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(b"\0\1\2\3")) + chunk(b"IEND", b""))


def jpeg():  # of one scan, so that it is short
    return (b"\xff\xd8\xff\xdb\0\x43\0" + b"\1" * 64 + b"\xff\xc2\0\x0b\x08\0\1\0\1\1\1\x11\0"
            + b"\xff\xc4\0\x14\0\1" + bytes(16) + b"\xff\xda\0\x08\1\1\0\0\0\0\x7f\xff\xd9")


def bmp():
    return b"BM" + struct.pack("<IIIIiiHHIIiiII", 58, 0, 54, 40, 1, 1, 1, 24, 0, 4, 0, 0, 0, 0) + b"\1\2\3\0"


def wav():
    return b"RIFF" + struct.pack("<I", 40) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16) + b"data" + struct.pack(
        "<Ihh", 4, 1, -2)


def gif():
    return (b"GIF89a" + struct.pack("<HHBBB", 2, 1, 0x80, 0, 0) + bytes(range(6)) + b"!\xf9\4\1\0\0\0\0"
            + b"," + struct.pack("<HHHHB", 0, 0, 2, 1, 0) + b"\2\2\x44\x0a\0;")


def webp():
    """One pixel, lossless: five codes of one symbol each."""
    bits = "".join(format(v, f"0{n}b")[::-1] for v, n in [(0x2f, 8), (0, 14), (0, 14), (0, 1), (0, 3), (0, 1), (0, 1), (0, 1)])
    for symbol in (0x30, 0x20, 0x10, 0xff):
        bits += "1" + "0" + "1" + format(symbol, "08b")[::-1]
    bits += "1" + "0" + "0" + "0"
    data = bytes(int(bits[k:k + 8].ljust(8, "0")[::-1], 2) for k in range(0, len(bits), 8))
    data += bytes(len(data) % 2)
    return b"RIFF" + struct.pack("<I", 12 + len(data)) + b"WEBPVP8L" + struct.pack("<I", len(data)) + data


def flac():
    sys.path.insert(0, str(here.parent / "python"))
    import media
    return media.flac(np.array([[1], [-2], [300]]), 8000, 16)


ROWS = np.arange(6, dtype=np.float32).reshape(3, 2)
LONG = {"count": 2, "batch_size": 2, "buffer_size": 2, "num_shards": 2, "index": 1, "seed": 3, "seed2": 4, "start": 0, "stop": 5, "step": 2,
        "size": 2, "shift": 1, "stride": 1, "num_parallel_calls": 2}
ATTRS = {"Toutput_types": [np.float32], "output_types": [np.float32], "output_shapes": [None]}


def of_messages(op):
    """Returns a use of an op that parses messages with one feature, or None. An empty message lacks the feature."""
    key, one, some = np.array("a", object), np.array("", object), np.array([""], object)
    dense = {"Tdense": [np.float32], "dense_shapes": [()], "sparse_types": []}
    half, none = [np.array(0.5, np.float32)], np.zeros(0, object)
    lists = {"feature_list_dense_types": [np.float32], "feature_list_dense_shapes": [()], "feature_list_sparse_types": []}
    empty = {"context_sparse_types": [], "Tcontext_dense": [], "context_dense_shapes": [], "Ncontext_sparse": 0, "Nfeature_list_sparse": 0,
             "Nfeature_list_dense": 1}
    context = {"Ncontext_dense": 1, "Tcontext_dense": [np.float32], "context_dense_shapes": [()]}
    if op == "ParseExample":
        return Use(op, [some, none, [], [key], half], dense | {"Nsparse": 0, "Ndense": 1}, {})
    if op == "ParseSingleExample":
        return Use(op, [one, half], dense | {"num_sparse": 0, "sparse_keys": [], "dense_keys": ["a"]}, {})
    if op == "ParseSequenceExample":
        keys = {f"{part}_keys": [] for part in ("context_sparse", "context_dense", "feature_list_sparse")}
        keys |= {"context_dense_keys": ["b"], "feature_list_dense_keys": ["a"], "feature_list_dense_missing_assumed_empty": ["a"]}
        return Use(op, [some, none, half], lists | empty | keys | context, {})
    if op == "ParseSequenceExampleV2":
        ragged = {f"{part}_{kind}": [] for part in ("context_ragged", "feature_list_ragged") for kind in ("value_types", "split_types")}
        return Use(op, [some, none, none, none, none, none, np.array(["a"], object), none, np.array([True]), []], lists | empty | ragged, {})
    if op == "ParseSingleSequenceExample":
        return Use(op, [one, np.array(["a"], object), [], [np.array("b", object)], [], [key], half, one], lists | empty | context, {})
    return None


def special_use(op):
    """Returns a use whose inputs must be of a certain form, or None."""
    strings = {"DecodePng": png(), "DecodeJpeg": jpeg(), "DecodeBmp": bmp(), "DecodeWav": wav(),
               "ExtractJpegShape": jpeg(), "DecodeGif": gif(), "DecodeWebP": webp(), "DecodeFlac": flac()}
    if op in strings:
        return Use(op, [np.array(strings[op], object)], {}, {})
    if op == "AnonymousIteratorV3":
        return Use(op, [], {"output_types": [np.float32], "output_shapes": [None]}, {})
    if op == "DecodeCSV":
        defaults = [np.ones(1, np.float32), np.ones(1, np.int32)]
        return Use(op, [np.array(["1.5,2"], object), defaults], {"OUT_TYPE": [np.float32, np.int32]}, {})
    if op == "DecodeAndCropJpeg":
        return Use(op, [np.array(jpeg(), object), np.array([0, 0, 1, 1], np.int32)], {}, {})
    if op == "EncodeJpegVariableQuality":
        return Use(op, [np.arange(12, dtype=np.uint8).reshape(2, 2, 3), np.array(50, np.int32)], {}, {})
    if op in ("EncodePng", "EncodeJpeg"):
        return Use(op, [np.arange(12, dtype=np.uint8).reshape(2, 2, 3)], {"T": np.uint8} if op == "EncodePng" else {}, {})
    if op == "Mfcc":
        return Use(op, [np.ones((1, 2, 9), np.float32), np.array(8000, np.int32)], {}, {})
    if op == "EncodeWav":
        return Use(op, [np.zeros((4, 1), np.float32), np.array(8000, np.int32)], {}, {})
    if op == "ParseExampleV2":
        no_keys = np.zeros(0, object)
        return Use(op, [np.array([""], object), no_keys, no_keys, np.array(["a"], object), no_keys, [np.array(0.5, np.float32)]],
                   {"Tdense": [np.float32], "num_sparse": 0, "sparse_types": [], "ragged_value_types": [], "ragged_split_types": [],
                    "dense_shapes": [()]}, {})
    if use := of_messages(op):
        return use
    if not (op.endswith(("Dataset", "DatasetV2", "DatasetV3")) or op.startswith("Optional")):
        return None
    about, inputs = tw.ops()[op], []
    given = {a["name"] for a in about["attrs"]}
    if "f" in given or "key_func" in given or "predicate" in given or "next_func" in given or "filename" in {x["name"] for x in about["inputs"]}:
        return None
    for x in about["inputs"]:
        name, kind = x["name"], x.get("type")
        array = tw.List(ROWS) if kind == "variant" else np.array(LONG.get(name, 1), np.int64) if kind == "int64" else np.array(False)
        if kind == "resource":
            array = tw.Variable(ROWS)
        if name in ("components", "padding_values"):
            array = ROWS if name == "components" else np.array(0, np.float32)
        if name == "padded_shapes":
            array = np.array([2], np.int64)
        inputs.append([array] if "number_attr" in x or "list_attr" in x else array)
    attrs = {k: v for k, v in ATTRS.items() if k in given} | ({"N": 1} if "N" in given else {})
    if op in ("RangeDataset", "RandomDataset"):
        attrs["output_types"] = [np.int64]
    if "serialized_options" in given:
        attrs["serialized_options"] = ""
    return Use(op, inputs, attrs, {})


def right_uses(op):
    if op == "DecodeImage":
        return [Use(op, [np.array(file, object)], {}, {}) for file in (png(), bmp(), gif(), webp())]
    if special := special_use(op):
        return [special]
    if op in kept.OPS:
        return [use for use in kept.plain_uses() if use.op == op]
    if op not in declared().ops:
        return [simple_use(op)]
    drawn = sorted((u for u in uses(declared().ops[op], DRAWN, 3) if attempt(u)), key=lambda u: len(attempt(u)))
    rich = [u for u in drawn if all(x.size for x in u.flat) and any(x.size > 2 for x in u.flat)]
    return some_right(rich, RICH) + some_right(drawn, SMALL)


def seeds(op):
    right = right_uses(op)
    out = [attempt(u, known=None if k else ALONE) for k, u in enumerate(right)]
    if right and not any(isinstance(x, tw.List) for group in right[0].inputs if isinstance(group, list) for x in group):
        wrong = [Use(op, m.inputs, m.attrs, right[0].types) for m in mutations(right[0], tw.ops()[op], rng)]
        wrong = [bytes_ for u in wrong if (bytes_ := attempt(u))]
        out += [wrong[i] for i in rng.permutation(len(wrong))[:WRONG]]
    if right and any(isinstance(x, (tw.Variable, kept.Kept)) for x in right[0].flat):
        out += [attempt(right[0], spoilt=state) for state in range(1, len(STATES))]
    return [s for s in out if s]


def main(names):
    FOLDER.mkdir(parents=True, exist_ok=True)
    names = names or [op for op in tw.ops() if not (FOLDER / op).exists()]
    written = {op: seeds(op) for op in names}
    for op, found in written.items():
        (FOLDER / op).write_bytes(b"".join(found))
    count, size = sum(map(len, written.values())), sum(len(s) for found in written.values() for s in found)
    print(f"{count} uses of {len(names)} ops, {size} bytes, in {FOLDER}")
    print("without any:", *[op for op, found in written.items() if not found])


main(sys.argv[1:])
