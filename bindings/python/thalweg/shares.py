"""Positions of trainers in a data service of mode "exactly_once": which splits of an epoch a trainer reads, and how far it is.

An epoch consists of splits 0 to splits - 1, in an order that follows from seed and epoch. The trainers deal the splits out among themselves:
trainer t of T reads those at the places t, t + T, ... of the order. A position counts the elements that the program has taken of each split,
and a split gives equal elements in equal order whoever reads it. So a position depends neither on the readers nor on what was computed
ahead. When the number of trainers changes, the positions of all trainers together say what is left of each split, and that is dealt out
anew.

This module computes with numbers alone. Threads: values, not shared."""
import dataclasses
import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any, Optional

_DONE = -1  # as the count of a split: all of it was taken
_FORMAT = 1
_MOST = 1 << 53  # the largest number in a position
MOST_SEED = _MOST  # and its negative
MOST_SPLITS = 1 << 22  # of an epoch: each trainer sorts them

Counts = dict[int, int]  # by split: elements taken, or _DONE; splits of which none was taken are left out


def order(splits: int, seed: Optional[int], epoch: int) -> list[int]:
    """The splits in the order of an epoch. seed: None: by their numbers in every epoch."""
    numbers = range(splits)
    if seed is None:
        return list(numbers)
    start = b"%d %d " % (seed, epoch)
    return sorted(numbers, key=lambda s: hashlib.sha256(start + b"%d" % s).digest())


@dataclasses.dataclass
class Place:
    """Where a trainer is. dataset: identifies the pipeline and how it is split.   begun: how many splits of the share were begun.
    open: splits that were begun and have not ended, in their turns, with the number of elements taken.   turn: index in `open` of the one
    that gives the next element.   carried: by epoch: what had been taken when the number of trainers last changed; equal in all trainers."""
    dataset: str
    splits: int
    seed: Optional[int]
    trainer: int
    trainers: int
    epoch: int = 0
    begun: int = 0
    open: list[list[int]] = dataclasses.field(default_factory=list)
    turn: int = 0
    carried: dict[int, Counts] = dataclasses.field(default_factory=dict)

    def share(self, epoch: int) -> list[tuple[int, int]]:
        """The splits that this trainer reads in an epoch, each with the number of elements that were taken of it before."""
        before = self.carried.get(epoch, {})
        left = [s for s in order(self.splits, self.seed, epoch) if before.get(s) != _DONE]
        return [(s, before.get(s, 0)) for s in left[self.trainer::self.trainers]]

    def at(self, epoch: int) -> "Place":
        """The place before the first element of an epoch."""
        return dataclasses.replace(self, epoch=epoch, begun=0, open=[], turn=0)

    def taken(self, epoch: int) -> Counts:
        """What has been taken of this trainer's share of an epoch."""
        share = self.share(epoch)
        if epoch > self.epoch:
            return {}
        if epoch < self.epoch:
            return {s: _DONE for s, _ in share}
        still = {s: n for s, n in self.open}
        return {s: still.get(s, _DONE) for s, _ in share[:self.begun]}

    # ---- As bytes ----

    def to_bytes(self) -> bytes:
        """The position as bytes, for from_bytes."""
        record = dataclasses.asdict(self)
        record["carried"] = [[e, sorted(counts.items())] for e, counts in sorted(self.carried.items())]
        return json.dumps({"thalweg.data_service": _FORMAT, **record}, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Place":
        """Reads a position, which may be damaged or of another kind. Raises ValueError saying why it is none."""
        try:
            record = json.loads(bytes(data))
        except (ValueError, RecursionError) as e:
            raise ValueError(f"the bytes are no position of a data service: {e}") from None
        if not isinstance(record, dict) or record.pop("thalweg.data_service", None) != _FORMAT:
            raise ValueError("the bytes are no position of a data service, or one of another version")
        names = {f.name for f in dataclasses.fields(cls)}
        if set(record) != names:
            raise ValueError(f"the position has {', '.join(sorted(set(record) ^ names))} too many or too few")
        seed = record["seed"]
        place = cls(_text(record, "dataset"), _number(record["splits"], "splits", 1, MOST_SPLITS),
                    None if seed is None else _number(seed, "seed", -MOST_SEED), _number(record["trainer"], "trainer"),
                    _number(record["trainers"], "trainers", 1), _number(record["epoch"], "epoch"), _number(record["begun"], "begun"), [],
                    _number(record["turn"], "turn"))
        for entry in _list(record["carried"], "carried"):
            epoch, counts = _pair(entry, "carried")
            place.carried[_number(epoch, "carried")] = place._counts(counts)
        place._set_open(record["open"])
        return place

    def _counts(self, pairs: Any) -> Counts:
        found: Counts = {}
        for entry in _list(pairs, "carried"):
            split, count = _pair(entry, "carried")
            found[_number(split, "carried", 0, self.splits - 1)] = _number(count, "carried", _DONE)
        return found

    def _set_open(self, pairs: Any) -> None:
        share = self.share(self.epoch)
        if self.trainer >= self.trainers or self.begun > len(share):
            raise ValueError(f"the position has begun {self.begun} splits of trainer {self.trainer} of {self.trainers}, whose share is "
                             f"{len(share)}; it is damaged")
        begun = {s for s, _ in share[:self.begun]}
        for entry in _list(pairs, "open"):
            split, count = _pair(entry, "open")
            if _number(split, "open") not in begun:
                raise ValueError(f"the position has the split {split!r} open, which it has not begun, or twice; it is damaged")
            begun.discard(split)
            self.open.append([split, _number(count, "open")])
        if self.turn > len(self.open):
            raise ValueError(f"the position's turn is {self.turn} of {len(self.open)} open splits; it is damaged")


def joined(places: Sequence[Place], trainer: int, trainers: int) -> Place:
    """The place of a trainer that goes on after all trainers of a checkpoint, whose number may have been another. places: of each of these
    trainers, in any order. Raises ValueError if they are not of one service, or one is missing."""
    first = places[0]
    for p in places[1:]:
        for name in ("dataset", "splits", "seed", "trainers", "carried"):
            if getattr(p, name) != getattr(first, name):
                raise ValueError(f"the positions of trainers {first.trainer} and {p.trainer} differ in '{name}', so they are not of one "
                                 "checkpoint")
    there = sorted(p.trainer for p in places)
    if there != list(range(first.trainers)):
        raise ValueError(f"the positions are of the trainers {_listed(there)}; give those of all {first.trainers} trainers, each once")
    if first.trainers == trainers:
        return next(p for p in places if p.trainer == trainer)
    epoch = min(p.epoch for p in places)
    last = max([p.epoch for p in places] + list(first.carried))
    carried: dict[int, Counts] = {}
    for e in range(epoch, last + 1):
        counts = dict(first.carried.get(e, {}))
        for p in places:
            counts.update(p.taken(e))
        counts = {s: n for s, n in counts.items() if n != 0}
        if counts:
            carried[e] = counts
    return Place(first.dataset, first.splits, first.seed, trainer, trainers, epoch, carried=carried)


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"


def _number(x: Any, what: str, least: int = 0, most: int = _MOST) -> int:
    if not isinstance(x, int) or isinstance(x, bool) or not least <= x <= most:
        raise ValueError(f"the position has {x!r} as '{what}', which is from {least} to {most}; it is damaged")
    return x


def _text(record: dict[str, Any], what: str) -> str:
    if not isinstance(record[what], str):
        raise ValueError(f"the position has {record[what]!r} as '{what}', which is a text; it is damaged")
    return str(record[what])


def _list(x: Any, what: str) -> list[Any]:
    if not isinstance(x, list):
        raise ValueError(f"the position has {x!r} as '{what}', which is a list; it is damaged")
    return x


def _pair(x: Any, what: str) -> list[Any]:
    if not isinstance(x, list) or len(x) != 2:
        raise ValueError(f"the position has {x!r} in '{what}', where pairs are; it is damaged")
    return x
