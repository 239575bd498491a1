"""The readers of a data service: the steps that run on their tasks, and the sessions that run them.

All trainers build the same graph (Program), so a function of the pipeline has one name in all of them, and any trainer can run an iterator
that another has made. State of the service is in containers of the readers, which the sessions lease: it ends with the last trainer.

In mode "first_come" a reader has one iterator for all trainers. A mutex and a table guard it: a step that takes an element, or begins the
next split, holds the mutex, and first compares the table with what its trainer knows. In mode "exactly_once" each trainer has iterators of
its own, and no step compares anything."""
import contextlib
import hashlib
import secrets
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from .cancel import CancelToken
from .elements import spec_text
from .errors import (AbortedError, CancelledError, DeadlineExceededError, FailedPreconditionError, InvalidArgumentError,
                     UnavailableError)
from .generated import has_generators
from .graph import Graph
from .output import Operation, Output
from .scopes import control_dependencies
from .server import cluster_status
from .session import Session
from .splitting import Splitting
from .tensor import Tensor

if TYPE_CHECKING:
    from .data import Dataset

# Errors of a reader that died, was restarted, cannot be reached, or has lost its state.
LOST = (UnavailableError, AbortedError, DeadlineExceededError, FailedPreconditionError, CancelledError)

_LIFE, _DATASET, _TURN, _EPOCH, _SPLITS = range(5)  # keys of a reader's table
_NEXT, _TABLE = range(2)  # keys of the table of splits; the others are lives of readers
OVER, STALE = -1, -2  # instead of a split: none is left; the caller knows less than another trainer
NOBODY = 2  # a life that no reader has
_MOVED = "the reader is in another split, which another trainer has begun"

_LONGEST_PAUSE = 5.0  # seconds before a reader that failed is tried again


def new_number() -> int:
    """A number that no reader and no table of splits has had. It is even and above NOBODY, because a life needs two keys beside _NEXT,
    _TABLE."""
    return 2 * secrets.randbelow(1 << 61) + NOBODY + 2


def moved(e: Exception) -> bool:
    """Whether a step failed because the reader is in another state than the step was told, and not because of an element."""
    return _MOVED in str(e)


class State(NamedTuple):
    """The table of a reader. life: of its state; another one after a restart.   turn: 2k if it is in its k-th split, 2k - 1 if that is only
    announced.   epoch: of that split; -1 before the first.   table: the number of the table that handed it out; 0 without one."""
    life: int
    turn: int
    epoch: int
    table: int


class Program:
    """The graph of a service, and its steps as (fetches, feeds, targets) by name. slots: iterators of each trainer; 0: one for all."""

    def __init__(self, dataset: "Dataset", name: str, mode: str, sharding: str, wanted: Optional[int], seed: Optional[int], slots: int):
        self.graph = graph = Graph()
        self.container, self.slots = f"data_service/{name}", slots
        splitting = Splitting(graph, sharding)
        self._value, self.spec = dataset._in(graph)
        if has_generators(graph):  # one that was made before the graph was split
            raise ValueError("a generator runs in the program that makes it, and the tasks of a data service cannot call it")
        self.splits = splitting.total(wanted)
        text = f"{mode} {sharding} {self.splits} {seed} {spec_text(self.spec)}"
        self.what = f"{spec_text(self.spec)}, mode '{mode}', sharding '{sharding}', {self.splits} splits, seed {seed}"
        self.digest = hashlib.sha256(graph.to_bytes() + text.encode()).hexdigest()
        self.dataset = int(self.digest[:15], 16) + 1  # the same in a table, where 0 is none
        self._parts = [] if sharding == "off" else [splitting.number, splitting.count]
        self.steps: dict[str, tuple[Any, list[Output], list[Operation]]] = {}
        with graph:
            self._mutex = graph.op("MutexV2", container=self.container, shared_name="mutex")
            self._table = self._new_table("reader")
            self._enter()
            if slots:
                self._add_slots()
            else:
                self._add_shared()
                self._claim()

    def fed(self, split: int) -> list[int]:
        """What the steps that begin a split are fed for it."""
        return [split, self.splits] if self._parts else []

    # ---- Parts of steps ----

    def _number(self, name: str) -> Output:
        return self.graph.placeholder("int64", [], name=name)

    def _fixed(self, *values: int) -> Output:
        return self.graph.constant(list(values), "int64")

    def _new_table(self, name: str) -> Output:
        table: Output = self.graph.op("MutableHashTableV2", container=self.container, shared_name=name, key_dtype="int64",
                                      value_dtype="int64")
        return table

    @contextlib.contextmanager
    def _locked(self, name: str, feeds: list[Output]) -> Iterator[tuple[list[Any], list[Any]]]:
        """Gives lists for the fetches and for the last operations of a step that holds the mutex until these have run."""
        graph = self.graph
        fetches: list[Any] = []
        last: list[Any] = []
        lock = graph.op("MutexLock", self._mutex)
        with control_dependencies([lock]):
            yield fetches, last
        with control_dependencies([*fetches, *last]):
            end = graph.op("ConsumeMutexLock", lock)
        self.steps[name] = (fetches, feeds, [end])

    def _found(self, table: Output, keys: Output, default: Output) -> list[Output]:
        found: Output = self.graph.op("LookupTableFindV2", table, keys, default)
        n = int((default.shape or (0,))[0] or 0)
        parts: list[Output] = self.graph.op("Unpack", found, num=n, axis=0)
        return parts

    def _put(self, table: Output, keys: Output, *values: Output) -> Operation:
        operation: Operation = self.graph.op("LookupTableInsertV2", table, keys, self._packed(*values))
        return operation

    def _packed(self, *values: Output) -> Output:
        packed: Output = self.graph.op("Pack", list(values))
        return packed

    def _either(self, condition: Output, value: Output, other: Output) -> Output:
        chosen: Output = self.graph.op("SelectV2", condition, value, other)
        return chosen

    def _one(self, value: int) -> Output:
        return self.graph.constant(value, "int64")

    def _checked(self, condition: Output, *data: Output) -> Operation:
        text = self.graph.constant(_MOVED.encode(), "string")
        operation: Operation = self.graph.op("Assert", condition, [text, self._packed(*data)], T=["string", "int64"])
        return operation

    def _taken(self, iterator: Output) -> list[Output]:
        got = self.graph.op("IteratorGetNext", iterator, **self._types)
        return got if isinstance(got, list) else [got]

    @property
    def _types(self) -> dict[str, Any]:
        return dict(output_types=self.spec.types, output_shapes=self.spec.shapes)

    # ---- Steps ----

    def _enter(self) -> None:
        """Gives a new reader its life and its dataset, and fetches its table."""
        life, dataset = self._number("enter/life"), self._number("enter/dataset")
        with self._locked("enter", [life, dataset]) as (fetches, last):
            found = self._found(self._table, self._fixed(_LIFE, _DATASET, _TURN, _EPOCH, _SPLITS), self._fixed(0, 0, -1, -1, 0))
            none = self._one(0)
            kept = [self._either(found[0].equal(none), life, found[0]), self._either(found[1].equal(none), dataset, found[1])]
            fetches += [*kept, *found[2:]]
            last.append(self._put(self._table, self._fixed(_LIFE, _DATASET), *kept))

    def _add_shared(self) -> None:
        """Of first_come: takes an element, or begins a split, unless another trainer has begun one since."""
        iterator = self.graph.op("IteratorV2", container=self.container, shared_name="iterator", **self._types)
        life, turn = self._number("take/life"), self._number("take/turn")
        keys, none = (_LIFE, _TURN), (0, -1)
        with self._locked("take", [life, turn]) as (fetches, last):
            found = self._found(self._table, self._fixed(*keys), self._fixed(*none))
            same = self._checked(found[0].equal(life) & found[1].equal(turn), *found)
            with control_dependencies([same]):
                fetches += self._taken(iterator)
        feeds = life, turn, epoch, splits = [self._number(f"begin/{n}") for n in ("life", "turn", "epoch", "table")]
        changed = self._fixed(_TURN, _EPOCH, _SPLITS)
        with self._locked("begin", [*feeds, *self._parts]) as (fetches, last):
            found = self._found(self._table, self._fixed(*keys), self._fixed(*none))
            free = self._checked(found[0].equal(life) & (found[1] < turn), *found)
            # A step that ends between these leaves a split that is only announced. Nobody takes from it, and it is begun again.
            with control_dependencies([free]):
                announced = self._put(self._table, changed, turn - self._one(1), epoch, splits)
            with control_dependencies([announced]):
                begun = self.graph.op("MakeEpochIterator", self._value, iterator, epoch)
            with control_dependencies([begun]):
                last.append(self._put(self._table, changed, turn, epoch, splits))

    def _claim(self) -> None:
        """Of first_come: the split for a reader's turn, from the table of splits. The same turn gets the same split again, so nothing is
        lost with a trainer that dies after its claim. Splits are numbered over all epochs."""
        table = self._new_table("splits")
        names = ["life", "turn", "first", "limit", "table", "new_table"]
        feeds = life, turn, first, limit, known, new = [self._number(f"claim/{n}") for n in names]
        with self._locked("claim", list(feeds)) as (fetches, last):
            keys = self._packed(self._one(_NEXT), self._one(_TABLE), life, life + self._one(1))
            following, there, latest, its = self._found(table, keys, self._fixed(0, 0, -1, OVER))
            none = self._one(0)
            unknown = known.equal(none)
            there = self._either(unknown & there.equal(none), new, there)
            base: Output = self.graph.op("Maximum", following, first)
            takes = (unknown | known.equal(there)) & (turn > latest) & (base < limit)
            fresh = self._either(takes, base, self._one(OVER))
            split = self._either(turn.equal(latest), its, self._either(turn > latest, fresh, self._one(STALE)))
            fetches += [split, there]
            last.append(self._put(table, keys, self._either(takes, base + self._one(1), following), there,
                                  self._either(takes, turn, latest), self._either(takes, base, its)))

    def _add_slots(self) -> None:
        """Of exactly_once: iterators in the container of the trainer's session."""
        skip, epoch = self._number("open/skip"), self._number("open/epoch")
        rest = self.graph.op("SkipDataset", self._value, skip, **self._types)
        for k in range(self.slots):
            iterator = self.graph.op("IteratorV2", container="", shared_name=f"slot {k}", **self._types)
            begun = self.graph.op("MakeEpochIterator", rest, iterator, epoch)
            self.steps[f"open {k}"] = ([], [skip, epoch, *self._parts], [begun])
            self.steps[f"take {k}"] = (self._taken(iterator), [], [])


class Reader:
    """One task that reads. given: in first_come, whether a split of the epoch was given to it, as far as this trainer knows.
    Threads: any; `state`, `given`, `failures` and `again` belong to the thread that reads from it in first_come."""

    def __init__(self, program: Program, job: str, task: int, address: str, options: dict[str, Any]):
        self.program, self.place, self.address = program, f"/job:{job}/task:{task}", address
        self.state: Optional[State] = None
        self.given = False
        self.failures, self.again = 0, 0.0  # since the last success; the time before which it is not tried
        self._options, self._entered = options, False
        self._session: Optional[Session] = None
        self._steps: dict[str, Any] = {}
        self._mutex = threading.Lock()

    def __repr__(self) -> str:
        return f"reader {self.place} at {self.address}"

    def run(self, step: str, *feeds: int, cancel: CancelToken, as_tensors: bool = False) -> Any:
        """Runs a step of the program. Raises its errors, which name the task."""
        call = self._steps.get(step)
        if call is None:
            with self._mutex:
                if self._session is None:
                    self._session = Session(self.program.graph, target=self.address, **self._options)
                fetches, names, targets = self.program.steps[step]
                call = self._steps[step] = self._session.callable(fetches, names, targets)
        return call(*feeds, cancel=cancel, as_tensors=as_tensors)

    def enter(self, cancel: CancelToken) -> State:
        """Returns the reader's state. Raises InvalidArgumentError if the service has another dataset there."""
        program = self.program
        life, dataset, *rest = map(int, self.run("enter", new_number(), program.dataset, cancel=cancel))
        if dataset != program.dataset:
            raise InvalidArgumentError(f"data service '{program.container.partition('/')[2]}' at {self} has another pipeline, mode or "
                                       f"splits than this program, which has {program.what}; give all trainers the same, or another name")
        self._entered = True
        return State(life, *rest)

    def open(self, slot: int, split: int, skip: int, epoch: int, cancel: CancelToken) -> None:
        """Of exactly_once: begins a split behind its first `skip` elements."""
        if not self._entered:
            self.enter(cancel)
        self.run(f"open {slot}", skip, epoch, *self.program.fed(split), cancel=cancel)

    def take(self, slot: int, cancel: CancelToken) -> list[Tensor]:
        """Of exactly_once: the next element. Raises OutOfRangeError at the end of the split."""
        taken: list[Tensor] = self.run(f"take {slot}", cancel=cancel, as_tensors=True)
        return taken

    def failed(self) -> None:
        """Notes that it is lost: it is tried again after a pause that grows."""
        self.failures += 1
        self._entered = False
        self.again = time.monotonic() + min(0.25 * 2.0**min(self.failures, 10), _LONGEST_PAUSE)

    def close(self) -> None:
        """Ends the session, and with it the lease of the state there."""
        with self._mutex:
            session, self._session = self._session, None
            self._steps.clear()
        if session is not None:
            session.close()


def readers_of(program: Program, target: str, job: str, options: dict[str, Any], private: Optional[str], wait: float) -> list[Reader]:
    """The tasks of a job. private: the container of the trainer's own state; None: it has none.   wait: seconds in which the target, which
    may be starting again, has to answer. Raises ValueError if the cluster has no such job, UnavailableError and DeadlineExceededError."""
    end = time.monotonic() + wait
    while True:
        try:
            tasks = cluster_status(target, **{k: v for k, v in options.items() if k in ("credentials", "insecure")})
            break
        except (UnavailableError, DeadlineExceededError):
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
    leased = [program.container] if private is None else [program.container, private]
    how = {"target_timeout_ms": 1000, **options, "lease": leased, "container": leased[-1]}
    found = [Reader(program, job, t["task"], t["address"], how) for t in tasks if t["job"] == job]
    if not found:
        jobs = ", ".join(sorted({repr(t["job"]) for t in tasks}))
        raise ValueError(f"the cluster at {target} has no job '{job}' to read data; its jobs: {jobs}; start such tasks by `thalweg worker "
                         f"--job {job}`, or give another job")
    return found


def claimed(program: Program, reader: Reader, life: int, turn: int, epoch: int, table: int, cancel: CancelToken) -> tuple[int, int]:
    """Claims the split for a turn in the life of a reader, at the reader that has the table of splits; nothing for turn -1 of NOBODY. table:
    the number of the table that earlier claims of this epoch met; 0: none. Returns the split, numbered over all epochs, or OVER or STALE; and
    the table's number."""
    first = epoch * program.splits
    split, there = map(int, reader.run("claim", life, turn, first, first + program.splits, table, new_number(), cancel=cancel))
    return split, there


def next_turn(state: State) -> int:
    """The turn that begins behind a state, as `begin` takes it: even."""
    return state.turn + 1 if state.turn % 2 else state.turn + 2

