"""Writes the checkpoints of testdata/ anew, with TensorFlow: tools/cmake/peer-python tests/framework/io/checkpoint_goldens.py

`sharded-2`: two data files, merged; partitioned tensors, bfloat16, strings.   `checkpoint`: the state file that names it.
`variables-5`: partitioned variables, written by a tf.compat.v1 Saver."""
import os
import pathlib
import tempfile

os.environ["CUDA_VISIBLE_DEVICES"] = ""
import tensorflow as tf  # pylint: disable=wrong-import-position

HERE = pathlib.Path(__file__).parent / "testdata"


def save(prefix, tensors):
    """Saves a checkpoint. tensors: by name, each with its slice text."""
    tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=list(tensors), shape_and_slices=[s for _, s in tensors.values()],
                      tensors=[t for t, _ in tensors.values()])


def sharded():
    rows = tf.reshape(tf.range(24, dtype=tf.float32), [4, 6])
    columns = tf.reshape(tf.range(6, dtype=tf.int32), [2, 3])
    with tempfile.TemporaryDirectory() as folder:
        parts = [pathlib.Path(folder) / p for p in "ab"]
        save(parts[0], {"rows": (rows[:2], "4 6 0,2:-"), "columns": (columns[:, :1], "2 3 -:0,1"),
                        "half": (tf.constant([1, 2, 3], tf.bfloat16), "")})
        save(parts[1], {"rows": (rows[2:], "4 6 2,2:-"), "columns": (columns[:, 1:], "2 3 -:1,2"),
                        "names": (tf.constant(["", "three", b"\x00\xff"]), ""), "step": (tf.constant(7, tf.int64), "")})
        tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=[str(p) for p in parts], destination_prefix=str(HERE / "sharded-2"))


def variables():
    with tf.Graph().as_default():
        for name, axis in (("by_rows", [3, 1]), ("by_columns", [1, 2])):
            with tf.compat.v1.variable_scope("scope", partitioner=lambda shape, dtype, axis=axis: axis):
                tf.compat.v1.get_variable(name, initializer=tf.reshape(tf.range(30, dtype=tf.float32), [6, 5]), use_resource=True)
        tf.compat.v1.get_variable("text", initializer=tf.constant(["a", "bc"]), use_resource=True)
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            tf.compat.v1.train.Saver(sharded=True).save(session, "variables", global_step=5, write_meta_graph=False)


if __name__ == "__main__":
    os.chdir(HERE)
    sharded()
    variables()
    tf.compat.v1.train.update_checkpoint_state(".", "sharded-2", ["variables-5", "sharded-2"], all_model_checkpoint_timestamps=[1.5, 2.5])
