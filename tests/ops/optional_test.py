"""Tests of optionals: they hold the tensors that they were made of, through functions of a step and across types; gradients pass through
them and add up; what they do not hold is an error."""
import numpy as np

import cases
import tw
from thalweg import gradients

ARRAYS = [np.float32([[1, 2], [3, 4]]), np.int64(7), np.array([b"text", b""], object), np.zeros((0, 3), np.complex64), np.array([True])]


def held(graph, arrays, feeds=None):
    """Returns an optional of constants, or of placeholders if `feeds` is a dict for their values."""
    edges = []
    for array in arrays:
        if feeds is None:
            edges.append(graph.constant(array))
        else:
            edges.append(graph.placeholder(tw.string if array.dtype.kind == "O" else array.dtype))
            feeds[edges[-1]] = array
    return graph.op("OptionalFromValue", *edges, Toutput_types=[tw.string if a.dtype.kind == "O" else a.dtype for a in arrays])


def told(arrays, shapes=None):
    types = [tw.string if a.dtype.kind == "O" else a.dtype for a in arrays]
    return dict(output_types=types, output_shapes=shapes or [a.shape for a in arrays])


for fed in (False, True):
    for shapes in (None, [None] * len(ARRAYS), [(-1, 2), (), (2,), (-1, -1), None]):
        graph, feeds = tw.Graph(), {} if fed else None
        some = held(graph, ARRAYS, feeds)
        parts = graph.add("OptionalGetValue", some, **told(ARRAYS, shapes)).outputs
        got = graph.session().run([graph.op("OptionalHasValue", some), *parts], feeds or {})
        cases.equal("an optional with tensors has a value", got[0], np.bool_(True))
        for k, (value, wanted) in enumerate(zip(got[1:], ARRAYS)):
            cases.equal(f"tensor {k} of an optional, fed={fed}, shapes={shapes}", value, wanted)

graph = tw.Graph()
none = graph.op("OptionalNone")
cases.equal("an optional without tensors has no value", graph.session().run([graph.op("OptionalHasValue", none)])[0], np.bool_(False))
one = held(graph, ARRAYS[:1])
array = graph.op("TensorListReserve", graph.constant(np.int32(-1)), graph.constant(np.int32(1)), element_dtype=np.float32, shape_type=np.int32)
WRONG = [(none, told(ARRAYS[:1]), ("holds nothing",)), (one, told(ARRAYS[:2]), ("1", "2")), (one, told(ARRAYS[1:2]), ("float", "int64")),
         (one, told(ARRAYS[:1], [(3, 2)]), ("[2, 2]", "[3, 2]")), (array, told(ARRAYS[:1]), ("tensor_list",))]
for k, (optional, attrs, parts) in enumerate(WRONG):
    part = graph.add("OptionalGetValue", optional, name=f"wrong_{k}", **attrs).outputs[0]
    cases.refuses(f"wrong optional {k}", lambda: graph.session().run([part]), "OptionalGetValue", f"wrong_{k}", *parts)
cases.refuses("shapes for other types", lambda: tw.Graph().add("OptionalGetValue", none, output_types=[np.float32], output_shapes=[(), ()]))

# x goes into two optionals, one of which is read twice: the gradients add up. The integer has none.
graph = tw.Graph()
x, n = graph.placeholder(np.float64, (2,)), graph.constant(np.int32(3))
pair = graph.op("OptionalFromValue", x, n, Toutput_types=[np.float64, np.int32])
single = graph.op("OptionalFromValue", x, Toutput_types=[np.float64])
first, _ = graph.add("OptionalGetValue", pair, output_types=[np.float64, np.int32], output_shapes=[(2,), ()]).outputs
again, _ = graph.add("OptionalGetValue", pair, output_types=[np.float64, np.int32], output_shapes=[None, None]).outputs
other = graph.op("OptionalGetValue", single, output_types=[np.float64], output_shapes=[(2,)])
y = graph.op("AddV2", graph.op("Mul", first, first), graph.op("AddV2", graph.op("Exp", again), other))
(dx,) = gradients([y], [x])
at = np.array([0.5, -2.0])
cases.equal("the gradient through optionals", graph.session().run([dx], {x: at})[0], 2 * at + np.exp(at) + 1, 1e-12)
cases.finish()
