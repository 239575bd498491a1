"""A loop with a condition in it, as TensorFlow stores programs of functions.

    tools/cmake/peer-python tests/python/functions_peer.py       writes functions.pb anew, which flow_test.py runs"""
import pathlib

import tensorflow as tf


@tf.function
def program(x, n):
    def body(i, y):
        return i + 1, tf.cond(tf.reduce_sum(y) > 1.0, lambda: tf.sin(y) * x, lambda: y * y + x)

    return tf.while_loop(lambda i, y: i < n, body, [0, x])[1] * 2


written = program.get_concrete_function(tf.TensorSpec([2], tf.float32), tf.TensorSpec([], tf.int32)).graph.as_graph_def()
pathlib.Path(__file__).with_name("functions.pb").write_bytes(written.SerializeToString(deterministic=True))
