"""Compares ops on variables, also in their form with references, with the values that TensorFlow leaves in variables
(goldens/variables.json.gz, which variables_peer.py writes)."""
import itertools

import cases
import golden
import tw

BY_REFERENCE = {"AssignAddVariableOp": "AssignAdd", "AssignSubVariableOp": "AssignSub"}
NEAR = {"half": 4e-3, "float": 1e-5, "double": 1e-12, "complex64": 1e-6}
fresh = map("variables_golden{}".format, itertools.count())


def types_of(op, dtype, inputs):
    """Returns the type attributes that no input implies."""
    attrs = {a["name"] for a in tw.ops()[op]["attrs"]}
    return {"dtype": dtype} if "dtype" in attrs else {}


def left(use, op, by_reference):
    """Returns the values of the variables after two runs, and the last result."""
    graph, slots = tw.Graph(), [golden.unpacked(*x) for x in use["slots"]]
    made, assign = ("VariableV2", "Assign") if by_reference else ("VarHandleOp", "AssignVariableOp")
    variables = [graph.op(made, dtype=x.dtype, shape=x.shape, shared_name=next(fresh)) for x in slots]
    start = [graph.add(assign, v, graph.constant(x)) for v, x in zip(variables, slots)]
    inputs = [graph.constant(golden.unpacked(*x)) for x in use["inputs"]]
    update = graph.add(op, *variables, *inputs, **types_of(op, slots[0].dtype, inputs), **use["attrs"])
    values = variables if by_reference else [graph.op("ReadVariableOp", v, dtype=x.dtype) for v, x in zip(variables, slots)]
    session, answer = graph.session(), None
    session.run([], targets=start)
    for _ in range(2):
        answer = session.run(update.outputs[:1], targets=[update])
    return session.run(values), answer


def check(use, op, by_reference):
    after, answer = left(use, op, by_reference)
    wanted = [golden.unpacked(*x) for x in use["after"]]
    tolerance = NEAR.get(use["slots"][0][0])
    what = f"{op} {use['slots'][0][:2]} {use['attrs']}"
    for k, (a, b) in enumerate(zip(after, wanted)):
        cases.equal(f"{what}: variable {k}", a, b, tolerance)
    if use["answer"]:
        cases.equal(what, answer[0], golden.unpacked(*use["answer"]), tolerance)
    elif by_reference:
        cases.equal(f"what {what} hands on", answer[0], wanted[0], tolerance)


for use in golden.load("variables"):
    check(use, use["op"], False)
    other = BY_REFERENCE.get(use["op"], use["op"].removeprefix("Resource"))
    if other in tw.ops() and other != use["op"] and "Nd" not in other and not other.startswith("Gather"):
        check(use, other, True)

cases.finish()
