"""Tests of the values of every type that count as true, of function calls that start in one place and end in another, and of sums of
lists of every type."""
import numpy as np

import called
import cases
import tw
from schema import type_of


def graph_of(op, inputs, **attrs):
    graph = tw.Graph()
    called.add_functions(graph)
    return graph, graph.add(op, *map(graph.constant, inputs), name="op", **attrs)


given, x = called.given | dict(then_branch=tw.Func("turned"), else_branch=tw.Func("grown")), np.float32([1, 2])
for kind in "bool string half bfloat16 float double int8 int16 int32 int64 uint8 uint16 uint32 uint64".split():
    dtype = tw.numpy_of(type_of(kind))
    for yes in (True, False):
        value = tw.to_bfloat16(np.float32(yes)) if kind == "bfloat16" else np.array(b"x" * yes, object) if kind == "string" else np.array(yes, dtype)
        graph, op = graph_of("If", [value, x], Tcond=dtype, **given)
        cases.equal(f"If of {kind} {yes}", graph.session(optimize="false").run(op.outputs)[0], -x if yes else x + 1)

# Starts the steps and waits for them: kernels hold no thread while a function runs.
for op, inputs, attrs, wanted in (
        ("If", [np.bool_(True), x], dict(Tcond=np.bool_, **given), -x), ("PartitionedCall", [x], called.given | dict(f=tw.Func("grown")), x + 1),
        ("While", [x], dict(T=[np.float32], cond=tw.Func("small"), body=tw.Func("grown")), np.float32([2, 3])),
        ("For", [np.int32(0), np.int32(3), np.int32(1), x], dict(T=[np.float32], body=tw.Func("counted")), x + 3)):
    graph, made = graph_of(op, inputs, **attrs)
    session = graph.session(optimize="false", threads=2)
    futures = [session.run_async(made.outputs[0]) for _ in range(20)]
    for future in futures:
        cases.equal(f"{op}, begun", future.result(), wanted)
for op, attrs in (("PartitionedCall", called.given | dict(f=tw.Func("wrong"))), ("While", dict(T=[np.float32], cond=tw.Func("small"), body=tw.Func("wrong")))):
    graph, made = graph_of(op, [x], **attrs)
    session = graph.session(optimize="false", threads=2)
    cases.refuses(f"{op} of a function that fails, begun", lambda: session.run_async(made.outputs[0]).result(), "Reshape", "[7]")

for kind in "half bfloat16 float double complex64 complex128 int8 int16 int32 int64 uint8 uint16 uint32 uint64".split():
    dtype = tw.numpy_of(type_of(kind))
    rows = np.arange(6).reshape(3, 2)
    rows = tw.to_bfloat16(rows.astype(np.float32)) if kind == "bfloat16" else rows.astype(dtype)
    graph = tw.Graph()
    lists = [graph.list(tw.List(rows), "constant", {}) for _ in range(2)]
    total = graph.op("TensorListStack", graph.op("AddN", *lists, N=2), graph.constant(np.int32(-1)), element_dtype=dtype)
    got = graph.session().run([total])[0]
    got = tw.from_bfloat16(got) if kind == "bfloat16" else got
    cases.equal(f"a sum of lists of {kind}", got.astype(np.complex128), 2 * np.arange(6).reshape(3, 2).astype(np.complex128))
cases.finish()
