"""Checks that each op has kernels for every type that the schema allows, or that missing.py or the op's declaration lists the gap with a
reason. A gap that has been filled must leave the list."""
import itertools

import cases
import tw
from declare import declared
from missing import MISSING, QUANTISED
from schema import ALL, Schema
from thalweg import Tensor, _low, as_dtype
from thalweg.errors import made
from undeclared import UNDECLARED

# The framework itself runs these; sessions over several processes run _Send and _Recv.
FRAMEWORK = {"Const", "Placeholder", "_Send", "_Recv", "Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond", "ControlTrigger"}


def has_kernel(op, schema, choice):
    graph = schema.graph(op, choice)
    try:
        graph.graph.verify()
        return True
    except tw.Error as error:
        if error.code_name != "UNIMPLEMENTED" or op not in str(error):
            cases.holds(f"{op} {choice}", False, f"{error.code_name}: {error}")
        return False


def gaps(op, schema):
    """Returns {type attribute: types without a kernel}; counts a case for each combination of the other types."""
    names = list(schema.types)
    choices = (dict(zip(names, types)) for types in itertools.product(*schema.types.values()))
    base = next((choice for choice in choices if has_kernel(op, schema, choice)), None)
    cases.holds(f"{op} has a kernel", base is not None, "none at all")
    if base is None:
        return {}
    missing = {a: {t for t in schema.types[a] if not has_kernel(op, schema, base | {a: t})} for a in names}
    for types in itertools.product(*[[t for t in schema.types[a] if t not in missing[a]] for a in names]):
        choice = dict(zip(names, types))
        cases.holds(f"{op} {choice}", has_kernel(op, schema, choice), "has no kernel, though each of its types has one with others")
    return missing


listed = {(op, t) for _, ops, types in MISSING for op in ops.split() for t in types}
listed |= {(d.op, t) for d in declared().ops.values() for types in d.no_kernel.values() for t in types.split()}
# One kernel for all lists of types.
OF_LISTS = {op for path, ops in UNDECLARED.items() if path.startswith(("python/data_", "python/host_functions")) for op in ops.split()}
found = set()
for op, about in tw.ops().items():
    if op in FRAMEWORK or op in OF_LISTS:
        continue
    for attr, types in gaps(op, Schema(about["schema"], declared().given(op))).items():
        found |= {(op, t) for t in types}
for op, t in sorted(found - listed):
    cases.holds(f"{op} of {t}", False, "has no kernel and is not in the list of what is missing")
for op, t in sorted(listed - found):
    cases.holds(f"{op} of {t}", False, "has a kernel, or the schema excludes it: take it off the list")

# Cast has one kernel for all types, which rejects unsupported types at the first step.
CAST = [t for t in ALL if t not in QUANTISED + ["string"]]
for source, to in itertools.product(ALL, ALL):
    types = as_dtype(source), as_dtype(to)
    graph = tw.Graph()
    zero = Tensor._adopt(made(_low.tw_tensor_create, types[0].number, None, 0))  # NumPy lacks some of these types
    run = [graph.add("Cast", graph.op("Const", value=zero, dtype=types[0]), name="op", SrcT=types[0], DstT=types[1])]
    if source in CAST and to in CAST:
        try:
            graph.session().run([], targets=run)
        except tw.Error as error:
            cases.holds(f"Cast from {source} to {to}", False, error)
    elif source != to:
        cases.refuses(f"Cast from {source} to {to}", lambda: graph.session().run([], targets=run), "Cast 'op'", source, to)

cases.finish()
