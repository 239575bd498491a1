"""TensorFlow's worker: graphs and sessions, driven from Python. usage: tensorflow_worker.py THREADS"""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy
import tensorflow

import worker

v1 = tensorflow.compat.v1
v1.disable_eager_execution()


def session(graph, optimize=True):
    threads = worker.threads()
    config = v1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads)
    config.graph_options.rewrite_options.disable_meta_optimizer = not optimize
    return v1.Session(graph=graph, config=config)


class EmptyStep:
    def __init__(self):
        with tensorflow.Graph().as_default() as graph:
            self.op = tensorflow.no_op()
        self.session = session(graph)
        self.callable = self.session.make_callable(self.op)

    def run(self):
        self.session.run(self.op)


class AddChain:
    def __init__(self):
        with tensorflow.Graph().as_default() as graph:
            x = v1.placeholder(tensorflow.float32, [1])
            one = v1.placeholder(tensorflow.float32, [1])
            y = x
            for _ in range(worker.CHAIN):
                y = tensorflow.add(y, one)
        step = session(graph).make_callable(y, [x, one])
        ones = numpy.ones(1, numpy.float32)
        self.step = lambda: step(ones, ones)


class Loop:
    """i = 0; while (i < rounds) i += 1, in frames."""

    def __init__(self):
        v1.disable_control_flow_v2()
        with tensorflow.Graph().as_default() as graph:
            rounds, one = (v1.placeholder(tensorflow.float32, []) for _ in range(2))
            end = v1.while_loop(lambda i: i < rounds, lambda i: i + one, [tensorflow.constant(0.0)], back_prop=False)
        step = session(graph).make_callable(end, [rounds, one])
        self.step = lambda: step(numpy.float32(worker.ROUNDS), numpy.float32(1))


class Mlp:
    """The initial weights are constants of the graph, so that its GraphDef is all that another program needs."""

    def load(self, folder):
        data = worker.read_mlp(folder, numpy)
        with tensorflow.Graph().as_default() as graph:
            x = v1.placeholder(tensorflow.float32, [100, 784], "x")
            y = v1.placeholder(tensorflow.int32, [100], "y")
            w1, b1, w2, b2 = (tensorflow.Variable(data[name]) for name in ("w1", "b1", "w2", "b2"))
            hidden = tensorflow.nn.relu(tensorflow.matmul(x, w1) + b1)
            losses = tensorflow.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=tensorflow.matmul(hidden, w2) + b2)
            loss = tensorflow.reduce_mean(losses, name="loss")
            train = v1.train.GradientDescentOptimizer(0.01).minimize(loss, name="train")
            self.init = tensorflow.group(v1.global_variables_initializer(), name="init")
        with open(f"{folder}/mlp.pb", "wb") as file:
            file.write(graph.as_graph_def().SerializeToString())
        self.session = session(graph)
        step = self.session.make_callable([train, loss], [x, y])
        self.step = lambda: step(data["x"], data["y"])[1]
        self.session.run(self.init)
        return [1]

    def losses(self):
        self.session.run(self.init)
        return [float(self.step()) for _ in range(5)]

    def times(self, samples):
        self.session.run(self.init)
        return worker.times(self.step, samples)


class EmptyGraph:
    """The optimiser, which would remove the nodes, is off."""

    def __init__(self):
        with tensorflow.Graph().as_default() as graph:
            everything = tensorflow.group(*[tensorflow.no_op() for _ in range(worker.CHAIN)])
        self.step = session(graph, optimize=False).make_callable(everything)


class Checkpoint:
    def __init__(self):
        self.data = worker.checkpoint_parts(numpy)
        names, whole = [f"part{part}" for part in range(len(self.data))], [""] * len(self.data)
        with tensorflow.Graph().as_default() as graph:
            prefix = v1.placeholder(tensorflow.string, [])
            values = [v1.placeholder(tensorflow.float32, part.shape) for part in self.data]
            written = tensorflow.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=whole, tensors=values)
            read = tensorflow.raw_ops.RestoreV2(prefix=prefix, tensor_names=names, shape_and_slices=whole,
                                                dtypes=[tensorflow.float32] * len(names))
        self.write_step = session(graph).make_callable(written, [prefix, *values])
        self.read_step = session(graph).make_callable(read, [prefix])

    def write(self, folder):
        def save():
            self.write_step(f"{folder}/tensorflow", *self.data)
            with open(f"{folder}/tensorflow.data-00000-of-00001", "rb+") as file:
                worker.sync(file)  # which TensorFlow leaves out
        return worker.time_once(save)

    def read(self, folder):
        return worker.time_once(lambda: self.read_step(f"{folder}/tensorflow"))


made = {}


def one(kind):
    if kind not in made:
        made[kind] = kind()
    return made[kind]


worker.serve({
    "callable": lambda n: worker.times(one(EmptyStep).callable, int(n)),
    "run": lambda n: worker.times(one(EmptyStep).run, int(n)),
    "add_chain": lambda n: worker.times(one(AddChain).step, int(n), worker.CHAIN),
    "loop": lambda n: worker.times(one(Loop).step, int(n), worker.ROUNDS),
    "empty_graph": lambda n: worker.times(one(EmptyGraph).step, int(n), worker.CHAIN),
    "checkpoint_write": lambda folder: one(Checkpoint).write(folder),
    "checkpoint_read": lambda folder: one(Checkpoint).read(folder),
    "mlp_load": lambda folder: one(Mlp).load(folder),
    "mlp_losses": lambda _: one(Mlp).losses(),
    "mlp_step": lambda n: one(Mlp).times(int(n)),
})
