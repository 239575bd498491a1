"""Data services: the tasks of a job read a dataset, and the trainers of a cluster take its elements. distributed/README.md follows an
element from a reader to a trainer.

    dataset = tw.data.files("/data/train-*.tfrecord").shuffle(1000, seed=1).map(parse).batch(64)
    batches = dataset.distribute(os.environ["THALWEG_TARGET"], name="train", mode="exactly_once", trainer=0, trainers=2).iterator()
    for epoch in range(batches.epoch, 10):
        for images, labels in batches:
            ...
        batches.reset(epoch + 1)"""
import ctypes
import os
import secrets
import threading
import time
import types
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, Optional

from . import _low
from .cancel import CancelToken
from .elements import spec_of, spec_text
from .errors import Error, InvalidArgumentError, OutOfRangeError, UnavailableError, UnimplementedError, check
from .iterating import ElementIterator
from .iterators import failed
from .readers import LOST, NOBODY, OVER, STALE, Program, Reader, State, claimed, moved, next_turn, readers_of
from .shares import MOST_SEED, Place, joined, order
from .splitting import SHARDING
from .taken import Element, Stream, Taken
from .tensor import Tensor

if TYPE_CHECKING:
    from .data import Dataset

MODES = ("first_come", "exactly_once")


class DistributedDataset:
    """The elements of a dataset that the readers of a cluster give to its trainers. Make it with Dataset.distribute. spec: what an element
    is, as Dataset.spec.   splits: of an epoch."""

    def __init__(self, dataset: "Dataset", target: str, *, name: str, mode: str, job: str, sharding: str, splits: Optional[int],
                 seed: Optional[int], trainer: int, trainers: int, cycle: int, prefetch: int, prefetch_bytes: int, wait: float, on_loss: str,
                 options: dict[str, Any]):
        _check_choice("mode", mode, MODES)
        _check_choice("sharding", sharding, SHARDING)
        _check_choice("on_loss", on_loss, ("raise", "continue"))
        if not isinstance(name, str) or not name or "," in name:
            raise ValueError(f"name is {name!r}; a data service has a name without a comma, which its trainers share")
        for what, number in ("trainers", trainers), ("cycle", cycle), ("prefetch", prefetch), ("prefetch_bytes", prefetch_bytes):
            _check_number(what, number, 1)
        _check_number("trainer", trainer, 0)
        if trainer >= trainers:
            raise ValueError(f"trainer is {trainer}; it must be below trainers, which is {trainers}")
        if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool) or abs(seed) > MOST_SEED):
            raise ValueError(f"seed is {seed!r}; it must be a number from {-MOST_SEED} to {MOST_SEED}, or None")
        if not isinstance(wait, (int, float)) or not wait >= 0:
            raise ValueError(f"wait is {wait!r}; it must be a number of seconds from 0 on")
        exactly = mode == "exactly_once"
        if exactly and sharding == "off":
            raise ValueError("sharding='off' lets each reader give all elements, so mode 'exactly_once' cannot have it; use 'dynamic' or "
                             "'file', or mode 'first_come'")
        for what in "lease", "container", "target":
            if what in options:
                raise ValueError(f"option '{what}' is the data service's own; leave it out")
        self._program = Program(dataset, name, mode, sharding, splits, seed, cycle if exactly else 0)
        self._target, self._name, self._job, self._exactly, self._off = target, name, job, exactly, sharding == "off"
        self._seed, self._trainer, self._trainers, self._cycle = seed, trainer, trainers, cycle
        self._prefetch, self._prefetch_bytes, self._wait, self._raises, self._options = prefetch, prefetch_bytes, wait, on_loss == "raise", options

    @property
    def spec(self) -> Any:
        """What an element is: a pair of element type and shape, or a tuple or a dict of such pairs."""
        return spec_of(self._program.spec)

    @property
    def splits(self) -> int:
        """The number of splits of an epoch."""
        return self._program.splits

    def __repr__(self) -> str:
        return f"<DistributedDataset '{self._name}' of {spec_text(self._program.spec)}>"

    def __iter__(self) -> Iterator[Any]:
        with self.iterator() as elements:
            yield from elements

    def iterator(self) -> "DistributedIterator":
        """Joins the service as a trainer. Raises ValueError if the cluster has no job of readers, UnavailableError and DeadlineExceededError
        if the target has not answered for `wait` seconds."""
        private = f"{self._program.container}/{secrets.token_hex(8)}" if self._exactly else None
        readers = readers_of(self._program, self._target, self._job, self._options, private, self._wait)
        work: _Work = _Exactly(self, readers) if self._exactly else _First(self, readers)
        return DistributedIterator(self, work)


def _check_choice(what: str, given: Any, choices: tuple[str, ...]) -> None:
    if given not in choices:
        raise ValueError(f"{what} is {given!r}; it must be one of {', '.join(map(repr, choices))}")


def _check_number(what: str, given: Any, least: int) -> None:
    if not isinstance(given, int) or isinstance(given, bool) or given < least:
        raise ValueError(f"{what} is {given!r}; it must be a number from {least} on")


class DistributedIterator(ElementIterator):
    """A trainer of a data service. `for element in iterator` gives the rest of the epoch, and reset() starts another. Trainers of models take
    it as data; in first_come build them before, since a trainer without sizes uses up elements to learn them. close() ends its part, as do
    the end of a `with` and that of the program.   Threads: one at a time."""

    def __init__(self, dataset: DistributedDataset, work: "_Work"):
        self._work, self._spec = work, dataset._program.spec
        self._record = self._new_record(isinstance(work, _Exactly))
        self._handle = ctypes.pointer(self._record)
        weakref.finalize(self, work.close)  # at the latest at the end of the program, while its threads can still end

    def __enter__(self) -> "DistributedIterator":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Ends the sessions with the readers. In first_come the elements that were taken ahead are lost. Closing twice is fine."""
        self._work.close()

    @property
    def epoch(self) -> int:
        """The number of the epoch that it gives."""
        return self._work.epoch

    def tensors(self) -> Optional[list[Tensor]]:
        """The components of the next element; None at the end of the epoch. Raises errors of the pipeline, and
        first_come: UnavailableError once for each reader that was lost, after which the next call goes on without it; UnavailableError in each
        call if the reader that hands out the splits is lost.
        exactly_once: the last error of a reader if for `wait` seconds none could give a split. An error of an element comes again in each
        call, since no element is left out."""
        return self._work.next()

    def reset(self, epoch: int = 0) -> None:
        """Starts an epoch. In first_come an epoch is shared: it begins when the one before has been read to its end, and is over for a
        trainer that comes later. Raises InvalidArgumentError for a negative epoch."""
        if not isinstance(epoch, int) or epoch < 0:
            raise InvalidArgumentError(f"epoch is {epoch!r}; it must be a number from 0 on")
        self._work.reset(epoch)

    def join(self) -> int:
        """Of first_come: starts at the epoch in which the readers are, and returns its number. Raises UnavailableError if none answers."""
        if not isinstance(self._work, _First):
            raise UnimplementedError("trainers of mode 'exactly_once' have epochs of their own; call restore with a position")
        return self._work.join()

    def save(self) -> bytes:
        """The position, of exactly_once: for restore, in the same checkpoint as the model. Raises UnimplementedError in first_come."""
        if not isinstance(self._work, _Exactly):
            raise UnimplementedError("mode 'first_come' has no positions, because trainers share the elements; use mode 'exactly_once'")
        return self._work.place.to_bytes()

    def restore(self, *positions: bytes) -> None:
        """Continues at a saved position. If the number of trainers has changed since, give those of all trainers of the checkpoint; each
        trainer then reads its part of what is left. Raises InvalidArgumentError for a position of another pipeline, or of other trainers."""
        if not isinstance(self._work, _Exactly):
            raise UnimplementedError("mode 'first_come' has no positions, because trainers share the elements; use mode 'exactly_once'")
        if not positions:
            raise InvalidArgumentError("there are no positions; give those that save() returned")
        self._work.restore(positions)

    # ---- The record of functions for the library: see thalweg/iterator.h ----

    def _new_record(self, saves: bool) -> Any:
        kinds: dict[str, Any] = dict(_low.tw_iterator._fields_)
        me = weakref.ref(self)  # the record must not keep this object alive, whose end ends the threads

        def called(call: Callable[["DistributedIterator"], None]) -> Optional[int]:
            it = me()
            if it is None:
                return int(_low.tw_status_create(_low.TW_FAILED_PRECONDITION, b"the iterator is gone"))
            try:
                call(it)
                return None
            except BaseException as e:  # pylint: disable=broad-exception-caught  # becomes a status of the library
                return failed(types.SimpleNamespace(), e)

        def give(_: Any, out: Any, end: Any) -> Optional[int]:
            def call(it: "DistributedIterator") -> None:
                tensors = it.tensors()
                if tensors is None:
                    end[0] = 1
                    return
                for i, tensor in enumerate(tensors):
                    _low.tw_tensor_retain(tensor._handle)
                    out[i] = tensor._handle
            return called(call)

        def reset(_: Any, epoch: int) -> Optional[int]:
            return called(lambda it: it.reset(epoch))

        def save(_: Any, out: Any) -> Optional[int]:
            def call(it: "DistributedIterator") -> None:
                position, buffer = it.save(), ctypes.c_void_p()
                check(_low.tw_buffer_create(position, len(position), buffer))
                out[0] = buffer.value
            return called(call)

        def restore(_: Any, position: Any, n: int) -> Optional[int]:
            return called(lambda it: it.restore(ctypes.string_at(position, n)))

        functions = {"next": give, "reset": reset, **({"save": save, "restore": restore} if saves else {})}
        return _low.tw_iterator(size=ctypes.sizeof(_low.tw_iterator), n_tensors=len(self._spec.parts), n_batches=-1,
                                **{name: kinds[name](f) for name, f in functions.items()})


# ---- What a trainer does ----

class _Work:
    """The threads and readers of a trainer. Its threads know it and not its iterator, which may thus be destroyed while they run."""

    def __init__(self, dataset: DistributedDataset, readers: list[Reader]):
        self.program, self.name, self.readers, self.wait, self.epoch = dataset._program, dataset._name, readers, dataset._wait, 0
        self._limits = dataset._prefetch, dataset._prefetch_bytes
        self._threads: list[threading.Thread] = []
        self._closed, self._process = False, os.getpid()
        self._renew()

    def _renew(self) -> None:
        self.taken, self.cancel = Taken(*self._limits), CancelToken()

    def next(self) -> Optional[Element]:
        """The next element of the epoch; None at its end."""
        raise NotImplementedError

    def reset(self, epoch: int) -> None:
        """Starts an epoch."""
        raise NotImplementedError

    def start(self, work: Callable[..., None], *arguments: Any) -> None:
        """Runs a function on a thread of the epoch."""
        self._threads = [t for t in self._threads if t.is_alive()]
        thread = threading.Thread(target=work, args=arguments, daemon=True, name=f"thalweg data service {self.name}")
        self._threads.append(thread)
        thread.start()

    def check_open(self) -> None:
        """Raises if it is closed."""
        if self._closed:
            raise InvalidArgumentError(f"the iterator of data service '{self.name}' is closed; make another")

    def stop(self) -> None:
        """Ends the threads of the epoch, and waits for them."""
        self.taken.stop()
        self.cancel.cancel()
        for thread in self._threads:
            thread.join()
        self._threads = []

    def close(self) -> None:
        """Ends everything."""
        if self._process != os.getpid():
            return  # a forked child has neither the threads nor the sessions
        if threading.current_thread() in self._threads:  # where the garbage collector found the iterator
            threading.Thread(target=self.close, daemon=True).start()
        elif not self._closed:
            self._closed = True
            self.stop()
            for reader in self.readers:
                reader.close()


class _Split(Stream):
    """A split that a trainer of exactly_once reads: its elements, taken in order from one reader after another."""

    def __init__(self, split: int, slot: int):
        super().__init__()
        self.split, self.slot = split, slot


class _Exactly(_Work):
    """A trainer of exactly_once. `place` counts what the program has taken; the open splits take turns. A split that cannot go on, for
    whatever reason, is opened again behind the elements that came, at this or another reader."""

    def __init__(self, dataset: DistributedDataset, readers: list[Reader]):
        super().__init__(dataset, readers)
        self.cycle = dataset._cycle
        self.place = Place(self.program.digest, self.program.splits, dataset._seed, dataset._trainer, dataset._trainers)
        self._mutex = threading.Lock()  # guards failures and again of readers
        self._streams: Optional[list[_Split]] = None  # beside place.open; None before the first element
        self._share: list[tuple[int, int]] = []

    def reset(self, epoch: int) -> None:
        self.check_open()
        self._move(self.place.at(epoch))

    def restore(self, positions: tuple[bytes, ...]) -> None:
        """Continues at positions of one or of all trainers."""
        self.check_open()
        mine = self.place
        try:
            places = [Place.from_bytes(p) for p in positions]
            for p in places:
                if (p.dataset, p.splits, p.seed) != (mine.dataset, mine.splits, mine.seed):
                    raise ValueError(f"the position is of another pipeline or other splits than this program's, which has {self.program.what}")
            if len(places) == 1 and places[0].trainers == mine.trainers:
                place = places[0]
                if place.trainer != mine.trainer:
                    raise ValueError(f"the position is of trainer {place.trainer} of {place.trainers}, and this is trainer {mine.trainer}")
            else:
                place = joined(places, mine.trainer, mine.trainers)
            if len(place.open) > self.cycle:
                raise ValueError(f"the position has {len(place.open)} open splits, and cycle is {self.cycle}; use the same cycle")
        except ValueError as e:
            raise InvalidArgumentError(f"data service '{self.name}': {e}") from None
        self._move(place)

    def _move(self, place: Place) -> None:
        self.stop()
        self._renew()
        self.place, self.epoch, self._streams = place, place.epoch, None

    def next(self) -> Optional[Element]:
        self.check_open()
        place = self.place
        streams = self._streams
        if streams is None:
            self._share = place.share(place.epoch)
            streams = self._streams = [self._stream(split, k, count) for k, (split, count) in enumerate(place.open)]
            for slot in range(len(place.open), self.cycle):
                self._begin(len(place.open), slot)
        while place.open:
            at = place.turn = place.turn % len(place.open)
            stream = streams[at]
            element = self.taken.next_of(stream)
            if element is not None:
                place.open[at][1] += 1
                place.turn = at + 1
                return element
            del place.open[at], streams[at]
            self._begin(at, stream.slot)
        return None

    def _begin(self, at: int, slot: int) -> None:
        """Begins the next split of the share, if there is one, in that turn."""
        place, streams = self.place, self._streams
        if place.begun < len(self._share) and streams is not None:
            split, count = self._share[place.begun]
            place.begun += 1
            place.open.insert(at, [split, count])
            streams.insert(at, self._stream(split, slot, count))

    def _stream(self, split: int, slot: int, count: int) -> _Split:
        stream = _Split(split, slot)
        self.start(_read_split, self, stream, count)
        return stream

    def reader_for(self, split: int) -> Reader:
        """The reader to try: the first from the split's own on that is not lost, else the one whose pause ends first."""
        n, now = len(self.readers), time.monotonic()
        with self._mutex:
            turns = [self.readers[(split + k) % n] for k in range(n)]
            return next((r for r in turns if r.again <= now), min(turns, key=lambda r: r.again))

    def note(self, reader: Reader, lost: bool) -> None:
        """Notes whether a reader was lost."""
        with self._mutex:
            if lost:
                if reader.again <= time.monotonic():  # else the thread of another split has noted it
                    reader.failed()
            else:
                reader.failures, reader.again = 0, 0.0


def _read_split(work: _Exactly, stream: _Split, count: int) -> None:
    """The thread of a split."""
    taken, cancel, epoch = work.taken, work.cancel, work.epoch
    reader: Optional[Reader] = None
    since = 0.0  # the first failure without a success behind it
    while taken.reserve(stream):
        try:
            while True:
                try:
                    if reader is None:
                        reader = work.reader_for(stream.split)
                        taken.pause(max(0.0, reader.again - time.monotonic()))
                        reader.open(stream.slot, stream.split, count, epoch, cancel)
                        work.note(reader, False)
                    element = reader.take(stream.slot, cancel)
                    break
                except LOST as e:
                    if taken.stopped:
                        return
                    since = since or time.monotonic()
                    if time.monotonic() - since > work.wait:
                        raise
                    if reader is not None:
                        work.note(reader, True)
                    reader = None
        except OutOfRangeError:
            return taken.end(stream)
        except BaseException as e:  # pylint: disable=broad-exception-caught  # the program raises it
            return taken.end(stream, e)
        since = 0.0
        count += 1
        taken.add(stream, element)


class _First(_Work):
    """A trainer of first_come: a thread for each reader takes elements as long as there is room."""

    def __init__(self, dataset: DistributedDataset, readers: list[Reader]):
        super().__init__(dataset, readers)
        self.raises, self.off, self.seed = dataset._raises, dataset._off, dataset._seed
        self.ended = -1  # the last epoch of which this trainer has seen the end
        self.table = 0  # the number of the table of splits in this epoch; 0: not met yet
        self.order = order(self.program.splits, self.seed, 0)
        self._mutex = threading.Lock()  # guards table, and makes claims one after the other
        self._streams: Optional[list[Stream]] = None

    def reset(self, epoch: int) -> None:
        self.check_open()
        self.stop()
        self._renew()
        self.epoch, self.table, self._streams = epoch, 0, None
        self.order = order(self.program.splits, self.seed, epoch)

    def join(self) -> int:
        """Starts at the epoch in which the readers are."""
        self.check_open()
        self.stop()
        self._renew()
        states: list[State] = []
        failures: list[Error] = []
        for reader in self.readers:
            try:
                states.append(reader.enter(self.cancel))
            except LOST as e:
                failures.append(e)
        if not states:
            raise failures[-1]
        epoch = max(0, *(s.epoch for s in states))
        self.reset(epoch)
        self.ended = max(self.ended, epoch - 1)  # another trainer has seen that end
        return epoch

    def next(self) -> Optional[Element]:
        self.check_open()
        if self._streams is None:
            self._streams = [Stream() for _ in self.readers]
            for reader, stream in zip(self.readers, self._streams):
                reader.state, reader.given, reader.failures = None, False, 0
                self.start(_read, self, reader, stream)
        element = self.taken.next_of_any(self._streams, self.wait)
        if element is None:
            self.ended = max(self.ended, self.epoch)
        return element

    def claim(self, reader: Reader, state: State) -> int:
        """The split for the next turn of a reader, or OVER or STALE. Raises _NoTable if the table of splits is lost."""
        if self.off:
            return OVER if state.epoch == self.epoch and state.turn % 2 == 0 else self.epoch
        return self._claim(state.life, next_turn(state))

    def is_current(self, state: State) -> bool:
        """Whether a reader's split is from the table that hands out the splits now, and not from one that was lost since. Raises _NoTable as
        claim does."""
        if not self.off and not self.table:
            self._claim(NOBODY, -1)
        return state.table == self.table

    def _claim(self, life: int, turn: int) -> int:
        first, end = self.readers[0], time.monotonic() + self.wait
        with self._mutex:
            while True:
                try:
                    split, there = claimed(self.program, first, life, turn, self.epoch, self.table, self.cancel)
                    break
                except LOST as e:
                    if self.table or self.taken.stopped or time.monotonic() > end:
                        raise _NoTable(self.text(first, f"it hands out the splits, and is lost: {e}")) from e
                    self.taken.pause(0.05)  # it has handed out nothing in this epoch, so nothing is lost if it starts again
            if self.table not in (0, there):
                raise _NoTable(self.text(first, "it hands out the splits, and has lost which are given"))
            self.table = there
        return split

    def text(self, reader: Reader, what: str) -> str:
        return (f"data service '{self.name}': {reader} in epoch {self.epoch}: {what}; reset all trainers to epoch {self.epoch} to read it "
                "again from its beginning, or use mode 'exactly_once', which needs no such task")

    def look(self, reader: Reader) -> State:
        """A reader's state now. Raises UnavailableError if it has lost the state that it had."""
        before, now = reader.state, reader.enter(self.cancel)
        if before is not None and now.life != before.life:
            raise UnavailableError(f"{reader} was restarted")
        reader.state = now
        return now


class _NoTable(Exception):
    """Which splits are given is lost, with the reader that hands them out."""


def _read(work: _First, reader: Reader, stream: Stream) -> None:
    """The thread of a reader in one epoch."""
    taken = work.taken
    while taken.reserve(stream):
        try:
            element = _element(work, reader)
        except LOST as e:
            if taken.stopped:
                return
            taken.lose(stream, e, _loss(work, reader, e))
            reader.state, reader.given = None, False
            reader.failed()
            taken.pause(reader.again - time.monotonic())
            continue
        except _NoTable as e:
            if taken.stopped:
                return
            return taken.end(stream, UnavailableError(str(e)))
        except _Wrong as e:
            return taken.end(stream, InvalidArgumentError(str(e)))
        except Error as e:  # of an element; the next call goes on behind it
            taken.add(stream, e)
            continue
        except BaseException as e:  # pylint: disable=broad-exception-caught  # the program raises it
            return taken.end(stream, e)
        reader.failures = 0
        if element is None:
            return taken.end(stream)
        taken.add(stream, element)


def _loss(work: _First, reader: Reader, why: Error) -> Optional[Exception]:
    """What the program is told of a lost reader; None: it lost nothing, or the program wants to go on."""
    if not reader.given or not work.raises:
        return None
    return UnavailableError(f"data service '{work.name}': {reader} is lost in epoch {work.epoch}, and with it the elements of its split that "
                            f"no trainer has: {why}; the next call goes on with the other splits (on_loss='continue' does so at once, and "
                            "mode 'exactly_once' loses nothing)")


class _Wrong(Exception):
    """The epoch cannot begin yet."""


def _element(work: _First, reader: Reader) -> Optional[Element]:
    """The next element of a reader in the epoch; None if it has no more."""
    state = reader.state or work.look(reader)
    while True:
        if work.is_current(state):
            if state.epoch > work.epoch:
                return None
            if state.epoch == work.epoch and state.turn % 2 == 0:
                reader.given = True
                try:
                    return _take(work, reader, state)
                except OutOfRangeError:
                    reader.given = False
                except InvalidArgumentError as e:
                    if not moved(e):
                        raise  # of the element
                    state = work.look(reader)
                    continue
            elif 0 <= state.epoch < work.epoch and work.epoch > work.ended + 1:
                _too_early(work, reader, state)
        split = work.claim(reader, state)
        if split == OVER or split // work.program.splits > work.epoch:
            return None
        if split == STALE:
            state = work.look(reader)
            continue
        if split // work.program.splits < work.epoch:
            _too_early(work, reader, state)
        reader.given = True
        state = _begin(work, reader, state, work.order[split % work.program.splits])


def _too_early(work: _First, reader: Reader, state: State) -> NoReturn:
    raise _Wrong(f"data service '{work.name}': {reader} is in epoch {state.epoch}, so epoch {work.epoch} has not begun; read each epoch to "
                 "its end before the next, or call join()")


def _take(work: _First, reader: Reader, state: State) -> Element:
    element: Element = reader.run("take", state.life, state.turn, cancel=work.cancel, as_tensors=True)
    return element


def _begin(work: _First, reader: Reader, state: State, split: int) -> State:
    """Begins a split, unless another trainer has. Returns the reader's state then."""
    turn = next_turn(state)
    try:
        reader.run("begin", state.life, turn, work.epoch, work.table, *work.program.fed(split), cancel=work.cancel)
    except InvalidArgumentError as e:
        if not moved(e):
            raise
        now = work.look(reader)
        if not work.is_current(now):
            raise _NoTable(work.text(reader, "another trainer has begun a split there that was handed out before the loss")) from None
        return now
    reader.state = State(state.life, turn, work.epoch, work.table)
    return reader.state
