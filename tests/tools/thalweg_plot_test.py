"""Tests of `thalweg plot`: the values read from event files and tables, and the picture."""
import json
import pathlib
import re
import shutil
import sys
import xml.etree.ElementTree as xml

from thalweg_command import run, run_both, run_tests

GOLDEN = pathlib.Path(__file__).parent / "testdata/events"  # written by TensorFlow: thalweg_events_peer_test.py
SVG = "{http://www.w3.org/2000/svg}"


def series(*arguments):
    return {(s["run"], s["tag"]): s["points"] for s in json.loads(run("plot", *arguments, "--json"))}


def texts(svg):
    return [t.text for t in xml.fromstring(svg).iter(SVG + "text")]


def table(folder, text, name="log.csv"):
    path = pathlib.Path(folder) / name
    path.write_text(text)
    return path


def test_event_files_of_tensorflow_are_read(folder):
    got = series(GOLDEN)
    assert got["train", "loss"] == [[s, 2 * 0.75**s] for s in range(8)]
    assert got["eval", "loss"] == [[s, 2 * 0.75**s + 0.25] for s in range(8)]
    assert got["train", "accuracy"] == [[s, 1 - 0.5**s] for s in range(4)]
    for name in ["float64", "float16", "bfloat16"]:
        assert got["train", f"types/{name}"] == [[s, s * 0.5] for s in range(4)], name
    for name in ["int32", "int64"]:
        assert got["train", f"types/{name}"] == [[s, s - 1] for s in range(4)], name
    assert {tag for _, tag in got} == {"loss", "accuracy"} | {
        f"types/{t}" for t in ["float64", "float16", "bfloat16", "int32", "int64", "uint8"]}
    assert set(series(GOLDEN / "train", "--tag", "l*")) == {(".", "loss")}
    assert set(series(GOLDEN, "--run", "ev*")) == {("eval", "loss")}
    seconds = series(GOLDEN, "--tag", "loss", "--x", "time")["eval", "loss"]
    assert 0 <= seconds[0][0] <= seconds[-1][0] < 60


def test_a_file_that_is_cut_short_is_read_as_far_as_it_goes(folder):
    logs = pathlib.Path(folder) / "logs"
    shutil.copytree(GOLDEN / "eval", logs)
    file = logs / "events.out.tfevents.1"
    whole = file.read_bytes()
    for cut in [1, 5, 15, 40]:
        file.write_bytes(whole[:-cut])
        out, note = run_both("plot", logs, "--json")
        assert len(json.loads(out)[0]["points"]) == 7 and "is cut short and left out" in note and note.count("\n") == 1, (cut, note)
    file.write_bytes(whole[:-20] + bytes([whole[-20] ^ 1]) + whole[-19:])
    out, note = run_both("plot", logs, "--json", status=1)
    assert len(json.loads(out)[0]["points"]) == 7 and "is damaged and left out" in note and "1 record is damaged" in note
    at = 12 + int.from_bytes(whole[:8], "little") + 4
    file.write_bytes(whole[:at] + b"\xff" + whole[at + 1:])
    assert "has no numbers over time" in run("plot", logs, status=1)
    file.write_bytes(b"no events at all")
    assert "is no event file" in run("plot", logs, status=1)
    file.unlink()
    assert "no event file in" in run("plot", logs, status=1)


def test_a_run_that_was_started_again_goes_on_from_there(folder):
    logs = pathlib.Path(folder) / "logs"
    logs.mkdir()
    shutil.copy(GOLDEN / "eval/events.out.tfevents.1", logs / "events.out.tfevents.1")
    shutil.copy(GOLDEN / "train/events.out.tfevents.1", logs / "events.out.tfevents.2")
    assert series(logs)[".", "loss"] == [[s, 2 * 0.75**s] for s in range(8)]


def test_tables_are_read(folder):
    path = table(folder, "Step,loss,lr,empty\n0,1,0.5,\n10,0.5,,\n20,nan,0.1,\n")
    out, note = run_both("plot", path, "--json")
    assert {s["tag"]: s["points"] for s in json.loads(out)} == {"loss": [[0, 1], [10, 0.5], [20, "NaN"]], "lr": [[0, 0.5], [20, 0.1]]}
    assert "column 'empty' has no values" in note
    assert series(table(folder, "a\n5\n6\n", "b.csv"))["b", "a"] == [[1, 5], [2, 6]]
    cases = {"step,a\n1,x\n": "log.csv:2: 'x' in column 'a' is not a number", "": "is empty", "step\n1\n": "no numbers over time",
             'a,"b\n': "a quote is not closed"}
    for text, part in cases.items():
        assert part in run("plot", table(folder, text), status=1), part
    assert run("plot", table(folder, "a\n" + "x" * 5000 + "\n"), status=1).endswith("'" + "x" * 60 + "...' in column 'a' is not a number\n")
    path = table(folder, "a,b\n1,2\n")
    assert "has no column 'c'; it has a, b" in run("plot", path, "--x", "c", status=1)
    assert "its tags are a, b" in run("plot", path, "--tag", "z", status=1)
    assert "cannot read" in run("plot", folder + "/none.csv", status=1)
    for option, value in [("--smooth", "1"), ("--smooth", "x"), ("--columns", "0")]:
        assert option + " takes" in run("plot", path, option, value, status=2)
    assert "--x is step or time" in run("plot", GOLDEN, "--x", "lr", status=2)


def test_the_picture_has_a_panel_for_each_tag_and_a_line_for_each_run(folder):
    out = pathlib.Path(folder) / "x.svg"
    assert run("plot", GOLDEN, "-o", out) == ""
    tree = xml.fromstring(out.read_text())
    words = [t.text for t in tree.iter(SVG + "text")]
    assert {"events", "loss", "accuracy", "types/int32", "train", "eval", "step"} <= set(words), words
    panel = next(g for g in tree.iter(SVG + "g") if g.find(SVG + "title") is not None and g.find(SVG + "title").text == "loss")
    lines = [p.get("d") for p in panel.iter(SVG + "path")]
    assert len(lines) == 2 and all(len(re.findall("[ML]", d)) == 8 for d in lines), lines
    heights = [float(y) for y in re.findall(r"[ML][-\d.]+ ([-\d.]+)", lines[0])]
    assert heights == sorted(heights), heights  # the loss falls: down the picture
    smooth = xml.fromstring(run("plot", GOLDEN, "--tag", "loss", "--smooth", "0.9"))
    assert len([p for p in smooth.iter(SVG + "path") if p.get("stroke-opacity")]) == 2


def test_axes_are_marked_at_round_numbers(folder):
    def marks(text, *options):
        return [t for t in texts(run("plot", table(folder, text), *options))[1:] if re.fullmatch(r"-?[\d.]+(e[-+]\d+)?[kMGT]?", t)]
    assert marks("step,a\n0,0\n100,1\n") == ["0", "0.2", "0.4", "0.6", "0.8", "1.0", "0", "20", "40", "60", "80", "100"]
    assert marks("step,a\n0,0.001\n3000000,1000\n", "--log")[:7] == ["0.001", "0.01", "0.1", "1", "10", "100", "1000"]
    assert "3M" in marks("step,a\n0,1\n3000000,2\n")
    run("plot", table(folder, "step,a\n1,5\n"))  # one point
    run("plot", table(folder, "step,a\n1,1.7e308\n2,-1.7e308\n"))
    assert "2 values are not positive" in texts(run("plot", table(folder, "step,a\n1,-1\n2,0\n3,1\n"), "--log"))
    assert "1 value is not finite" in texts(run("plot", table(folder, "step,a\n1,inf\n2,0\n")))


def test_long_runs_make_no_large_pictures(folder):
    path = table(folder, "step,a\n" + "".join(f"{i},{i % 7}\n" for i in range(100000)))
    assert len(run("plot", path)) < 60000


def test_hostile_names_are_escaped(folder):
    path = table(folder, 'step,"<script>&""\x01"\n1,2\n')
    svg = run("plot", path)
    assert "<script>" not in svg and '<script>&"\\x01' in texts(svg), texts(svg)


sys.exit(run_tests(globals()))
