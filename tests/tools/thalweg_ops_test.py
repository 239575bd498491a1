"""Tests of `thalweg ops`: lists, differentiable ops, and the manual of ops, also for plugins."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

from thalweg_command import PROGRAMS, run, run_tests

BUILD = pathlib.Path(os.environ["THALWEG_BINARY_DIR"])
TWICE = BUILD / "examples/plugins/libtwice.so"
SILENT = """
#include "thalweg/plugin/plugin.h"
static tw_status* init(const tw_host* host, tw_registrar* r, void** out_instance) {
  const tw_op_def op = {TW_SIZED(tw_op_def), TW_S("Silent(x: float) -> (y: float)")};
  (void)host, (void)out_instance;
  return tw_add_op(r, &op);
}
TW_PLUGIN("org.example.silent", "1.0", init)
"""


def test_every_standard_op_says_whether_it_is_differentiable(folder):
    table = run("ops", "--gradients")
    assert table.splitlines()[-1].endswith(", 0 missing"), table
    assert any(line.split(None, 1) == ["MatMul", "differentiable"] for line in table.splitlines()), table
    assert any(line.split(None, 1) == ["Shape", "not: sizes do not depend on values"] for line in table.splitlines()), table
    rows = json.loads(run("ops", "--gradients", "--json"))
    assert [row["name"] for row in rows] == sorted(row["name"] for row in rows) and len(rows) > 300
    for row in rows:
        assert row["gradient"] in ("yes", "none") and (row["gradient"] == "none") == bool(row["no_gradient"]), row
    of_one = json.loads(run("ops", "--gradients", "--json", "Floor"))
    assert of_one == [{"name": "Floor", "gradient": "yes", "no_gradient": ""}]


def test_a_plugins_op_that_says_nothing_is_missing_its_gradient(folder):
    source, plugin = pathlib.Path(folder) / "silent.c", pathlib.Path(folder) / "libsilent.so"
    source.write_text(SILENT)
    headers = os.environ["THALWEG_SOURCE_DIR"] + "/c_api/include"
    subprocess.run(["cc", "-std=c11", "-shared", "-fPIC", "-I", headers, source, "-o", plugin], check=True)
    done = subprocess.run([PROGRAMS / "thalweg", "ops", "--plugin", plugin, "--gradients", "Silent"], capture_output=True, text=True)
    assert done.returncode == 1 and not done.stderr, done
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["Silent", "missing"], "1 ops: 0 differentiable, 0 not, 1 missing".split()], done


def test_the_manual_of_an_op_has_all_that_there_is_to_know(folder):
    text = run("ops", "Conv2D")
    for part in ["Conv2D(input: T, filter: T) -> (output: T)", "Inputs", "input: T", "[batch, height, width, channels]", "Attributes",
                 'data_format: one of NHWC, NCHW, by default "NHWC"', "Shapes", "ceil(n / stride)", "Types",
                 "kernels on CPU (org.thalweg.cpu)", "Gradient", "yes", "Errors", "Example", ">>> ", "Registered", "org.thalweg.ops"]:
        assert part in text, (part, text)
    assert "none: truth values have no derivative" in run("ops", "Equal")
    assert "touches files" in run("ops", "ReadFile")
    assert "No kernels" in run("ops", "Const")


def test_of_several_ops_in_one_entry_only_the_one_is_shown(folder):
    text = run("ops", "AvgPoolGrad")
    assert "orig_input_shape" in text and "MaxPool" not in text, text
    text = run("ops", "PadV2")
    assert "tw.ops.pad_v2(" in text and "tw.ops.pad(" not in text, text


def manual(folder, text, status=0):
    """Returns the output of `--manual` for a plugin with this manual beside it, or the error message."""
    plugin = pathlib.Path(folder) / "libtwice.so"
    shutil.copy(TWICE, plugin)
    plugin.with_suffix(".md").write_text(text)
    made = pathlib.Path(folder) / "made"
    error = run("ops", "--plugin", plugin, "--manual", made, status=status)
    return error if status else (made / "libtwice.md").read_text()


GOOD = """# Doubling

- `x`: any shape

## Twice

Two times a | b.

- `y`: the shape of `x`

**Shapes.** [...] stays [...].

**Errors.** None.

    >>> show(tw.ops.twice([1.0]))
    [2.]
"""


def test_a_plugins_manual_stands_beside_it(folder):
    page = manual(folder, GOOD)
    assert page.startswith("<!-- Made by tools/docs from libtwice.md") and "\n# Doubling\n" in page and "\n## Twice\n" in page, page
    assert "| `x` | T | any shape |" in page and "Two times a | b." in page and "**Shapes.** [...] stays [...]." in page, page
    assert "```python\n>>> show(tw.ops.twice([1.0]))\n[2.]\n```\n" in page, page
    index = (pathlib.Path(folder) / "made/README.md").read_text()
    assert "[Twice](libtwice.md#twice)" in index and "[Pad](array/pad.md#pad-padv2)" in index, index
    assert "Two times" in run("ops", "--plugin", pathlib.Path(folder) / "libtwice.so", "Twice")


def test_a_manual_must_agree_with_the_registry(folder):
    for old, new, complaint in [
            ("- `y`: the shape of `x`\n", "", "does not say what `y` of Twice is"),
            ("- `y`:", "- `z`, `y`:", "none of its ops has an argument or attribute `z`"),
            ("## Twice", "## Twice, Thrice", "there is no op 'Thrice'"),
            ("## Twice", "## ", "there is no op ''"),
            ("Two times a | b.\n", "", "does not say what the ops mean"),
            ("**Shapes.** [...] stays [...].\n", "", "has no paragraph **Shapes.**"),
            ("**Errors.** None.\n", "", "has no paragraph **Errors.**"),
            ("tw.ops.twice(", "tw.ops.double(", "no example calls tw.ops.twice"),
            ("**Errors.**", "**Mistakes.**", "libtwice.md:14: a paragraph in bold begins with one of **Shapes.**"),
            ("- `y`:", "- y:", "libtwice.md:10: bullets are for arguments"),
            ("# Doubling\n", "", "libtwice.md:"),
            ("- `y`:", "- `y`: one\n- `y`:", "`y` is told twice")]:
        assert old in GOOD
        error = manual(folder, GOOD.replace(old, new, 1), status=1)
        assert complaint in error and "libtwice.md" in error, (complaint, error)


def test_the_manual_is_written_of_all_ops_only(folder):
    assert "--manual is for all ops; leave 'Pad' out" in run("ops", "Pad", "--manual", folder, status=2)


def test_an_op_without_an_entry_is_told_where_to_write_it(folder):
    error = manual(folder, GOOD[:GOOD.index("## Twice")], status=1)
    assert "op 'Twice' of plugin 'org.example.twice' has no manual; write `## Twice` in" in error, error
    assert "ops/<family>/<file>.md" in error and "ops/CMakeLists.txt" in error and "FILE.md beside the plugin FILE.so" in error, error


sys.exit(run_tests(globals()))
