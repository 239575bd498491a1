"""Variables of several tasks that are read and assigned together: a snapshot is of one assignment on all tasks, and an assignment is
made on all tasks or on none, whatever dies meanwhile.

    state = thalweg.AtomicVariables({"w": w0, "b": b0}, devices={"w": "/job:ps/task:0", "b": "/job:ps/task:1"}, name="state")
    session.run(thalweg.initializer())
    version, values = state.read(session)
    state.assign(session, {"w": w1, "b": b1}, version=version)       # AbortedError if another assignment came first

Ordinary variables have no such guarantee: a step that reads several may see some of them before another step's update and some after.
Its cost: two variables for each one; a read is one step, an assignment four.

How it works. Each variable has two slots, and a tag beside the slots of each task names the transaction that filled them. A record on one
task, `home`, names the version, the transaction that made it, and the transaction that may make the next one. Version v is in the slots
v % 2. A writer (1) reads the record and how often each slot was updated, (2) enters itself in the record, (3) fills the other slots, each
task's at one time, (4) makes the record name the next version and its transaction. Steps 2 to 4 change a task only if nobody has changed
it since step 1, so a writer that was slow, or was thought dead, changes nothing after another has begun. A reader takes slots only if the
tags of all tasks are the record's transaction."""
import secrets
import time
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple, Optional

import numpy as np

from . import scopes
from .errors import AbortedError, DeadlineExceededError, Error
from .flow import cond
from .graph import placeholder
from .output import Formula, Output
from .session import Session
from .variable import Variable, assign_variables, read_variables

_VERSION, _MADE_BY, _CLAIM = 0, 1, 2  # positions in the record
_NOBODY = 0                           # no transaction has this number but the one that made the initial values
_LONGEST_PAUSE = 0.05                 # seconds between two looks at the claim of another writer
_LEAVING = 5                          # seconds for giving up a claim


class Snapshot(NamedTuple):
    """Values of a step. values: those of one version, by name, if `whole` is true.   version: its number.   whole: false if a writer
    came in between; then run the step again."""
    values: dict[str, Output]
    version: Output
    whole: Output


class _Part(NamedTuple):
    """The variables of one device. tags, slots: for each of the two slots."""
    device: str
    names: list[str]
    tags: list[Variable]
    slots: list[list[Variable]]

    def of(self, slot: int) -> list[Variable]:
        return [self.tags[slot], *self.slots[slot]]


class AtomicVariables:
    """Variables that are read and assigned together, in the current graph. They belong to no optimizer.

    initial: value by name.   devices: by name, such as tasks of a cluster; a name without one gets the scope's.   home: the device of the
    record; None: that of the first variable.   name: all programs that share the variables give the same.
    Threads: each method may run in several threads and programs at once. A checkpoint has one version of all variables if nothing was
    assigned while it was saved; else write the values of `read`."""

    def __init__(self, initial: Mapping[str, Any], *, name: str, devices: Optional[Mapping[str, str]] = None, home: Optional[str] = None):
        if not initial:
            raise ValueError(f"atomic variables '{name}': there are none; give the initial value of one or more")
        where = dict(devices or {})
        if unknown := sorted(where.keys() - initial.keys()):
            raise ValueError(f"atomic variables '{name}': devices names {unknown}, and there are {list(initial)}")
        scope = scopes.current()
        self.graph, self.name, self.names = scope.graph, name, list(initial)
        self.home = where.get(self.names[0], scope.device) if home is None else home
        self._parts: list[_Part] = []
        for device in dict.fromkeys(where.get(n, scope.device) for n in self.names):
            there = {n: v for n, v in initial.items() if where.get(n, scope.device) == device}
            self._parts.append(self._part(len(self._parts), device, there))
        with scopes.device(self.home):
            self._record = Variable(np.array([0, _NOBODY, _NOBODY], np.int64), name=f"{name}/record", trainable=False)
            self._seen = read_variables([self._record])
            self._next = placeholder("int64", [3], name=f"{name}/next")
            self._next_at = placeholder("int64", [1], name=f"{name}/next_at")
            self._turn = assign_variables([self._record], [self._next], self._next_at)
        self._updates = [[self._read_part(part, slot)[1] for part in self._parts] for slot in range(2)]
        self._whole = self.snapshot()
        self._fed = {v: placeholder(self._variable(v).dtype, self._variable(v).shape, name=f"{name}/{v}/value") for v in self.names}
        self._writer = self.writer(self._fed)

    def _part(self, k: int, device: str, initial: Mapping[str, Any]) -> _Part:
        with scopes.device(device):
            tags = [Variable(np.int64(_NOBODY - slot), name=f"{self.name}/tag_{k}/{slot}", trainable=False) for slot in range(2)]
            slots = [[Variable(value, name=f"{self.name}/{v}/{slot}", trainable=False) for v, value in initial.items()]
                     for slot in range(2)]
        return _Part(device, list(initial), tags, slots)

    def _variable(self, name: str) -> Variable:
        part = next(p for p in self._parts if name in p.names)
        return part.slots[0][part.names.index(name)]

    @staticmethod
    def _read_part(part: _Part, slot: int) -> tuple[list[Output], Output]:
        with scopes.device(part.device):
            return read_variables(part.of(slot))

    def snapshot(self) -> Snapshot:
        """Adds operations that read all variables in a step. Each value is read on its own task; no copy is made."""
        with self.graph:
            with scopes.device(self.home):
                record = read_variables([self._record])[0][0]
                odd, made_by = record[_VERSION] % 2 > 0, record[_MADE_BY]
            tags: list[Output] = []
            values: dict[str, Output] = {}
            for part in self._parts:
                (even_tag, *even), (odd_tag, *uneven) = (self._read_part(part, slot)[0] for slot in range(2))
                with scopes.device(part.device):
                    tag, *found = cond(odd, partial(list, [odd_tag, *uneven]), partial(list, [even_tag, *even]))
                tags.append(tag)
                values.update(zip(part.names, found))
            with scopes.device(self.home):
                whole = self.graph.op("All", self.graph.op("Equal", self.graph.op("Pack", tags, axis=0), made_by), [0])
                version = record[_VERSION]
        return Snapshot({n: values[n] for n in self.names}, version, whole)

    def writer(self, values: Mapping[str, Any]) -> "AtomicWriter":
        """Adds operations that assign these values of the graph, one for each variable. They are computed in the step that fills the slots,
        so values of a `snapshot` there are those of the version before. Raises ValueError for missing and unknown names, and for other
        dtypes and shapes."""
        self._check(values)
        with self.graph:
            given = {n: values[n]._value() if isinstance(values[n], Formula) else self.graph.constant(values[n]) for n in self.names}
            for n, value in given.items():
                own = self._variable(n)
                if value.dtype != own.dtype or (value.shape is not None and own.shape is not None and not _fits(value.shape, own.shape)):
                    raise ValueError(f"atomic variables '{self.name}': the value for '{n}' is {value.dtype.name} {value.shape}, and the "
                                     f"variable {own.dtype.name} {own.shape}")
            return AtomicWriter(self, given)

    def read(self, session: Session, *, timeout: Optional[float] = None) -> tuple[int, dict[str, Any]]:
        """Returns the number of the latest version, and its values. timeout: seconds. Raises DeadlineExceededError if writers come in
        between for so long, FailedPreconditionError for variables without contents, and errors of lost tasks."""
        clock = _Clock(f"atomic variables '{self.name}': writers came in between all reads", timeout)
        while True:
            version, whole, values = session.run([self._whole.version, self._whole.whole, self._whole.values], timeout=clock.left())
            if whole:
                return int(version), values

    def assign(self, session: Session, values: Mapping[str, Any], *, version: Optional[int] = None, patience: float = 5,
               timeout: Optional[float] = None) -> int:
        """Assigns all variables at one time, and returns the new version. Other arguments and errors: AtomicWriter.run."""
        self._check(values)
        return self._writer.run(session, {self._fed[n]: v for n, v in values.items()}, version=version, patience=patience, timeout=timeout)

    def _check(self, values: Mapping[str, Any]) -> None:
        if values.keys() != set(self.names):
            missing, unknown = [n for n in self.names if n not in values], [n for n in values if n not in self.names]
            raise ValueError(f"atomic variables '{self.name}': all are assigned at one time; missing are {missing}, unknown {unknown}")

    def __repr__(self) -> str:
        return f"<AtomicVariables '{self.name}' of {', '.join(self.names)}>"


class AtomicWriter:
    """Operations that assign values of the graph to all variables at one time; made by AtomicVariables.writer."""

    def __init__(self, state: AtomicVariables, values: Mapping[str, Output]):
        self._state = state
        self._mine = placeholder("int64", [])
        self._at = [placeholder("int64", [len(part.names) + 1]) for part in state._parts]
        self._fill: list[list[Output]] = [[], []]
        for part, at in zip(state._parts, self._at):
            with scopes.device(part.device):
                for slot in range(2):
                    self._fill[slot].append(assign_variables(part.of(slot), [self._mine, *(values[n] for n in part.names)], at))

    def run(self, session: Session, feeds: Optional[Mapping[Any, Any]] = None, *, version: Optional[int] = None, patience: float = 5,
            timeout: Optional[float] = None) -> int:
        """Assigns, and returns the number of the new version. If another writer comes first, it begins again, and computes the values
        again.

        version: assigns only if this is the latest version.   patience: seconds that another writer may take before this one counts it as
        dead and takes its place; a writer that was alive then begins again.   timeout: seconds for all.
        Raises AbortedError if `version` is not the latest; then nothing was assigned. Raises DeadlineExceededError, errors of the values,
        and errors of lost tasks. After the last kinds of error no task shows a part of the values, but if the answer of the last step was
        lost, the version may have been made: read it."""
        own: set[int] = set()
        try:
            return self._run(session, own, feeds or {}, version, patience, timeout)
        except BaseException:
            self._leave(session, own)
            raise

    def _leave(self, session: Session, own: set[int]) -> None:
        """Gives up the claim after a failure, which is about to be raised. If this fails too, other writers wait for their patience."""
        state = self._state
        try:
            records, at = session.run(state._seen, timeout=_LEAVING)
            latest, made_by, claim = (int(x) for x in records[0])
            if claim in own:
                given_up = np.array([latest, made_by, _NOBODY], np.int64)
                session.run(state._turn, {state._next: given_up, state._next_at: at}, timeout=_LEAVING)
        except Error:
            pass

    def _run(self, session: Session, own: set[int], feeds: Mapping[Any, Any], version: Optional[int], patience: float,
             timeout: Optional[float]) -> int:
        state = self._state
        clock = _Clock(f"atomic variables '{state.name}': other writers came first, again and again", timeout)
        others, since, pause = None, 0.0, 0.001
        while True:
            (records, at), updates = session.run([state._seen, state._updates], timeout=clock.left())
            record = records[0]
            latest, made_by, claim = (int(x) for x in record)
            if version is not None and version != latest:
                raise AbortedError(f"atomic variables '{state.name}': the latest version is {latest}, not {version}; read again")
            if claim != _NOBODY and claim not in own:
                now = time.monotonic()
                if others != (latest, claim):
                    others, since, pause = (latest, claim), now, 0.001
                if now - since < patience:
                    time.sleep(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE)
                    continue
            mine = secrets.randbits(62) + 1  # a new one, so that slots of two attempts do not pass for one
            own.add(mine)
            claimed = np.array([latest, made_by, mine], np.int64)
            if not session.run(state._turn, {state._next: claimed, state._next_at: at}, timeout=clock.left()):
                continue
            slot = (latest + 1) % 2
            given = {self._mine: np.int64(mine), **dict(zip(self._at, updates[slot])), **feeds}
            filled, (after, at) = session.run([self._fill[slot], state._seen], given, timeout=clock.left())
            if not all(filled) or not np.array_equal(after[0], claimed):
                continue
            made = np.array([latest + 1, mine, _NOBODY], np.int64)
            if session.run(state._turn, {state._next: made, state._next_at: at}, timeout=clock.left()):
                return latest + 1


class _Clock:
    """The rest of a time limit. what: the error when it is over."""

    def __init__(self, what: str, seconds: Optional[float]):
        self.what, self.seconds, self.began = what, seconds, time.monotonic()

    def left(self) -> Optional[float]:
        if self.seconds is None:
            return None
        rest = self.seconds - (time.monotonic() - self.began)
        if rest <= 0:
            raise DeadlineExceededError(f"{self.what}, for {self.seconds} s")
        return rest


def _fits(a: tuple[Optional[int], ...], b: tuple[Optional[int], ...]) -> bool:
    return len(a) == len(b) and all(x is None or y is None or x == y for x, y in zip(a, b))
