"""One plain use of each op that calls functions, and the functions."""
import numpy as np

import tw
from draws import Use
from thalweg import flow, ops

f, two = np.float32, np.ones(2, np.float32)
FLOAT, INT = (tw.thalweg.as_dtype(kind) for kind in (f, np.int32))
ONE, FIRST = [(FLOAT, None)], [(INT, ()), (FLOAT, None)]
# {name: (arguments, results)}
FUNCTIONS = {
    "turned": (ONE, ops.neg), "grown": (ONE, lambda x: ops.add_v2(x, ops.ones_like(x))),
    "small": (ONE, lambda x: ops.less(ops.max(x, np.int32(0)), f(3))), "counted": (FIRST, lambda i, x: ops.add_v2(x, ops.cast(i, DstT=f))),
    "of_two": (ONE * 2, lambda x, y: x), "two_of_one": (ONE, lambda x: [x, x]), "of_whole_numbers": ([(INT, None)], ops.neg),
    "of_nothing": ([], lambda: f(1)), "to_whole_numbers": (ONE, lambda x: ops.cast(x, DstT=np.int32)),
    "to_a_vector": (ONE, lambda x: ops.less(x, f(3))), "wrong": (ONE, lambda x: ops.reshape(x, np.int32([7]))),
}
given = dict(Tin=[f], Tout=[f])
name = tw.Func
USES = {
    "If": ([np.bool_(True), [two]], given | dict(Tcond=np.bool_, then_branch=name("turned"), else_branch=name("grown"))),
    "Case": ([np.int32(1), [two]], given | dict(branches=[name("turned"), name("grown")])),
    "While": ([[two]], dict(T=[f], cond=name("small"), body=name("grown"))),
    "For": ([np.int32(0), np.int32(3), np.int32(1), [two]], dict(T=[f], body=name("counted"))),
    "PartitionedCall": ([[two]], given | dict(f=name("turned"))),
}
USES |= {"Stateless" + op: USES[op] for op in ("If", "Case", "While")} | {"StatefulPartitionedCall": USES["PartitionedCall"]}
OPS = set(USES)
OTHERS = ["nobody", *FUNCTIONS]  # function names that an attribute may have


def add_functions(graph):
    for function, (arguments, body) in FUNCTIONS.items():
        flow.Traced(graph.graph, body, arguments, function).add(function, [], exact=True)


def plain_uses():
    for op, (inputs, attrs) in USES.items():
        yield Use(op, list(inputs), dict(attrs), {"Tcond": "bool"} if "Tcond" in attrs else {})
