"""Rules for names of tensors in files of weights, in both directions: {name here: name in the file}.

A star stands for any text, {i} for one part of a name, without '.' and '/', the same on both sides. `^T` after a name in the file swaps the
axes of a matrix, `^(2,3,1,0)` puts the axes in that order: axis k here is that axis of the file's tensor."""
import re
from collections.abc import Callable, Mapping
from typing import Optional, TypeVar

from ._stored import some
from .errors import InvalidArgumentError, NotFoundError

T = TypeVar("T")

_HOLE = re.compile(r"(\*|\{[A-Za-z_][A-Za-z0-9_]*\})")
_ORDER = re.compile(r"\^(?:(T)|\(([0-9, ]*)\))$")
_STAR = "star"


class _Side:
    """One side of a rule."""

    def __init__(self, text: str):
        self.text, self._parts = text, _HOLE.split(text)
        holes = [p for p in self._parts[1::2]]
        if holes.count("*") > 1:
            raise ValueError(f"names: '{text}' has more than one star; use {{i}} for parts of a name")
        self.holes = set(holes)
        known: set[str] = set()
        pattern = ""
        for i, part in enumerate(self._parts):
            if i % 2 == 0:
                pattern += re.escape(part)
            elif part in known:
                pattern += f"(?P={self._group(part)})"
            else:
                known.add(part)
                pattern += f"(?P<{self._group(part)}>{'.*' if part == '*' else '[^./]+'})"
        self._pattern = re.compile(pattern, re.S)

    @staticmethod
    def _group(hole: str) -> str:
        return _STAR if hole == "*" else "hole_" + hole[1:-1]

    def match(self, name: str) -> Optional[dict[str, str]]:
        """Returns the texts that stand for the holes, or None if the name does not fit."""
        found = self._pattern.fullmatch(name)
        return None if found is None else {hole: found.group(self._group(hole)) for hole in self.holes}

    def filled(self, texts: Mapping[str, str]) -> str:
        return "".join(part if i % 2 == 0 else texts[part] for i, part in enumerate(self._parts))


class Order:
    """How axes here follow from those in the file. axes: None swaps those of a matrix."""

    def __init__(self, axes: Optional[tuple[int, ...]] = None):
        self._axes = axes

    def axes(self, rank: int, name: str, back: bool) -> tuple[int, ...]:
        """Returns the order of axes for a tensor of that rank. back: from here to the file."""
        wanted = 2 if self._axes is None else len(self._axes)
        if rank != wanted:
            raise InvalidArgumentError(f"'{name}' has {rank} axes; the rule in `names` reorders {wanted}")
        axes = self._axes or (1, 0)
        return tuple(axes.index(k) for k in range(rank)) if back else axes


class _Rule:
    def __init__(self, here: str, there: str):
        if not isinstance(here, str) or not isinstance(there, str):
            raise TypeError(f"names must be texts by text, not {here!r}: {there!r}")
        self.order: Optional[Order] = None
        order = _ORDER.search(there)
        if order:
            there = there[:order.start()]
            self.order = Order() if order[1] else Order(_axes(order[2], there))
        if "^" in there or "^" in here:
            raise ValueError(f"names: '{here}': '{there}' has a ^ that is neither ^T nor ^(2,3,1,0) at the end of the name in the file")
        self.here, self.there = _Side(here), _Side(there)
        if self.here.holes != self.there.holes:
            raise ValueError(f"names: '{here}' and '{there}' must have the same holes, and have {sorted(self.here.holes)} and "
                             f"{sorted(self.there.holes)}")


def _axes(text: str, name: str) -> tuple[int, ...]:
    axes = tuple(int(part) for part in text.split(",") if part.strip())
    if sorted(axes) != list(range(len(axes))) or not axes:
        raise ValueError(f"names: '{name}^({text})' must name each axis once, from 0 on")
    return axes


class Rules:
    """All rules of a call. Rules with the same name in the file apply together, so one tensor may get several names here; otherwise the
    first rule that fits a name wins, and a name that no rule fits stays."""

    def __init__(self, names: Optional[Mapping[str, str]]):
        self._rules = [_Rule(here, there) for here, there in (names or {}).items()]

    def here(self, found: Mapping[str, T], reorder: Callable[[str, T, Order], T], file: str) -> dict[str, T]:
        """Returns the tensors of a file by their names here."""
        out: dict[str, T] = {}
        for name, tensor in found.items():
            first = next((r for r in self._rules if r.there.match(name) is not None), None)
            rules = [r for r in self._rules if r.there.text == first.there.text] if first else []
            for new, order in [(r.here.filled(r.there.match(name) or {}), r.order) for r in rules] or [(name, None)]:
                if new in out:
                    raise InvalidArgumentError(f"'{file}': two tensors would be named '{new}'; the second is '{name}'")
                out[new] = reorder(name, tensor, order) if order else tensor
        missing = sorted({r.there.text for r in self._rules if not r.there.holes} - found.keys())
        if missing:
            raise NotFoundError(f"'{file}' has no tensor {some(missing, 100)}; it has {some(found)}")
        return out

    def there(self, arrays: Mapping[str, T], reorder: Callable[[str, T, Order], T]) -> dict[str, T]:
        """Returns tensors by their names in a file. Of several names here for one name there, the first is written."""
        out: dict[str, T] = {}
        written: dict[str, bool] = {}  # whether a rule made the name
        for name, tensor in arrays.items():
            rule = next((r for r in self._rules if r.here.match(name) is not None), None)
            new = rule.there.filled(rule.here.match(name) or {}) if rule else name
            if new in written and not (rule and written[new]):
                raise ValueError(f"two tensors would be written as '{new}'; the second is '{name}'")
            if new not in written:
                out[new] = reorder(name, tensor, rule.order) if rule and rule.order else tensor
            written[new] = rule is not None
        return out
