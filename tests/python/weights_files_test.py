"""Weights in GGUF and npz files: what is written and read, and hostile files. The files are made here by hand, from the formats' descriptions."""
import io
import struct
import zipfile

import numpy as np
import pytest

import thalweg as tw

# ---- GGUF ----

U8, I8, U16, I16, U32, I32, F32, BOOL, TEXT, LIST, U64, I64, F64 = range(13)
FORMS = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "B", U64: "Q", I64: "q", F64: "d"}
Q8_0 = 8


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(data)) + data


def value(kind, it):
    """kind: a number, or (LIST, kind) for a list."""
    if isinstance(kind, tuple):
        inner = kind[1] if isinstance(kind[1], int) else LIST
        return struct.pack("<IQ", inner, len(it)) + b"".join(value(kind[1], one) for one in it)
    return text(it) if kind == TEXT else struct.pack("<" + FORMS[kind], it)


def gguf(values=(), tensors=(), *, version=3, counts=None, alignment=32, offsets=None, cut=0, more=b""):
    """values: (key, kind, value).   tensors: (name, sizes, type, bytes), sizes as in NumPy."""
    out = b"GGUF" + struct.pack("<IQQ", version, *(counts or (len(tensors), len(values))))
    for key, kind, it in values:
        out += text(key) + struct.pack("<I", LIST if isinstance(kind, tuple) else kind) + value(kind, it)
    data = b""
    for i, (name, sizes, kind, content) in enumerate(tensors):
        at = offsets[i] if offsets else len(data)
        out += text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes[::-1], kind, at)
        data += content + b"\0" * (-len(content) % alignment)
    out += b"\0" * (-len(out) % alignment) + data + more
    return out[:len(out) - cut]


def blocks(rows, scales):
    """Bytes of Q8_0: rows of multiples of 32 numbers, and a scale for every 32."""
    return b"".join(struct.pack("<e", s) + r.tobytes() for s, r in zip(np.ravel(scales), rows.reshape(-1, 32)))


RNG = np.random.default_rng(4)
X, H = RNG.normal(size=(3, 5)).astype(np.float32), RNG.normal(size=(2, 3, 4)).astype(np.float16)
Q, SCALES = RNG.integers(-127, 128, (4, 64)).astype(np.int8), RNG.uniform(0.01, 2, (4, 2)).astype(np.float16)
BF = np.array([[0x3f80, 0x4000], [0xbf00, 0x7f80]], np.uint16)
VALUES = [("general.architecture", TEXT, "llama"), ("n", U32, 7), ("small", I8, -3), ("half", F32, 0.5), ("far", F64, 1e300),
          ("most", U64, 2**64 - 1), ("yes", BOOL, 1), ("sizes", (LIST, I32), [1, -2, 3]), ("tokens", (LIST, TEXT), ["<s>", "ä", ""]),
          ("flags", (LIST, BOOL), [0, 1]), ("none", (LIST, F32), []),
          ("nested", (LIST, (LIST, U8)), [[1], [2, 3]])]
TENSORS = [("x", (3, 5), 0, X.tobytes()), ("h", (2, 3, 4), 1, H.tobytes()), ("q", (4, 64), Q8_0, blocks(Q, SCALES)), ("bf", (2, 2), 30, BF.tobytes()),
           ("d", (2,), 28, np.float64([1, 2]).tobytes()), ("i", (), 26, np.int32(5).tobytes()), ("empty", (0, 3), 0, b"")]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.gguf"


def test_tensors_of_gguf_are_read(path):
    path.write_bytes(gguf(VALUES, TENSORS))
    got = tw.weights.load(path, skip=["bf"])
    assert list(got) == ["x", "h", "q", "d", "i", "empty"]
    assert np.array_equal(got["x"], X) and np.array_equal(got["h"], H) and got["h"].dtype == np.float16
    assert got["d"].tolist() == [1, 2] and got["i"] == 5 and got["empty"].shape == (0, 3)
    wanted = (Q.reshape(4, 2, 32).astype(np.float64) * SCALES[..., None].astype(np.float64)).reshape(4, 64)
    assert got["q"].dtype == np.float32 and np.array_equal(got["q"], wanted.astype(np.float32))
    assert not any(a.flags.writeable for a in got.values()) and got["x"].base is not None


def test_quantised_tensors_are_kept_on_demand(path):
    path.write_bytes(gguf(VALUES, TENSORS))
    got = tw.weights.load(path, skip=["bf"], quantised=True)
    q = got["q"]
    assert isinstance(q, tw.weights.Quantised) and q.shape == (4, 64) and q.scale.dtype == np.float16 and q.values.dtype == np.int8
    assert np.array_equal(q.scale, SCALES) and np.array_equal(q.values.reshape(4, 64), Q) and not q.values.flags.owndata
    assert np.array_equal(q.dequantised(), tw.weights.load(path, skip=["bf"])["q"])
    turned = tw.weights.load(path, skip=["bf"], quantised=True, names={"q": "q^T"})["q"]
    assert turned.dtype == np.float32 and np.array_equal(turned, q.dequantised().T)


def test_bfloat16_of_gguf_becomes_float32_without_other_packages(path):
    path.write_bytes(gguf(VALUES, TENSORS))
    got = tw.weights.load(path, dtype="float32")
    assert got["bf"].dtype == np.float32 and got["bf"].tolist() == [[1, 2], [-0.5, np.inf]]
    assert got["h"].dtype == np.float32 and np.array_equal(got["h"], H.astype(np.float32)) and got["i"].dtype == np.int32
    with pytest.raises(ValueError, match="floating-point"):
        tw.weights.load(path, dtype="int32")


def test_the_metadata_of_gguf_is_a_dict(path):
    for version in (2, 3):
        path.write_bytes(gguf(VALUES, TENSORS, version=version))
        got = tw.weights.metadata(path)
        assert list(got) == [key for key, _, _ in VALUES]
        plain = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in got.items()}
        assert plain.pop("nested")[1].tolist() == [2, 3]
        assert plain == {"general.architecture": "llama", "n": 7, "small": -3, "half": 0.5, "far": 1e300, "most": 2**64 - 1, "yes": True,
                         "sizes": [1, -2, 3], "tokens": ["<s>", "ä", ""], "flags": [False, True], "none": []}
        assert got["sizes"].dtype == np.int32 and isinstance(got["yes"], bool)


def test_the_alignment_of_gguf_is_its_own(path):
    values = [("general.alignment", U32, 8)]
    path.write_bytes(gguf(values, [("a", (1,), 24, b"\1"), ("b", (2,), 0, np.float32([1, 2]).tobytes())], alignment=8))
    assert tw.weights.load(path)["b"].tolist() == [1, 2]


F = np.float32([1, 2]).tobytes()
ONE = [("x", (2,), 0, F)]
HOSTILE_GGUF = {
    "version": (gguf(version=1), "version 1"),
    "version to come": (gguf(version=4), "version 4"),
    "big-endian": (gguf(version=3 << 24), "big-endian"),
    "only a mark": (b"GGUF", "ends too early"),
    "tensors": (gguf(counts=(1 << 60, 0)), "more than its"),
    "values": (gguf(counts=(0, 1 << 63)), "more than its"),
    "one tensor": (gguf(tensors=ONE, counts=(2, 0)), "axes"),  # what follows is read as a tensor
    "key": (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1 << 62) + b"x" * 30, "the length of a key"),
    "no UTF-8": (gguf([(b"\xff\xfe", U8, 1)]), "not UTF-8"),
    "twice": (gguf([("k", U8, 1), ("k", U8, 2)]), "the key 'k' twice"),
    "kind": (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<I", 13) + b"12345678", "the type 13"),
    "truth": (gguf([("k", BOOL, 2)]), "truth values"),
    "list": (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<IIQ", LIST, U32, 1 << 61) + bytes(40), "the length of 'k'"),
    "texts": (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<IIQ", LIST, TEXT, 1 << 30) + bytes(40), "the length of 'k'"),
    "kind in a list": (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<IIQ", LIST, 77, 1) + bytes(40), "the type 77"),
    "deep": (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<I", LIST) + struct.pack("<IQ", LIST, 1) * 100, "lists in each other"),
    "alignment": (gguf([("general.alignment", U32, 0)], ONE), "alignment 0"),
    "odd alignment": (gguf([("general.alignment", U32, 24)], ONE), "alignment 24"),
    "alignment a text": (gguf([("general.alignment", TEXT, "32")], ONE), "alignment 32"),
    "parts": (gguf([("split.count", U16, 3)], ONE), "one of 3 parts"),
    "axes": (gguf(tensors=[("x", (1,) * 5, 0, F)]), "5 axes"),
    "many axes": (b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + text("x") + struct.pack("<I", (1 << 32) - 1) + bytes(40), "4294967295 axes"),
    "type": (gguf(tensors=[("x", (2,), 12, F)]), "the type Q4_K.*F32 F16 BF16|the type Q4_K"),
    "unknown type": (gguf(tensors=[("x", (2,), 999, F)]), "the type 999"),
    "overflow": (gguf(tensors=[("x", (1 << 32, 1 << 32), 0, F)]), "more elements"),
    "wraps": (gguf(tensors=[("x", ((1 << 62) + 2,), 0, F)]), "and the data has"),
    "no blocks": (gguf(tensors=[("x", (33,), Q8_0, bytes(68))]), "multiple of 32"),
    "no blocks at all": (gguf(tensors=[("x", (), Q8_0, bytes(68))]), "multiple of 32"),
    "same name": (gguf(tensors=ONE * 2), "the tensor 'x' twice"),
    "overlap": (gguf(tensors=[("x", (16,), 0, bytes(64)), ("y", (2,), 0, F)], offsets=[0, 32]), "at least 64"),
    "unaligned": (gguf(tensors=ONE, offsets=[4]), "multiple of 32"),
    "beyond": (gguf(tensors=ONE, offsets=[1 << 40]), "the data has 32"),
    "beyond all": (gguf(tensors=ONE, offsets=[(1 << 64) - 32]), "the data has 32"),
    "cut": (gguf(tensors=ONE, cut=30), "the data has 2"),
    "long name": (gguf(tensors=[("x" * 5000, (2,), 0, F)]), "5000 characters"),
}


@pytest.mark.parametrize("name", HOSTILE_GGUF)
def test_hostile_gguf_is_refused(path, name):
    data, said = HOSTILE_GGUF[name]
    path.write_bytes(data)
    with pytest.raises(tw.InvalidArgumentError, match=said) as caught:
        tw.weights.load(path)
    assert str(path) in str(caught.value) and len(str(caught.value)) < 1000


def test_cut_gguf_is_refused(path):
    data = gguf(VALUES, TENSORS[:3])
    end = len(data) - (-len(TENSORS[2][3]) % 32)  # without what fills the last tensor up
    for size in [*range(0, end - 1, 5), end - 1]:
        path.write_bytes(data[:size])
        with pytest.raises(tw.InvalidArgumentError):
            tw.weights.load(path)
    path.write_bytes(data[:end])
    assert np.array_equal(tw.weights.load(path)["x"], X)


def test_changed_gguf_is_read_or_refused(path):
    """No change of a byte leads elsewhere: to another error, or to memory of others."""
    data = bytearray(gguf(VALUES, TENSORS))
    rng = np.random.default_rng(8)
    head = data.index(X.tobytes())
    for at in rng.integers(0, head, 1500):
        changed = data.copy()
        changed[at] = rng.choice([0, 1, 127, 255, changed[at] ^ 1])
        path.write_bytes(changed)
        try:
            for array in tw.weights.load(path, dtype="float32").values():
                array.tobytes()
        except tw.InvalidArgumentError:
            pass


# ---- npz ----

ARRAYS = {"a": np.float32([[1, 2, 3], [4, 5, 6]]), "b": np.int64(7), "c": np.zeros((0, 3), np.float16), "d": np.array([True, False]),
          "e/f.g": np.uint8([1, 2, 3]), "z": np.complex64([1 + 2j]), "columns": np.asfortranarray(np.arange(24.0).reshape(2, 3, 4)),
          "swapped": np.arange(3, dtype=">f4")}


def check(got):
    assert got.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert got[name].dtype == array.dtype.newbyteorder("=") and got[name].shape == array.shape and np.array_equal(got[name], array)
        assert not got[name].flags.writeable


def test_npz_is_read_and_written(tmp_path):
    np.savez(tmp_path / "w.npz", **ARRAYS)
    check(tw.weights.load(tmp_path / "w.npz"))
    np.savez_compressed(tmp_path / "w.npz", **ARRAYS)
    check(tw.weights.load(tmp_path / "w.npz"))
    tw.weights.save(tmp_path / "w.npz", ARRAYS)
    check(tw.weights.load(tmp_path / "w.npz"))
    with np.load(tmp_path / "w.npz") as theirs:
        assert all(np.array_equal(theirs[name], array) for name, array in ARRAYS.items())
    assert tw.weights.metadata(tmp_path / "w.npz") == {} and [p.name for p in tmp_path.iterdir()] == ["w.npz"]


def test_what_is_not_compressed_is_mapped(tmp_path):
    np.savez(tmp_path / "w.npz", x=np.arange(1000.0), y=np.arange(6).reshape(2, 3))
    got = tw.weights.load(tmp_path / "w.npz")
    with open(tmp_path / "w.npz", "r+b") as file:  # another program's change is seen
        data = file.read()
        file.seek(data.index(np.float64(999).tobytes()))
        file.write(np.float64(5).tobytes())
    assert got["x"][999] == 5


def test_npz_refuses_what_it_cannot_hold(tmp_path):
    tw.weights.save(tmp_path / "w.npz", {"x": np.float32([1])})
    for arrays, metadata, error in (({"x": np.array(["a"])}, None, TypeError), ({"x": np.array([{}])}, None, TypeError),
                                    ({"x": np.ones(1)}, {"a": "b"}, ValueError)):
        with pytest.raises(error):
            tw.weights.save(tmp_path / "w.npz", arrays, metadata=metadata)
    assert tw.weights.load(tmp_path / "w.npz")["x"] == 1 and [p.name for p in tmp_path.iterdir()] == ["w.npz"]


def npy(header, data=b"", version=(1, 0)):
    body = header.encode("latin1")
    return b"\x93NUMPY" + bytes(version) + struct.pack("<H" if version == (1, 0) else "<I", len(body)) + body + data


def archive(members, how=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", how) as z:
        for name, data in members:
            z.writestr(name, data)
    return out.getvalue()


def with_member(content, name="x.npy"):
    return archive([(name, content)])


def form(descr="'<f4'", shape="(2,)", order="False"):
    return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }\n"


GOOD = archive([("x.npy", npy(form(), F))])


def patched(data, mark, at, form_, value_):
    """Puts a number behind the last mark."""
    out = bytearray(data)
    struct.pack_into(form_, out, data.rindex(mark) + at, value_)
    return bytes(out)


HOSTILE_NPZ = {
    "no archive": (b"PK\3\4" + bytes(40), "no npz file"),
    "cut": (GOOD[:-10], "no npz file"),
    "other member": (with_member(b"hello", "x.txt"), "no .npy file"),
    "twice": (archive([("x.npy", npy(form(), F)), ("y.npy", npy(form(), F))]).replace(b"y.npy", b"x.npy"), "the array 'x' twice"),
    "pickle": (with_member(npy(form("'|O'", "(1,)"), b"cos\nsystem\n(S'true'\ntR.")), "nothing is unpickled"),
    "texts": (with_member(npy(form("'<U3'", "(1,)"), bytes(12))), "can be read"),
    "records": (with_member(npy(form("[('a', '<f4')]"), F)), "can be read"),
    "bytes": (with_member(npy(form("'|V4'"), F)), "can be read"),
    "wide": (with_member(npy(form("'<f16'", "(1,)"), bytes(16))), "x"),
    "no header": (with_member(b"\x93NUMPY\1\0\xff\xffxx"), "header that cannot be read"),
    "no mark": (with_member(b"12345678901234567890"), "header that cannot be read"),
    "header of code": (with_member(npy("__import__('os').system('true')")), "header that cannot be read"),
    "deep": (with_member(npy("(" * 3000)), "header that cannot be read"),
    "version": (with_member(npy(form(), F, (3, 0))), "version"),
    "shape": (with_member(npy(form(shape="(3,)"), F)), "takes 12 bytes"),
    "huge": (with_member(npy(form(shape="(4611686018427387906,)"), F)), "no array has|takes"),
    "negative": (with_member(npy(form(shape="(-2,)"), F)), "no array has|cannot be read"),
    "overflow": (with_member(npy(form(shape="(4294967296, 4294967296)"), F)), "no array has"),
    "axes": (with_member(npy(form(shape=str((1,) * 100 + (2,))), F)), "NumPy has no array"),
    "rest": (with_member(npy(form(), F + b"1234")), "takes 8 bytes"),
    "size": (patched(GOOD, b"PK\1\2", 24, "<I", 1 << 31), "claims|bytes"),
    "bomb": (patched(patched(archive([("x.npy", npy(form(shape="(500000,)"), bytes(2000000)))], zipfile.ZIP_DEFLATED), b"PK\1\2", 24,
                             "<I", (1 << 32) - 2),
                     b"PK\3\4", 22, "<I", (1 << 32) - 2), "claims"),
    "place": (patched(GOOD, b"PK\1\2", 42, "<I", 1 << 30), "begins at|no npz file"),
    "encrypted": (patched(patched(GOOD, b"PK\1\2", 8, "<H", 1), b"PK\3\4", 6, "<H", 1), "encrypted"),
    "other method": (archive([("x.npy", npy(form(), F))], zipfile.ZIP_LZMA), "other than deflate"),
    "checksum": (patched(archive([("x.npy", npy(form(), F))], zipfile.ZIP_DEFLATED), b"PK\1\2", 16, "<I", 7), "no npz file"),
    "long name": (with_member(npy(form(), F), "x" * 5000 + ".npy"), "5000 characters"),
}


@pytest.mark.parametrize("name", HOSTILE_NPZ)
def test_hostile_npz_is_refused(tmp_path, name):
    data, said = HOSTILE_NPZ[name]
    (tmp_path / "w").write_bytes(data)
    with pytest.raises(tw.InvalidArgumentError, match=said) as caught:
        tw.weights.load(tmp_path / "w")
    assert str(tmp_path) in str(caught.value) and len(str(caught.value)) < 1000


def test_members_that_share_bytes_are_refused(tmp_path):
    data = archive([("x.npy", npy(form(), F)), ("y.npy", npy(form(), F))])
    first = data.index(b"PK\1\2")
    overlapping = patched(data, b"PK\1\2", 42, "<I", 0).replace(b"y.npy", b"y.npy")
    assert first > 0
    (tmp_path / "w").write_bytes(overlapping)
    with pytest.raises(tw.InvalidArgumentError, match="where the member before ends|no npz file"):
        tw.weights.load(tmp_path / "w")


def test_changed_npz_is_read_or_refused(tmp_path):
    rng = np.random.default_rng(9)
    for how in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        data = bytearray(archive([("x.npy", npy(form(), F)), ("y.npy", npy(form("'<i8'", "(1, 2)"), bytes(16)))], how))
        for at in rng.integers(0, len(data), 500):
            changed = data.copy()
            changed[at] = rng.choice([0, 1, 127, 255, changed[at] ^ 1])
            (tmp_path / "w").write_bytes(changed)
            try:
                for array in tw.weights.load(tmp_path / "w").values():
                    array.tobytes()
            except tw.InvalidArgumentError:
                pass
