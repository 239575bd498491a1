"""Writes event files with TensorFlow: those in testdata/events (`thalweg_events_peer_test.py --write FOLDER`) or, as a test, new ones, and
compares the values that `thalweg plot` reads from them with those that were written. Runs under tools/cmake/peer-python."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1


def loss(run, step):
    return 2.0 * 0.75 ** step + (0.25 if run == "eval" else 0)


def write_values(folder, steps, run):
    """Writes simple_value entries, as TensorFlow 1 does."""
    with v1.Graph().as_default():
        writer = v1.summary.FileWriter(folder)
        for step in steps:
            writer.add_summary(v1.Summary(value=[v1.Summary.Value(tag="loss", simple_value=loss(run, step))]), step)
        writer.close()


def write_tensors(folder, steps):
    """Writes tensors, as TensorFlow 2 does: numbers of several types, and values that are not a scalar over time."""
    metadata = lambda name: v1.SummaryMetadata(plugin_data=v1.SummaryMetadata.PluginData(plugin_name=name))
    writer = tf.summary.create_file_writer(folder, filename_suffix=".v2")
    with writer.as_default():
        for step in steps:
            tf.summary.write("accuracy", tf.constant(1 - 0.5 ** step), step=step, metadata=metadata("scalars"))
            for dtype in [tf.float64, tf.float16, tf.bfloat16, tf.int32, tf.int64, tf.uint8]:
                tf.summary.write(f"types/{dtype.name}", tf.cast(step - 1 if dtype.is_integer and dtype != tf.uint8 else step * 0.5, dtype),
                                 step=step, metadata=metadata("scalars"))
            tf.summary.write("note", tf.constant(["a text"]), step=step, metadata=metadata("text"))
            tf.summary.write("count", tf.constant(7.0), step=step, metadata=metadata("histograms"))
            tf.summary.write("vector", tf.constant([1.0, 2.0]), step=step)
    writer.close()


def write(folder):
    for run in ["train", "eval"]:
        write_values(f"{folder}/{run}", range(8), run)
    write_tensors(f"{folder}/train", range(4))


def test(programs, golden):
    with tempfile.TemporaryDirectory() as folder:
        write(folder)
        plot = [f"{programs}/thalweg", "plot", "--json"]
        read = lambda where: json.loads(subprocess.run([*plot, where], check=True, capture_output=True).stdout)
        got = read(folder)
        assert got == read(golden), "the files in testdata/events hold other numbers; make them again with --write"
        for series in got:
            if series["tag"] == "loss":
                want = [[s, float(tf.constant(loss(series["run"], s)))] for s in range(8)]
                assert series["points"] == want, series
        print("passed ", len(got), "series")


if sys.argv[1] == "--write":
    write(sys.argv[2])
else:
    test(sys.argv[1], pathlib.Path(__file__).parent / "testdata/events")
