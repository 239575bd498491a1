"""Writes a TensorFlow 1 graph with reference variables, and the losses of twenty steps in TensorFlow. reference_test.c trains the graph.
usage: tools/cmake/peer-python tests/c_api/reference_graph/make.py"""
import os
import pathlib

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "TF_ENABLE_ONEDNN_OPTS": "0"}
import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

HERE = pathlib.Path(__file__).parent
STEPS = 20
OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.2), "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.2), "adadelta": lambda: tf.train.AdadeltaOptimizer(1.0, 0.9, 1e-2),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.01, momentum=0.5), "adam": lambda: tf.train.AdamOptimizer(0.02),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.2, l1_regularization_strength=0.001)}


def layer(x, width, name):
    with tf.variable_scope(name):
        w = tf.get_variable("w", (x.shape[1], width), initializer=tf.constant_initializer(np.linspace(-0.5, 0.5, x.shape[1] * width)))
        b = tf.get_variable("b", (width,), initializer=tf.zeros_initializer())
        return tf.nn.bias_add(tf.matmul(x, w), b)


def build():
    """Builds a net of its own for each optimizer. Each has a step and its loss before the step."""
    x = tf.placeholder(tf.float32, (None, 3), name="x")
    y = tf.placeholder(tf.float32, (None, 1), name="y")
    for name, optimizer in OPTIMIZERS.items():
        with tf.variable_scope(name):
            guess = layer(tf.tanh(layer(x, 4, "hidden")), 1, "out")
            loss = tf.reduce_mean(tf.square(guess - y), name="loss")
            steps = tf.get_variable("steps", (), tf.int64, tf.zeros_initializer(), trainable=False)
            with tf.control_dependencies([loss]):
                optimizer().minimize(loss, global_step=steps, name="train")
    w = tf.trainable_variables("sgd")[0]
    average = tf.get_variable("average", (3, 4), initializer=tf.zeros_initializer())
    with tf.control_dependencies([tf.assign_sub(average, (average - w) / 2)]):
        tf.add(average, average, name="averaged")
    tf.scatter_update(w, [0, 2], [[1.0] * 4, [2.0] * 4], name="scattered")
    tf.identity(tf.is_variable_initialized(w), name="initialized")
    tf.group(tf.global_variables_initializer(), name="init")
    tf.train.Saver()


def feeds():
    """Returns the feeds, as the test in C computes them."""
    k = np.arange(24, dtype=np.float32).reshape(8, 3)
    x = (k * np.float32(7) % np.float32(11) - np.float32(5)) / np.float32(5)
    return {"x:0": x, "y:0": (x[:, :1] + x[:, 1:2] * x[:, 2:]) / np.float32(2)}


def main():
    graph = tf.Graph()
    with graph.as_default(), tf.variable_scope("", use_resource=False):
        build()
    definition = graph.as_graph_def()
    assert not any(node.op == "VarHandleOp" for node in definition.node)
    (HERE / "graph.pb").write_bytes(definition.SerializeToString(deterministic=True))
    lines = []
    with tf.Session(graph=graph) as session:
        session.run("init")
        for name in OPTIMIZERS:
            losses = [session.run([f"{name}/loss:0", f"{name}/train"], feeds())[0] for _ in range(STEPS)]
            lines.append(f"    {{\"{name}\", {{" + ", ".join(f"{float(loss):.9g}f" for loss in losses) + "}},\n")
        averaged = float(session.run("averaged:0").sum())
        scattered = float(session.run("scattered:0").sum())
    text = f"""/* Written by make.py: losses of twenty steps, as TensorFlow {tf.__version__} computes them. */
static const struct {{
  const char* optimizer;
  float losses[{STEPS}];
}} expected[] = {{
{"".join(lines)}}};
static const float expected_average = {averaged:.9g}f, expected_scattered = {scattered:.9g}f;
"""
    (HERE / "expected.h").write_text(text)


main()
