"""Tests of stacks: a pop returns the last push, in the order of control inputs; each step has a new stack; errors."""
import numpy as np

import cases
import tw

graph = tw.Graph()
v = graph.placeholder(np.float32)
stack = graph.op("StackV2", graph.constant(np.int32(2)), elem_type=np.float32)
one = graph.op("StackPushV2", stack, v)
two = graph.op("StackPushV2", stack, graph.op("Neg", v), after=[one.operation])
top = graph.op("StackPopV2", stack, elem_type=np.float32, after=[two.operation])
bottom = graph.op("StackPopV2", stack, elem_type=np.float32, after=[top.operation])
session = graph.session()
for k in range(3):
    got = session.run([one, top, bottom], {v: np.float32([k, 1])})
    for part, want in zip(got, ([k, 1], [-k, -1], [k, 1])):
        cases.equal(f"a stack in step {k}", part, np.float32(want))


def fails(op, *parts):
    cases.refuses(f"{op.name}", lambda: graph.session().run([op.outputs[0]], {v: np.float32(1)}), *parts)


fails(graph.add("StackPushV2", stack, v, after=[two.operation], name="full"), "StackPushV2", "full", "2")
fails(graph.add("StackPopV2", stack, elem_type=np.float32, after=[bottom.operation], name="empty"), "StackPopV2", "empty")
fails(graph.add("StackPushV2", stack, graph.constant(np.int32(1)), name="another_type"), "float", "int32")
close = graph.add("StackCloseV2", stack)
fails(graph.add("StackPushV2", stack, v, after=[close], name="closed"), "closed")
array, _ = graph.add("TensorArrayV3", graph.constant(np.int32(3)), dtype=np.float32).outputs
fails(graph.add("StackPopV2", array, elem_type=np.float32, name="an_array"), "stack", "tensor_array")

# Stacks take any number of elements, of any types and shapes.
for dtype in (np.int64, np.complex64, np.bool_, tw.string):
    graph = tw.Graph()
    stack, last, pushed = graph.op("StackV2", graph.constant(np.int32(-1)), elem_type=dtype), [], []
    for n in range(5):
        array = np.full((n, 2), b"text", object) if dtype == tw.string else np.arange(2 * n).reshape(n, 2).astype(dtype)
        pushed.append(array)
        last = [graph.add("StackPushV2", stack, graph.constant(array), after=last)]
    popped = []
    for n in range(5):
        last = [graph.add("StackPopV2", stack, elem_type=dtype, after=last)]
        popped += last[0].outputs
    for got, want in zip(graph.session().run(popped), reversed(pushed)):
        cases.equal(f"a stack of {np.dtype(dtype)}", got, want)
cases.finish()
