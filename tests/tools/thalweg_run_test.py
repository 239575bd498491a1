"""Tests of `thalweg run`: input and output values."""
import io
import json
import pathlib
import struct
import sys
import zipfile

import numpy as np

from thalweg_command import FLOAT, GRAPH, INT32, STRING, dtype, files, node, run, run_both, run_tests, shape

# A value of each type is passed through: `float` is fed, `float_out` fetched.
TYPES = {"float": 1, "double": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "string": 7, "complex64": 8, "int64": 9, "bool": 10,
         "qint8": 11, "quint8": 12, "qint32": 13, "bfloat16": 14, "qint16": 15, "quint16": 16, "uint16": 17, "complex128": 18, "half": 19,
         "uint32": 22, "uint64": 23, "int4": 29, "uint4": 30}


def typed(folder):
    graph = pathlib.Path(folder) / "types.pb"
    graph.write_bytes(b"".join(node(t, "Placeholder", dtype=dtype(n)) + node(t + "_out", "Identity", t) for t, n in TYPES.items()))
    return graph


def echo(graph, name, value):
    return run("run", graph, "--feed", f"{name}={value}", "--fetch", f"{name}_out").rstrip("\n").split(" = ", 1)[1]


def test_run_warns_of_what_runs_elsewhere(folder):
    graph = pathlib.Path(folder) / "chain.pb"
    chain = [node("n0", "Placeholder", dtype=FLOAT)] + [node(f"n{k + 1}", "Neg", f"n{k}", T=FLOAT) for k in range(9)]
    graph.write_bytes(b"".join(chain))
    out, error = run_both("run", graph, "--feed", "n0=[1, 2]", "--fetch", "n9", "--device", "NOWHERE:3", "--session-option",
                          "optimize=false", "--session-option", "compilers=off")
    assert out == "n9 = [-1, -2]\n" and "thalweg: 4 more warnings" in error, error
    assert error.count("placed on CPU:0 because there is no device '/device:NOWHERE:3'") == 5, error


def test_run_prints_what_it_computes(folder):
    graph = files(folder)
    assert run("run", graph, "--feed", "x=[1, 2.5, -3]", "--fetch", "y") == "y = [-1, -2.5, 3]\n"
    assert run("run", graph, "--feed", "x=[]", "--fetch", "y") == "y = []\n"
    assert run("run", graph, "--feed", "t=bare words", "--fetch", "same") == 'same = "bare words"\n'
    assert run("run", graph, "--feed", 't="a \\"b\\""', "--fetch", "same") == 'same = "a \\"b\\""\n'
    assert run("run", graph, "--feed", "i=[[1, 2], [3, 4]]", "--fetch", "j") == "j = [[1, 2], [3, 4]]\n"
    assert run("run", graph, "--feed", "x=[1]", "--target", "y") == ""
    got = json.loads(run("run", graph, "--feed", "x=[1, nan, inf]", "--feed", "t=hi", "--fetch", "y", "--fetch", "same", "--json"))
    assert got["y"] == {"dtype": "float", "shape": [3], "value": [-1, "NaN", "-Infinity"]}, got
    assert got["same"] == {"dtype": "string", "shape": [], "value": "hi"}, got


def test_models_run_by_signature(folder):
    graph = pathlib.Path(folder) / "frozen"
    graph.write_bytes(node("x", "Placeholder", dtype=FLOAT, shape=shape(-1, 2)) + node("y", "Neg", "x", T=FLOAT) + node("z", "Neg", "y", T=FLOAT))
    out = run("run", graph, "--random-inputs", "--feed-shape", "x=3,2", "--model-option", "outputs=y,z", "--json")
    got = json.loads(out)
    assert list(got) == ["y", "z"] and got["y"]["shape"] == [3, 2] and got["y"]["value"][0][0] == -got["z"]["value"][0][0] != 0, got
    assert run("run", graph, "--random-inputs", "--feed", "x=[[1, 2]]", "--fetch", "z") == "z = [[1, 2]]\n"
    assert run("run", graph, "--signature", "serving_default", "--feed", "x=[[1, 2]]") == "z = [[1, 2]]\n"
    assert "has no input 'w'" in run("run", graph, "--random-inputs", "--feed", "w=1", status=2)
    assert "has no output 'w'" in run("run", graph, "--random-inputs", "--fetch", "w", status=2)
    assert "missing: 'x'" in run("run", graph, "--signature", "serving_default", status=1)
    (pathlib.Path(folder) / "text").write_text("hello")
    for command in ("run", "inspect"):
        error = run(command, pathlib.Path(folder) / "text", status=1)
        assert "no importer recognises what the file holds" in error and "savedmodel" in error, error
    shown = run("inspect", graph, "--importer", "savedmodel")
    assert "in  x  float [?, 2]" in shown and "out  z  float [?, 2]" in shown and "format: GraphDef" in shown, shown
    got = json.loads(run("inspect", graph, "--importer", "savedmodel", "--json"))
    assert got["signatures"][0]["inputs"] == [{"name": "x", "dtype": "float", "shape": [-1, 2]}], got


def test_models_take_archives_and_compare_with_them(folder):
    folder = pathlib.Path(folder)
    graph = folder / "frozen"
    graph.write_bytes(node("x", "Placeholder", dtype=FLOAT, shape=shape(-1, 2)) + node("y", "Neg", "x", T=FLOAT) +
                      node("i", "Placeholder", dtype=INT32) + node("j", "Identity", "i", T=INT32) +
                      node("t", "Placeholder", dtype=STRING) + node("u", "Identity", "t", T=STRING))
    x = np.float32([[1, np.nan], [-np.inf, 4]])
    given = {"x": x, "i": np.int32([1, 2]), "t": np.array(["a", "bc"])}
    np.savez(folder / "in.npz", **given)
    np.savez(folder / "out.npz", y=-x, j=given["i"], u=given["t"])
    use = ["run", graph, "--inputs", folder / "in.npz", "--check", folder / "out.npz"]
    assert run(*use) == "y: equal, largest difference 0\nj: equal\nu: equal\n"
    assert run(*use, "--fetch", "y", "--fetch", "j", "--fetch", "u", "--feed", "i=[1, 2]").startswith("y: equal")

    def differs(expected, said, *more):
        np.savez(folder / "other.npz", **expected)
        out, error = run_both("run", graph, "--inputs", folder / "in.npz", "--check", folder / "other.npz", *more, status=1)
        assert said in out and error == "", (out, error)

    off = -x + np.float32([[0, 0], [0, 0.5]])
    differs({"y": off}, "y: differs at 1 of 4 elements, by 0.5 at most; element 3 is -4, expected is -3.5")
    differs({"y": off}, "by 0.5 at most", "--atol", "0.4")
    differs({"y": np.where(np.isnan(x), 0, -x).astype(np.float32)}, "element 1 is ")
    differs({"y": np.where(np.isinf(x), -x, -x) * np.float32([[1, 1], [-1, 1]])}, "element 2 is inf, expected is -inf")
    differs({"y": -x[0]}, "it is float [2, 2], expected is float [2]")
    differs({"y": (-x).astype(np.float64)}, "it is float [2, 2], expected is double [2, 2]")
    differs({"j": np.int32([1, 3]), "u": np.array(["a", "b"])}, "j: differs at 1 of 2 elements; element 1 is 2, expected is 3")
    differs({"u": np.array(["a", "b"])}, "element 1 is bc, expected is b")
    np.savez(folder / "near.npz", y=off)
    assert "largest difference 0.5" in run("run", graph, "--inputs", folder / "in.npz", "--check", folder / "near.npz", "--atol", "0.6")
    assert "largest difference 0.5" in run("run", graph, "--inputs", folder / "in.npz", "--check", folder / "near.npz", "--rtol", "0.2")
    np.savez(folder / "strange.npz", z=x)
    np.savez(folder / "empty.npz")
    assert "has an array 'z', which is not fetched; fetched: 'y'" in run(*use[:-1], folder / "strange.npz", status=1)
    assert "has no arrays" in run(*use[:-1], folder / "empty.npz", status=1)
    assert "has an array 'z', but signature" in run("run", graph, "--inputs", folder / "strange.npz", status=1)
    assert "--rtol and --atol are for --check" in run("run", graph, "--inputs", folder / "in.npz", "--rtol", "1", status=2)
    assert "cannot read" in run(*use[:-1], folder / "none.npz", status=1)
    np.savez(folder / "less.npz", x=x, i=np.int32(1))
    assert "missing: 't'" in run("run", graph, "--inputs", folder / "less.npz", status=1)


def test_run_reads_and_writes_files(folder):
    graph, folder = files(folder), pathlib.Path(folder)
    (folder / "numbers.csv").write_text("1,2,3\n4,5,6\n7,8,9\n10,11,12\n")
    cases = {"[0]": "[-1, -2, -3]", "[:,0]": "[-1, -4, -7, -10]", "[1,1:]": "[-5, -6]", "[::2,-1]": "[-3, -9]", "[-1,0:2]": "[-10, -11]"}
    for part, want in cases.items():
        assert run("run", graph, "--feed", f"x={folder}/numbers.csv{part}", "--fetch", "y") == f"y = {want}\n", part
    out = folder / "y.npy"
    assert run("run", graph, "--feed", f"x={folder}/numbers.csv[0]", "--fetch", f"y={out}") == ""
    bytes_ = out.read_bytes()
    assert bytes_[:6] == b"\x93NUMPY" and struct.unpack("<3f", bytes_[-12:]) == (-1, -2, -3) and (len(bytes_) - 12) % 64 == 0
    assert run("run", graph, "--feed", f"x={out}", "--fetch", "y") == "y = [1, 2, 3]\n"


def test_run_names_what_is_wrong(folder):
    graph, folder = files(folder), pathlib.Path(folder)
    (folder / "bad.csv").write_text("1,2\n3,four\n")
    (folder / "bad.npy").write_bytes(b"\x93NUMPY\x01\x00\xff\xff{")
    cases = {"x=[1": "a list is not closed", "x=[[1], [2, 3]]": "side by side", "x=[1, [2]]": "equally deep",
             "x=[one]": "'one' is not a number", "x=1,2": "something follows the value; a list is written [1, 2, 3]",
             f"x={folder}/bad.csv[1]": "bad.csv:2: 'four' in column 2 is not a number", f"x={folder}/bad.csv[5]": "row 5 of 2",
             f"x={folder}/bad.csv[a]": "is not a range", f"x={folder}/none.csv": "cannot read", f"x={folder}/bad.npy": "ends early",
             "x=[[1]]": "x", "z=1": "no operation 'z'"}
    for feed, part in cases.items():
        error = run("run", graph, "--feed", feed, "--fetch", "y", status=1)
        assert error.startswith("thalweg run: ") and part in error and error.count("\n") == 1, (feed, error)
    assert "did you mean 'same'" in run("run", graph, "--feed", "t=x", "--fetch", "sam", status=1)
    (folder / "broken.pb").write_bytes(GRAPH[:-3])
    assert f"'{folder}/broken.pb': " in run("run", folder / "broken.pb", "--fetch", "y", status=1)
    assert "cannot read" in run("run", folder / "none.pb", "--fetch", "y", status=1)
    assert "colour" in run("run", graph, "--fetch", "y", "--session-option", "colour=red", status=1)
    assert "colour" in run("run", graph, "--fetch", "y", "--option", "colour=red", status=1)
    assert "colour" in run("devices", environment={"THALWEG_OPTIONS": "threads=1; colour=red"}, status=1)
    assert "CPU:0" in run("devices", environment={"THALWEG_OPTIONS": " threads=1 ; threads=2 ; "})


def test_run_draws_what_it_is_fed(folder):
    graph = pathlib.Path(folder) / "pictures.pb"
    graph.write_bytes(node("image", "Placeholder", dtype=FLOAT, shape=shape(-1, 4)) + node("y", "Neg", "image"))
    text = run("run", graph, "--feed", "image=[[0, 9, 0, 9], [9, 9, 0, 0]]", "--fetch", "y", "--draw", "image",
               environment={"COLUMNS": "20"})
    assert text == "  @@  y  0: -0.000  2: -0.000\n  @@\n\n@@@@  y  2: -0.000  3: -0.000\n\n", text
    assert "no such feed" in run("run", graph, "--feed", "image=[[0, 1, 2, 3]]", "--fetch", "y", "--draw", "picture", status=2)


def test_literals_of_every_type_are_read(folder):
    graph = typed(folder)
    cases = {"float": "[0.1, -3e-05, inf]", "double": "0.1", "int32": "[[-2147483648], [2147483647]]", "uint8": "[0, 255]",
             "int16": "-32768", "int8": "[-128, 127]", "string": '[["a, b", "c\\"d"], ["", "\\n\\xff"]]', "complex64": "[1+2j, 0-0.5j]",
             "int64": "[9223372036854775807, -9223372036854775808]", "bool": "[true, false]", "qint8": "-128", "quint8": "255",
             "qint32": "7", "bfloat16": "[1.5, nan]", "qint16": "-7", "quint16": "65535", "uint16": "65535", "complex128": "1e+300-1j",
             "half": "[0.5, -inf]", "uint32": "4294967295", "uint64": "18446744073709551615", "int4": "[-8, 7]", "uint4": "15"}
    assert cases.keys() == TYPES.keys()
    for name, value in cases.items():
        got = echo(graph, name, value)
        assert got == value, (name, value, got)
    assert echo(graph, "complex64", "[2j, 3, 1-1e-2j]") == "[0+2j, 3+0j, 1-0.01j]"
    assert echo(graph, "float", "[+1, 1e-400, true]") == "[1, 0, 1]"
    empty = json.loads(run("run", graph, "--feed", "int32=[[], []]", "--fetch", "int32_out", "--json"))["int32_out"]
    assert empty == {"dtype": "int32", "shape": [2, 0], "value": [[], []]}, empty


def test_literals_that_do_not_fit_are_errors(folder):
    graph = typed(folder)
    cases = {"uint8=[1, 256]": "'256' is no uint8, which holds whole numbers from 0 to 255 (at [1])", "uint8=-1": "'-1' is no uint8",
             "int32=1.5": "'1.5' is no int32", "int4=8": "from -8 to 7", "int64=9223372036854775808": "is no int64", "bool=2": "is no bool",
             "float=1e400": "'1e400' is no float", "float=[[1, 2], [3, x]]": "'x' is not a number (at [1, 1])", "float=1+2j": "is no float",
             "complex64=1+2i": "'1+2i' is not a number", "float=": "expected a value",
             'float="a"': "a text in quotes where the graph wants float",
             "float=" + "[" * 300: "nested too deeply", "string=[a, \"b]": "a text is not closed", 'string="\\xg0"': "two digits",
             "half=x": "is not a number"}
    for feed, part in cases.items():
        error = run("run", graph, "--feed", feed, "--fetch", "float_out", status=1)
        assert error.startswith("thalweg run: feed '") and part in error and error.count("\n") == 1, (feed, error)


def test_npy_files_of_every_kind_are_read(folder):
    graph, folder = typed(folder), pathlib.Path(folder)
    numbers = np.arange(24).reshape(2, 3, 4)
    cases = {"float": np.asfortranarray(numbers.astype(np.float32)), "int32": numbers.astype(">i4"),
             "complex64": (numbers * 1j).astype(">c8"),
             "uint8": numbers.astype(np.uint8).transpose(2, 0, 1), "bool": numbers % 2 == 0, "half": numbers.astype(np.float16),
             "string": np.array([["ä", ""], ["bc", "\U0001f600"]]), "int64": np.int64(-5), "double": np.zeros((0, 3))}
    for name, array in cases.items():
        np.save(folder / "in.npy", array)
        for text in [f"{folder}/in.npy", f"@{folder}/in.npy"]:
            assert run("run", graph, "--feed", f"{name}={text}", "--fetch", f"{name}_out={folder}/out.npy") == ""
            got = np.load(folder / "out.npy")
            assert got.shape == array.shape and np.array_equal(got, array), name
            assert got.dtype.newbyteorder("=") == array.dtype.newbyteorder("="), name
    np.save(folder / "in.npy", np.array([b"a", b"bc"]))
    assert echo(graph, "string", folder / "in.npy") == '["a", "bc"]'
    np.save(folder / "in.npy", np.array([1.75, -1.25]))
    assert echo(graph, "int32", folder / "in.npy") == "[1, -1]"  # truncated, as by the op Cast
    run("run", graph, "--feed", 'string=["\\xff", "a"]', "--fetch", f"string_out={folder}/out.npy")
    assert np.load(folder / "out.npy").tolist() == [b"\xff", b"a"]


def test_npz_members_are_named(folder):
    graph, folder = typed(folder), pathlib.Path(folder)
    float_, other = np.float32([1, 2]), np.float32([[3]])
    for save in [np.savez, np.savez_compressed]:
        save(folder / "two.npz", float=float_, other=other)
        assert echo(graph, "float", f"{folder}/two.npz") == "[1, 2]"
        assert echo(graph, "float", f"@{folder}/two.npz[other]") == "[[3]]"
        save(folder / "one.npz", only=other)
        assert echo(graph, "float", f"{folder}/one.npz") == "[[3]]"
    large = np.random.default_rng(1).standard_normal((300, 200)).astype(np.float32)
    np.savez_compressed(folder / "large.npz", float=large)
    run("run", graph, "--feed", f"float={folder}/large.npz", "--fetch", f"float_out={folder}/out.npy")
    assert np.array_equal(np.load(folder / "out.npy"), large)
    cases = {f"float={folder}/two.npz[none]": "no array 'none'; it has float, other",
             f"double={folder}/two.npz": "no array 'double'; it has float, other; name one as FILE.npz[float]"}
    for feed, part in cases.items():
        assert part in run("run", graph, "--feed", feed, "--fetch", "float_out", status=1), feed


def test_damaged_archives_are_errors(folder):
    graph, folder = typed(folder), pathlib.Path(folder)
    np.savez_compressed(folder / "good.npz", float=np.arange(100, dtype=np.float32))
    good = (folder / "good.npz").read_bytes()
    for n in list(range(0, len(good), 7)) + [len(good) - 1]:
        (folder / "bad.npz").write_bytes(good[:n])
        assert "bad.npz" in run("run", graph, "--feed", f"float={folder}/bad.npz", "--fetch", "float_out", status=1)
    for i in range(0, len(good), 3):  # some bytes, such as times, may have any value
        bad = bytearray(good)
        bad[i] ^= 0x41
        (folder / "bad.npz").write_bytes(bad)
        assert run_any(graph, folder / "bad.npz") in (0, 1), i
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("float.npy", b"x" * 100)
    (folder / "bad.npz").write_bytes(buffer.getvalue())
    assert "packed by method 12" in run("run", graph, "--feed", f"float={folder}/bad.npz", "--fetch", "float_out", status=1)
    bomb = bytearray(good)
    at = good.rindex(b"PK\x01\x02")
    bomb[at + 24:at + 28] = struct.pack("<I", 0xf0000000)
    (folder / "bad.npz").write_bytes(bomb)
    assert "claims more bytes than it can hold" in run("run", graph, "--feed", f"float={folder}/bad.npz", "--fetch", "float_out", status=1)


def run_any(graph, file):
    for status in (0, 1):
        try:
            run_both("run", graph, "--feed", f"float={file}", "--fetch", "float_out", status=status)
            return status
        except AssertionError:
            pass
    return None


def test_damaged_npy_files_are_errors(folder):
    graph, folder = typed(folder), pathlib.Path(folder)
    np.save(folder / "good.npy", np.float32([1, 2]))
    good = (folder / "good.npy").read_bytes()
    header = lambda text: good[:8] + struct.pack("<H", len(text)) + text.encode()
    cases = {good[:-1]: "holds 7 bytes of elements, its header says 8", good + b"x": "holds 9 bytes", b"": "not a .npy file",
             header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"): "strange shape",
             header("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 9), }"): "strange shape",
             header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }"): "several fields",
             header("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"): "pickled Python objects",
             header("{'descr': '<f3', 'fortran_order': False, 'shape': (1,), }"): "'<f3' cannot be read",
             header("{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000,), }"): "too many empty texts",
             header("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }") + b"\1\2": "neither 0 nor 1",
             header("{'descr': '<\x1b[2J', 'fortran_order': False, 'shape': (1,), }"): "'<\\x1b[2J' cannot be read"}
    for data, part in cases.items():
        (folder / "bad.npy").write_bytes(data)
        error = run("run", graph, "--feed", f"float={folder}/bad.npy", "--fetch", "float_out", status=1)
        assert part in error and "bad.npy" in error, (part, error)


def test_csv_holds_numbers_and_texts(folder):
    graph, folder = typed(folder), pathlib.Path(folder)
    (folder / "t.csv").write_text('name,"a, b"\r\n"say ""hi""" , 2\r\n"two\nlines",3\r\n\r\n')
    assert echo(graph, "string", f"{folder}/t.csv[:,0]") == '["name", "say \\"hi\\"", "two\\nlines"]'
    assert echo(graph, "int32", f"@{folder}/t.csv[1:,1]") == "[2, 3]"
    (folder / "big.csv").write_text("9223372036854775807,1\n")
    assert echo(graph, "int64", f"{folder}/big.csv[0,0]") == "9223372036854775807"
    run("run", graph, "--feed", 'string=[["a,b", "c\\"d"], ["", "e"]]', "--fetch", f"string_out={folder}/out.csv")
    assert (folder / "out.csv").read_text() == '"a,b","c""d"\n"","e"\n'
    run("run", graph, "--feed", "float=[0.1, 2]", "--fetch", f"float_out={folder}/out.csv")
    assert (folder / "out.csv").read_text() == "0.1\n2\n"
    cases = {'"a': "line 1: a quote is not closed", '"a"b': "something follows a cell in quotes",
             "1,2\n3": "t.csv:2: 1 columns, but 2 above"}
    for text, part in cases.items():
        (folder / "t.csv").write_text(text)
        assert part in run("run", graph, "--feed", f"string={folder}/t.csv", "--fetch", "string_out", status=1), part
    assert "3 axes is no table" in run("run", graph, "--feed", "float=[[[1]]]", "--fetch", f"float_out={folder}/out.csv", status=1)


def test_a_string_takes_a_whole_file(folder):
    graph, folder = typed(folder), pathlib.Path(folder)
    (folder / "picture.jpg").write_bytes(b"\xff\xd8\0")
    assert echo(graph, "string", f"@{folder}/picture.jpg") == '"\\xff\\xd8\\x00"'
    assert "read only for strings" in run("run", graph, "--feed", f"float=@{folder}/picture.jpg", "--fetch", "float_out", status=1)


def test_fetches_go_to_files(folder):
    graph, folder = typed(folder), pathlib.Path(folder)
    run("run", graph, "--feed", "float=[1, 2]", "--feed", "int32=7", "--fetch", f"float_out={folder}/o.npz",
        "--fetch", f"int32_out={folder}/o.npz[a/b]")
    with np.load(folder / "o.npz") as got:
        assert sorted(got) == ["a/b", "float_out"] and got["float_out"].tolist() == [1, 2] and got["a/b"] == 7
    assert zipfile.ZipFile(folder / "o.npz").testzip() is None
    assert echo(graph, "float", f"{folder}/o.npz[float_out]") == "[1, 2]"
    for file, part in {"x.txt": "is neither FILE.npy", "": "is neither FILE.npy"}.items():
        assert part in run("run", graph, "--feed", "float=1", "--fetch", f"float_out={file}", status=2)
    twice = ["--fetch", f"float_out={folder}/a.npy", "--fetch", f"float_out={folder}/a.npy"]
    assert "two fetches" in run("run", graph, "--feed", "float=1", *twice, status=2)
    assert "cannot write" in run("run", graph, "--feed", "float=1", "--fetch", f"float_out={folder}/none/a.npy", status=1)
    assert "no element type bfloat16" in run("run", graph, "--feed", "bfloat16=1", "--fetch", f"bfloat16_out={folder}/a.npy", status=1)


def test_json_keeps_every_value(folder):
    graph = typed(folder)
    feeds = {"int64": "9223372036854775807", "bool": "[true, false]", "complex64": "[1+2j]", "float": "[nan, -inf, 0.1]"}
    got = json.loads(run("run", graph, "--json", *[w for n, v in feeds.items() for w in ("--feed", f"{n}={v}", "--fetch", n + "_out")]))
    assert {n: v["value"] for n, v in got.items()} == {"int64_out": 2**63 - 1, "bool_out": [True, False], "complex64_out": ["1+2j"],
                                                      "float_out": ["NaN", "-Infinity", 0.1]}


def test_run_writes_a_run_that_plot_draws(folder):
    graph = pathlib.Path(folder) / "sum.pb"
    graph.write_bytes(node("x", "Placeholder", dtype=FLOAT, shape=shape()) + node("y", "Neg", "x", T=FLOAT))
    logs = pathlib.Path(folder) / "logs/1"
    out, _ = run_both("run", graph, "--feed", "x=2.5", "--fetch", "y", "--repeat", "3", "--logdir", logs)
    assert out == "y = -2.5\n"
    series, = json.loads(run("plot", logs, "--json"))
    assert (series["tag"], series["points"]) == ("y", [[0, -2.5], [1, -2.5], [2, -2.5]]), series
    file, = logs.iterdir()
    assert b"Placeholder" in file.read_bytes() and b"step 2" in file.read_bytes()
    assert "cannot make folder" in run("run", graph, "--feed", "x=1", "--fetch", "y", "--logdir", graph / "x", status=1)


def test_run_repeats_and_says_how_long_it_took(folder):
    graph = files(folder)
    out, error = run_both("run", graph, "--feed", "x=[1]", "--fetch", "y", "--repeat", "50", "--threads", "1")
    assert out == "y = [-1]\n" and error.startswith("50 steps: the first ") and "median" in error and error.endswith(" a second\n"), error
    run("run", graph, "--feed", "x=[1]", "--fetch", "y", "--session-option", "engine=fixed", "--timeout", "60")
    for option in [("--repeat", "0"), ("--repeat", "many"), ("--threads", "0"), ("--threads", "2.5"), ("--timeout", "-1")]:
        assert f"{option[0]} takes a" in run("run", graph, "--feed", "x=[1]", "--fetch", "y", *option, status=2)


sys.exit(run_tests(globals()))
