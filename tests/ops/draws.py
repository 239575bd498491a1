"""Draws uses of an op from its schema and declaration: types in turn, attributes, shapes, numbers. A declaration's own `draw` gets a Draw;
the result is a Use."""
import dataclasses
import itertools

import numpy as np

import domains
import missing
import tw
from schema import ALL, type_of

# Special shapes: scalar, empty, odd, with many axes. Other shapes are random.
SHAPES = [(), (1,), (0,), (7,), (33,), (0, 3), (3, 0, 2), (2, 3, 4), (17, 31), (1, 2, 1, 3, 1, 2, 1, 1, 2)]
SMOOTH = [(), (3,), (2, 3), (0, 3), (2, 1, 2)]
LARGE = [(70001,), (311, 257), (41, 43, 37), (3, 151, 13, 11)]  # large enough that threads share them


@dataclasses.dataclass
class Use:
    """One use of an op. inputs: an array each, or a list of arrays for an input of variable length. attrs: those without a default and
    those that were drawn. types: {attribute: name} for the schema's type attributes that are not lists."""
    op: str
    inputs: list
    attrs: dict
    types: dict

    @property
    def flat(self):
        return [x for group in self.inputs for x in (group if isinstance(group, list) else [group])]

    def __str__(self):
        arrays = [f"{x.dtype.names[0] if x.dtype.names else x.dtype.name}{list(x.shape)}" for x in self.flat]
        values = [f"{x.tolist()}" if x.dtype.kind in "iub" and x.size < 9 else "" for x in self.flat]
        plain = {a: v for a, v in self.attrs.items() if not isinstance(v, tw.TYPES)}
        return f"{self.op}({', '.join(a + v for a, v in zip(arrays, values))}) {plain or ''} {self.types or ''}"


class Draw:
    """A use that is being drawn. types: names by attribute. attrs: the attributes, to which `set` adds. It may have a special kind: edgy
    (element-wise ops get all special numbers), smooth (for gradients) or large (many elements)."""

    def __init__(self, declaration, about, types, rng, kind):
        self.declaration, self.about, self.types, self.rng = declaration, about, types, rng
        self.edgy, self.smooth, self.large = (kind == k for k in ("edgy", "smooth", "large"))
        self.inputs = {x["name"]: x for x in about["inputs"]}
        self.attrs = {a["name"]: self.attribute(a) for a in about["attrs"] if self.drawn(a)}

    def drawn(self, attr):
        if attr["name"] in self.declaration.attrs:
            return True
        return not attr.get("list") and (attr["kind"] == "bool" or attr["kind"] == "string" and "allowed" in attr)

    def attribute(self, attr):
        choices = self.declaration.attrs.get(attr["name"]) or attr.get("allowed") or [False, True]
        return choices(self) if callable(choices) else self.pick(*choices)

    def __call__(self, name, shape=None, of=None):
        """Returns an array for the input of that name, in the input's type: of that shape and the input's domain, or with the given values.
        If the input is a variable, the variable holds the array."""
        array = self.array(name, shape, of)
        return tw.Variable(array) if self.variable(name) else array

    def variable(self, name):
        about = self.inputs.get(name, {})
        return about.get("type") == "resource" or list(self.inputs).index(name) in tw.referred(self.declaration.op) if about else False

    def array(self, name, shape, of):
        dtype = self.dtype(name)
        if of is not None:
            return domains.rounded(of, dtype) if dtype.kind in "fcV" else np.asarray(of, dtype)
        return self.domain(name).array(self.rng, self.shape() if shape is None else tuple(shape), dtype, self.smooth)

    def domain(self, name):
        return self.declaration.domain_of(name, self.smooth)

    def dtype(self, name):
        """Returns NumPy's type of the input or type attribute; for a list of types, any of them."""
        about = self.inputs.get(name, {})
        kind = about.get("type") or self.types.get(about.get("type_attr", name))
        if kind == "resource":
            kind = self.types.get("dtype") or self.types.get("T")
        return tw.numpy_of(type_of(kind or self.pick("float", "int32", "string", "bool")))

    def shape(self, least=0, most=8, sizes=(0, 1, 1, 2, 3, 4, 5)):
        """Returns a shape of `least` to `most` axes: a special one, or one made of these sizes."""
        fits = [s for s in (SMOOTH if self.smooth else LARGE if self.large else SHAPES) if least <= len(s) <= most]
        if fits and (self.large or self.rng.integers(3)):
            return self.pick(*fits)
        most = min(most, max(least, 3 if self.smooth else 5))
        return tuple(int(s) for s in self.rng.choice([s for s in sizes if s or not self.smooth], self.rng.integers(least, most + 1)))

    def pick(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def integer(self, low, high):
        """Returns an integer from low to high, both included."""
        return int(self.rng.integers(low, high, endpoint=True))

    def axis(self, rank):
        """Returns one of `rank` axes, counted from the front or the back."""
        return self.integer(-rank, rank - 1)

    def set(self, **attrs):
        self.attrs.update(attrs)


# ---- Relations between inputs ----


def variadic(d, name):
    return "number_attr" in d.inputs[name]


def same(d):
    """Draws all inputs with one shape."""
    if d.edgy and (grid := edge_grid(d)):
        return grid
    shape = d.shape()
    return [[d(name, shape) for _ in range(d.integer(1, 4))] if variadic(d, name) else d(name, shape) for name in d.inputs]


def broadcast(d):
    """Draws inputs whose shapes broadcast to one."""
    if d.edgy and (grid := edge_grid(d)):
        return grid
    whole = d.shape()

    def partner():
        own = tuple(1 if d.integer(0, 2) == 0 else size for size in whole)
        return d.pick(whole, own, own[d.integer(0, len(own)):])

    return [d(name, partner()) for name in d.inputs]


def edge_grid(d):
    """Returns all combinations of the inputs' special numbers, one axis per input; None if there are too many inputs or no such numbers."""
    if len(d.inputs) > 2 or any(variadic(d, name) for name in d.inputs):
        return None
    found = [d.domain(name).special(d.dtype(name)) for name in d.inputs]
    if any(x is None for x in found):
        return None
    return [np.array(x.ravel()) for x in np.meshgrid(*found, indexing="ij")]


def reduced(d):
    """Draws data, and axes to reduce it over."""
    data, axes = d.inputs
    x = d(data)
    chosen = d.rng.permutation(x.ndim)[:d.integer(0, x.ndim)]
    return [x, d(axes, of=[a - x.ndim if d.integer(0, 1) else a for a in chosen])]


# ---- All of it ----


def allowed(declaration, attr):
    """Returns the names of the types that the attribute may have and that a kernel computes."""
    name = attr["name"]
    if name in declaration.types:
        return declaration.types[name].split()
    lacks = missing.types(declaration.op) | {t for types in declaration.no_kernel.values() for t in types.split()} | {"resource", "variant"}
    return [t for t in attr.get("allowed", ALL) if t not in lacks]


def type_choices(declaration, about, rng, kind):
    """Yields types for every type attribute, without end. The types of the first attribute come in turn, the others are random."""
    attrs = {a["name"]: allowed(declaration, a) for a in about["attrs"] if a["kind"] == "type" and not a["list"]}
    if kind == "smooth":
        wide = declaration.smooth_types.split()
        attrs = {a: [t for t in wide if t in types] or [t for t in ("float",) if t in types] or types for a, types in attrs.items()}
    turns = [itertools.cycle(types[k:] + types[:k]) for types in attrs.values() for k in [int(rng.integers(len(types)))]]
    while True:
        yield {a: next(turn) if i == 0 else str(rng.choice(types)) for i, (turn, (a, types)) in enumerate(zip(turns, attrs.items()))}


def uses(declaration, about, count, seed, kind):
    """Yields `count` uses. kind: a kind of Draw, or "", which starts with an edgy use for each combination of types."""
    rng = np.random.default_rng([seed, *kind.encode(), *declaration.op.encode()])
    met = set()
    for types in itertools.islice(type_choices(declaration, about, rng, kind), count):
        edgy = not kind and tuple(types.values()) not in met
        met.add(tuple(types.values()))
        d = Draw(declaration, about, types, rng, "edgy" if edgy else kind)
        inputs = declaration.draw(d)
        yield Use(declaration.op, inputs, d.attrs | implied(about, inputs, types), types)


def implied(about, inputs, types):
    """Returns the attributes that the inputs and types imply."""
    attrs = {a: type_of(t) for a, t in types.items()}
    for x, given in zip(about["inputs"], inputs):
        if "number_attr" in x:
            attrs[x["number_attr"]] = len(given)
        if "list_attr" in x:
            attrs[x["list_attr"]] = [g.dtype for g in given]
    return attrs
