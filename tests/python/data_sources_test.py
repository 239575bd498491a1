"""Sources with types: CSV files against Python's csv, JSON lines against its json, .npy, .npz and IDX files against NumPy."""
import csv
import gzip
import io
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import thalweg as tw
from thalweg import data

rng = np.random.default_rng(26)
NIGHTLY = "THALWEG_TEST_NIGHTLY" in os.environ


def values(dataset):
    def plain(x):
        if isinstance(x, (tuple, dict)):
            return type(x)(map(plain, x)) if isinstance(x, tuple) else {k: plain(v) for k, v in x.items()}
        return x.numpy().tolist()
    return [plain(x) for x in dataset]


def written(path, contents):
    path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
    return str(path)


def continues(dataset, every=1):
    """Cuts a pass at each place, and continues from the saved position."""
    plain = values(dataset)
    for cut in range(0, len(plain) + 1, every):
        first, second = dataset.iterator(), dataset.iterator()
        for _ in range(cut):
            next(first)
        second.restore(first.save())
        assert values(second) == plain[cut:], cut
    return plain


# ---- CSV ----

PEOPLE = {"name": "string", "age": "int32", "height": ("float64", -1.0)}


def test_columns_like_pythons_csv(tmp_path):
    texts = ["a", "b c", "d,e", 'say "f"', '"', "two\nlines", "r\r\nn", "ü", "  k "]
    names, want = [], []
    for k in range(3):
        out = io.StringIO(newline="")
        columns = rng.permutation(["name", "age", "height", "other"]).tolist()  # the header of each file says the order
        w = csv.DictWriter(out, columns, lineterminator=["\n", "\r\n"][k % 2])
        w.writeheader()
        for _ in range(40):
            row = dict(name=str(rng.choice(texts)), age=int(rng.integers(-2 ** 31, 2 ** 31)), height=float(rng.normal()), other="x")
            row |= {"height": ""} if rng.random() < 0.3 else {}
            w.writerow(row)
            want.append({"name": row["name"].encode(), "age": row["age"], "height": -1.0 if row["height"] == "" else row["height"]})
        names.append(written(tmp_path / f"{k}.csv", ("\ufeff" if k == 2 else "") + out.getvalue()))
    d = data.csv(names, PEOPLE)
    assert d.spec == {"name": (tw.string, ()), "age": (tw.int32, ()), "height": (tw.float64, ())}
    assert continues(d, 7) == want
    packed = [written(tmp_path / f"{k}.csv.gz", gzip.compress(pathlib.Path(n).read_bytes())) for k, n in enumerate(names)]
    assert continues(data.csv(packed, PEOPLE, compression="gzip"), 31) == want


def test_without_a_header_by_position_and_other_rules(tmp_path):
    path = written(tmp_path / "a.csv", "1;x;0.5\n2;?;\n")
    assert values(data.csv(path, ["int64", ("string", "none"), ("float32", 9.0)], header=False, delimiter=";", missing="?")) == [(1, b"x", 0.5), (2, b"none", 9.0)]
    named = data.csv(path, {"a": "int64", "b": "string", "c": tw.data.Column("float32", 0.0)}, header=False, delimiter=";")
    assert values(named)[1] == {"a": 2, "b": b"?", "c": 0.0}
    assert values(data.csv(path, ["string", "string", ("string", "")], header=True, delimiter=";")) == [(b"2", b"?", b"")]
    assert values(data.csv(written(tmp_path / "q.csv", '"a,b"\n'), ["string", "string"], header=False, quotes=False)) == [(b'"a', b'b"')]
    assert values(data.csv(written(tmp_path / "none.csv", "a\n"), {"a": "int32"})) == []
    assert values(data.csv([path] * 2, ["int64", "string", ("float32", 0.0)], header=False, delimiter=";").batch(4))[0][0] == [1, 2, 1, 2]


def test_the_ops_of_csv_choose_columns(tmp_path):
    def taken(select, exclude, count):
        with tw.Graph() as g:
            d = g.op("CSVDatasetV2", path, "", np.int64(0), True, ",", True, "", np.int64(select), [g.constant([], "string")] * count,
                     np.int64(exclude), output_types=["string"] * count, output_shapes=[[]] * count)
            position = g.op("IteratorV2", shared_name="", container="", output_types=["string"] * count, output_shapes=[[]] * count)
            start, got = g.op("MakeIterator", d, position), g.op("IteratorGetNext", position, output_types=["string"] * count, output_shapes=[[]] * count)
            with tw.Session(g) as s:
                s.run(start)
                return [x.item() if hasattr(x, "item") else x for x in s.run(list(got) if isinstance(got, list) else [got])]
    path = written(tmp_path / "a.csv", "h,h,h\na,b,c\n")
    assert taken([], [], 3) == [b"a", b"b", b"c"] and taken([0, 2], [], 2) == [b"a", b"c"] and taken([], [0], 2) == [b"b", b"c"]
    for select, exclude, count, message in (([0], [1], 1, "both given"), ([1, 0], [], 2, "growing numbers"), ([5], [], 1, "column 5 is asked for"),
                                            ([0], [], 2, "1 columns for 2"), ([], [-1], 2, "growing numbers")):
        with pytest.raises(tw.InvalidArgumentError, match=message):
            taken(select, exclude, count)


# What is wrong with a file, and what the error says behind its name.
CSV_WRONG = [
    ("name,age,height\na,1,2\nb,x,3\n", "line 3: column 'age' is 'x', which is no int32"),
    ('name,age,height\n"a\nb\nc",1,2\nd,2147483648,3\n', "line 5: column 'age' is '2147483648', which is no int32"),
    ("name,age,height\na,,2\n", "line 2: column 'age' is missing and has no default"),
    ("name,age,height\na,1\n", "line 2: the record has 2 fields; the header has 3"),
    ("name,age,height\na,1,2,3\n", "line 2: the record has 4 fields; the header has 3"),
    ("name,age,height\n\n", "line 2: the record has 1 fields"),
    ('name,age,height\n"a,1,2\n', "line 2: field 0 has a quote that does not end"),
    ('name,age,height\n"a"b,1,2\n', "line 2: field 0 goes on behind its quote"),
    ('name,age,height\na,"1"",2\n', "line 2: field 1 has a quote that does not end"),
    ("name,height\na,1\n", "line 1: the header has no column 'age'; it has 'name', 'height'"),
    ("name,age,age,height\n", "line 1: the header has several columns 'age'"),
    ("", "line 1: the file is empty; it must begin with the names of its columns"),
    ("name,age,height\na,1e400,1\n", "line 2: column 'age' is '1e400'"),
    ("name,age,height\na,1,1e400\n", "line 2: column 'height' is '1e400', which is no double"),
    ("name,age,height\na,1\0,1\n", "line 2: column 'age' is '1"),
    ('name,age,height\n"' + "x" * (17 << 20) + "\n", "line 2: the record is longer than 16777216 bytes; look for a quote that does not end"),
]


@pytest.mark.parametrize("k", range(len(CSV_WRONG)))
def test_errors_of_csv_name_file_and_line(tmp_path, k):
    contents, message = CSV_WRONG[k]
    good = written(tmp_path / "good.csv", "name,age,height\nz,7,1\n")
    bad = written(tmp_path / "bad.csv", contents)
    i = data.csv([good, bad], PEOPLE).iterator()
    assert int(next(i)["age"]) == 7
    with pytest.raises(tw.InvalidArgumentError, match=re.escape(f"'{bad}' {message}")):
        list(i)


def test_a_record_that_is_wrong_does_not_hide_those_behind_it(tmp_path):
    path = written(tmp_path / "a.csv", "age\n1\nx\n2\ny\n3\n")
    i, got, wrong = data.csv(path, {"age": "int32"}).iterator(), [], 0
    while True:
        try:
            got.append(int(next(i)["age"]))
        except tw.InvalidArgumentError:
            wrong += 1
        except StopIteration:
            break
    assert got == [1, 2, 3] and wrong == 2


@pytest.mark.parametrize("compression", ["", "gzip"])
def test_many_wrong_records_have_their_lines(tmp_path, compression):
    """Lines are counted on from error to error, also where a quoted field has some, and over many pieces of the file."""
    good, bad, text, line = [], [], ["a,b\n"], 2
    for k in range(40_000):
        wrong, field = k % 150 == 7, '"two\nlines"' if k % 3 == 0 else "one line"
        text.append(f"{'x' if wrong else k},{field}\n")
        (bad if wrong else good).append(line if wrong else k)
        line += 2 if k % 3 == 0 else 1
    contents = "".join(text).encode()
    assert len(contents) > 2 * (256 << 10)  # bytes of a piece
    path = written(tmp_path / "a.csv", gzip.compress(contents, 1) if compression else contents)
    i, got, lines = data.csv(path, {"a": "int32"}, compression=compression).batch(500).iterator(), [], []
    while True:
        try:
            got += next(i)["a"].numpy().tolist()
        except tw.InvalidArgumentError as e:
            lines.append(int(re.search(r" line (\d+): column 'a' is 'x'", str(e))[1]))
        except StopIteration:
            break
    assert lines == bad and set(got) <= set(good)  # a batch that has begun is lost with its wrong record


def test_fields_of_long_records_are_charged(tmp_path):
    path = written(tmp_path / "a.csv", "," * (1 << 20) + "\n")
    for columns in ({"a": "string"}, ["string"]):
        with tw.Graph() as g:
            steps = data.csv(path, columns, header=isinstance(columns, dict)).steps()
            with tw.Session(g, memory_limit="32M") as s:
                s.run(steps.start)
                with pytest.raises(tw.ResourceExhaustedError, match="memory_limit"):
                    s.run(steps.next)


@pytest.mark.parametrize("columns,message", [
    ({"a": "complex64"}, "csv: column 'a' is complex64; there are float32"), ("int32", "columns is 'int32'; it must be a dict"),
    ({"a": ("int32", 1, 2)}, "a pair of a type and a default"), ({"a": tw.data.Column("int32", shape=[2])}, "a field is a single value"), ([], "must be a dict"),
])
def test_wrong_columns_are_refused_when_they_are_given(columns, message):
    with pytest.raises(ValueError, match=message):
        data.csv("a.csv", columns)


def test_wrong_rules_are_refused(tmp_path):
    path = written(tmp_path / "a.csv", "a\n1\n")
    with pytest.raises(tw.InvalidArgumentError, match="'field_delim' is '::'; it must be one character"):
        values(data.csv(path, {"a": "int32"}, delimiter="::"))
    with pytest.raises(ValueError, match="compression is 'bz2'"):
        data.csv(path, {"a": "int32"}, compression="bz2")
    with pytest.raises(tw.NotFoundError, match="none.csv"):
        values(data.csv(str(tmp_path / "none.csv"), {"a": "int32"}))


# ---- JSON lines ----

def test_members_like_pythons_json(tmp_path):
    lines, want = [], []
    for k in range(50):
        row = {"text": "ü\"\n" * int(rng.integers(3)), "id": int(rng.integers(-2 ** 63, 2 ** 63 - 1)), "score": float(rng.normal()), "ok": bool(rng.integers(2)),
               "tags": ["t"] * int(rng.integers(3)), "box": rng.integers(0, 9, (2, 2)).tolist(), "left out": [{"a": None}]}
        if k % 3 == 0:
            row["score"] = None
        if k % 4 == 0:
            del row["tags"]
        lines.append(json.dumps(row, ensure_ascii=bool(k % 2)) + ["\n", "\r\n", "\n\n"][k % 3])
        want.append({"text": row["text"].encode(), "id": row["id"], "score": 0.5 if row["score"] is None else row["score"], "ok": row["ok"],
                     "tags": [b"t"] * len(row.get("tags", "?" * 2)), "box": row["box"]})
    path = written(tmp_path / "a.jsonl", "".join(lines))
    columns = {"text": "string", "id": "int64", "score": ("float64", 0.5), "ok": "bool", "tags": tw.data.Column("string", ["t", "t"], shape=[None]),
               "box": tw.data.Column("int32", shape=[2, 2])}
    d = data.json_lines(path, columns)
    assert d.spec["tags"] == (tw.string, (None,)) and d.spec["box"] == (tw.int32, (2, 2))
    assert continues(d, 9) == want


JSON_WRONG = [
    ('{"a": 1', "line 2: this is no JSON"), ("[1]", "line 2: the line is an array; it must be an object"), ("7", "line 2: the line is a number"),
    ('{"b": 1}', "line 2: member 'a' is missing and has no default"), ('{"a": null}', "line 2: member 'a' is null and has no default"),
    ('{"a": "1"}', "line 2: member 'a' is a text, which is no int32"), ('{"a": 1.5}', "line 2: member 'a' is the number 1.5"),
    ('{"a": 2147483648}', "line 2: member 'a' is the number 2147483648, which is no int32"), ('{"a": [1]}', "line 2: member 'a' is an array, which is no int32"),
    ('{"a": 1, "v": [1]}', "line 2: member 'v' is an array with 1 elements on axis 0; it must have 2"),
    ('{"a": 1, "v": [[1], [2]]}', "line 2: member 'v' is an array in element 0, which is no float"),
    ('{"a": 1, "v": [1, "2"]}', "line 2: member 'v' is a text in element 1, which is no float"), ('{"a": 1, "v": 3}', "line 2: member 'v' is a number; it must be an array"),
    ('{"a": 1, "v": [1, 1e39]}', "line 2: member 'v' is the number"), ("{\"a\": " + "[" * 100, "line 2: this JSON has more than 64"),
    ('{"a": 1, "m": [[1, 2], [3]]}', "line 2: member 'm' is an array with 1 elements on axis 1; it must have 2"),
    ('{"a": "\xff"}', "line 2: this is no JSON"),
    ('{"a": 1, "b": 2, "a": 3}', "line 2: member 'a' is there several times"),
]


@pytest.mark.parametrize("k", range(len(JSON_WRONG)))
def test_errors_of_json_name_file_and_line(tmp_path, k):
    text, message = JSON_WRONG[k]
    path = written(tmp_path / "a.jsonl", ('{"a": 7}\n' + text + '\n{"a": 8}\n').encode("latin-1"))
    columns = {"a": "int32", "v": tw.data.Column("float32", [0, 0], shape=[2]), "m": tw.data.Column("int64", np.zeros((0, 0), np.int64), shape=[None, None])}
    i = data.json_lines(path, columns).iterator()
    assert int(next(i)["a"]) == 7
    with pytest.raises(tw.InvalidArgumentError, match=re.escape(f"'{path}' {message}")):
        next(i)
    assert int(next(i)["a"]) == 8


def test_wrong_members_are_refused(tmp_path):
    path = written(tmp_path / "a.jsonl", "{}\n")
    with pytest.raises(ValueError, match="members of objects have names"):
        data.json_lines(path, ["int32"])
    with pytest.raises(tw.InvalidArgumentError, match=r"the default of member 'a' is int32 \[3\]; the component is int32 \[2\]"):
        values(data.json_lines(path, {"a": tw.data.Column("int32", [1, 2, 3], shape=[2])}))


# ---- Arrays ----

TYPES = ["?", "i1", "<i2", ">i4", "<i8", "u1", ">u2", "<u4", "<u8", "<f2", ">f4", "<f8", "<c8", ">c16"]


@pytest.mark.parametrize("dtype", TYPES)
def test_rows_of_npy_files(tmp_path, dtype):
    names, arrays = [], []
    for k, n in enumerate((4, 0, 3)):
        a = rng.integers(0, 100, (n, 2, 3)).astype(dtype)
        np.save(tmp_path / f"{k}.npy", a)
        names.append(str(tmp_path / f"{k}.npy"))
        arrays.append(a)
    d, whole = data.npy(names), np.concatenate(arrays)
    assert d.spec[1] == (2, 3)
    got = [x.numpy() for x in d]
    assert got[0].dtype == np.dtype(dtype).newbyteorder("=") and np.array_equal(np.stack(got), whole)
    continues(d, 1 if dtype == TYPES[0] else 5)
    with gzip.open(tmp_path / "a.npy.gz", "wb") as f:
        np.save(f, arrays[0])
    assert np.array_equal([x.numpy() for x in data.npy(str(tmp_path / "a.npy.gz"), compression="gzip")], arrays[0])


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_rows_of_npz_files(tmp_path, save):
    whole = {"x": rng.normal(size=(70, 500)).astype(np.float32), "y": rng.integers(0, 9, 70)}
    names = []
    for k in range(2):
        save(tmp_path / f"{k}.npz", **{n: a[35 * k:35 * k + 35] for n, a in whole.items()})
        names.append(str(tmp_path / f"{k}.npz"))
    d = data.npz(names)
    assert d.spec == {"x": (tw.float32, (500,)), "y": (tw.int64, ())}
    got = list(d)
    assert all(np.array_equal([g[n].numpy() for g in got], a) for n, a in whole.items())
    continues(d, 23)
    assert values(data.npz(names, ["y"])) == [{"y": int(y)} for y in whole["y"]]
    assert values(data.npz(names, {"y": ("int64", ())}).batch(70))[0]["y"] == whole["y"].tolist()


def idx(a, code):
    return bytes([0, 0, code, a.ndim]) + struct.pack(f">{a.ndim}I", *a.shape) + a.astype(a.dtype.newbyteorder(">")).tobytes()


@pytest.mark.parametrize("code,dtype", [(8, "u1"), (9, "i1"), (11, "i2"), (12, "i4"), (13, "f4"), (14, "f8")])
def test_rows_of_idx_files(tmp_path, code, dtype):
    a = rng.integers(0, 100, (5, 4, 3)).astype(dtype)
    path = written(tmp_path / "a-idx3", idx(a, code))
    assert np.array_equal([x.numpy() for x in data.idx(path)], a)
    continues(data.idx([path, path]), 3)
    packed = written(tmp_path / "a-idx3.gz", gzip.compress(idx(a, code)))
    assert np.array_equal([x.numpy() for x in data.idx(packed, compression="gzip")], a)
    assert np.array_equal([x.numpy() for x in data.idx(packed, a.dtype, [4, None], compression="gzip")], a)


def saved(array, **options):
    out = io.BytesIO()
    np.lib.format.write_array(out, array, **options)
    return out.getvalue()


def npy_head(text, version=b"\x01\x00", length=None):
    return b"\x93NUMPY" + version + struct.pack("<H", len(text) if length is None else length) + text.encode()


GOOD = saved(np.zeros((3, 2), np.float32))
NPY_WRONG = [
    (tw.DataLossError, b"", "this is no .npy file"), (tw.DataLossError, GOOD[:9], "the head of the array is cut off"),
    (tw.DataLossError, GOOD[:-1], "the array has 24 bytes, and the file only"), (tw.DataLossError, GOOD[:40], "the head of the array is cut off"),
    (tw.InvalidArgumentError, saved(np.asfortranarray(np.zeros((3, 2), np.float32))), "stored column by column"),
    (tw.InvalidArgumentError, saved(np.zeros((3, 2))), "the array is double; the component is float"),
    (tw.InvalidArgumentError, saved(np.zeros((3, 4), np.float32)), r"a row of the array is [4]; the component is [2]"),
    (tw.InvalidArgumentError, saved(np.float32(1)), "the array is a scalar, which has no rows"),
    (tw.InvalidArgumentError, saved(np.array(["a"])), "the array has the type '<U1'; there are truth values and numbers"),
    (tw.InvalidArgumentError, saved(np.zeros(2, [("a", "f4")])), "the array has elements of several fields"),
    (tw.InvalidArgumentError, saved(np.array([{}], object)), "the array has the type '|O'"),
    (tw.InvalidArgumentError, GOOD[:6] + b"\x09" + GOOD[7:], "version 9 of .npy files is not known"),
    (tw.DataLossError, npy_head("{'descr': '<f4', 'shape': (99999999999999999999,), 'fortran_order': False}"), "cannot be read"),
    (tw.DataLossError, npy_head("{'descr': '<f4', 'shape': (4611686018427387904, 8), 'fortran_order': False}"), "are too large"),
    (tw.DataLossError, npy_head("{'descr': '<f4', 'shape': (1000000000, 2), 'fortran_order': False}"), "the array has 8000000000 bytes, and the file only"),
    (tw.DataLossError, npy_head("{'descr': '<f4', 'shape'"), "cannot be read"), (tw.DataLossError, npy_head("{", length=60000), "is cut off"),
    (tw.DataLossError, npy_head("{'shape': (1,), 'fortran_order': False}"), "cannot be read"),
    (tw.DataLossError, npy_head("{'descr': '<f4', 'shape': (2, 2)}") + bytes(16), "cannot be read"),
    (tw.DataLossError, npy_head("{'descr': '<f4', 'shape': (2, 2), 'fortran_order': true}") + bytes(16), "cannot be read"),
    (tw.DataLossError, npy_head("{'descr': '<f4', 'shape': (2,), 'shape': (2,), 'fortran_order': False}") + bytes(16), "cannot be read"),
    (tw.DataLossError, npy_head("{'descr': '<f4', 'shape': (-1, 2), 'fortran_order': False}"), "cannot be read"),
]


@pytest.mark.parametrize("k", range(len(NPY_WRONG)))
def test_errors_of_arrays_name_the_file(tmp_path, k):
    error, contents, message = NPY_WRONG[k]
    path = written(tmp_path / "bad.npy", contents)
    with pytest.raises(error, match=re.escape(f"'{path}': {message}" if message[0] == "t" else path)) as caught:
        values(data.npy(path, "float32", [2]))
    assert message in str(caught.value)


def archive(**members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        for name, contents in members.items():
            z.writestr(name + ".npy", contents)
    return out.getvalue()


def test_errors_of_archives_name_the_array(tmp_path):
    good = archive(x=saved(rng.normal(size=(50, 2)).astype(np.float32)), y=saved(np.zeros(50, np.int64)))
    kinds = {"x": ("float32", (2,)), "y": ("int64", ())}
    for contents, error, message in [
        (good[:-30], tw.DataLossError, "the archive is damaged"), (b"x" * 200, tw.DataLossError, "it has no directory"), (b"", tw.DataLossError, "it has no directory"),
        (archive(x=saved(np.zeros((3, 2), np.float32))), tw.InvalidArgumentError, "the archive has no array 'y'; it has 'x'"),
        (archive(x=saved(np.zeros((3, 2), np.float32)), y=saved(np.zeros(4, int))), tw.InvalidArgumentError, "array 'x' has 3 rows and array 'y' 4"),
        (archive(x=GOOD[:-1], y=saved(np.zeros(3, int))), tw.DataLossError, "array 'x': the array ends at byte"),
        (good[:80] + bytes(200) + good[280:], tw.DataLossError, "a.npz' at byte "),
    ]:
        path = written(tmp_path / "a.npz", contents)
        with pytest.raises(error, match=re.escape(message)) as caught:
            values(data.npz(path, kinds))
        assert path in str(caught.value)
    for _ in range(2000 if NIGHTLY else 60):  # any damage is an error or gives rows, and nothing else
        spoilt = bytearray(good)
        for place in rng.integers(0, len(good), 3):
            spoilt[place] = rng.integers(256)
        path = written(tmp_path / "spoilt.npz", bytes(spoilt))
        try:
            assert len(values(data.npz(path, kinds))) == 50
        except (tw.DataLossError, tw.InvalidArgumentError) as e:
            assert path in str(e)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_checksums_of_archives_are_verified_behind_the_last_row(tmp_path, save):
    save(tmp_path / "a.npz", x=rng.normal(size=(40, 30)), y=np.arange(40))
    contents = bytearray((tmp_path / "a.npz").read_bytes())
    entry = contents.index(b"x.npy", contents.index(b"PK\1\2")) - 46  # of the directory
    contents[entry + 16] ^= 1
    bad, good = written(tmp_path / "bad.npz", bytes(contents)), str(tmp_path / "a.npz")
    with pytest.raises(zipfile.BadZipFile):  # NumPy, too
        np.load(bad)["x"]
    for cut in (None, 0, 17, 40):  # the checksum goes on behind a saved position
        i, got = data.npz([bad, good]).iterator(), []
        with pytest.raises(tw.DataLossError, match=re.escape(f"'{bad}': array 'x': the checksum of its 9728 bytes is wrong; the file is damaged")):
            while True:
                if len(got) == cut:
                    position, i = i.save(), data.npz([bad, good]).iterator()
                    i.restore(position)
                got.append(next(i))
        assert len(got) == 40 and len(list(i)) == 40  # the other file follows
    assert [int(row["y"]) for row in data.npz(bad, ["y"])] == list(range(40))  # its own is right
    contents = bytearray((tmp_path / "a.npz").read_bytes())
    contents[entry + 24] += 1
    if save is np.savez_compressed:
        with pytest.raises(tw.DataLossError, match="array 'x': there are 9728 bytes, and the directory of the archive says 9729"):
            list(data.npz(written(tmp_path / "longer.npz", bytes(contents)), ["x"]))


# ---- Files that are not those of a saved position ----

def changed(contents, place):
    return contents[:place] + bytes([contents[place] ^ 1]) + contents[place + 1:]


FILES = {
    "lines": (lambda p: data.lines(p), b"".join(b"%9d\n" % k for k in range(2000))),
    "gzip": (lambda p: data.lines(p, "gzip"), gzip.compress(b"".join(b"%9d\n" % k for k in rng.integers(0, 10 ** 9, 2000)))),
    "csv": (lambda p: data.csv(p, {"a": "int64"}), b"a\n" + b"".join(b"%9d\n" % k for k in range(2000))),
    "npy": (lambda p: data.npy(p, "int64", ()), None),
    "npz": (lambda p: data.npz(p, {"x": ("int64", ())}), None),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_changed_behind_a_saved_position_is_refused(tmp_path, kind):
    make, contents = FILES[kind]
    path = str(tmp_path / "a")
    if contents is None:
        out = io.BytesIO()
        np.save(out, np.arange(2000)) if kind == "npy" else np.savez(out, x=np.arange(2000))
        contents = out.getvalue()
    written(tmp_path / "a", contents)
    i = make(path).iterator()
    for _ in range(5):
        next(i)
    position, rest = i.save(), values(i)

    def restored():
        again = make(path).iterator()
        again.restore(position)
        return values(again)
    for other, said in ((changed(contents, 40), "its first or last bytes"), (changed(contents, len(contents) - 3), "its first or last bytes"),
                        (contents[:len(contents) // 2], f"it has {len(contents) // 2} bytes, and had {len(contents)}")):
        written(tmp_path / "a", other)
        with pytest.raises(tw.DataLossError, match=re.escape(f"'{path}': the file is not that of the saved position: {said}")):
            restored()
    written(tmp_path / "a", contents)
    assert restored() == rest


def test_a_file_that_grew_goes_on_at_a_saved_position(tmp_path):
    path = written(tmp_path / "log", b"a\nb\nc\n")
    i = data.lines(path).iterator()
    next(i)
    position = i.save()
    with open(path, "ab") as f:
        f.write(b"d\n")
    again = data.lines(path).iterator()
    again.restore(position)
    assert values(again) == [b"b", b"c", b"d"]
    assert values(i) == [b"b", b"c"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_directories_of_archives_that_lie(tmp_path):
    def found(contents):
        return values(data.npz(written(tmp_path / "a.npz", bytes(contents)), {"x": ("int64", ())}))
    out = io.BytesIO()
    np.savez(out, x=np.arange(3), y=np.arange(3, 6))
    good = bytearray(out.getvalue())
    assert [row["x"] for row in found(good)] == [0, 1, 2]
    x = good.index(b"PK\1\2")  # entries of the directory
    y = good.index(b"PK\1\2", x + 4)
    other = bytearray(good)
    other[x + 42:x + 46] = good[y + 42:y + 46]  # where the member begins
    with pytest.raises(tw.DataLossError, match="member 'x.npy' is not where the directory says"):
        found(other)
    other = bytearray(good)
    other[x + 24] += 8  # bytes that a stored member has unpacked
    with pytest.raises(tw.DataLossError, match="its directory says that member 'x.npy' has"):
        found(other)
    with zipfile.ZipFile(out, "a") as z:
        z.writestr("x.npy", saved(np.arange(7, 9)))
    with pytest.raises(tw.DataLossError, match="it has several members 'x.npy'"):
        found(out.getvalue())


def test_rows_larger_than_a_piece_and_rows_that_compressed_data_cannot_have(tmp_path):
    whole = rng.normal(size=(3, 90_001)).astype(np.float32)
    path, packed = tmp_path / "a.npy", tmp_path / "a.npy.gz"
    np.save(path, whole)
    for d in (data.npy(str(path)), data.npy(written(packed, gzip.compress(path.read_bytes(), 1)), compression="gzip")):
        got = continues(d)
        assert np.array_equal(np.float32(got), whole)
    written(packed, gzip.compress(npy_head("{'descr': '<f4', 'shape': (1, 1000000000), 'fortran_order': False}") + bytes(100)))
    with pytest.raises(tw.DataLossError, match="4000000000 bytes, and so many cannot be in the .* bytes of its compressed data"):
        values(data.npy(str(packed), "float32", [None], compression="gzip"))


def test_a_row_that_is_too_large_for_the_memory_does_not_hide_the_others(tmp_path):
    np.savez(tmp_path / "1.npz", x=np.arange(4), y=np.zeros((4, 1 << 20)))
    with tw.Graph() as g:
        steps = data.npz(str(tmp_path / "1.npz")).steps()
        with tw.Session(g, memory_limit="4M") as s:
            s.run(steps.start)
            for _ in range(4):
                with pytest.raises(tw.ResourceExhaustedError):
                    s.run(steps.next)
            with pytest.raises(tw.OutOfRangeError):
                s.run(steps.next)


def test_errors_of_idx_files(tmp_path):
    for contents, message in [(b"", "this is no IDX file"), (b"\0\0\x07\1", "byte 2 is 7, which is no type"), (b"\0\0\x08\2\0\0", "the head of the file is cut off"),
                              (idx(np.zeros((3, 2), np.uint8), 8)[:-1], "the array has 6 bytes, and the file only"), (b"\0\0\x08\xff", "the array has 255 axes"),
                              (b"\0\0\x08\4" + b"\xff" * 16, "are too large")]:
        path = written(tmp_path / "bad-idx", contents)
        with pytest.raises(tw.DataLossError, match=re.escape(message)):
            values(data.idx(path, "uint8", [2]))
    packed = written(tmp_path / "bad.gz", gzip.compress(idx(np.zeros((3, 2), np.uint8), 8)[:-1]))
    with pytest.raises(tw.DataLossError, match="within row 2 of 3"):
        values(data.idx(packed, "uint8", [2], compression="gzip"))


def test_what_cannot_be_looked_at_must_be_said(tmp_path):
    with pytest.raises(ValueError, match="'s3://a/b.npy' is in another file system.*give dtype and shape"):
        data.npy("s3://a/b.npy")
    with pytest.raises(ValueError, match="give both, or none"):
        data.npy("a.npy", "float32")
    with pytest.raises(FileNotFoundError):
        data.npy(str(tmp_path / "none.npy"))
    with pytest.raises(ValueError, match="is no .npy file"):
        data.npy(written(tmp_path / "a.npy", b"nothing"))
    with pytest.raises(ValueError, match="has no array 'z'; it has 'x'"):
        data.npz(written(tmp_path / "a.npz", archive(x=GOOD)), ["z"])


# ---- Each element once ----

@pytest.mark.parametrize("kills", [50 if NIGHTLY else 2])
def test_each_element_is_seen_exactly_once_over_kills(tmp_path, kills):
    a = tmp_path
    written(a / "0.csv", "x\n" + "".join(f"{k}\n" for k in range(50)))
    written(a / "1.jsonl", "".join(f'{{"x": {k}}}\n' for k in range(50, 100)))
    np.save(a / "2.npy", np.arange(100, 150))
    np.savez_compressed(a / "3.npz", x=np.arange(150, 200))
    written(a / "4-idx1", idx(np.arange(200, 250, dtype=np.int32), 12))
    program, ended, starts = pathlib.Path(__file__).with_name("data_sources_killed.py"), False, 0
    while not ended:
        starts += 1
        p = subprocess.Popen([sys.executable, str(program), str(a)], stdout=subprocess.PIPE)
        steps = int(rng.integers(1, max(2, 80 // kills))) if starts <= kills else None
        for _ in iter(p.stdout.readline, b""):
            steps = None if steps is None else steps - 1
            if steps == 0:
                p.send_signal(signal.SIGKILL)
                break
        ended = p.wait() == 0
        p.stdout.close()
        assert starts < 4 * kills + 10
    seen = dict(line.split(b" ", 1) for line in (a / "seen").read_bytes().splitlines())  # by the number of the batch
    assert sorted(int(x) for line in seen.values() for x in line.split()) == list(range(250))
    assert starts > min(kills, 2)
