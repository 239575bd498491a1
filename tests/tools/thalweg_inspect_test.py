"""Tests of `thalweg inspect`: lists, pictures, plans."""
import json
import pathlib
import re
import sys
import xml.etree.ElementTree as xml

from thalweg_command import FLOAT, PROGRAMS, files, node, run, run_tests, shape

SVG = "{http://www.w3.org/2000/svg}"


def write(folder, *nodes):
    graph = pathlib.Path(folder) / "graph.pb"
    graph.write_bytes(b"".join(nodes))
    return graph


def tower(folder, floors):
    """x goes through scopes of two operations each; x is also read at the top."""
    nodes, last = [node("x", "Placeholder", dtype=FLOAT, shape=shape(-1, 3))], "x"
    for i in range(floors):
        nodes += [node(f"block{i}/in/neg", "Neg", last), node(f"block{i}/in/abs", "Abs", f"block{i}/in/neg")]
        last = f"block{i}/in/abs"
    return write(folder, *nodes, node("y", "Add", last, "x", T=FLOAT))


def boxes(svg):
    """Returns {name: (left, top, right, bottom)} of the boxes of a picture, and its XML tree."""
    tree = xml.fromstring(svg)
    found = {}
    for group in tree.iter(SVG + "g"):
        title, rectangle = group.find(SVG + "title"), group.findall(SVG + "rect")
        if title is None or not rectangle:
            continue
        x, y, w, h = (float(rectangle[-1].get(k)) for k in ("x", "y", "width", "height"))
        found[title.text.split("\n")[0]] = (x, y, x + w, y + h)
    return found, tree


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


def test_the_tree_shows_scopes_down_to_a_depth(folder):
    graph = tower(folder, 3)
    text = run("inspect", graph, "--depth", "1")
    tree = text[text.index("operations by scope"):].splitlines()[1:]
    assert [line.split()[0] for line in tree] == ["x", "block0/", "block1/", "block2/", "y"] and "2 operations" in tree[1], tree
    text = run("inspect", graph)
    assert re.search(r"\n  block1/ .*\n    in/ .*\n      neg  +Neg  +float \[\?, 3\]  block0/in/abs\n", text), text
    assert "... and 156 more; --depth 1 or --all lists them" in run("inspect", tower(folder, 254))


def test_pictures_have_a_box_for_each_operation_and_no_two_overlap(folder):
    graph = tower(folder, 12)
    found, tree = boxes(run("inspect", graph, "--svg"))
    assert len(found) == 26 and "block3/in/neg" in found, found
    places = list(found.values())
    for i, a in enumerate(places):
        for b in places[:i]:
            assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1], (a, b)
    assert found["x"][3] < found["block0/in/neg"][1] < found["block0/in/abs"][1] < found["y"][1]
    width, height = (float(tree.get(k)) for k in ("width", "height"))
    assert all(0 <= l and r <= width and 0 <= t and b <= height for l, t, r, b in places)
    arrows = [p for p in tree.iter(SVG + "path") if p.get("marker-end")]
    assert len(arrows) == 26, len(arrows)  # an arrow for each input
    # The long arrow from x to y goes around the boxes between them: its vertical pieces cross no box.
    inside = [(x, y) for p in arrows for x, y in re.findall(r"([\d.]+) ([\d.]+)(?=V)", p.get("d"))]
    for x, y in ((float(x), float(y)) for x, y in inside):
        assert not any(l < x < r and t < y < b for l, t, r, b in places)


def test_pictures_close_scopes_where_there_are_too_many(folder):
    graph = tower(folder, 200)
    found, _ = boxes(run("inspect", graph, "--svg"))
    assert len(found) == 202 and "block7/" in found, len(found)
    found, _ = boxes(run("inspect", tower(folder, 3), "--svg", "--depth", "1"))
    assert set(found) == {"x", "block0/", "block1/", "block2/", "y"}, found
    error = run("inspect", write(folder, *[node(f"x{i}", "Placeholder", dtype=FLOAT) for i in range(1001)]), "--svg", status=1)
    assert "1001 boxes at depth 1, a picture has room for 1000; use --dot" in error, error


def test_scopes_that_read_each_other_are_drawn_all_the_same(folder):
    graph = write(folder, node("a/x", "Placeholder", dtype=FLOAT), node("b/x", "Neg", "a/x"), node("a/y", "Neg", "b/x"),
                  node("b/y", "Neg", "a/y"))
    found, tree = boxes(run("inspect", graph, "--svg", "--depth", "1"))
    assert set(found) == {"a/", "b/"}
    assert len([p for p in tree.iter(SVG + "path") if p.get("marker-start")]) == 1  # one goes up
    assert "n0 -> n1" in run("inspect", graph, "--dot", "--depth", "1")


def test_pictures_are_made_of_empty_and_odd_graphs(folder):
    for nodes in [[], [node("only", "NoOp")], [node("a", "NoOp"), node("b", "NoOp", "^a")]]:
        graph = write(folder, *nodes)
        found, tree = boxes(run("inspect", graph, "--svg"))
        assert len(found) == len(nodes)
        run("inspect", graph)
        assert json.loads(run("inspect", graph, "--json"))["variables"] == []
    assert 'stroke-dasharray="4 3"' in run("inspect", graph, "--svg") and "style=dashed" in run("inspect", graph, "--dot")


def test_hostile_texts_are_escaped(folder):
    name = "a>b" + "/s" * 3000
    graph = write(folder, node(name, "Placeholder", dtype=FLOAT), node("y", "Neg", name))
    hostile = pathlib.Path(folder) / 'a"b<&>\\.pb'
    hostile.write_bytes(graph.read_bytes())
    found, _ = boxes(run("inspect", hostile, "--svg"))
    assert name in found
    dot = run("inspect", hostile, "--dot")
    assert dot.startswith('digraph "a\\"b<&>\\\\\\\\.pb" {') or dot.startswith('digraph "a\\"b<&>\\\\.pb" {'), dot[:60]
    assert [o["name"] for o in json.loads(run("inspect", hostile, "--json"))["operations"]] == [name, "y"]
    run("inspect", hostile)


def test_dot_has_nodes_and_edges(folder):
    dot = run("inspect", tower(folder, 2), "--dot")
    assert dot.count(" -> ") == 6 and dot.count("tooltip=") == 6 and 'label="float [?, 3]"' in dot, dot
    out = pathlib.Path(folder) / "graph.dot"
    assert run("inspect", tower(folder, 2), "--dot", "-o", out) == "" and out.read_text() == dot


def test_a_plan_shows_order_memory_and_what_is_gone(folder):
    graph = tower(folder, 2)
    plan = json.loads(run("inspect", graph, "--plan", "--fetch", "y", "--feed-shape", "x=4,3", "--json"))
    assert plan["feeds"] == ["x"] and plan["fetches"] == ["y"] and plan["nodes"][-1]["name"] == "y", plan
    assert plan["nodes"][0]["outputs"][0]["shape"] == [4, 3]
    text = run("inspect", graph, "--plan", "--fetch", "y", "--feed-shape", "x=4,3")
    lines = text.splitlines()
    assert lines[0].startswith(f"{len(plan['nodes'])} nodes, engine ") and "CPU:0" in text and "float [4, 3]" in text, text
    assert "memory: " in lines[1] and "at the peak" in lines[1], text
    table = lines[[i for i, line in enumerate(lines) if line.startswith("order ")][0] + 1:]
    assert [line.split()[1] for line in table] == [n["name"] for n in plan["nodes"]]
    assert "float [?, 3]" in run("inspect", graph, "--plan", "--target", "y")
    twice = write(folder, node("x", "Placeholder", dtype=FLOAT, shape=shape(2)), node("a", "Neg", "x"), node("b", "Neg", "x"),
                  node("y", "Add", "a", "b", T=FLOAT))
    assert "merged (1): b into a" in run("inspect", twice, "--plan", "--fetch", "y")
    assert "merged" not in run("inspect", twice, "--plan", "--fetch", "y", "--session-option", "optimize=false")
    assert "nothing to do" in run("inspect", graph, "--plan", status=2)
    elsewhere = run("inspect", twice, "--plan", "--fetch", "y", "--device", "FAKE:5")
    assert "a: placed on CPU:0 because there is no device '/device:FAKE:5'" in elsewhere, elsewhere
    assert "device '/device:FAKE:5' not found" in run("inspect", twice, "--plan", "--fetch", "y", "--device", "FAKE:5",
                                                      "--session-option", "fallback=fail", status=1)
    assert "x" in run("inspect", graph, "--plan", "--fetch", "y", "--feed-shape", "x=4,9", status=1)


def test_placement_says_why_each_node_is_where_it_is(folder):
    graph = write(folder, node("x", "Placeholder", dtype=FLOAT, shape=shape(2)), node("a", "Neg", "x"), node("y", "Exp", "a", T=FLOAT))
    devices = {"THALWEG_PLUGIN_PATH": f"{PROGRAMS.parent}/lib/thalweg/plugins:{PROGRAMS.parent}/tests/devices/libfake.so"}

    def why(*options):
        lines = run("inspect", graph, "--placement", "--fetch", "y", "--feed-shape", "x=2", *options, environment=devices).splitlines()
        assert lines[0].split()[:4] == ["node", "op", "device", "why"], lines
        return {line.split()[0]: " ".join(line.split()[2:]) for line in lines[1:]}

    asked = why("--device", "FAKE:0")
    assert asked["a"] == "FAKE:0 its device, or the session's, admits no other", asked
    assert asked["y"].startswith("CPU:0 instead of what was asked: FAKE:0 has no kernel for (float)"), asked
    by_cost = why("--session-option", "placement=cost")
    assert by_cost["a"].startswith("CPU:0 by cost: its group takes ") and "on the best other device" in by_cost["a"], by_cost
    places = json.loads(run("inspect", graph, "--placement", "--fetch", "y", "--feed-shape", "x=2", "--json"))["places"]
    assert [(p["node"], p["why"]) for p in places] == [("a", "first"), ("y", "first")], places


def test_views_exclude_each_other(folder):
    graph = files(folder)
    for options, part in {("--svg", "--dot"): "--dot and --svg exclude", ("--svg", "--json"): "exclude", ("-o", "x"): "-o goes with",
                          ("--all", "--depth", "2"): "--depth goes with", ("--fetch", "y"): "--fetch goes with --plan",
                          ("--depth", "0"): "--depth takes a whole number of at least 1",
                          ("--svg", "--depth", "x"): "--depth takes"}.items():
        assert part in run("inspect", graph, *options, status=2), options


sys.exit(run_tests(globals()))
