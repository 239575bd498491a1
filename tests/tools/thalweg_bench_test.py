"""Tests of `thalweg bench`: the times of steps, and their feeds; networks by name."""
import json
import os
import pathlib
import sys

from thalweg_command import FLOAT, INT32, PROGRAMS, STRING, dtype, files, node, run, run_tests, shape


def test_bench_measures_as_many_steps_as_asked_for(folder):
    graph = files(folder)
    got = json.loads(run("bench", graph, "--fetch", "y", "--repeat", "25", "--threads", "1", "--json"))
    assert len(got) == 1 and got[0]["steps"] == 25 and got[0]["threads"] == 1, got
    r = got[0]
    assert 0 < r["min_seconds"] <= r["median_seconds"] <= r["p99_seconds"] <= r["max_seconds"], r
    assert r["min_seconds"] <= r["mean_seconds"] <= r["max_seconds"] and abs(r["steps_per_second"] * r["mean_seconds"] - 1) < 1e-9
    table = run("bench", graph, "--fetch", "y", "--seconds", "0.05").splitlines()
    assert len(table) == 2 and table[0].split()[:5] == ["threads", "steps", "first", "min", "median"], table
    assert table[1].startswith("default "), table


def test_bench_compares_numbers_of_threads(folder):
    table = run("bench", files(folder), "--fetch", "y", "--compare-threads", "1,2", "--repeat", "30").splitlines()
    assert [line.split()[0] for line in table] == ["threads", "1", "2"] and table[0].endswith("speed") and table[1].endswith("1.00x"), table
    for text in ["1,", "0,1", "1;2", ""]:
        assert "--compare-threads takes numbers" in run("bench", files(folder), "--fetch", "y", "--compare-threads", text, status=2)
    assert "either" in run("bench", files(folder), "--fetch", "y", "--compare-threads", "1", "--threads", "1", status=2)


def test_bench_feeds_what_is_needed(folder):
    graph = pathlib.Path(folder) / "graph.pb"
    graph.write_bytes(node("a", "Placeholder", dtype=FLOAT, shape=shape(-1, 3)) + node("b", "Placeholder", dtype=INT32, shape=shape(2)) +
                      node("t", "Placeholder", dtype=STRING, shape=shape()) + node("h", "Placeholder", dtype=dtype(19), shape=shape(-1)) +
                      node("unknown", "Placeholder", dtype=FLOAT) + node("c", "Identity", "a") + node("d", "Neg", "unknown") +
                      node("all", "NoOp", "^c", "^b", "^t", "^h"))
    run("bench", graph, "--target", "all", "--repeat", "5")
    assert "shape of 'unknown' is not known; give --feed-shape unknown=SIZES" in run("bench", graph, "--fetch", "d", status=1)
    for sizes in ["4", "[2, 3]", ""]:
        run("bench", graph, "--fetch", "d", "--feed-shape", f"unknown={sizes}", "--repeat", "5")
    run("bench", graph, "--fetch", "d", "--feed", "unknown=[1, 2]", "--repeat", "5")
    assert "is fed twice" in run("bench", graph, "--fetch", "d", "--feed", "unknown=1", "--feed-shape", "unknown=1", status=2)
    assert "sizes are whole numbers" in run("bench", graph, "--fetch", "d", "--feed-shape", "unknown=2,x", status=2)
    assert "too many elements" in run("bench", graph, "--fetch", "d", "--feed-shape", "unknown=9999999999,9999999999", status=1)
    assert "'a'" in run("bench", graph, "--fetch", "c", "--feed-shape", "a=2,4", status=1)
    assert "nothing to do" in run("bench", graph, status=2)


def test_bench_takes_networks_by_name(folder):
    program = PROGRAMS.parent / "share/doc/thalweg/bindings/python/examples/models/bench.py"
    if not program.exists():
        assert f"'{program}' is not there; install the examples" in run("bench", "model", "alexnet", status=1)
        return
    python = {"PATH": "/usr/bin:" + os.environ["PATH"], "THALWEG_PYTHON": ""}  # the Python that has NumPy
    words = ["--set", "width=0.0625", "--set", "side=67", "--batch", "2", "--threads", "1", "--repeat", "3", "--warmup", "0", "--forward", "--json"]
    got = json.loads(run("bench", "model", "alexnet", *words, environment=python))
    assert got["model"] == "alexnet" and got["what"] == "forward" and got["batch"] == 2 and got["threads"] == 1 and got["steps"] == 3, got
    assert 0 < got["min_seconds"] <= got["median_seconds"] and got["multiply_accumulates"] > 0, got
    assert "there is no model 'alexnt'; did you mean 'alexnet'?" in run("bench", "model", "alexnt", status=2, environment=python)
    graph = files(folder)
    assert "--batch is for a network: thalweg bench model NAME" in run("bench", graph, "--fetch", "y", "--batch", "2", status=2)
    assert "unexpected argument 'alexnet'" in run("bench", graph, "alexnet", "--fetch", "y", status=2)
    assert "python3 cannot be started" in run("bench", "model", "alexnet", status=1, environment={"PATH": str(folder), "THALWEG_PYTHON": ""})
    absent = {"THALWEG_PYTHON": f"{folder}/none"}
    assert f"{folder}/none cannot be started" in run("bench", "model", "alexnet", status=1, environment=absent)
    strange = "it's $(touch made) \"a\" `b` ; c"
    assert f"there is no model '{strange}'" in run("bench", "model", strange, status=2, environment=python)
    for words in (["--batch", "2", "model", "alexnet"], ["model"], ["model", "--fetch", "y"]):
        assert "a network is timed by `thalweg bench model NAME [options]`" in run("bench", *words, status=2)


sys.exit(run_tests(globals()))
