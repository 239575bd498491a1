"""Uses of an op with one fault, made from a valid use: another rank, type or size, no elements, a number that does not fit, an attribute
out of range, too many or too few inputs. Some are valid nevertheless."""
import dataclasses

import numpy as np

import called
import domains
import kept
import tw
from attempts import Spoilt, state_of
from schema import ALL, type_of

LOW, HIGH = -2**63, 2**63 - 1
NUMBERS = [LOW, LOW + 1, -2**32, -2**31 - 1, -2**31, -100, -2, -1, 0, 1, 2, 100, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, HIGH]
SIZES = [0, 1, 2, 3, 4, 5]


@dataclasses.dataclass
class Mutation:
    """A use with one fault. what: the fault in words; name: the input or attribute; value: the wrong number, if the fault is a number."""
    what: str
    name: str
    inputs: list
    attrs: dict
    value: int | None = None


def replaced(use, k, array):
    """Returns the inputs with another array in place of input k or, if input k is a list, of one of its arrays."""
    inputs = list(use.inputs)
    inputs[k] = [array, *inputs[k][1:]] if isinstance(inputs[k], list) else array
    return inputs


def handle_mutations(use, k, name, rng):
    """Mutations of a handle or reference of a variable: the variable does not exist, or holds another value."""
    group = use.inputs[k]
    x = group[0] if isinstance(group, list) else group
    held = dataclasses.replace(use, inputs=use.inputs[:k] + [x.array] + use.inputs[k + 1:])
    found = [(m.what, tw.Variable(m.inputs[k])) for m in input_mutations(held, k, name, rng)]
    found += [(f"'{name}' holds {dtype.__name__}", tw.Variable(np.zeros(x.shape, dtype))) for dtype in (np.int32, np.float64, np.bool_)]
    spoilt = [tw.Variable(x.array, set=False)] + [Spoilt(x.array, state=state) for state in ("destroyed", "not fed")]
    found += [(f"'{name}' is {state_of(v)}", v) for v in spoilt]
    found += [(f"'{name}' is input {j} too", y) for j, y in enumerate(use.inputs) if j != k and isinstance(y, tw.Variable)]
    for what, variable in found:
        yield Mutation(what, name, replaced(use, k, variable), use.attrs)


def kept_mutations(use, k, name):
    """Mutations of a handle of another resource: the resource is destroyed, empty, closed, of other types, or of another kind."""
    for what, x in kept.spoilt(use.inputs[k]):
        yield Mutation(f"'{name}' is {what}", name, replaced(use, k, x), use.attrs)


def list_mutations(use, k, name, rng):
    """Mutations of a list: other lists."""
    x = use.inputs[k]
    held = dataclasses.replace(use, inputs=use.inputs[:k] + [x.array] + use.inputs[k + 1:])
    found = [(m.what, m.inputs[k]) for m in input_mutations(held, k, name, rng) if m.inputs[k].ndim]
    found += [(f"'{name}' holds {dtype.__name__}", np.zeros(x.shape, dtype)) for dtype in (np.int32, np.float64, np.bool_)]
    for what, rows in found:
        yield Mutation(what, name, replaced(use, k, tw.List(rows)), use.attrs)


def input_mutations(use, k, name, rng):
    x = use.inputs[k]
    if isinstance(x, list):
        if not x:
            return
        x = x[-1] if rng.integers(2) else x[0]

    def made(what, array, value=None):
        return Mutation(what, name, replaced(use, k, array), use.attrs, value)

    yield made(f"an axis more of '{name}'", x[None])
    yield made(f"an axis of 2 more of '{name}'", np.stack([x, x], -1))
    if x.ndim:
        axis = int(rng.integers(x.ndim))
        yield made(f"an axis fewer of '{name}'", np.asarray(x[0], x.dtype) if len(x) else blank(x.shape[1:], x.dtype))
        yield made(f"another size of '{name}'", resized(x, axis, int(rng.choice([s for s in SIZES if s != x.shape[axis]]))))
        yield made(f"no elements in '{name}'", resized(x, axis, 0))
        yield made(f"a scalar '{name}'", np.asarray(x.reshape(-1)[0], x.dtype) if x.size else blank((), x.dtype))
    if x.dtype.kind in "iu" and x.size:
        info = np.iinfo(x.dtype)
        for value in rng.choice([v for v in NUMBERS if info.min <= v <= info.max], 4).tolist():
            changed = np.array(x)
            changed[tuple(int(rng.integers(s)) for s in x.shape)] = value
            yield made(f"{value} in '{name}'", changed, value)
    if x.dtype.kind == "f" and x.size:
        yield made(f"special numbers in '{name}'", np.resize(np.array([np.nan, np.inf, -np.inf], x.dtype), x.shape))


def resized(x, axis, size):
    shape = x.shape[:axis] + (size,) + x.shape[axis + 1:]
    return np.resize(x, shape) if x.size else blank(shape, x.dtype)


def blank(shape, dtype):
    return np.full(shape, b"", object) if dtype.kind == "O" else np.zeros(shape, dtype)


def retyped(use, about, k, rng):
    """Mutations that give an input another type, which the schema may or may not allow, with or without matching attributes."""
    name = about["inputs"][k]["name"]
    x = use.inputs[k][0] if isinstance(use.inputs[k], list) and use.inputs[k] else use.inputs[k]
    if isinstance(x, list):
        return
    kind = str(rng.choice([t for t in ALL if t != "string"]))
    dtype = tw.numpy_of(type_of(kind))
    array = domains.whole(0, 1).array(rng, x.shape, dtype)
    implied = {x.get("type_attr") for x in about["inputs"]} if rng.integers(2) else set()
    yield Mutation(f"'{name}' of type {kind}", name, replaced(use, k, array), {a: v for a, v in use.attrs.items() if a not in implied})


def attr_mutations(use, attr, rng):
    name, kind = attr["name"], attr["kind"]
    old = use.attrs.get(name, attr.get("default"))

    def made(value):
        return Mutation(f"{name} is {value}", name, use.inputs, use.attrs | {name: value}, value if isinstance(value, int) else None)

    if kind == "int" and attr.get("list") and isinstance(old, list):
        at = int(rng.integers(len(old))) if old else 0
        for value in rng.choice(NUMBERS, 3).tolist():
            yield made(old[:at] + [value] + old[at + 1:])
        yield made(old[:-1])
        yield made(old + old[-1:])
        yield made(old * 9)
    elif kind == "int" and not attr.get("list"):
        for value in rng.choice(NUMBERS, 4).tolist():
            yield made(value)
    elif kind == "float" and not attr.get("list"):
        for value in (float("nan"), float("inf"), -1.0, 0.0, 1e38):
            yield made(value)
    elif kind == "string" and not attr.get("list"):
        yield made("elsewhere")
    elif kind == "shape" and not attr.get("list"):
        yield made((HIGH, 2))
        yield made((-1, 2**40, 2**40))
    elif kind == "shape" and isinstance(old, list) and use.op not in called.OPS:  # shapes of function results; the plan may know more
        for shape in (None, (), (-1,), (3,), (HIGH, 2)):
            yield made([shape, *old[1:]])
        yield made(old + [(2,)])
    elif kind == "func":
        for function in called.OTHERS:
            yield made([tw.Func(function), *old[1:]] if attr.get("list") else tw.Func(function))


def counts(use, about, rng):
    """Mutations with more and fewer inputs in a list of variable length, and with a wrong count."""
    for k, x in enumerate(about["inputs"]):
        group = use.inputs[k]
        if not isinstance(group, list) or not group:
            continue
        another = group[0] if isinstance(group[0], tw.Variable) else group[0][None]
        for changed in (group[:-1], group + group[-1:], group + [another]):
            count = {x["number_attr"]: len(changed)} if "number_attr" in x else {x["list_attr"]: [g.dtype for g in changed]}
            yield Mutation(f"{len(changed)} times '{x['name']}'", x["name"], use.inputs[:k] + [changed] + use.inputs[k + 1:], use.attrs | count)
        if "number_attr" in x:
            yield Mutation(f"{x['number_attr']} is not the number of '{x['name']}'", x["name"], use.inputs,
                           use.attrs | {x["number_attr"]: len(group) + int(rng.choice([-1, 1, HIGH - 99]))})


def mutations(use, about, rng):
    """Yields all mutations, in no particular order."""
    for k, x in enumerate(about["inputs"]):
        if isinstance(use.inputs[k], kept.Kept):
            yield from kept_mutations(use, k, x["name"])
            continue
        if x.get("type") == "resource" or k in tw.referred(use.op):
            yield from handle_mutations(use, k, x["name"], rng)
            continue
        if x.get("type") == "variant":
            yield from list_mutations(use, k, x["name"], rng)
            continue
        yield from input_mutations(use, k, x["name"], rng)
        yield from retyped(use, about, k, rng)
    for attr in about["attrs"]:
        yield from attr_mutations(use, attr, rng)
    yield from counts(use, about, rng)
