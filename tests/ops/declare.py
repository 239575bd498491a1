"""What a declaration of an op says, and where declarations lie: FAMILY/GROUP.py beside this file, named as the op's own file in ops/ is.
README.md tells how to write one."""
import dataclasses
import functools
import importlib.util
import inspect
import pathlib
import types
import typing

import draws
import tw
from domains import Domain, normal
from draws import broadcast, reduced, same  # noqa: F401 - for declarations

HERE = pathlib.Path(__file__).parent
FAMILIES = sorted(path.name for path in HERE.iterdir() if path.is_dir() and any(path.glob("*.py")))


@dataclasses.dataclass
class Declaration:
    """oracle(*inputs, **attributes that it names): the outputs, from inputs in extended precision; one array, or a list of them.
    draw(d): the inputs of one use; see draws.Draw.   also: more such, for what only certain sizes or values reach.
    domain: of all inputs, or by name.   attrs: what attributes are drawn from, by name.
    ulps: how far results may be off, in units in the last place of the result's type; 16-bit ones: half_ulps.
    zero_signs: whether zeros must have the oracle's sign.   denormals: whether results below the smallest normal number must be right; else
    they may be anything as small.   types: what a type attribute is drawn from, where that is less than the schema.
    smooth, smooth_types: domains and types while gradients are checked.   wrt: names of the inputs to differentiate for, where not all.   second: whether the
    second derivative is checked; False needs `why`.   given: attributes without a default, for a graph without shapes.
    no_oracle, no_gradient: why there is none.   asks: the attributes that the oracle gets, if it does not name them itself.   no_kernel: {why: types}, what the schema allows and nothing computes."""
    op: str
    oracle: typing.Callable | None
    draw: typing.Callable
    domain: dict | Domain = normal
    attrs: dict = dataclasses.field(default_factory=dict)
    ulps: float = 0.5
    half_ulps: float | None = None
    zero_signs: bool = True
    denormals: bool = True
    types: dict = dataclasses.field(default_factory=dict)
    smooth: dict | Domain | None = None
    smooth_types: str = "double complex128"
    wrt: tuple | None = None
    second: bool = True
    why: str = ""
    given: dict = dataclasses.field(default_factory=dict)
    no_oracle: str = ""
    no_gradient: str = ""
    no_kernel: dict = dataclasses.field(default_factory=dict)
    family: str = ""
    asks: list | None = None
    also: tuple = ()

    def __post_init__(self):
        ours = isinstance(self.oracle, types.FunctionType) and not self.oracle.__module__.startswith("numpy")
        parameters = inspect.signature(self.oracle).parameters.values() if ours else ()
        if self.asks is None:
            self.asks = [p.name for p in parameters if p.kind == p.KEYWORD_ONLY and p.default is p.empty]
        if not (self.oracle or self.no_oracle) or not (self.second or self.why):
            raise ValueError(f"{self.op}: neither an oracle nor why there is none, or a second derivative left out without a reason")

    def domain_of(self, name, smooth=False):
        found = self.smooth if smooth and self.smooth else self.domain
        return found if isinstance(found, Domain) else found.get(name, normal)


@dataclasses.dataclass
class Book:
    """What was declared: ops by name; then cases with inputs of their own, as (op, inputs, ..., attributes)."""
    ops: dict = dataclasses.field(default_factory=dict)
    expected: list = dataclasses.field(default_factory=list)
    refused: list = dataclasses.field(default_factory=list)
    sloped: list = dataclasses.field(default_factory=list)
    unknown: dict = dataclasses.field(default_factory=dict)
    broken: dict = dataclasses.field(default_factory=dict)
    family: str = ""

    def given(self, op):
        return self.ops[op].given if op in self.ops else {}


book = Book()


def op(names, oracle, draw=same, **more):
    """Declares ops, one or several separated by blanks. more: as Declaration; NAME=domain is not among them, domain=dict(NAME=...) is."""
    for name in names.split():
        if name in book.ops:
            raise ValueError(f"{name} is declared twice")
        book.ops[name] = Declaration(name, oracle, draw, family=book.family, **more)


def expect(op, inputs, wanted, tolerance=None, **attrs):
    """A use of an op whose outputs are these, as cases.expect."""
    book.expected.append((op, inputs, wanted, tolerance, attrs))


def refuses(op, inputs, *parts, **attrs):
    """A use of an op that fails, while the graph is built or while it runs, with an error that says all the parts besides the op's and the
    node's name."""
    book.refused.append((op, inputs, parts, attrs))


def accepts(op, inputs, wanted, **attrs):
    """A use that looks wrong and is not. wanted: its first output."""
    expect(op, inputs, [wanted], **attrs)


def slope(op, *inputs, **more):
    """A use whose gradient is checked against central differences, as gradient.check."""
    book.sloped.append((op, inputs, more))


@functools.cache
def declared(family=None):
    """All of it, or one family's. What is declared and is no op is in `unknown`, files that cannot be read in `broken`."""
    for name in [family] if family else FAMILIES:
        for path in sorted((HERE / name).glob("*.py")):
            book.family = name
            spec = importlib.util.spec_from_file_location(f"{name}.{path.stem}", path)
            try:
                spec.loader.exec_module(importlib.util.module_from_spec(spec))
            except Exception as error:  # a failed case of that family's test, and of no other
                book.broken[f"{name}/{path.name}"] = error
    for name in [name for name in book.ops if name not in tw.ops()]:
        book.unknown[name] = book.ops.pop(name)
    for cases in (book.expected, book.refused, book.sloped):
        cases[:] = [case for case in cases if case[0] not in book.unknown]
    return book


LEAST, SMOOTH, LARGE = 30, 6, 2  # uses of each op: against its oracle, for its gradient, of many elements


def allowed(declaration):
    """{type attribute: names of types} that uses are drawn from."""
    return {a["name"]: draws.allowed(declaration, a) for a in tw.ops()[declaration.op]["attrs"] if a["kind"] == "type" and not a["list"]}


def count(declaration, least=LEAST):
    """How many uses are compared with the oracle: so many, or three for each type if that is more."""
    return max(least, 3 * max(map(len, allowed(declaration).values()), default=0))


def others(declaration, seed=0):
    """One use for each type of each draw that the declaration has besides."""
    types = max(map(len, allowed(declaration).values()), default=1)
    for k, draw in enumerate(declaration.also):
        yield from uses(dataclasses.replace(declaration, draw=draw), types, seed, f"also {k}")


def uses(declaration, count, seed=0, kind=""):
    """`count` drawn uses of the op, as draws.uses."""
    return draws.uses(declaration, tw.ops()[declaration.op], count, seed, kind)
