"""Weights in safetensors files: what is written and read, names, hostile headers."""
import json
import struct

import numpy as np
import pytest
import thalweg as tw


def raw(path, header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)
    return path


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


ARRAYS = {"a": np.float32([[1, 2, 3], [4, 5, 6]]), "b": np.int64(7), "c": np.zeros((0, 3), np.float16), "d": np.array([True, False]),
          "e/f.g": np.uint8([1, 2, 3]), "h": np.float64([np.nan, -0.0])}


def test_what_is_written_is_read(tmp_path):
    tw.weights.save(tmp_path / "w", ARRAYS, metadata={"format": "pt"})
    got = tw.weights.load(tmp_path / "w")
    assert got.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert got[name].dtype == array.dtype and got[name].shape == array.shape and np.array_equal(got[name], array, equal_nan=array.dtype.kind == "f")
        assert not got[name].flags.writeable
    assert (tmp_path / "w").stat().st_size == len((tmp_path / "w").read_bytes()) and [p.name for p in tmp_path.iterdir()] == ["w"]


def test_the_bytes_are_those_of_the_format(tmp_path):
    tw.weights.save(tmp_path / "w", {"x": np.float32([1, 2])})
    text = b'{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    text += b" " * (-len(text) % 8)
    assert (tmp_path / "w").read_bytes() == struct.pack("<Q", len(text)) + text + struct.pack("<2f", 1, 2)


def test_other_orders_of_bytes_and_axes_are_written_plainly(tmp_path):
    tw.weights.save(tmp_path / "w", {"x": np.arange(6, dtype=">f4").reshape(2, 3).T})
    assert np.array_equal(tw.weights.load(tmp_path / "w")["x"], np.arange(6, dtype=np.float32).reshape(2, 3).T)


def test_bfloat16_is_kept(tmp_path):
    raw(tmp_path / "w", {"x": entry("BF16", (2,), (0, 4))}, b"\x80\x3f\x00\x40")
    try:
        import ml_dtypes  # noqa: F401
    except ImportError:
        with pytest.raises(TypeError, match="ml_dtypes"):
            tw.weights.load(tmp_path / "w")
        return
    x = tw.weights.load(tmp_path / "w")["x"]
    assert x.dtype.name == "bfloat16" and x.astype(np.float32).tolist() == [1, 2]


def test_names_are_mapped_by_pattern(tmp_path):
    tw.weights.save(tmp_path / "w", {"bert.encoder.0.weight": np.ones((2, 3), np.float32), "cls.weight": np.float32([1]), "rest": np.float32([2])})
    got = tw.weights.load(tmp_path / "w", names={"encoder/*/kernel": "bert.encoder.*.weight", "head/w": "cls.weight"}, transposed=["*/kernel"])
    assert set(got) == {"encoder/0/kernel", "head/w", "rest"} and got["encoder/0/kernel"].shape == (3, 2)
    with pytest.raises(tw.NotFoundError, match="no tensor 'none'.*'cls.weight'"):
        tw.weights.load(tmp_path / "w", names={"x": "none"})
    with pytest.raises(tw.InvalidArgumentError, match="two tensors would be named 'rest'"):
        tw.weights.load(tmp_path / "w", names={"rest": "cls.weight"})


def test_variables_get_their_values(tmp_path):
    with tw.Graph() as g:
        v, w = tw.Variable(np.zeros((2, 2), np.float32), name="v"), tw.Variable(np.float32([5]), name="w")
        start = tw.initializer()
    tw.weights.save(tmp_path / "w", {"v": np.float32([[1, 2], [3, 4]])})
    with tw.Session(g) as s:
        s.run(start)
        assert tw.weights.assign(s, tw.weights.load(tmp_path / "w")) == ["w"]
        assert s.run(v).tolist() == [[1, 2], [3, 4]] and s.run(w).tolist() == [5]
        with pytest.raises(tw.InvalidArgumentError, match=r"no variable 'x'.*'w' is float64 \[2\], the variable is float32 \[1\]"):
            tw.weights.assign(s, {"v": np.zeros((2, 2), np.float32), "x": np.float32(1), "w": np.zeros(2)})
        assert s.run(v).tolist() == [[1, 2], [3, 4]]
        assert tw.weights.assign(s, {"x": np.float32(1)}, partial=True) == ["v", "w"]


def test_parts_are_read_by_their_index(tmp_path):
    tw.weights.save(tmp_path / "one", {"a": np.float32([1])})
    tw.weights.save(tmp_path / "two", {"b": np.float32([2])})
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "one", "b": "two"}}))
    assert {k: v.tolist() for k, v in tw.weights.load(index).items()} == {"a": [1], "b": [2]}
    for name in ("../one", "/etc/passwd", "..", "", "a/b", 3, "on\0e"):
        index.write_text(json.dumps({"weight_map": {"a": name}}))
        with pytest.raises(tw.InvalidArgumentError):
            tw.weights.load(index)
    (tmp_path / "link").symlink_to(tmp_path / "one")
    index.write_text(json.dumps({"weight_map": {"a": "link"}}))
    with pytest.raises(tw.InvalidArgumentError, match="a link"):
        tw.weights.load(index)
    index.write_text("[" * 100000)
    with pytest.raises(tw.InvalidArgumentError, match="no index"):
        tw.weights.load(index)
    index.write_text(json.dumps({"weight_map": {"a": "none"}}))
    with pytest.raises(tw.NotFoundError, match="none"):
        tw.weights.load(index)


GOOD = {"x": entry()}
HOSTILE = {
    "short": (b"", None, "no safetensors file"),
    "long header": (GOOD, 1 << 40, "its header would have 1099511627776 bytes"),
    "longest header": (GOOD, (1 << 64) - 1, "its header would have"),
    "no object": (b"[]      ", None, "does not begin with {"),
    "blanks first": (b' {"x": 1}', None, "does not begin with {"),
    "no JSON": (b"{x}", None, "cannot be read"),
    "no UTF-8": (b'{"\xff": 1}', None, "cannot be read"),
    "deep": (b'{"x":' + b"[" * 200000, None, "nested too deeply|cannot be read"),
    "long number": (b'{"x":{"dtype":"F32","shape":[' + b"9" * 10000 + b'],"data_offsets":[0,8]}}', None, "cannot be read"),
    "twice": (b'{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', None, "'x' stands there twice"),
    "no record": ({"x": [1]}, None, "dtype, shape and data_offsets"),
    "more": ({"x": {**entry(), "y": 1}}, None, "nothing else"),
    "type": ({"x": entry("F33")}, None, "'F33'"),
    "type a number": ({"x": entry(3)}, None, "known are"),
    "negative": ({"x": entry(shape=(-2,))}, None, "whole numbers"),
    "fraction": ({"x": entry(shape=(2.0,))}, None, "whole numbers"),
    "truth": ({"x": entry(shape=(True, 2))}, None, "whole numbers"),
    "axes": ({"x": entry(shape=[1] * 300 + [2])}, None, "at most 254"),
    "overflow": ({"x": entry(shape=(1 << 32, 1 << 32))}, None, "more elements"),
    "wraps to 8 bytes": ({"x": entry(shape=((1 << 62) + 2,))}, None, "more elements"),
    "beyond": ({"x": entry(shape=(3,), offsets=(0, 12))}, None, "within 8 bytes"),
    "backwards": ({"x": entry(offsets=(8, 0))}, None, "within 8 bytes"),
    "one offset": ({"x": entry(offsets=(0,))}, None, "begin and end"),
    "other size": ({"x": entry(shape=(1,))}, None, "takes 4 bytes, data_offsets give it 8"),
    "overlap": ({"x": entry(), "y": entry(shape=(1,), offsets=(4, 8))}, None, "must follow each other"),
    "hole": ({"x": entry(shape=(1,), offsets=(4, 8))}, None, "must follow each other"),
    "rest": ({"x": entry(shape=(1,), offsets=(0, 4))}, None, "something follows"),
    "metadata": ({"__metadata__": {"a": 1}, "x": entry()}, None, "must hold texts"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_headers_are_refused(tmp_path, name):
    header, length, said = HOSTILE[name]
    path = tmp_path / "w"
    if name == "short":
        path.write_bytes(b"1234567")
    else:
        raw(path, header, bytes(8), length)
    with pytest.raises(tw.InvalidArgumentError, match=said) as caught:
        tw.weights.load(path)
    assert str(path) in str(caught.value) and len(str(caught.value)) < 1000


def test_what_is_no_file_is_named(tmp_path):
    for path in (tmp_path / "none", tmp_path, "/dev/zero"):
        with pytest.raises(tw.NotFoundError, match="is not there, or no file"):
            tw.weights.load(path)


def test_cut_files_are_refused(tmp_path):
    tw.weights.save(tmp_path / "w", ARRAYS)
    data = (tmp_path / "w").read_bytes()
    for size in range(0, len(data), 7):
        (tmp_path / "w").write_bytes(data[:size])
        with pytest.raises(tw.InvalidArgumentError):
            tw.weights.load(tmp_path / "w")


def test_what_cannot_be_written_leaves_the_old_file(tmp_path):
    tw.weights.save(tmp_path / "w", {"x": np.float32([1])})
    for arrays, error in (({"x": np.complex64([1])}, TypeError), ({"x": np.array(["a"])}, TypeError), ({"__metadata__": np.float32([1])}, ValueError)):
        with pytest.raises(error):
            tw.weights.save(tmp_path / "w", arrays)
    with pytest.raises(TypeError, match="metadata"):
        tw.weights.save(tmp_path / "w", {}, metadata={"a": 1})
    assert tw.weights.load(tmp_path / "w")["x"].tolist() == [1] and [p.name for p in tmp_path.iterdir()] == ["w"]


def test_the_package_safetensors_agrees(tmp_path):
    other = pytest.importorskip("safetensors.numpy")
    arrays = {k: np.ascontiguousarray(v) for k, v in ARRAYS.items()}
    tw.weights.save(tmp_path / "w", arrays)
    got = other.load_file(str(tmp_path / "w"))
    assert all(np.array_equal(got[k], v, equal_nan=v.dtype.kind == "f") for k, v in arrays.items())
    other.save_file(arrays, str(tmp_path / "v"))
    got = tw.weights.load(tmp_path / "v")
    assert all(np.array_equal(got[k], v, equal_nan=v.dtype.kind == "f") for k, v in arrays.items())
