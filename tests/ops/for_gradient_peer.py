"""Runs the programs of for_programs.py in TensorFlow, op by op under its tape, and here, and compares results and derivatives.
`for_gradient_peer.py COUNT SEED` (label `peer`)."""
import os
import sys

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "TF_ENABLE_ONEDNN_OPTS": "0"}
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

import cases  # noqa: E402
import for_gradient_test as ours  # noqa: E402
import for_programs  # noqa: E402
import thalweg  # noqa: E402
from tw import SESSION, runtime  # noqa: E402


class InTensorFlow:
    sin, tanh = staticmethod(tf.sin), staticmethod(tf.tanh)
    loop = staticmethod(ours.InNumPy.loop)

    @staticmethod
    def float_of(number):
        return tf.constant(number, tf.float64)

    @staticmethod
    def choose(at, then, otherwise, values):
        return then(values) if tf.reduce_sum(values[at]) > 0 else otherwise(values)


def answers(statements, values):
    """Returns TensorFlow's results, and its first and second derivatives."""
    xs = [tf.constant(v) for v in values]
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(xs)
        with tf.GradientTape() as inner:
            inner.watch(xs)
            ys = for_programs.run(statements, xs, InTensorFlow)
            total = tf.add_n([tf.reduce_sum(y) for y in ys])
        first = inner.gradient(total, xs, unconnected_gradients="zero")
        slopes = tf.add_n([tf.reduce_sum(g) for g in first])
    second = outer.gradient(slopes, xs, unconnected_gradients="zero")
    return [np.array([t.numpy() for t in some]) for some in (ys, first, second)]


def check(seed):
    count, statements = for_programs.program(seed)
    graph, xs, *fetches = ours.build(count, statements, runtime(threads=4))
    with thalweg.Session(graph, **SESSION) as session:
        for at in np.random.default_rng(seed).uniform(-1.5, 1.5, (2, count, 2)):
            fed = dict(zip(xs, at))
            for what, some, wanted in zip(("values", "derivatives", "second derivatives"), fetches, answers(statements, at)):
                cases.equal(f"the {what} of program {seed} at {at.tolist()}", np.array(session.run(some, fed)), wanted, 1e-9)


if __name__ == "__main__":
    for number in range(int(sys.argv[2]), int(sys.argv[2]) + int(sys.argv[1])):
        check(number)
    cases.finish()
