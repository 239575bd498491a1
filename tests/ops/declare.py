"""Declarations of ops. They are in FAMILY/GROUP.py beside this file, with the name of the op's own file in ops/. README.md describes how to
write one."""
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
    draw(d): the inputs of one use; see draws.Draw.   also: more such functions, for code that only certain sizes or values reach.
    domain: of all inputs, or by name.   attrs: the values from which attributes are drawn, by name.
    ulps: the largest error of results, in units in the last place of the result's type; of 16-bit types: half_ulps.
    zero_signs: whether zeros must have the oracle's sign.   denormals: whether results below the smallest normal number must be right; else
    they may be anything as small.   types: the types from which a type attribute is drawn, if fewer than in the schema.
    smooth, smooth_types: domains and types while gradients are checked.   wrt: names of the inputs to differentiate for, where not all.   second: whether the
    second derivative is checked; False needs `why`.   given: attributes without a default, for a graph without shapes.
    no_oracle, no_gradient: the reason why there is none.   asks: the attributes that the oracle gets, if it does not name them itself.
    no_kernel: {reason: types that the schema allows and no kernel computes}."""
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
    """All declarations: ops by name, and cases with inputs of their own, each (op, inputs, ..., attributes)."""
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
    """Declares one op, or several separated by blanks. more: fields of Declaration; the domain of one input is domain=dict(NAME=...)."""
    for name in names.split():
        if name in book.ops:
            raise ValueError(f"{name} is declared twice")
        book.ops[name] = Declaration(name, oracle, draw, family=book.family, **more)


def expect(op, inputs, wanted, tolerance=None, **attrs):
    """Declares a use of an op with these outputs, like cases.expect."""
    book.expected.append((op, inputs, wanted, tolerance, attrs))


def refuses(op, inputs, *parts, **attrs):
    """Declares a use of an op that fails, while the graph is built or while it runs, with an error that contains all the parts and the
    names of the op and the node."""
    book.refused.append((op, inputs, parts, attrs))


def accepts(op, inputs, wanted, **attrs):
    """Declares a use that looks wrong but is valid. wanted: its first output."""
    expect(op, inputs, [wanted], **attrs)


def slope(op, *inputs, **more):
    """Declares a use whose gradient is checked against central differences, like gradient.check."""
    book.sloped.append((op, inputs, more))


@functools.cache
def declared(family=None):
    """Returns all declarations, or those of one family. `unknown` has the declared names that are no ops, `broken` the files that cannot be
    read."""
    for name in [family] if family else FAMILIES:
        for path in sorted((HERE / name).glob("*.py")):
            book.family = name
            spec = importlib.util.spec_from_file_location(f"{name}.{path.stem}", path)
            try:
                spec.loader.exec_module(importlib.util.module_from_spec(spec))
            except Exception as error:  # becomes a failed case of that family's test only
                book.broken[f"{name}/{path.name}"] = error
    for name in [name for name in book.ops if name not in tw.ops()]:
        book.unknown[name] = book.ops.pop(name)
    for cases in (book.expected, book.refused, book.sloped):
        cases[:] = [case for case in cases if case[0] not in book.unknown]
    return book


LEAST, SMOOTH, LARGE = 30, 6, 2  # numbers of uses of each op: for its oracle, for its gradient, with many elements


def allowed(declaration):
    """Returns {type attribute: names of the types from which uses are drawn}."""
    return {a["name"]: draws.allowed(declaration, a) for a in tw.ops()[declaration.op]["attrs"] if a["kind"] == "type" and not a["list"]}


def count(declaration, least=LEAST):
    """Returns how many uses are compared with the oracle: `least`, or three for each type if that is more."""
    return max(least, 3 * max(map(len, allowed(declaration).values()), default=0))


def others(declaration, seed=0):
    """Yields one use for each type of each draw in `also`."""
    types = max(map(len, allowed(declaration).values()), default=1)
    for k, draw in enumerate(declaration.also):
        yield from uses(dataclasses.replace(declaration, draw=draw), types, seed, f"also {k}")


def uses(declaration, count, seed=0, kind=""):
    """Returns `count` drawn uses of the op, like draws.uses."""
    return draws.uses(declaration, tw.ops()[declaration.op], count, seed, kind)
