"""Tests of `thalweg run --trace` and `thalweg trace`: the files keep the format's rules and show where the time went."""
import json
import pathlib
import sys

from thalweg_command import FLOAT, PROGRAMS, field, node, run, run_both, run_tests, shape
from trace_format import check_trace, rows

FAKE = PROGRAMS.parent / "tests/devices/libfake.so"
DEVICES = {"THALWEG_PLUGIN_PATH": f"{PROGRAMS.parent}/lib/thalweg/plugins:{FAKE}"}


def message_with_device(message, device):
    # field 1 of GraphDef holds the node; its own field 4 is the device.
    body = message[2:] if message[1] < 128 else message[3:]
    return field(1, body + field(4, device))


def graph(folder, device=""):
    """y = sum of two chains of x [-1, -1]."""
    def place(message):
        return message_with_device(message, device) if device else message
    text = (node("x", "Placeholder", dtype=FLOAT, shape=shape(-1, -1)) +
            place(node("square", "MatMul", "x", "x", T=FLOAT)) + place(node("minus", "Neg", "square", T=FLOAT)) +
            place(node("e", "Square", "x", T=FLOAT)) + place(node("y", "AddV2", "minus", "e", T=FLOAT)))
    path = pathlib.Path(folder) / "graph.pb"
    path.write_bytes(text)
    return path


FEED = ("--feed", "x=[[1, 2], [3, 4]]", "--fetch", "y")


def test_a_trace_of_several_steps_keeps_the_rules_of_the_format(folder):
    out = pathlib.Path(folder) / "steps.json"
    run_both("run", graph(folder), *FEED, "--repeat", 3, "--trace", out, "--session-option", "optimize=false")
    events = check_trace(out.read_text())
    assert [e["name"] for e in events if e["ph"] == "b" and e["cat"] == "step"] == ["step 1", "step 2", "step 3"]
    ops = [e for e in events if e["ph"] == "X" and e["cat"] == "op"]
    assert sorted({e["name"] for e in ops}) == ["AddV2", "MatMul", "Neg", "Square"] and len(ops) == 12
    product = next(e for e in ops if e["name"] == "MatMul")
    assert product["args"]["node"] == "square" and product["args"]["shapes"] == "float [2, 2], float [2, 2] -> float [2, 2]", product
    assert product["args"]["step"] == 1 and "MatMul" in product["args"]["kernel"]
    last = [e for e in ops if e["args"]["step"] == 3]
    ids = {e["args"]["node"]: e["args"]["id"] for e in last}
    assert {e["args"]["node"]: sorted(e["args"]["after"]) for e in last}["y"] == sorted([ids["minus"], ids["e"]])


def test_devices_have_rows_and_copies_say_from_where_to_where(folder):
    out = pathlib.Path(folder) / "steps.json"
    run_both("run", graph(folder, "FAKE:0"), *FEED, "--trace", out, environment=DEVICES)
    events = check_trace(out.read_text())
    found = rows(events)
    assert {e["name"] for e in found["FAKE:0 compute"]} == {"MatMul", "Neg", "Square", "AddV2"}, found.keys()
    assert all(e["args"]["told_by_device"] for e in found["FAKE:0 compute"])
    copies = {e["name"]: e["args"] for bars in found.values() for e in bars if e["cat"] == "copy"}
    assert (copies["CopyToDevice"]["from"], copies["CopyToDevice"]["to"], copies["CopyToDevice"]["bytes"]) == ("host", "FAKE:0", 16)
    assert (copies["CopyToHost"]["from"], copies["CopyToHost"]["to"], copies["CopyToHost"]["bytes"]) == ("FAKE:0", "host", 16)
    waits = [e for e in events if e.get("cat") == "wait"]
    assert all(e["name"].startswith(("waits", "nothing to do")) for e in waits)


def test_a_device_that_tells_no_times_has_a_row_all_the_same(folder):
    out = pathlib.Path(folder) / "steps.json"
    run_both("run", graph(folder, "FAKE:0"), *FEED, "--trace", out, "--option", "plugin.org.thalweg.fake.without=profile",
             environment=DEVICES)
    bars = rows(check_trace(out.read_text()))["FAKE:0 queue"]
    assert {"MatMul", "Neg", "Square", "AddV2"} <= {e["name"] for e in bars} and not any(e["args"]["told_by_device"] for e in bars)


def test_a_trace_that_is_cut_says_so(folder):
    out = pathlib.Path(folder) / "cut.json"
    _, error = run_both("run", graph(folder), *FEED, "--trace", out, "--trace-limit", 2)
    assert "the trace is cut: 2 records are left out; --trace-limit N" in error, error
    events = check_trace(out.read_text())
    assert len([e for e in events if e["ph"] == "X" and e["cat"] == "op"]) == 2
    assert any(e["ph"] == "i" and "2 records left out" in e["name"] for e in events)
    assert run("trace", "top", out).startswith("The trace is cut: 2 records are missing.\n")


def test_top_tells_ops_path_and_idle_times(folder):
    out = pathlib.Path(folder) / "steps.json"
    run_both("run", graph(folder, "FAKE:0"), *FEED, "--repeat", 4, "--trace", out, "--option",
             "plugin.org.thalweg.fake.simulate_ns=1000000", environment=DEVICES)
    text = run("trace", "top", out)
    assert "Critical path of step 4: " in text and "Threads and queues\n" in text and "FAKE:0 compute" in text, text
    found = json.loads(run("trace", "top", out, "--json", "--step", 2))
    ops = {o["op"]: o for o in found["ops"] if o["where"] == "FAKE:0 compute"}
    assert ops["MatMul"]["count"] == 4 and ops["MatMul"]["us"] >= 4 * 4  # a simulated microsecond for each of four elements
    path = [p["op"] for p in found["path"]]
    assert path.index("MatMul") < path.index("Neg") < path.index("AddV2"), path
    assert found["path_step"] == 2 and found["steps"] == 4
    for row in found["rows"]:
        rest = row["us"] - row["busy_us"] - sum(row["idle_us"].values())
        assert row["busy_us"] <= row["us"] * 1.001 and abs(rest) < 1 + row["us"] * .05, row
    assert any("nothing was enqueued" in r["idle_us"] for r in found["rows"] if r["row"] == "FAKE:0 compute")


def hand_made(folder):
    """Two threads: a [0, 10], then c [12, 20] on the first; b [0, 15] on the second; d [20, 30] after b and c."""
    def bar(name, tid, start, end, number, after=(), cat="op"):
        return {"name": name, "ph": "X", "ts": start, "dur": end - start, "pid": 1, "tid": tid, "cat": cat,
                "args": {"step": 1, "id": number, "after": list(after), "node": name}}
    events = [bar("a", 0, 0, 10, 0), bar("b", 1, 0, 15, 1), bar("c", 0, 12, 20, 2, [0]), bar("d", 0, 20, 30, 3, [1, 2]),
              {**bar("waits for lock", 1, 16, 19, 9, cat="wait"), "args": {"step": 1, "what": "v"}},
              {"name": "step 1", "ph": "b", "ts": 0, "pid": 1, "tid": 0, "cat": "step", "id": 1, "args": {"step": 1}},
              {"name": "step 1", "ph": "e", "ts": 30, "pid": 1, "tid": 0, "cat": "step", "id": 1}]
    events += [{"name": "thread_name", "ph": "M", "ts": 0, "pid": 1, "tid": t, "args": {"name": f"t{t}"}} for t in (0, 1)]
    events.append({"name": "process_name", "ph": "M", "ts": 0, "pid": 1, "tid": 0, "args": {"name": "p"}})
    path = pathlib.Path(folder) / "hand.json"
    path.write_text(json.dumps({"traceEvents": events, "metadata": {"left_out": 0, "unix_ns": 1_000_000_000}}))
    return path


def test_top_finds_the_path_and_the_idle_time_of_a_known_trace(folder):
    path = hand_made(folder)
    check_trace(path.read_text())
    found = json.loads(run("trace", "top", path, "--json"))
    assert [(p["op"], p["us"], p["gap_us"]) for p in found["path"]] == [("a", 10, 2), ("c", 8, 0), ("d", 10, 0)], found["path"]
    use = {r["row"]: r for r in found["rows"]}
    assert use["t0"]["busy_us"] == 28 and use["t1"]["busy_us"] == 15
    assert use["t1"]["idle_us"]["waits for lock v"] == 3 and sum(use["t1"]["idle_us"].values()) == 15
    assert [(o["op"], o["us"]) for o in found["ops"]] == [("b", 15), ("a", 10), ("d", 10), ("c", 8)]


def test_merge_puts_traces_on_one_clock(folder):
    one = hand_made(folder)
    two = pathlib.Path(folder) / "two.json"
    file = json.loads(one.read_text())
    file["metadata"]["unix_ns"] += 5_000_000  # its clock says that it began 5 ms later
    two.write_text(json.dumps(file))
    both = check_trace(run("trace", "merge", one, two))
    starts = {e["pid"]: e["ts"] for e in both if e["name"] == "d" and e["ph"] == "X"}
    assert sorted(starts.values()) == [20, 5020] and len({e["pid"] for e in both}) == 2
    out = pathlib.Path(folder) / "both.json"
    run("trace", "merge", one, two, "--offset", f"{two}=4", "--output", out)
    assert sorted(e["ts"] for e in check_trace(out.read_text()) if e["name"] == "d") == [20, 1020]
    run("trace", "top", out)  # it can be read
    real = pathlib.Path(folder) / "real.json"
    run_both("run", graph(folder), *FEED, "--repeat", 3, "--trace", real)
    assert len(check_trace(run("trace", "merge", real, real))) == 2 * len(check_trace(real.read_text()))


def test_what_is_no_trace_is_refused(folder):
    bad = pathlib.Path(folder) / "bad.json"
    for text, why in {"": "no JSON", "[1, 2": "no JSON", "{}": "no traceEvents", '{"traceEvents": []}': "has no steps"}.items():
        bad.write_text(text)
        assert why in run("trace", "top", bad, status=1), text
    assert "neither top nor merge" in run("trace", "bottom", bad, status=2)
    assert "no step 7" in run("trace", "top", hand_made(folder), "--step", 7, status=2)
    assert "FILE=MILLISECONDS" in run("trace", "merge", bad, "--offset", "x", status=2)
    assert "No such file" in run("trace", "top", folder + "/nothing.json", status=1)


sys.exit(run_tests(globals()))
