"""The rules of the Trace Event Format that viewers rely on, as far as our traces use it, and those that our own readers rely on:

- an object with traceEvents; every event has name, ph, ts >= 0, pid and tid, and a phase that we use;
- "X" has dur >= 0, and bars of one row lie beside or inside each other (viewers drop or move what overlaps);
- "b" and "e" come in pairs of one cat, id, pid and name, the end not before the beginning;
- every row that has events has a name;
- each node has an id; the nodes that it waited for are in the trace and began no later; each device event belongs to a node and began
  after it was enqueued."""
import json

PHASES = {"X", "b", "e", "i", "M"}
SLACK = 0.0015  # times are rounded to nanoseconds


def check_trace(text):
    """Returns the events, or raises an AssertionError that names the violated rule."""
    trace = json.loads(text)
    events = trace["traceEvents"]
    assert isinstance(events, list) and isinstance(trace["metadata"]["left_out"], int)
    for e in events:
        assert isinstance(e["name"], str) and e["name"] and e["ph"] in PHASES, e
        assert isinstance(e["ts"], (int, float)) and e["ts"] >= 0 and type(e["pid"]) is int and type(e["tid"]) is int, e
        assert e["ph"] == "M" or e["cat"], e
        assert e["ph"] != "i" or e["s"] in "gpt", e
    check_bars(events)
    check_pairs(events)
    check_rows(events)
    check_nodes(events, trace["metadata"]["left_out"])
    return events


def check_bars(events):
    open_bars = {}
    for e in sorted((e for e in events if e["ph"] == "X"), key=lambda e: (e["ts"], -e["dur"])):
        assert e["dur"] >= 0, e
        stack = open_bars.setdefault((e["pid"], e["tid"]), [])
        while stack and stack[-1]["ts"] + stack[-1]["dur"] <= e["ts"] + SLACK:
            stack.pop()
        assert not stack or e["ts"] + e["dur"] <= stack[-1]["ts"] + stack[-1]["dur"] + SLACK, f"{e} overlaps {stack[-1]}"
        stack.append(e)


def check_pairs(events):
    begun = {}
    for e in events:
        if e["ph"] not in "be":
            continue
        key = e["cat"], e["id"], e["pid"]
        if e["ph"] == "b":
            assert key not in begun, f"{e} is begun twice"
            begun[key] = e
        else:
            first = begun[key]
            assert first["name"] == e["name"] and e["ts"] >= first["ts"] - SLACK and not first.get("ended"), (first, e)
            first["ended"] = True
    assert all(e.get("ended") for e in begun.values()), [e for e in begun.values() if not e.get("ended")]


def check_rows(events):
    named = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name" and e["args"]["name"]}
    used = {(e["pid"], e["tid"]) for e in events if e["ph"] != "M"}
    assert used <= named, used - named
    processes = {e["pid"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
    assert {p for p, _ in used} <= processes


def check_nodes(events, left_out):
    nodes = {}
    for e in events:
        if e["ph"] == "X" and e["cat"] in ("op", "copy"):
            assert (e["pid"], e["args"]["id"]) not in nodes, e
            nodes[e["pid"], e["args"]["id"]] = e
    for (pid, _), e in nodes.items():
        for k in e["args"]["after"]:
            first = nodes.get((pid, k))
            assert first or left_out, f"{e} waited for {k}, which is not there"
            assert not first or first["ts"] <= e["ts"] + SLACK, (first, e)
    for e in events:
        if e["ph"] == "X" and e["cat"].startswith("device"):
            node = nodes[e["pid"], e["args"]["id"]]
            assert node["name"] == e["name"] and e["args"]["enqueued_us"] <= e["ts"] + e["dur"] + SLACK, e


def rows(events):
    """Returns {name of a row: its bars}."""
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    found = {}
    for e in events:
        if e["ph"] == "X":
            found.setdefault(names[e["pid"], e["tid"]], []).append(e)
    return found
