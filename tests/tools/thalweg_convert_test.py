"""Tests of `thalweg convert`: what is written gives the results of the model that was read."""
import pathlib
import sys

import numpy as np

from thalweg_command import FLOAT, node, run, run_tests, shape


def frozen(folder):
    graph = pathlib.Path(folder) / "frozen"
    graph.write_bytes(node("x", "Placeholder", dtype=FLOAT, shape=shape(-1, 2)) + node("y", "Neg", "x", T=FLOAT) + node("z", "Neg", "y", T=FLOAT))
    return graph


def test_what_is_written_runs_the_same(folder):
    graph, out = frozen(folder), pathlib.Path(folder) / "model.tw"
    said = run("convert", graph, out, "--model-option", "outputs=y,z")
    assert said.startswith(f"{out}: 1 signature, "), said
    np.savez(f"{folder}/in.npz", x=np.float32([[1, 2], [3, 4]]))
    np.savez(f"{folder}/out.npz", y=-np.float32([[1, 2], [3, 4]]), z=np.float32([[1, 2], [3, 4]]))
    assert run("run", out, "--inputs", f"{folder}/in.npz", "--check", f"{folder}/out.npz").count("equal") == 2
    again = pathlib.Path(folder) / "again.tw"
    run("convert", out, again)
    assert run("run", again, "--inputs", f"{folder}/in.npz", "--check", f"{folder}/out.npz").count("equal") == 2


def test_a_folder_gets_the_file_of_a_saved_model(folder):
    graph, out = frozen(folder), pathlib.Path(folder) / "new" / "1"
    assert run("convert", graph, f"{out}/").startswith(f"{out}/saved_model.pb: ")
    assert run("run", out, "--signature", "serving_default", "--feed", "x=[[1, 2]]") == "z = [[1, 2]]\n"
    assert run("convert", graph, out).startswith(f"{out}/saved_model.pb: ")


def test_what_cannot_be_converted_is_named(folder):
    graph, out = frozen(folder), pathlib.Path(folder) / "model.tw"
    (pathlib.Path(folder) / "text").write_text("hello")
    assert "no importer recognises" in run("convert", pathlib.Path(folder) / "text", out, status=1)
    assert "none" in run("convert", pathlib.Path(folder) / "none", out, status=1)
    assert "'other'" in run("convert", graph, out, "--signature", "other", status=1)
    assert "convert" in run("convert", graph, status=2)
    assert not out.exists()
    assert "no name" in run("convert", graph, "", status=2)
    assert f"{folder}/none/model.tw" in run("convert", graph, f"{folder}/none/model.tw", status=1)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
