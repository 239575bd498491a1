"""Tests of `thalweg debug bisect`: a rewriter with a fault is found, and nothing is found where nothing is wrong."""
import pathlib
import sys

from thalweg_command import FLOAT, node, run, run_both, run_tests, shape

WRONG = pathlib.Path(sys.argv[2])  # a plugin whose rewriter makes x * x into x + x


def graph(folder):
    """z = neg(x * x) + y."""
    file = pathlib.Path(folder) / "graph.pb"
    file.write_bytes(node("x", "Placeholder", dtype=FLOAT, shape=shape(-1)) + node("y", "Placeholder", dtype=FLOAT, shape=shape(-1))
                     + node("square", "Mul", "x", "x", T=FLOAT) + node("neg", "Neg", "square", T=FLOAT) + node("z", "Add", "neg", "y", T=FLOAT))
    return file


FEEDS = ["--fetch", "z", "--feed", "x=[3, 5]", "--feed", "y=[1, 1]"]


def test_no_pass_is_named_where_all_agree(folder):
    text = run("debug", "bisect", graph(folder), *FEEDS, "--tolerance", "0")
    assert "largest difference none in 'z'" in text and text.endswith("no pass changes the results beyond the tolerance\n"), text


def test_a_faulty_rewriter_is_found(folder):
    text, error = run_both("debug", "bisect", graph(folder), *FEEDS, "--plugin", WRONG, status=1)
    assert error == "" and "pass 'rewrite' changes the results" in text, text + error
    # Without the fault z is [-8, -24], with it [-5, -9].
    assert "with it 0.625; with all but it none" in text and "disable_pass=rewrite" in text, text
    text = run("debug", "bisect", graph(folder), *FEEDS, "--plugin", WRONG, "--tolerance", "0.7")
    assert "no pass" in text, text


def test_wrong_arguments_are_named(folder):
    file = graph(folder)
    assert "'halve' is not bisect" in run("debug", "halve", file, *FEEDS, status=2)
    assert "--fetch" in run("debug", "bisect", file, "--target", "z", "--feed-shape", "x=2", "--feed-shape", "y=2", status=2)
    assert "--tolerance" in run("debug", "bisect", file, *FEEDS, "--tolerance", "-1", status=2)


sys.exit(run_tests(globals()))
