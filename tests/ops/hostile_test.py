"""Invalid uses of every op: attributes, numbers of inputs and types that its schema excludes; valid uses with one fault (mutations.py),
which must get the same verdict in each of tw.WAYS; and random uses with sizes that overflow, the most negative and the largest numbers, and
wrong ranks. An op answers soon, within a memory limit, and names the fault; after that a valid use has the same result as before.
`hostile_test.py COUNT SEED`: COUNT random uses of each op, and a sixteenth as many uses whose single faults are tried one by one."""
import re
import sys

import numpy as np

import called
import cases
import kept
import simple
import tw
from attempts import HIGH, LATE, LOW, Attempt, alone, case, limit, shown, state_of
from declare import declared, uses
from mutations import mutations
from schema import ALL, Schema, type_of
from undeclared import UNDECLARED

FRAMEWORK = set("Const Placeholder _Send _Recv".split())  # the planner adds and removes them
FLOW = {op for path, names in UNDECLARED.items() if path.endswith("frame_run_test.cc") for op in names.split()}  # they do nothing alone
FILES = set("SaveV2 RestoreV2 MergeV2Checkpoints PrintV2 WriteFile ReadFile MatchingFiles".split())  # files_test.py tests hostile paths
# These tests try datasets, messages, images, collectives, optionals and functions of the program with what is wrong.
FILES |= {op for path, names in UNDECLARED.items()
          if path.startswith(("python/data_", "python/collectives", "python/host_functions", "ops/optional")) for op in names.split()}

# ---- Uses that schemas exclude ----


def wrong_use(op, schema):
    """Tries attributes, numbers of inputs and types that the schema excludes."""
    case(f"wrong use of {op}")
    choice = {a: types[0] for a, types in schema.types.items()}
    graph, attrs, where = tw.Graph(), schema.given(choice), f"{op} 'op'"
    inputs = schema.placeholders(graph, choice)
    counts = {count for _, _, count in schema.inputs if count}

    def refuses(what, part, inputs, **more):
        cases.refuses(f"{op}: {what}", lambda: graph.op(op, *inputs, name="op", **attrs | more), where, part)

    refuses("an unknown attribute", "no_such_attribute", inputs, no_such_attribute=3)
    if not counts and not any(kind in schema.lists for _, kind, _ in schema.inputs):
        refuses("an input too many", "", inputs + [graph.placeholder(np.float32)])
    if inputs and all(schema.counts[count] > 0 for count in counts):
        refuses("an input too few", "", inputs[:-1])
    for a, types in schema.types.items():
        for value in (7, "text", type_of(types[0]) if a in schema.lists else [type_of(types[0])]):
            refuses(f"{a} is {value}", a, inputs, **{a: value})
        excluded = next((t for t in ALL if t not in types), None)
        if excluded:
            refuses(f"{a} is {excluded}", excluded, inputs, **{a: type_of(excluded)})
    for a, kind in schema.attrs.items():
        refuses(f"{a} is of the wrong kind", a, inputs, **{a: np.zeros(1) if kind != "tensor" else 3})
        if isinstance(kind, list):
            refuses(f"{a} is none of its choices", "elsewhere", inputs, **{a: "elsewhere"})
    graph.op(op, *inputs, name="op", **attrs)  # the failed attempts have not used the name


# ---- Hostile inputs ----

NUMBERS = {"float": np.float32, "double": np.float64, "half": np.float16, "bfloat16": tw.bfloat16, "int32": np.int32, "int64": np.int64,
           "int16": np.int16, "int8": np.int8, "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64,
           "bool": np.bool_, "complex64": np.complex64, "string": object}
QUANTISED = {"qint8": np.int8, "quint8": np.uint8, "qint16": np.int16, "quint16": np.uint16, "qint32": np.int32}  # whole numbers in NumPy
NUMBERS |= {kind: tw.ABSENT[kind] for kind in QUANTISED}
EXTREMES = [LOW, LOW + 1, -2**32, -2**31 - 1, -2**31, -3, -2, -1, 0, 0, 1, 1, 2, 3, 4, 7, 127, 255, 2**31 - 1, 2**31, 2**32, 2**40, 2**62,
            HIGH]


def hostile_array(dtype, rank, rng):
    """Draws an array. rank: a rank that the array often has."""
    sizes = [1, 2, 2, 2] if rng.integers(3) else [0, 1, 1, 2, 3, 4]
    shape = tuple(rng.choice(sizes, rank if rng.integers(4) else rng.choice([0, 1, 1, 1, 2, 2, 3, 4])))
    dtype = np.dtype(dtype)
    if dtype.names and dtype.names[0] in QUANTISED:
        return hostile_array(QUANTISED[dtype.names[0]], rank, rng).view(dtype)
    if dtype in (np.int32, np.int64) and rng.integers(2):  # values for an index, a list of axes or sizes
        shape = (rank,) if rng.integers(3) else ()
    if len(shape) > 1 and rng.integers(12) == 0:  # no elements, along an axis of any length
        none, long = rng.choice(len(shape), 2, replace=False)
        shape = [0 if k == none else int(rng.choice([2**31 - 1, 2**54])) if k == long else size for k, size in enumerate(shape)]
    if dtype == tw.string:
        return np.full(shape, b"text", object)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        values = [v for v in EXTREMES if info.min <= v <= info.max]
        if rng.integers(2):
            values = [v for v in values if abs(v) < 5]
        return np.array([values[i] for i in rng.integers(0, len(values), int(np.prod(shape)))], dtype).reshape(shape)
    floats = rng.choice([0, -0.0, 1, -1, 0.5, np.nan, np.inf, -np.inf, 3e38, 1e-45, 7], shape)
    with np.errstate(all="ignore"):
        return tw.to_bfloat16(floats) if dtype == tw.bfloat16 else np.asarray(floats).astype(dtype)


def hostile_attr(kind, rng):
    if kind == "bool":
        return bool(rng.integers(2))
    if kind == "int":
        return int(rng.choice([0, 0, 1, 1, 2, 3, -1, -2, 5, 2**31, 2**62, HIGH, LOW]))
    if kind == "list(int)" and rng.integers(4):  # a list as for windows
        a, b = (int(v) for v in rng.choice([1, 1, 1, 2, 2, 3, 4, 7, 2**31 - 1, 2**31, 2**62, HIGH], 2))
        return [1, a, b, 1] if rng.integers(4) else [0, 0, a, b, b, a, 0, 0]
    if kind == "list(int)":
        sizes = [1, 1, 1, 1, 1, 2, 2, 3, 0, -1, 2**31 - 1, 2**31, 2**62, HIGH]
        return [int(v) for v in rng.choice(sizes, rng.choice([4, 4, 4, 4, 8, 0, 3]))]
    if kind == "shape":
        return None if rng.integers(2) else tuple(int(v) for v in rng.choice([-1, 1, 2, 3, HIGH], rng.integers(4)))
    if kind == "list(shape)":
        return [(2,)] if rng.integers(2) else [(-1, HIGH), ()]
    if kind in ("func", "list(func)"):
        func = tw.Func(rng.choice(called.OTHERS))
        return func if kind == "func" else [func] * int(rng.integers(1, 3))
    return str(rng.choice(kind if isinstance(kind, list) else ["", "text"]))


def some_handle(use, rng):
    """Returns the handle of a plain use, or a faulty variant of it."""
    given = next(x for x in use.inputs if isinstance(x, kept.Kept))
    wrong = [x for _, x in kept.spoilt(given) if x.state != "not fed"]
    return given if rng.integers(4) or given.through else wrong[rng.integers(len(wrong))]


def some_type(options, rng):
    """Draws an element type of which NumPy has values; a quantised one only if there is no other."""
    usual = [t for t in options if t in NUMBERS and t not in QUANTISED]
    return str(rng.choice(usual or [t for t in options if t in QUANTISED]))


def hostile(op, schema, count, seed, plain=None):
    """Runs `count` random uses of the op. Each succeeds or fails with an error, and the session goes on. Returns the number of successes.
    plain: a plain use, whose types and handle are used more often than others."""
    rng = np.random.default_rng([seed, *op.encode()])
    answered = 0
    for k in range(count):
        types = {a: some_type(options, rng) for a, options in schema.types.items()}
        if plain and rng.integers(4):
            types = {a: "float" for a in types} | plain.types
        inputs, rank = [], 4 if "strides" in schema.attrs else int(rng.choice([0, 1, 1, 2, 2, 3, 4]))
        for name, kind, n in schema.inputs:
            if plain and (kind in ("resource", "variant") or name in schema.references):
                inputs.append(some_handle(plain, rng))
                continue
            if kind == "resource" or name in schema.references:
                held = types.get(kind, types.get("dtype", types.get("T", "float"))) if rng.integers(8) else "int32"
                inputs.append(tw.Variable(hostile_array(NUMBERS[held], rank, rng), set=bool(rng.integers(8))))
                continue
            if kind == "variant":
                rows = hostile_array(NUMBERS[types.get("element_dtype", "float") if rng.integers(8) else "int32"], max(rank, 1), rng)
                inputs.append(tw.List(rows if rows.ndim else rows[None]))
                continue
            inputs += [hostile_array(NUMBERS[types.get(kind, kind)], rank, rng) for _ in range(rng.integers(1, 4) if n else 1)]
        attrs = {a: [NUMBERS[t]] if a in schema.lists else NUMBERS[t] for a, t in types.items()}
        attrs |= {a: hostile_attr(kind, rng) for a, kind in schema.attrs.items() if a in schema.needed or rng.integers(2)}
        attrs |= {n: len(inputs) - len(schema.inputs) + 1 for _, _, n in schema.inputs if n}
        how = str(rng.choice(tw.WAYS))
        where = f"{op} {[(x.dtype.name, shown(x)) for x in inputs]} {attrs} {how}"
        case(where)
        attempt = Attempt(op, inputs, how, attrs)
        try:
            attempt()
            answered += 1
        except tw.Error as error:
            unnamed = op not in str(error) and error.code_name not in ("RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED")  # a plan's memory is not one op's
            if unnamed or error.code_name in ("INTERNAL", "UNKNOWN"):
                cases.holds(where, False, f"{error.code_name}: {error}")
        if k % 8 == 0:
            cases.holds(f"after hostile {op}", attempt.goes_on())
        attempt.close()
    return answered


# ---- Valid uses with one fault ----

# Texts that a message may have instead of a name, a shape or the number.
ENOUGH = ["the list", "the table", "the stack", "the tensor array", "axis", "has more than", "is not a size", "no kernel for",
          "inputs but got", "the variable at input", "the variable is", "variable '", "is a variable", "is a scalar", "the accumulator",
          "the keys are", "the values are", " kept ", "function '", "for rank "]

# A variable that is declared with a shape takes only that shape; one without a shape takes any.
DECLARES = {"AssignVariableOp", "AssignVariables", "Assign"}


def verdict(op, inputs, attrs, how, timeout=None):
    """Returns the op's outputs, its error, or "it waits" after `timeout` seconds."""
    attempt = Attempt(op, flat(inputs), how, attrs, timeout)
    try:
        return attempt.results()
    except tw.Error as error:
        return "it waits" if error.code_name == "DEADLINE_EXCEEDED" else error
    finally:
        attempt.close()


def blamed(op, mutation, error):
    """Returns the fault of the message, or None. A message names the op, and an input, an attribute, a shape or the value. If several are
    incompatible, it may blame any of them."""
    text, about = str(error), tw.ops()[op]
    if error.code_name in ("INTERNAL", "UNKNOWN"):
        return f"{error.code_name}: {text}"
    if error.code_name == "RESOURCE_EXHAUSTED":  # a plan's memory is not one op's
        return None
    held = [x for x in flat(mutation.inputs) if isinstance(x, (tw.Variable, kept.Kept))]
    if any(state_of(x) == "not fed" or state_of(x) == "destroyed" and getattr(x, "through", None) for x in held):  # another node's error
        return None
    names = [x["name"] for x in about["inputs"] + about["attrs"]] + [str(list(np.shape(x))) for x in flat(mutation.inputs)]
    if f"{op} " not in text or not any(part in text for part in names + [str(mutation.value)] + ENOUGH):
        return f"'{text}' does not name {op} and what is wrong"
    return None


def flat(inputs):
    return [x for group in inputs for x in (group if isinstance(group, list) else [group])]


def judged(use, mutation, about):
    """Returns whether the fault was rejected, and the error of the verdict, or None."""
    ways = [how for how in tw.WAYS if how != "shaped" or use.op not in DECLARES]
    found = {how: verdict(use.op, mutation.inputs, mutation.attrs, how) for how in ways}
    if "it waits" in found.values() and any(v != "it waits" for v in found.values()):  # the machine may have been slow
        found |= {how: verdict(use.op, mutation.inputs, mutation.attrs, how, LATE) for how, v in found.items() if v == "it waits"}
    errors = {how: error for how, error in found.items() if isinstance(error, tw.Error)}
    problem = next((p for error in errors.values() if (p := blamed(use.op, mutation, error))), None)
    if errors and len(errors) < len(found):
        problem = problem or f"refused when {' '.join(errors)}, not when {' '.join(found.keys() - errors.keys())}: {[*errors.values()][0]}"
    if not errors and not about["stateful"] and any(found["fed"] != other for other in found.values()):
        problem = f"not the same in all ways: {found}"
    return bool(errors), problem


def mutated(op, drawn, seed):
    """Tries each single fault of the uses. All of tw.WAYS give the same verdict, so the shape rule and the kernel agree; after that the use
    itself has the same result as before. Returns how many were rejected."""
    rng = np.random.default_rng([seed, 1, *op.encode()])
    about, refused = tw.ops()[op], 0
    for use in drawn:
        case(use)
        before = verdict(op, use.inputs, use.attrs, "fed", LATE)
        for mutation in mutations(use, about, rng):
            where = f"{use}, {mutation.what}"
            case(where)
            wrong, problem = judged(use, mutation, about)
            refused += wrong
            cases.holds(where, not problem, problem)
        after = verdict(op, use.inputs, use.attrs, "fed", LATE)
        right = not isinstance(before, tw.Error) and not isinstance(after, tw.Error) or op in NEVER_RIGHT
        cases.holds(f"{use} after wrong ones", right and (about["stateful"] or before == after), f"{before}, then {after}")
    return refused


# ---- All of it ----

# Variables cannot be saved and restored whole, nor read before they are assigned.
NEVER_RIGHT = {"SaveResource", "RestoreResources", "Variable", "VariableV2"}


def runs_as(op):
    """Returns the op whose kernels run: the op itself or, if it takes references, the op that takes handles."""
    found = re.search(r"runs_as (\w+)", tw.ops()[op]["schema"])
    return found[1] if found else op


def keeps_other(op):
    """Returns whether the op makes or reads a resource other than a variable or list; alone, such an op may wait for ever."""
    about = tw.ops()[op]
    arguments = about["inputs"] + about["outputs"]
    named = any(a["name"] == "shared_name" for a in about["attrs"])  # the op finds its resource by name if it has no handle
    alone_by_name = named and not any(x.get("type") == "resource" or x.get("ref") for x in arguments)
    no_list = not about["outputs"] and [x.get("type") for x in arguments] == ["variant"]
    return bool(re.search(r"resource \w+ org\.", about["schema"])) or alone_by_name or no_list


def calls(op):
    return any(a["kind"] == "func" for a in tw.ops()[op]["attrs"])


def worker(count, seed):
    limit()
    answered = refused = 0
    ops = [op for op in tw.ops() if op not in FRAMEWORK and cases.takes(op)]
    for op in ops:
        declaration = declared().ops.get(op)
        schema = Schema(tw.ops()[op]["schema"], declared().given(op))
        wrong_use(op, schema)
        if op in FILES or runs_as(op) in FLOW:  # undeclared.py names their tests
            continue
        if calls(op) or keeps_other(runs_as(op)):  # hostile_kept_test.py
            continue
        answered += hostile(op, schema, count, seed)
        refused += mutated(op, uses(declaration, max(2, count // 16), seed) if declaration else [simple.simple_use(op)], seed)
    cases.holds("some of what is wrong is refused", refused > 10 * len(ops), refused)
    cases.holds("hostile inputs are not all refused", answered > 5 * count, answered)
    cases.finish()


if __name__ == "__main__":
    arguments = sys.argv[1:] or ["48", "0"]
    worker(int(sys.argv[2]), int(sys.argv[3])) if arguments[0] == "worker" else alone(__file__, *(arguments + ["0"])[:2])
