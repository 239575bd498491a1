"""Elements of datasets: values, tuples and dicts of values, as the flat lists of components that the ops have."""
from collections.abc import Callable, Sequence
from typing import Any, Optional

from .dtypes import DType, as_dtype
from .output import Output, shape_text

Shape = Optional[tuple[Optional[int], ...]]
Part = tuple[DType, Shape]


class Spec:
    """What an element is. parts: type and shape of each component, flat.   structure: None for a single value, else a tuple or dict whose
    leaves are None.   inner: for components that are datasets, what their elements are; None for others."""

    def __init__(self, parts: Sequence[Part], structure: Any, inner: "Optional[list[Optional[Spec]]]" = None):
        self.parts, self.structure, self.inner = list(parts), structure, inner

    @classmethod
    def of_values(cls, values: Sequence[Output], like: Any) -> "Spec":
        return cls([(v.dtype, v.shape) for v in values], _emptied(like))

    @classmethod
    def of_types(cls, types: Any, shapes: Any) -> "Spec":
        kinds = [as_dtype(t) for t in flat(types)]
        spec = cls([(t, None) for t in kinds], _emptied(types))
        return spec if shapes is None else spec.with_shapes(shapes)

    @classmethod
    def tuple_of(cls, specs: "Sequence[Spec]") -> "Spec":
        return cls([p for s in specs for p in s.parts], tuple(s.structure for s in specs))

    @property
    def types(self) -> list[DType]:
        return [t for t, _ in self.parts]

    @property
    def shapes(self) -> list[Any]:
        return [None if s is None else [-1 if d is None else d for d in s] for _, s in self.parts]

    def ranked(self, what: str) -> list[tuple[Optional[int], ...]]:
        for k, (_, s) in enumerate(self.parts):
            if s is None:
                raise ValueError(f"{what}: the rank of component {k} is not known; give `shapes`")
        return [s or () for _, s in self.parts]

    def stacked(self, size: Optional[int]) -> "Spec":
        return Spec([(t, None if s is None else (size, *s)) for t, s in self.parts], self.structure)

    def rows(self) -> "Spec":
        for k, (_, s) in enumerate(self.parts):
            if s == ():
                raise ValueError(f"component {k} is a scalar, which has no rows")
        return Spec([(t, None if s is None else s[1:]) for t, s in self.parts], self.structure)

    def datasets(self) -> "Spec":
        return Spec([(as_dtype("variant"), ())] * len(self.parts), self.structure, [Spec([p], None) for p in self.parts])

    def with_shapes(self, shapes: Any) -> "Spec":
        one = self.structure is None
        given = [shapes] if one else _children(shapes, self.structure)
        if len(given) != len(self.parts):
            raise ValueError(f"there are {len(given)} shapes for {len(self.parts)} components")
        return Spec([(t, None if s is None else tuple(s)) for (t, _), s in zip(self.parts, given)], self.structure)

    def element(self, values: list[Any], graph: Any, dataset: Callable[[Output, "Spec"], Any]) -> Any:
        """The element of these components. Components that are datasets become Datasets."""
        if self.inner is not None:
            values = [v if s is None else dataset(v, s) for v, s in zip(values, self.inner)]
        return packed(values, self)


def _emptied(x: Any) -> Any:
    if isinstance(x, dict):
        return {k: _emptied(v) for k, v in x.items()}
    return tuple(_emptied(v) for v in x) if isinstance(x, tuple) else None


def _children(x: Any, structure: Any) -> list[Any]:
    """The leaves of x, which has this structure and whose leaves may be tuples themselves."""
    if structure is None:
        return [x]
    if isinstance(structure, dict):
        if not isinstance(x, dict) or set(x) != set(structure):
            raise ValueError(f"{x!r} must be a dict with the keys {', '.join(map(repr, structure))}")
        return [leaf for k in structure for leaf in _children(x[k], structure[k])]
    if not isinstance(x, (tuple, list)) or len(x) != len(structure):
        raise ValueError(f"{x!r} must be a tuple of {len(structure)}")
    return [leaf for v, s in zip(x, structure) for leaf in _children(v, s)]


def flat(x: Any, spec: Optional[Spec] = None, what: str = "") -> list[Any]:
    """The leaves of an element; with a spec, those of an element of that structure."""
    if spec is not None:
        try:
            return _children(x, spec.structure)
        except ValueError as e:
            raise ValueError(f"{what}: {e}") from None
    return _children(x, _emptied(x))


def packed(values: list[Any], spec: Optional[Spec]) -> Any:
    """The element of a spec's structure with these leaves."""
    left = iter(values)

    def build(structure: Any) -> Any:
        if isinstance(structure, dict):
            return {k: build(s) for k, s in structure.items()}
        return tuple(build(s) for s in structure) if isinstance(structure, tuple) else next(left)
    return build(None if spec is None else spec.structure)


def joined(a: Spec, b: Spec) -> Spec:
    """What fits both: their common sizes."""
    if a.types != b.types or a.structure != b.structure:
        raise TypeError(f"elements are {spec_text(a)} and {spec_text(b)}; both datasets must have elements of the same types and structure")

    def meet(s: Shape, t: Shape) -> Shape:
        if s is None or t is None or len(s) != len(t):
            return None
        return tuple(x if x == y else None for x, y in zip(s, t))
    return Spec([(t, meet(s, u)) for (t, s), (_, u) in zip(a.parts, b.parts)], a.structure)


def spec_of(spec: Spec) -> Any:
    return packed([(t, s) for t, s in spec.parts], spec)


def spec_text(spec: Spec) -> str:
    leaves = [f"{t.name} {shape_text(s)}" for t, s in spec.parts]
    return leaves[0] if spec.structure is None else str(packed(leaves, spec)).replace("'", "")
