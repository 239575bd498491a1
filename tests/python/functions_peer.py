"""Programs of functions, as TensorFlow stores them.

    tools/cmake/peer-python tests/python/functions_peer.py       writes functions.pb and calls.pb anew, which functions_test.py runs"""
import os
import pathlib

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from google.protobuf import text_format  # noqa: E402
from tensorflow.core.framework import function_pb2  # noqa: E402
from tensorflow.python.eager import context, execute  # noqa: E402
from tensorflow.python.framework import function  # noqa: E402

tf1 = tf.compat.v1


@tf.function
def program(x, n):
    """A loop with a condition in it."""
    def body(i, y):
        return i + 1, tf.cond(tf.reduce_sum(y) > 1.0, lambda: tf.sin(y) * x, lambda: y * y + x)

    return tf.while_loop(lambda i, y: i < n, body, [0, x])[1] * 2


# Functions whose types and numbers of arguments each call says. The second calls the first.
POLYMORPHIC = ["""
signature {
  name: "Affine"
  input_arg { name: "x" type_attr: "T" }
  input_arg { name: "more" type_attr: "T" number_attr: "N" }
  output_arg { name: "y" type_attr: "T" }
  output_arg { name: "all" type_attr: "T" number_attr: "N" }
  attr { name: "T" type: "type" }
  attr { name: "N" type: "int" default_value { i: 2 } }
}
node_def { name: "sum" op: "AddN" input: "more" attr { key: "T" value { placeholder: "T" } } attr { key: "N" value { placeholder: "N" } } }
node_def { name: "same" op: "IdentityN" input: "more" attr { key: "T" value { list { type: DT_FLOAT type: DT_FLOAT } } } }
node_def { name: "product" op: "Mul" input: "x" input: "sum:sum:0" attr { key: "T" value { placeholder: "T" } } }
ret { key: "y" value: "product:z:0" }
ret { key: "all" value: "same:output" }
""", """
signature {
  name: "Twice"
  input_arg { name: "x" type_attr: "T" }
  output_arg { name: "y" type_attr: "T" }
  attr { name: "T" type: "type" }
}
node_def { name: "first" op: "Double" input: "x" attr { key: "T" value { placeholder: "T" } } }
node_def { name: "second" op: "Double" input: "first:y:0" attr { key: "T" value { placeholder: "T" } } }
ret { key: "y" value: "second:y:0" }
""", """
signature {
  name: "Double"
  input_arg { name: "x" type_attr: "T" }
  output_arg { name: "y" type_attr: "T" }
  attr { name: "T" type: "type" }
}
node_def { name: "sum" op: "AddV2" input: "x" input: "x" attr { key: "T" value { placeholder: "T" } } }
ret { key: "y" value: "sum:z:0" }
""", """
signature {
  name: "Main"
  input_arg { name: "x" type: DT_FLOAT }
  input_arg { name: "p" type: DT_FLOAT }
  input_arg { name: "q" type: DT_FLOAT }
  output_arg { name: "affine" type: DT_FLOAT }
  output_arg { name: "twice" type: DT_FLOAT }
  output_arg { name: "sum" type: DT_FLOAT }
}
node_def { name: "a" op: "Affine" input: "x" input: "p" input: "q" attr { key: "T" value { type: DT_FLOAT } }
  attr { key: "N" value { i: 2 } } }
node_def { name: "t" op: "Twice" input: "a:y:0" attr { key: "T" value { type: DT_FLOAT } } }
node_def { name: "s" op: "AddN" input: "a:all" attr { key: "T" value { type: DT_FLOAT } } attr { key: "N" value { i: 2 } } }
ret { key: "affine" value: "a:y:0" }
ret { key: "twice" value: "t:y:0" }
ret { key: "sum" value: "s:sum:0" }
"""]


def calls():
    """Nodes that have functions' names as their ops, one of them with a gradient of its own (three times what it is)."""
    @function.Defun(tf.float32, tf.float32)
    def triple_gradient(x, dy):
        return 3.0 * tf.cos(x) * dy

    @function.Defun(tf.float32, grad_func=triple_gradient)
    def sine(x):
        return tf.sin(x)

    @function.Defun(tf.float32, tf.float32)
    def both(x, y):
        return x * y, sine(x) + y

    with tf.Graph().as_default() as graph:
        x = tf1.placeholder(tf.float32, [2], name="x")
        p, q = both(x, x + 1.0)
        tf.identity(p, name="p"), tf.identity(q, name="q"), tf.identity(sine(x), name="s")
        about = graph.as_graph_def()
    about.library.function.extend(text_format.Parse(f, function_pb2.FunctionDef()) for f in POLYMORPHIC)
    node = about.node.add(name="affine", op="Affine", input=["x", "p", "q"])
    node.attr["T"].type, node.attr["N"].i = tf.float32.as_datatype_enum, 2
    about.node.add(name="main", op="Main", input=["x", "p", "q"])
    node = about.node.add(name="twice", op="Twice", input=["affine"])
    node.attr["T"].type = tf.float32.as_datatype_enum
    node = about.node.add(name="named", op="PartitionedCall", input=["affine"])  # a call that says values for attributes
    node.attr["f"].func.name = "Twice"
    node.attr["f"].func.attr["T"].type = tf.float32.as_datatype_enum
    for types in ("Tin", "Tout"):
        node.attr[types].list.type.append(tf.float32.as_datatype_enum)
    node = about.node.add(name="sum", op="AddN", input=["affine:1", "affine:2"])
    node.attr["T"].type, node.attr["N"].i = tf.float32.as_datatype_enum, 2
    return about


def answers(x):
    """What TensorFlow says that the polymorphic functions give, called with the values of calls()."""
    for f in POLYMORPHIC:
        context.context().add_function_def(text_format.Parse(f, function_pb2.FunctionDef()))
    x = tf.constant(x)
    return execute.execute(b"Main", 3, [x, x * (x + 1), tf.sin(x) + x + 1], (), context.context())


if __name__ == "__main__":
    here = pathlib.Path(__file__)
    written = program.get_concrete_function(tf.TensorSpec([2], tf.float32), tf.TensorSpec([], tf.int32)).graph.as_graph_def()
    here.with_name("functions.pb").write_bytes(written.SerializeToString(deterministic=True))
    about = calls()
    here.with_name("calls.pb").write_bytes(about.SerializeToString(deterministic=True))
    print([y.numpy().tolist() for y in answers(np.float32([0.3, 0.8]))])
