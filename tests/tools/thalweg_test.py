"""Every sub-command of `thalweg`: what it prints, what it exits with, how it fails."""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import traceback

PROGRAMS = pathlib.Path(sys.argv[1])
THALWEG = PROGRAMS / "thalweg"


def run(*arguments, status=0, environment=None):
    done = subprocess.run([str(THALWEG), *map(str, arguments)], capture_output=True, text=True,
                          env={**os.environ, **(environment or {})})
    assert done.returncode == status, f"exit status {done.returncode} instead of {status}: {done.stdout}{done.stderr}"
    assert (status == 0) == (done.stderr == ""), f"standard error: {done.stderr}"
    return done.stdout if status == 0 else done.stderr


# ---- A few messages of GraphDef by hand, so that the test needs no protobuf ----

def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, payload):
    if isinstance(payload, int):
        return varint(number << 3) + varint(payload)
    payload = payload.encode() if isinstance(payload, str) else payload
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def node(name, op, *inputs, **attrs):
    message = field(1, name) + field(2, op) + b"".join(field(3, i) for i in inputs)
    return field(1, message + b"".join(field(5, field(1, key) + field(2, value)) for key, value in attrs.items()))


FLOAT, INT32, STRING = field(6, 1), field(6, 3), field(6, 7)


def shape(*dims):
    return field(7, b"".join(field(2, field(1, d & (2**64 - 1)) if d else b"") for d in dims))


# y = -x for vectors of any length, and a text and a whole number that are passed on.
GRAPH = (node("x", "Placeholder", dtype=FLOAT, shape=shape(-1)) + node("y", "Neg", "x") +
         node("t", "Placeholder", dtype=STRING, shape=shape()) + node("same", "Identity", "t") +
         node("i", "Placeholder", dtype=INT32) + node("j", "Identity", "i"))


def files(folder):
    graph = pathlib.Path(folder) / "graph.pb"
    graph.write_bytes(GRAPH)
    return graph


def test_help_is_there_for_all(folder):
    text = run("--help")
    for command in ["run", "inspect", "ops", "plugins", "devices", "ckpt", "doctor"]:
        assert f"  {command} " in text, text
        help_text = run(command, "--help")
        assert help_text.startswith(f"usage: thalweg {command}"), help_text
        assert "Exit status: 0 good, 1 failed, 2 wrong arguments." in help_text
    assert "thalweg 0.1.0" in run("--version")
    assert "threads=" in run("doctor", "--help")


def test_wrong_arguments_exit_with_2(folder):
    graph = files(folder)
    assert "unknown command 'dance'" in run("dance", status=2)
    assert "unknown option '--colour'" in run("devices", "--colour", status=2)
    assert "missing argument: GRAPH" in run("run", status=2)
    assert "unexpected argument 'more'" in run("devices", "more", status=2)
    assert "needs a value" in run("run", graph, "--fetch", status=2)
    assert "takes no value" in run("devices", "--json=yes", status=2)
    assert "nothing to do" in run("run", graph, status=2)
    assert "NAME=VALUE" in run("run", graph, "--feed", "x", "--fetch", "y", status=2)
    assert "neither verify nor list" in run("ckpt", "mend", "x", status=2)
    assert "--timeout" in run("run", graph, "--feed", "x=[1]", "--fetch", "y", "--timeout", "soon", status=2)


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
    cases = {"x=[1": "a list is not closed", "x=[[1], [2, 3]]": "side by side", "x=[1, [2]]": "equally deep", "x=[one]": "'one' is not a number",
             f"x={folder}/bad.csv[1]": "bad.csv:2: 'four' in column 2 is not a number", f"x={folder}/bad.csv[5]": "row 5 of 2",
             f"x={folder}/bad.csv[a]": "is not a range", f"x={folder}/none.csv": "cannot read", f"x={folder}/bad.npy": "ends early",
             "x=[[1]]": "x", "z=1": "no operation 'z'"}
    for feed, part in cases.items():
        error = run("run", graph, "--feed", feed, "--fetch", "y", status=1)
        assert error.startswith("thalweg run: ") and part in error and error.count("\n") == 1, (feed, error)
    assert "did you mean 'same'" in run("run", graph, "--feed", "t=x", "--fetch", "sam", status=1)
    (folder / "broken.pb").write_bytes(GRAPH[:-3])
    assert run("run", folder / "broken.pb", "--fetch", "y", status=1)
    assert "cannot read" in run("run", folder / "none.pb", "--fetch", "y", status=1)
    assert "colour" in run("run", graph, "--fetch", "y", "--session", "colour=red", status=1)
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


def test_inspect_shows_a_graph(folder):
    graph = files(folder)
    text = run("inspect", graph)
    assert "6 operations" in text and "x  float [?]" in text and "Identity" in text, text
    assert "Neg" in run("inspect", graph, "--all")
    text = run("inspect", graph, "--node", "y")
    assert "input 0   x  float [?]" in text and "T         float" in text, text
    got = json.loads(run("inspect", graph, "--json"))
    assert [o["name"] for o in got["operations"]] == ["x", "y", "t", "same", "i", "j"] and got["operations"][1]["inputs"] == ["x"]
    assert run("inspect", graph, "--verify").endswith("good\n")
    (pathlib.Path(folder) / "unknown.pb").write_bytes(node("a", "Dance"))
    assert "Dance" in run("inspect", pathlib.Path(folder) / "unknown.pb", status=1)
    assert "Neg 'y'" in run("inspect", graph, "--verify", "--option", "load_plugins=false", status=1)


def test_lists_are_tables_or_json(folder):
    names = [op["name"] for op in json.loads(run("ops", "--json"))]
    assert len(names) > 100 and names == sorted(names) and "MatMul" in names
    assert "transpose_a" in run("ops", "MatMul") and "kernels" in run("ops", "MatMul")
    assert len(run("ops", "Conv2D*").splitlines()) == 3
    assert "no op is called 'Dance'" in run("ops", "Dance", status=1)
    devices = json.loads(run("devices", "--json"))
    assert devices[0]["name"].endswith("device:CPU:0") and "CPU:0" in run("devices")
    plugins = {p["id"]: p for p in json.loads(run("plugins", "--json"))}
    assert plugins["org.thalweg.cpu"]["state"] == "loaded" and plugins["org.thalweg.cpu"]["kernels"] > 100
    assert "org.thalweg.ops" in run("plugins")


def test_plugins_say_why(folder):
    folder = pathlib.Path(folder)
    (folder / "libbroken.so").write_text("no library")
    text = run("plugins", "--why", environment={"THALWEG_PLUGIN_PATH": f"{folder}:" + os.environ["THALWEG_PLUGIN_PATH"]})
    at = text.index("libbroken.so")
    assert "failed" in text[at:at + 60] and "  why " in text[at:] and "  fix " in text[at:], text
    error = run("doctor", environment={"THALWEG_PLUGIN_PATH": f"{folder}:" + os.environ["THALWEG_PLUGIN_PATH"]}, status=1)
    assert "1 finding is bad" in error, error


def test_names_of_files_are_shown_on_one_line_of_utf8(folder):
    name = os.fsencode(folder) + b"/lib\xff\n\xc3\xa9.so"
    with open(name, "wb") as file:
        file.write(b"no library")
    environment = {"THALWEG_PLUGIN_PATH": f"only:{folder}"}
    plugins = {p["path"]: p for p in json.loads(run("plugins", "--json", environment=environment))}
    assert plugins[f"{folder}/lib\ufffd\n\u00e9.so"]["state"] == "failed", plugins
    assert f"  file    {folder}/lib\\xff\\n\u00e9.so\n" in run("plugins", "--why", environment=environment)
    assert "lib\\xff\\n\u00e9.so  " in run("plugins", environment=environment)
    done = subprocess.run([THALWEG, "doctor", "--json"], capture_output=True, env={**os.environ, **environment})
    assert any("lib\ufffd\n\u00e9.so" in f["text"] for f in json.loads(done.stdout)), done.stdout


def test_the_doctor_finds_health_and_sickness(folder):
    findings = json.loads(run("doctor", "--json"))
    assert {f["state"] for f in findings} <= {"fine", "warning"} and {"gradients", "checkpoints", "CPU:0"} <= {f["what"] for f in findings}
    done = subprocess.run([THALWEG, "doctor", "--option", "load_plugins=false"], capture_output=True, text=True)
    assert done.returncode == 1 and "no plugin provides a device" in done.stdout, done.stdout


def test_checkpoints_are_verified(folder):
    folder, data = pathlib.Path(folder), pathlib.Path(os.environ["THALWEG_DATA_PATH"]) / "digits.csv"
    if not data.exists():
        return
    subprocess.run([PROGRAMS / "digits", "--data", data, "--out", folder / "d", "--epochs", "1", "--quiet"], check=True,
                   capture_output=True)
    prefix = folder / "d/model"
    text = run("ckpt", "verify", prefix)
    assert "conv1/filter " in text and "good" in text and "26 tensors" in text, text
    got = json.loads(run("ckpt", "list", prefix, "--json"))
    assert {"name": "output/bias", "dtype": "float", "shape": "[10]", "bytes": 40} in got["tensors"], got
    shard = folder / "d/model.data-00000-of-00001"
    shard.write_bytes(b"\x55" + shard.read_bytes()[1:])
    error = run("ckpt", "verify", prefix, status=1)
    assert "1 of 26 tensors are damaged" in error and str(shard.name) in error, error
    assert run("ckpt", "verify", folder / "none", status=1)
    error = run("run", folder / "d/graph.pb", "--checkpoint", prefix, "--feed", f"image={data}[0:2,0:64]", "--fetch", "prediction", status=1)
    assert "model" in error


failed = 0
for name, test in [(n, f) for n, f in globals().items() if n.startswith("test_")]:
    work = tempfile.mkdtemp()
    try:
        test(work)
        print("passed ", name)
    except Exception:
        failed += 1
        print("FAILED ", name)
        traceback.print_exc(file=sys.stdout)
    finally:
        shutil.rmtree(work)
sys.exit(bool(failed))
