"""The fragments of bindings/python/README.md run: each in the names that its chapter takes for granted, which stand here."""
import logging
import os
import pathlib
import re

import numpy as np
import pytest

import thalweg as tw

PAGE = (pathlib.Path(os.environ["THALWEG_SOURCE_DIR"]) / "bindings/python/README.md").read_text()


def fragments():
    """{chapter: [fragment]}: what is indented by four, without what is for a shell or no program."""
    found = {}
    for chapter in re.split(r"^## ", re.sub(r"^```.*?^```$", "", PAGE, flags=re.M | re.S), flags=re.M)[1:]:
        name, text = chapter.split("\n", 1)
        blocks = re.findall(r"(?:^    .*\n(?:\n(?=    ))?)+", text, re.M)
        blocks = [re.sub(r"^    ", "", block, flags=re.M) for block in blocks]
        found[name] = [b for b in blocks if not re.match(r"pip |MatMul '|Log '", b)]
    return found


def digits(graph, tmp_path):
    w = tw.Variable(np.zeros(2, np.float32), name="w")
    x = tw.placeholder("float32", [None, 2], name="x")
    loss = ((x * w - 1) * (x * w - 1)).mean()
    step = tw.train.SGD(0.1).minimize(loss)
    s = tw.Session(graph)
    s.run(graph.initializer())
    return dict(s=s, step=step, feeds={x: np.ones((4, 2), np.float32)})


def queues(graph, tmp_path):
    return dict(image=np.zeros(784, np.float32), label=np.int64(3), s=tw.Session(graph))


def flow(graph, tmp_path):
    return dict(x=tw.placeholder("float32", [], name="x"), rows=tw.placeholder("float32", [3, 2]), n=tw.constant(3))


def training(graph, tmp_path):
    w = tw.Variable(np.zeros(2, np.float32), name="w")
    x = tw.placeholder("float32", [None, 2], name="x")
    test = {x: np.ones((4, 2), np.float32)}
    s = tw.Session(graph)
    return dict(loss=(x * w - 1).mean(), accuracy=(x * w).mean(), test=test, s=s)


def imported(graph, tmp_path):
    (tmp_path / "models/7").mkdir(parents=True)
    return dict(g=tw.Graph.from_bytes(graph.to_bytes()))


def stats(graph, tmp_path):
    x = tw.placeholder("float32", [None], name="x")
    batches = np.ones((3, 4), np.float32)
    return dict(s=tw.Session(graph), loss=x.sum(), train=x.max(), x=x, batch=batches[0], batches=batches, pathlib=pathlib)


NAMES = {"A loop of your own": digits, "Queues": queues, "Conditions, loops, functions": flow, "Training": training, "Graphs of others": imported,
         "Where the time goes": stats, "The record of a run": stats}
CLUSTERS = {"Clusters"}  # need one: tests/distributed
FILES = {"Models from files"}  # need files of models: model_test.py
RULES = {"Weights of others"}  # a rule; weights_into_test.py has such
WITHOUT = "Without a graph"


def test_every_chapter_with_a_fragment_is_known():
    assert {name for name, blocks in fragments().items() if blocks} == set(NAMES) | CLUSTERS | FILES | RULES | {WITHOUT}


def test_the_fragment_without_a_graph_runs():
    names = dict(tw=tw, np=np)
    for block in fragments()[WITHOUT]:
        exec(compile(block, "bindings/python/README.md", "exec"), names)
    np.testing.assert_allclose(names["w"].read(), [0.5 - 0.1 * 0.5, -1.5 + 0.1 * 18], rtol=1e-6)


@pytest.mark.parametrize("chapter", NAMES)
def test_its_fragments_run(graph, chapter, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = dict(tw=tw, np=np, os=os, logging=logging, graph=graph, **NAMES[chapter](graph, tmp_path))
    for block in fragments()[chapter]:
        block = block.replace("10_000", "20")
        if "..." in block:  # what a program has there: first what makes variables
            block = block.replace("...\n", "s.run(graph.initializer())\n")
        exec(compile(block, "bindings/python/README.md", "exec"), names)


def test_its_programs_run(capsys, tmp_path):
    """Those in fences, but for the first, which wheel_test.py runs from an installed wheel. Each prints what its comments say, or True last."""
    programs = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)[1:]
    for i, program in enumerate(programs):
        path = tmp_path / f"program{i}.py"
        path.write_text(program, encoding="utf-8")  # traced functions read their source
        exec(compile(program, str(path), "exec"), {"__name__": f"program{i}"})
        printed, last = capsys.readouterr().out.splitlines(), program.splitlines()[-1]
        if re.search(r"\) +# ", last):
            assert printed == re.findall(r"^print\(.*\) +# (.*)$", program, re.M)
        else:
            assert printed[-1] == "True"
    assert len(programs) >= 2
