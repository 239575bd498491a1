"""The snippets of bindings/python/chores.md run one after the other, and are as short as its table says."""
import os
import pathlib
import re

import numpy as np

import thalweg as tw

PAGE = (pathlib.Path(os.environ["THALWEG_SOURCE_DIR"]) / "bindings/python/chores.md").read_text()


def snippets():
    """{chapter in lower case: its programs}."""
    chapters = (chapter.split("\n", 1) for chapter in re.split(r"^## ", PAGE, flags=re.M)[1:])
    return {name.lower(): re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S) for name, text in chapters}


def test_nine_chores_take_as_many_lines_as_the_table_says():
    lines = {name: sum(len(program.splitlines()) for program in programs) for name, programs in snippets().items() if programs}
    table = dict(re.findall(r"^\| \[(.*?)\]\(#.*?\) \| (\d+) \|$", PAGE, re.M))
    assert {name: str(count) for name, count in lines.items()} == table and len(table) == 9
    assert sum(lines.values()) == int(re.search(r"\*\*these nine\*\* \| \*\*(\d+)\*\*", PAGE)[1]) <= 25


def test_they_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    y = np.arange(200) % 10
    x = (rng.normal(size=(10, 64))[y] + rng.normal(size=(200, 64))).reshape(-1, 8, 8, 1).astype(np.float32)
    names = {"tw": tw, "x": x, "y": y, "new": x[:7]}
    tw.random.seed(1)
    try:
        for name, programs in snippets().items():
            for program in programs:
                exec(compile(program, f"chores.md, {name}", "exec"), names)
    finally:
        tw.random.seed(None)
    assert sorted(names["values"]) == ["accuracy", "loss", "top 3"] and names["values"]["accuracy"] > 0.9 and names["classes"].shape == (7,)
    assert names["history"].best_epoch is not None and (tmp_path / "digits.model").stat().st_size > 5_000
    assert (tmp_path / "run/checkpoint").exists()
