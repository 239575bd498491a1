"""Random nested programs of branches, loops and arrays, in the form that TensorFlow's v1 functions give them (Switch, Merge, Enter, Exit,
NextIteration, TensorArray), with TensorFlow's results and the gradients of their sum. Without arguments it writes
goldens/control_flow.json.gz, which control_flow_golden_test.py reads. Run it by hand after changes here:
`tools/cmake/peer-python tests/ops/control_flow_peer.py`. `control_flow_peer.py COUNT SEED` makes other programs and runs them in both
(label `peer`)."""
import base64
import gzip
import json
import os
import pathlib
import random
import sys

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "TF_ENABLE_ONEDNN_OPTS": "0"}
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

tf1 = tf.compat.v1
tf1.disable_eager_execution()
tf1.disable_control_flow_v2()

# The graph runs as it is written. TensorFlow's rewriting breaks some of these programs.
PLAIN = tf1.ConfigProto()
PLAIN.graph_options.rewrite_options.disable_meta_optimizer = True
PLAIN.graph_options.optimizer_options.opt_level = tf1.OptimizerOptions.L0


class Program:
    """A few values that statements change: arithmetic, branches, loops of up to a few rounds, arrays that loops write and read."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.budget = self.random.randint(4, 24)  # statements

    def number(self):
        return self.random.choice([-1.5, -1.0, -0.5, 0.25, 0.5, 1.0, 2.0])

    def block(self, values, depth):
        values = list(values)
        for _ in range(self.random.randint(1, 4)):
            self.budget -= 1
            kind = self.random.random()
            if depth == 0 or self.budget <= 0 or kind < 0.4:
                self.assign(values)
            elif kind < 0.65:
                self.branch(values, depth)
            elif kind < 0.9:
                self.loop(values, depth)
            else:
                self.array(values, depth)
        return values

    def assign(self, values):
        at, a, b = (self.random.randrange(len(values)) for _ in range(3))
        op = self.random.choice([tf.add, tf.subtract, tf.maximum, lambda x, y: tf.tanh(x * y), lambda x, y: x * 0.5 + self.number()])
        values[at] = op(values[a], values[b])

    def holds(self, values):
        return tf.reduce_sum(values[self.random.randrange(len(values))]) > self.number()

    def branch(self, values, depth):
        values[:] = tf1.cond(self.holds(values), lambda: [tf.identity(v) for v in self.block(values, depth - 1)],
                             lambda: [tf.identity(v) for v in self.block(values, depth - 1)])

    def loop(self, values, depth):
        rounds, kept = self.random.randint(0, 5), self.random.randrange(len(values))
        outside, pred = values[kept], self.random.random() < 0.3

        def goes_on(i, *v):
            return tf.logical_and(i < rounds, self.holds(v)) if pred else i < rounds

        def body(i, *v):
            v = self.block(v, depth - 1)
            v[kept] = v[kept] * 0.5 + outside  # all iterations share `outside`
            return [i + 1, *v]

        _, *values[:] = tf1.while_loop(goes_on, body, [tf.constant(0), *values], parallel_iterations=self.random.choice([1, 2, 10]))

    def array(self, values, depth):
        """Makes an array that is written by a loop or at once, and read by a loop or at once."""
        n, written, to = self.random.randint(1, 4), self.random.randrange(len(values)), self.random.randrange(len(values))
        rows = tf.TensorArray(tf.float32, n, clear_after_read=False)
        if self.random.random() < 0.5:
            def write(i, rows, *v):
                v = self.block(v, depth - 1)
                return [i + 1, rows.write(i, v[written]), *v]

            _, rows, *values[:] = tf1.while_loop(lambda i, *_: i < n, write, [tf.constant(0), rows, *values])
        else:
            rows = rows.unstack(tf.stack([values[written] * self.number() for _ in range(n)]))
        if self.random.random() < 0.5:
            values[to] = tf1.while_loop(lambda i, _: i < n, lambda i, v: [i + 1, v * 0.5 + rows.read(i)], [tf.constant(0), values[to]])[1]
        else:
            values[to] = tf.reduce_sum(rows.stack(), 0) + values[to]


def use(seed):
    """Returns a program, three feeds and its results."""
    rng = np.random.default_rng(seed)
    with tf.Graph().as_default() as graph:
        inputs = [tf1.placeholder(tf.float32, [3] if seed % 2 else [None]) for _ in range(3)]
        outputs = [tf.identity(v) for v in Program(seed).block(inputs, 3)]
        written = graph.as_graph_def().SerializeToString(deterministic=True)
        gradients = tf1.gradients(outputs, inputs)
        depends = [g is not None for g in gradients]
        with tf1.Session(config=PLAIN) as session:
            feeds = [[rng.integers(-4, 5, 3).astype(np.float32) / 2 for _ in inputs] for _ in range(2)]
            answers = [session.run(outputs + [g for g in gradients if g is not None], dict(zip(inputs, f))) for f in feeds]
    return {"graph": base64.b64encode(written).decode(), "inputs": [x.name for x in inputs], "depends": depends,
            "outputs": [x.name for x in outputs], "feeds": [[x.tolist() for x in f] for f in feeds],
            "answers": [[x.tolist() for x in a] for a in answers]}


if __name__ == "__main__":
    if len(sys.argv) == 3:
        import cases
        import control_flow_golden_test as ours
        for seed in range(int(sys.argv[2]), int(sys.argv[2]) + int(sys.argv[1])):
            ours.check(seed, use(seed))
        cases.finish()
    path = pathlib.Path(__file__).parent / "goldens" / "control_flow.json.gz"
    uses = [use(seed) for seed in range(200)]
    path.write_bytes(gzip.compress(json.dumps(uses).encode(), mtime=0))
    print(len(uses), "programs,", path.stat().st_size, "bytes")
