"""Iterators: what gives the batches of a training, an evaluation or a prediction.

    data = thalweg.Iterator.of_arrays(images, labels, batch=32, shuffle=True)
    trainer.fit(data, epochs=20, folder="run")

Trainers make iterators of arrays, of functions that give batches, and of tw.train.Batches themselves; this module is for other loops, and
for iterators that other packages make. c_api/include/thalweg/iterator.h describes the record behind them."""
import ctypes
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Iterator as PythonIterator
from typing import Any, Optional

import numpy as np

from . import _low
from ._handle import Handle
from .dtypes import DType
from .errors import BY_CODE, Error, check
from .output import Formula
from .session import Session
from .tensor import Tensor, bytes_of

__all__ = ["Iterator"]


def __dir__() -> list[str]:
    return __all__


class Iterator(Handle):
    """Gives batches, which are tuples of tensors, epoch by epoch. Make one with of_arrays, of_batches or of_fetches; a package with
    iterators of its own wraps a tw_iterator* by Iterator.adopt. `for batch in iterator` gives the rest of the epoch as arrays.
    Threads: one at a time."""

    _handle: Any
    _kept: tuple[Any, ...]
    failure: Optional[BaseException]  # what Python code behind it raised in the running call
    _lent = False                     # another object ends it

    def __init__(self) -> None:
        raise TypeError("make an iterator with Iterator.of_arrays, of_batches or of_fetches")

    @classmethod
    def adopt(cls, record: Any, *kept: Any) -> "Iterator":
        """Takes over a tw_iterator*, a ctypes pointer or an address. kept: objects that must live as long."""
        self = cls.__new__(cls)
        pointer = ctypes.POINTER(_low.tw_iterator)
        self._handle = record if isinstance(record, pointer) else ctypes.cast(record, pointer)
        self._kept, self.failure = kept, None
        return self

    @classmethod
    def of_arrays(cls, *arrays: Any, batch: int = 32, shuffle: bool = False, seed: int = 0, drop_remainder: bool = False,
                  dtypes: Optional[Sequence[DType]] = None) -> "Iterator":
        """Batches of rows of arrays with one length. shuffle: each epoch has an order of its own, which depends on the seed, the epoch and
        the number of rows alone.   drop_remainder: leaves out a last batch of fewer rows.   dtypes: of the tensors; None: those of the
        arrays. Arrays are not copied where their layout allows; do not write to them. Raises InvalidArgumentError."""
        tensors = [a if isinstance(a, Tensor) else Tensor(a, None if dtypes is None else dtypes[i], copy=False)
                   for i, a in enumerate(arrays)]
        handles = (ctypes.c_void_p * len(tensors))(*(t._handle for t in tensors))
        options = _low.tw_batch_options(size=ctypes.sizeof(_low.tw_batch_options), batch=batch, seed=seed, shuffle=shuffle,
                                        drop_remainder=drop_remainder)
        made = ctypes.POINTER(_low.tw_iterator)()
        check(_low.tw_iterator_create_batches(handles, len(tensors), options, made))
        return cls.adopt(made)

    @classmethod
    def of_fetches(cls, session: Session, values: Sequence[Formula], epoch_batches: int = 0) -> "Iterator":
        """Batches that are fetched from a session, such as the results of a dequeue. epoch_batches: the batches of an epoch; 0: one epoch,
        until the queue is closed and empty. Batches cannot be repeated."""
        numbers = (ctypes.c_uint64 * len(values))(*(v._value().number for v in values))
        made = ctypes.POINTER(_low.tw_iterator)()
        check(_low.tw_iterator_create_fetches(session._handle, numbers, len(values), epoch_batches, made))
        return cls.adopt(made, session)

    @classmethod
    def of_batches(cls, batches: Callable[[int], Iterable[Any]], n: int, *, n_batches: int = -1,
                   dtypes: Optional[Sequence[DType]] = None) -> "Iterator":
        """Batches that Python gives: batches(epoch) returns an iterable of tuples of n arrays, a generator for instance. To resume a
        training, it must give the same batches for the same epoch."""
        return _python_iterator(batches, n, n_batches, dtypes)

    @classmethod
    def of_owner(cls, owner: Any) -> "Iterator":
        """The iterator that another object owns in its `_handle`, as those of data sets do; keeps that object alive."""
        handle = getattr(owner, "_handle", None)
        if not isinstance(handle, ctypes.POINTER(_low.tw_iterator)):
            raise TypeError(f"{owner!r} is no iterator of the library")
        self = cls.__new__(cls)
        self._handle, self._kept, self.failure, self._lent = handle, (owner,), None, True
        return self

    def __del__(self, destroy: Any = _low.tw_iterator_destroy) -> None:
        if not self._lent:
            destroy(getattr(self, "_handle", None))

    @property
    def n_tensors(self) -> int:
        """The number of tensors of a batch."""
        return int(self._handle.contents.n_tensors)

    @property
    def n_batches(self) -> Optional[int]:
        """The number of batches of an epoch; None: unknown."""
        n = int(self._handle.contents.n_batches)
        return None if n < 0 else n

    def next(self) -> Optional[tuple[Tensor, ...]]:
        """Returns the next batch of the epoch; None at its end."""
        end, out = ctypes.c_uint32(), (ctypes.c_void_p * self.n_tensors)()
        self.check(_low.tw_iterator_next(self._handle, out, end))
        return None if end.value else tuple(Tensor._adopt(handle or 0) for handle in out)

    def __iter__(self) -> PythonIterator[tuple[Any, ...]]:
        while (batch := self.next()) is not None:
            yield tuple(t.numpy() for t in batch)

    def reset(self, epoch: int = 0) -> None:
        """Starts an epoch. Raises UnimplementedError if the data can be read once only."""
        self.check(_low.tw_iterator_reset(self._handle, epoch))

    def save(self) -> bytes:
        """Returns the position. Raises UnimplementedError for an iterator that has none."""
        out = ctypes.c_void_p()
        self.check(_low.tw_iterator_save(self._handle, out))
        return bytes_of(out.value or 0)

    def restore(self, position: bytes) -> None:
        """Continues at a saved position. Raises InvalidArgumentError for one of other data."""
        self.check(_low.tw_iterator_restore(self._handle, position, len(position)))

    def check(self, status: Optional[int]) -> None:
        """Raises the error of a status, or the exception that Python code behind the iterator raised."""
        failure, self.failure = self.failure, None
        if failure is not None:
            _low.tw_status_release(status)
            raise failure
        check(status)


def _python_iterator(batches: Callable[[int], Iterable[Any]], n: int, n_batches: int, dtypes: Optional[Sequence[DType]]) -> Iterator:
    if not callable(batches):
        raise TypeError(f"{batches!r} is no function of the epoch")
    if n < 1:
        raise ValueError(f"n is {n}; a batch has at least one array")
    at: list[PythonIterator[Any]] = []  # of the epoch
    holder: list[Iterator] = []

    def start(epoch: int) -> None:
        at[:] = [iter(batches(epoch))]

    def give(_: Any, out: Any, end: Any) -> Optional[int]:
        try:
            if not at:
                start(0)
            batch = next(at[0], None)
            if batch is None:
                end[0] = 1
                return None
            parts = batch if isinstance(batch, (tuple, list)) else (batch,)
            if len(parts) != n:
                raise ValueError(f"a batch has {len(parts)} arrays; it must have {n}")
            tensors = [x if isinstance(x, Tensor) else Tensor(x, None if dtypes is None else dtypes[i]) for i, x in enumerate(parts)]
            for i, tensor in enumerate(tensors):
                _low.tw_tensor_retain(tensor._handle)
                out[i] = tensor._handle
            return None
        except BaseException as e:  # pylint: disable=broad-exception-caught  # raised again when the call is over
            return failed(holder[0], e)

    def reset(_: Any, epoch: int) -> Optional[int]:
        try:
            start(epoch)
            return None
        except BaseException as e:  # pylint: disable=broad-exception-caught
            return failed(holder[0], e)

    kinds: dict[str, Any] = dict(_low.tw_iterator._fields_)
    record = _low.tw_iterator(size=ctypes.sizeof(_low.tw_iterator), n_tensors=n, n_batches=n_batches, next=kinds["next"](give),
                              reset=kinds["reset"](reset))
    holder.append(Iterator.adopt(ctypes.pointer(record), record))
    return holder[0]


def failed(where: Any, e: BaseException) -> int:
    """Keeps an exception of a callback for where.check, and returns a status for the library."""
    where.failure = e
    code = e.code if isinstance(e, Error) and e.code in BY_CODE else _low.TW_UNKNOWN
    made: int = _low.tw_status_create(code, f"{type(e).__name__}: {e}".encode(errors="replace"))
    return made


def iterator_of(data: Any, n: int, dtypes: Optional[Sequence[DType]], batch: int, shuffle: bool, seed: int, drop_remainder: bool = False) -> Iterator:
    """Returns the iterator that `data` is or stands for: an Iterator; an object with a method `iterator()`, as data sets have; a function
    of the epoch; a thalweg.train.Batches; or arrays."""
    from .train import Batches
    if isinstance(data, Iterator):
        return data
    if hasattr(data, "iterator"):
        made = data.iterator()
        return made if isinstance(made, Iterator) else Iterator.of_owner(made)
    if isinstance(getattr(data, "_handle", None), ctypes.POINTER(_low.tw_iterator)):
        return Iterator.of_owner(data)
    if isinstance(data, Batches):
        return Iterator.of_arrays(*data.arrays, batch=data.size, shuffle=True, seed=data.seed or 0, dtypes=dtypes)
    if callable(data):
        return Iterator.of_batches(data, n, dtypes=dtypes)
    arrays = data if isinstance(data, (tuple, list)) else (data,)
    if any(np.ndim(a) == 0 for a in arrays):
        raise TypeError(f"{data!r} is no data; arrays, an Iterator, a function of the epoch and tw.train.Batches are")
    return Iterator.of_arrays(*arrays, batch=batch, shuffle=shuffle, seed=seed, drop_remainder=drop_remainder, dtypes=dtypes)
