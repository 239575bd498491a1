"""ONNX Runtime's worker: inference only. usage: onnxruntime_worker.py THREADS"""
import numpy
import onnxruntime
from onnx import TensorProto, helper

import worker

ONE = numpy.ones(1, numpy.float32)


def session(nodes, inputs, output):
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in (*inputs, output)]
    graph = helper.make_graph(nodes, "graph", values[:-1], values[-1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = worker.threads()
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def empty_step():
    made = session([helper.make_node("Identity", ["x"], ["y"])], ["x"], "y")
    return lambda: made.run(None, {"x": ONE})


def add_chain():
    n = worker.CHAIN
    made = session([helper.make_node("Add", [f"v{i}", "one"], [f"v{i + 1}"]) for i in range(n)], ["v0", "one"], f"v{n}")
    return lambda: made.run(None, {"v0": ONE, "one": ONE})


made = {}


def one(make):
    if make not in made:
        made[make] = make()
    return made[make]


worker.serve({
    "callable": lambda n: worker.times(one(empty_step), int(n)),
    "add_chain": lambda n: worker.times(one(add_chain), int(n), worker.CHAIN),
})
