"""Tests of `thalweg` as a whole, and of the sub-commands ops, plugins, devices, ckpt and doctor."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

from thalweg_command import PROGRAMS, THALWEG, files, run, run_tests


def test_help_is_there_for_all(folder):
    text = run("--help")
    for command in ["run", "replay", "bench", "inspect", "debug", "convert", "plot", "ops", "plugins", "new", "devices", "ckpt", "doctor", "completion", "serve", "worker", "launch", "cluster"]:
        assert f"  {command} " in text, text
        help_text = run(command, "--help")
        assert help_text.startswith(f"usage: thalweg {command}"), help_text
        assert "Exit status: 0 good, 1 failed, 2 wrong arguments." in help_text
    assert "thalweg 0.1.0" in run("--version") == run("version") == run("-V")
    assert run("help", "run") == run("run", "--help") and run("help") == run("help", "--help") == text
    assert "unknown command 'dance'" in run("help", "dance", status=2)
    assert "threads=" in run("doctor", "--help")


def test_output_that_cannot_be_written_is_an_error(folder):
    for arguments in (["--help"], ["--version"], ["run", "--help"], ["ops"], ["completion", "bash"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([THALWEG, *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 1 and "cannot write to standard output" in done.stderr, arguments


def test_wrong_arguments_exit_with_2(folder):
    graph = files(folder)
    assert "unknown command 'dance'" in run("dance", status=2)
    assert "unknown option '--colour'" in run("devices", "--colour", status=2)
    assert run("dvices", status=2) == "thalweg: unknown command 'dvices'; did you mean 'devices'? see thalweg --help\n"
    assert run("run", graph, "--fech", "y", status=2) == "thalweg run: unknown option '--fech'; did you mean '--fetch'? see thalweg run --help\n"
    assert "missing argument: FILE" in run("run", status=2)
    assert "unexpected argument 'more'" in run("devices", "more", status=2)
    assert "needs a value" in run("run", graph, "--fetch", status=2)
    assert "takes no value" in run("devices", "--json=yes", status=2)
    assert "nothing to do" in run("run", graph, status=2)
    assert "NAME=VALUE" in run("run", graph, "--feed", "x", "--fetch", "y", status=2)
    assert "neither verify nor list" in run("ckpt", "mend", "x", status=2)
    assert "--timeout" in run("run", graph, "--feed", "x=[1]", "--fetch", "y", "--timeout", "soon", status=2)


def test_what_cannot_be_read_or_made_is_named_once(folder):
    nothing, text = folder + "/none", pathlib.Path(folder) / "text"
    text.write_text("no JSON")
    for arguments in (["plot", nothing], ["trace", "top", nothing], ["inspect", nothing, "--verify"]):
        assert run(*arguments, status=1) == f"thalweg {arguments[0]}: cannot read '{nothing}': No such file or directory\n"
    assert f"inspect: '{text}': the GraphDef" in run("inspect", text, "--verify", status=1)
    for arguments in (["worker", "--cluster", text], ["cluster", "status", "--cluster", text], ["cluster", "init", "--cluster", text, "--out", nothing]):
        assert run(*arguments, status=1).startswith(f"thalweg {arguments[0]}: '{text}': "), arguments
    assert "worker: 'TF_CONFIG': " in run("worker", status=1, environment={"TF_CONFIG": "{"})
    assert f"ops: '{text}/manual" in run("ops", "--manual", text / "manual", status=1)


def test_lists_are_tables_or_json(folder):
    names = [op["name"] for op in json.loads(run("ops", "--json"))]
    assert len(names) > 100 and names == sorted(names) and "MatMul" in names
    assert "transpose_a" in run("ops", "MatMul") and "kernels" in run("ops", "MatMul")
    assert len(run("ops", "Conv2D*").splitlines()) == 3
    assert "no op is called 'Dance'; thalweg ops lists all" in run("ops", "Dance", status=1)
    for text, wanted in {"matmul": "there is MatMul\n", "Tile_": "did you mean 'Tile'?\n", "mat_mul": "did you mean 'MatMul'?\n",
                         "Softmx": "did you mean 'Softmax'?\n", "Readvariable": "there are ReadVariableOp, ReadVariables",
                         "MatMulV": "there are BatchMatMulV2, BatchMatMulV3\n"}.items():
        assert wanted in run("ops", text, status=1), text
    devices = json.loads(run("devices", "--json"))
    assert devices[0]["name"].endswith("device:CPU:0") and "CPU:0" in run("devices")
    plugins = {p["id"]: p for p in json.loads(run("plugins", "--json"))}
    assert plugins["org.thalweg.cpu"]["state"] in ("loaded", "known") and plugins["org.thalweg.cpu"]["kernels"] > 100
    assert len(plugins["org.thalweg.cpu"]["digest"]) == 64 and "fuse" in str(plugins["org.thalweg.cpu"]["roles"])
    assert "org.thalweg.ops" in run("plugins")


def test_devices_tell_of_their_memory(folder):
    fake = os.environ["THALWEG_BINARY_DIR"] + "/tests/devices/libfake.so"
    devices = json.loads(run("devices", "--plugin", fake, "--option", "plugin.org.thalweg.fake.memory=8M", "--json"))
    cpu = devices[0]
    first, second = (d for d in devices if d["plugin"] == "org.thalweg.fake")
    assert cpu["statistics"] is None and first["memory"] == 8 << 20
    assert first["statistics"]["memory_used"] == 0 and second["statistics"]["memory_largest_free"] == 8 << 20
    assert "0 B of 8.4 MB used, 0 B at the peak" in run("devices", "--plugin", fake, "--option", "plugin.org.thalweg.fake.memory=8M")
    assert "limit 1.0 MB" in run("devices", "--plugin", fake, "--option", "memory_limit.FAKE:1=1M")
    assert first["pool_used"] == 0 and "streams" in first["capabilities"] and "host memory" in cpu["capabilities"]


def test_only_visible_devices_are_used(folder):
    fake = os.environ["THALWEG_BINARY_DIR"] + "/tests/devices/libfake.so"
    names = [d["uid"] for d in json.loads(run("devices", "--plugin", fake, "--json", environment={"THALWEG_VISIBLE_DEVICES": "FAKE:1"}))]
    assert "fake-1" in names and "fake-0" not in names
    assert "fake-1" not in run("devices", "--plugin", fake, "--option", "visible_devices=FAKE:0", "--json")


def test_plugins_say_why(folder):
    folder = pathlib.Path(folder)
    (folder / "libbroken.so").write_text("no library")
    text = run("plugins", "--why", environment={"THALWEG_PLUGIN_PATH": f"{folder}:" + os.environ["THALWEG_PLUGIN_PATH"]})
    at = text.index("libbroken.so")
    assert "failed" in text[at:at + 60] and "  why " in text[at:] and "  fix " in text[at:], text
    error = run("doctor", environment={"THALWEG_PLUGIN_PATH": f"{folder}:" + os.environ["THALWEG_PLUGIN_PATH"]}, status=1)
    assert "1 finding is bad" in error, error


def test_plugins_tell_of_those_that_are_known_or_not_allowed(folder):
    cache, allowed = pathlib.Path(folder) / "cache", pathlib.Path(folder) / "allowed"
    for _ in range(2):  # the plugin is examined, then remembered
        plugins = {p["id"]: p for p in json.loads(run("plugins", "--json", "--option", f"plugin_cache={cache}"))}
        assert plugins["org.thalweg.cpu"]["state"] == "known" and plugins["org.thalweg.ops"]["state"] == "loaded", plugins
    allowed.write_text("# none\n")
    text = run("plugins", "--why", "--option", f"plugin_allow={allowed}")
    assert "not allowed" in text and f"not on the allow-list '{allowed}'" in text, text
    assert plugins["org.thalweg.cpu"]["digest"] in text[text.index("fix "):], text
    allowed.write_text(plugins["org.thalweg.cpu"]["digest"] + "  libcpu.so\n")
    assert "CPU:0" in run("devices", "--option", f"plugin_allow={allowed}")
    assert "line 1" in run("devices", "--option", f"plugin_allow={__file__}", status=1)


def test_plugins_check_hands_over_to_the_kit(folder):
    assert "unknown word 'mend'" in run("plugins", "mend", "x.so", status=2)
    assert "needs the FILE" in run("plugins", "check", status=2)
    alone = pathlib.Path(folder) / "thalweg"
    shutil.copy(THALWEG, alone)
    done = subprocess.run([alone, "plugins", "check", "x.so"], capture_output=True, text=True,
                          env={**os.environ, "LD_LIBRARY_PATH": str(pathlib.Path(THALWEG).parent.parent / "lib")})
    assert done.returncode == 1 and f"the conformance kit '{folder}/thalweg-conformance' cannot be started" in done.stderr, done.stderr
    kit = pathlib.Path(folder) / "thalweg-conformance"
    kit.write_text('#!/bin/sh\necho "kit: $*"\nexit 3\n')
    kit.chmod(0o755)
    done = subprocess.run([alone, "plugins", "check", "--json", "x.so"], capture_output=True, text=True,
                          env={**os.environ, "LD_LIBRARY_PATH": str(pathlib.Path(THALWEG).parent.parent / "lib")})
    assert (done.returncode, done.stdout) == (3, "kit: --json x.so\n"), done


def test_serve_hands_over_to_its_helper(folder):
    folder = pathlib.Path(folder)
    (folder / "lib/thalweg").mkdir(parents=True)
    (folder / "lib/libthalweg.so.0").symlink_to(pathlib.Path(THALWEG).parent.parent / "lib/libthalweg.so.0")
    shutil.copy(THALWEG, folder / "thalweg")

    def serve(*words):
        done = subprocess.run([folder / "thalweg", "serve", *words], capture_output=True, text=True, env={**os.environ, "LD_LIBRARY_PATH": f"{folder}/lib"})
        return done.returncode, done.stdout + done.stderr

    status, said = serve("x.pb")
    assert status == 1 and f"the helper program '{folder}/lib/thalweg/thalweg-serve' is not there; install the package thalweg-serve" in said, said
    assert serve("--polls", "1")[0] == 2 and serve("--help")[1].startswith("usage: thalweg serve")
    helper = folder / "lib/thalweg/thalweg-serve"
    helper.write_text('#!/bin/sh\necho "helper: $*"\nexit 3\n')
    status, said = serve("x.pb")
    assert status == 1 and "cannot be started: Permission denied" in said, said
    helper.chmod(0o755)
    assert serve("--port", "0", "x.pb") == (3, "helper: --port 0 x.pb\n")
    needed = subprocess.run(["ldd", THALWEG], capture_output=True, text=True, check=True).stdout
    assert "libthalweg.so" in needed and "httplib" not in needed and "libssl" not in needed and "libcrypto" not in needed, needed


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


def test_tensors_in_pieces_count_with_all_their_bytes(folder):
    """The checkpoint is TensorFlow's, with two partitioned variables."""
    prefix = pathlib.Path(os.environ["THALWEG_SOURCE_DIR"]) / "tests/framework/io/testdata/variables-5"
    got = {t["name"]: t for t in json.loads(run("ckpt", "list", prefix, "--json"))["tensors"]}
    for name in ("scope/by_columns", "scope/by_rows"):
        assert (got[name]["shape"], got[name]["bytes"]) == ("[6, 5]", 120), got


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
    error = run("run", folder / "d/graph.pb", "--checkpoint", prefix, "--feed", f"image={data}[0:2,0:64]",
                "--fetch", "prediction", status=1)
    assert "model" in error


sys.exit(run_tests(globals()))
