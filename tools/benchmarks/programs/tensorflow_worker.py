"""TensorFlow's worker: it runs graphs in sessions, from Python. usage: tensorflow_worker.py THREADS"""
import atexit
import json
import os
import socket
import subprocess
import sys

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


class Chains:
    """A loop each of whose iterations passes a value through eight running sums, as in chains.c."""
    made = {}

    @classmethod
    def at_once(cls, n):
        if n not in cls.made:
            cls.made[n] = cls(n)
        return cls.made[n]

    def __init__(self, n):
        v1.disable_control_flow_v2()
        with tensorflow.Graph().as_default() as graph:
            x = v1.placeholder(tensorflow.float32, [worker.CHAIN_ELEMENTS])

            def body(i, total):
                y = x * i
                for _ in range(worker.CHAIN_STAGES):
                    y = tensorflow.cumsum(y)
                return i + 1.0, total + tensorflow.reduce_sum(y)

            zero = tensorflow.constant(0.0)
            end = v1.while_loop(lambda i, _: i < float(worker.CHAIN_ITERATIONS), body, [zero, zero], parallel_iterations=n, back_prop=False)
        step = session(graph).make_callable(end[1], [x])
        ones = numpy.ones(worker.CHAIN_ELEMENTS, numpy.float32)
        self.step = lambda: step(ones)


class ControlFlow:
    """A thousand additions of one element, plain and inside each kind of branch and loop, as in control_flow.c."""
    made = {}

    @classmethod
    def way(cls, name):
        if name not in cls.made:
            cls.made[name] = cls(name)
        return cls.made[name]

    def __init__(self, name):
        v1.disable_control_flow_v2() if name in ("switch", "frames") else v1.enable_control_flow_v2()
        with tensorflow.Graph().as_default() as graph:
            x, one = (v1.placeholder(tensorflow.float32, []) for _ in range(2))

            def add(y, n=worker.ADDITIONS):
                for _ in range(n):
                    y = tensorflow.add(y, one)
                return y

            if name in ("switch", "if"):
                end = v1.cond(one > 0.0, lambda: add(x), lambda: -x)
            elif name in ("frames", "while"):
                each = worker.ADDITIONS // worker.ADDING_ROUNDS
                end = v1.while_loop(lambda i, _: i < float(worker.ADDING_ROUNDS), lambda i, y: (i + one, add(y, each)),
                                    [tensorflow.constant(0.0), x], back_prop=False)[1]
            else:
                end = add(x)
        step = session(graph).make_callable(end, [x, one])
        assert step(numpy.float32(1), numpy.float32(1)) == 1 + worker.ADDITIONS
        self.step = lambda: step(numpy.float32(1), numpy.float32(1))


class Handoff:
    """Two loops of one step, connected by a queue of capacity one."""

    def __init__(self):
        with tensorflow.Graph().as_default() as graph:
            queue = v1.FIFOQueue(1, [tensorflow.float32], [[]])

            def put(i):
                with tensorflow.control_dependencies([queue.enqueue(i)]):
                    return i + 1.0

            def take(i):
                with tensorflow.control_dependencies([i]):
                    taken = queue.dequeue()
                with tensorflow.control_dependencies([taken]):
                    return i + 1.0

            ends = [v1.while_loop(lambda i: i < float(worker.HANDOFFS), body, [tensorflow.constant(0.0)], back_prop=False)
                    for body in (put, take)]
            end = ends[0] + ends[1]
        self.step = session(graph).make_callable(end)


class Mlp:
    """The MLP. Its initial weights are constants of the graph, so that another program needs only the GraphDef."""

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


class Lstm:
    """A language model of LSTM layers, as in lstm.c."""
    made = {}

    @classmethod
    def of(cls, name):
        if name not in cls.made:
            cls.made[name] = cls(name)
        return cls.made[name]

    def __init__(self, name):
        self.kind, *sizes = name.split()
        layers, cells, self.steps, self.batch, words = map(int, sizes)
        ids = [((numpy.arange(self.steps * self.batch) + i * self.batch) * 7919 % words).reshape(self.steps, self.batch).astype(numpy.int32)
               for i in range(2)]
        with tensorflow.Graph().as_default() as graph:
            x, y = (v1.placeholder(tensorflow.int32, [self.steps, self.batch]) for _ in range(2))
            h = tensorflow.gather(tensorflow.Variable(self.numbers(1, words, cells)), x)
            weights, bias = tensorflow.Variable(self.numbers(2, cells, words)), tensorflow.Variable(numpy.zeros(words, numpy.float32))
            for i in range(layers):
                h = self.layer(h, cells, tensorflow.Variable(self.numbers(3 + i, 2 * cells, 4 * cells)),
                               tensorflow.Variable(numpy.zeros(4 * cells, numpy.float32)))
            logits = tensorflow.matmul(tensorflow.reshape(h, [-1, cells]), weights) + bias
            losses = tensorflow.nn.sparse_softmax_cross_entropy_with_logits(labels=tensorflow.reshape(y, [-1]), logits=logits)
            loss = tensorflow.reduce_mean(losses)
            train = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
            self.init = v1.global_variables_initializer()
        self.session = session(graph)
        step = self.session.make_callable([train, loss], [x, y])
        self.step = lambda: step(*ids)[1]

    @staticmethod
    def numbers(seed, rows, columns):
        drawn = (numpy.arange(rows * columns, dtype=numpy.uint32) + numpy.uint32(seed)) * numpy.uint32(2654435761) >> numpy.uint32(8)
        return (drawn.astype(numpy.float32) * numpy.float32(0.2 / (1 << 24)) - numpy.float32(0.1)).reshape(rows, columns)

    def layer(self, inputs, cells, kernel, bias):
        def cell(x, c, h):
            i, new, f, o = tensorflow.split(tensorflow.matmul(tensorflow.concat([x, h], 1), kernel) + bias, 4, 1)
            c = tensorflow.sigmoid(f + 1.0) * c + tensorflow.sigmoid(i) * tensorflow.tanh(new)
            return c, tensorflow.sigmoid(o) * tensorflow.tanh(c)

        c = h = tensorflow.zeros([self.batch, cells])
        if self.kind == "unrolled":
            outputs = []
            for x in tensorflow.unstack(inputs):
                c, h = cell(x, c, h)
                outputs.append(h)
            return tensorflow.stack(outputs)
        read = tensorflow.TensorArray(tensorflow.float32, self.steps).unstack(inputs)

        def step(t, c, h, outputs):
            c, h = cell(read.read(t), c, h)
            return t + 1, c, h, outputs.write(t, h)

        first = (0, c, h, tensorflow.TensorArray(tensorflow.float32, self.steps, element_shape=[self.batch, cells]))
        return tensorflow.while_loop(lambda t, *_: t < self.steps, step, first)[-1].stack()

    def losses(self):
        self.session.run(self.init)
        return [float(self.step()) for _ in range(5)]

    def times(self, samples):
        self.session.run(self.init)
        return worker.times(self.step, samples)


class EmptyGraph:
    """A graph of empty nodes. TensorFlow's optimizer is off, because it would remove the nodes."""

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
                worker.sync(file)  # TensorFlow itself does not sync
        return worker.time_once(save)

    def read(self, folder):
        return worker.time_once(lambda: self.read_step(f"{folder}/tensorflow"))


class Cluster:
    """Parameter servers, each a process of its own, and this process as the worker, as in cluster.c."""
    made = {}
    SERVER = """
import json, os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow
server = tensorflow.distribute.Server(json.loads(sys.argv[1]), "ps", int(sys.argv[2]))
print("ready", flush=True)
server.join()
"""

    def __init__(self, servers, size):
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(servers + 1)]
        addresses = [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]
        for s in sockets:
            s.close()
        jobs = {"ps": addresses[1:], "worker": addresses[:1]}
        self.processes = [subprocess.Popen([sys.executable, "-c", self.SERVER, json.dumps(jobs), str(i)], stdout=subprocess.PIPE,
                                           stderr=subprocess.DEVNULL) for i in range(servers)]
        for process in self.processes:
            process.stdout.readline()
        atexit.register(lambda: [process.kill() for process in self.processes])
        server = tensorflow.distribute.Server(jobs, "worker", 0)
        firsts = []
        with tensorflow.Graph().as_default() as graph:
            for i in range(servers):
                with v1.device(f"/job:ps/task:{i}"):
                    value = v1.get_variable(f"value{i}", initializer=tensorflow.fill([size // 4], numpy.float32(i + 1)), use_resource=True)
                    read = value.read_value()
                with v1.device("/job:worker/task:0"):
                    firsts.append(tensorflow.slice(read, [0], [1]))
            with v1.device("/job:worker/task:0"):
                total = tensorflow.add_n(firsts)
            start = v1.global_variables_initializer()
        config = v1.ConfigProto()
        config.graph_options.rewrite_options.disable_meta_optimizer = True  # it would slice at the variable's server
        running = v1.Session(server.target, graph=graph, config=config)
        running.run(start)
        self.step = running.make_callable(total)
        assert self.step()[0] == servers * (servers + 1) / 2

    @staticmethod
    def times(argument):
        servers, size, samples = map(int, argument.split())
        if (servers, size) not in Cluster.made:
            Cluster.made[servers, size] = Cluster(servers, size)
        return worker.times(Cluster.made[servers, size].step, samples)


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
    "chains": lambda argument: worker.times(Chains.at_once(int(argument.split()[1])).step, 9, worker.CHAIN_ITERATIONS),
    "control_flow": lambda name: worker.times(ControlFlow.way(name).step, 50, worker.ADDITIONS),
    "handoff": lambda n: worker.times(one(Handoff).step, int(n), worker.HANDOFFS),
    "empty_graph": lambda n: worker.times(one(EmptyGraph).step, int(n), worker.CHAIN),
    "cluster": Cluster.times,
    "checkpoint_write": lambda folder: one(Checkpoint).write(folder),
    "checkpoint_read": lambda folder: one(Checkpoint).read(folder),
    "lstm_losses": lambda name: Lstm.of(name).losses(),
    "lstm_step": lambda argument: Lstm.of(argument.split(" ", 1)[1]).times(int(argument.split()[0])),
    "mlp_load": lambda folder: one(Mlp).load(folder),
    "mlp_losses": lambda _: one(Mlp).losses(),
    "mlp_step": lambda n: one(Mlp).times(int(n)),
})
