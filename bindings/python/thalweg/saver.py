"""Checkpoints: variables, and resources of plugins, in files of TensorFlow's V2 bundle format, `prefix`.index and
`prefix`.data-00000-of-00001.

    thalweg.Saver().save(session, "model")         # all variables of the session's graph
    with thalweg.Checkpoint("model") as c:
        print(c.names, c["dense/w"])

Files are written under other names first: a prefix names the old checkpoint or the new one, never half of one."""
import ctypes
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Optional, Union

from . import _low
from ._handle import Handle, c_text
from .cancel import waited
from .dtypes import Array, DType, from_number
from .errors import NotFoundError, check, made
from .graph import Graph
from .output import Output, shape_from
from .runtime import Runtime
from .session import Session
from .tensor import Tensor, bytes_of
from .variable import Variable

Path = Union[str, "os.PathLike[str]"]

_ANY = "utf-8", "surrogateescape"  # names of tensors in a file may be any bytes


class Restored(NamedTuple):
    """The outcome of a partial restore for a variable or tensor. outcome: "restored", "missing", "other dtype", "other shape", or "unused"
    for a tensor of the file without a variable (variable is None)."""
    outcome: str
    variable: Optional[str]
    name: str
    text: str


_OUTCOMES = {_low.TW_RESTORE_DONE: "restored", _low.TW_RESTORE_MISSING: "missing", _low.TW_RESTORE_OTHER_DTYPE: "other dtype",
             _low.TW_RESTORE_OTHER_SHAPE: "other shape", _low.TW_RESTORE_UNUSED: "unused"}


def _path(path: Path) -> bytes:
    """Converts a path for the library, where a zero byte would end it."""
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise ValueError(f"{path!r} has a zero byte in it")
    return encoded


def _texts(values: Iterable[str]) -> Any:
    encoded = [c_text(v) for v in values]
    return (ctypes.c_char_p * len(encoded))(*encoded)


class Saver(Handle):
    """Saves and restores variables, and resources of plugins that can be saved, which have `:resource` after their name in files.
    variables: variables and handles of resources; None: all of the first session's graph at the time of first use.
    names: names of variables in files, {"encoder/*": "bert/*", "head/w": "old/w"}; others keep their names. A name without a star
    that no variable has is an InvalidArgumentError on first use, unless unused_names.   shards: data files.
    by_task: in a session of a cluster each task saves and restores its own variables, all at once. The tasks must see the same files and
    allow them, so give absolute paths. Tables in shards (ShardedTable) are restored from any number of saved shards.
    It adds its operations to the graph once, on first use; a saver belongs to one graph. Threads: one at a time."""

    def __init__(self, variables: Optional[Sequence[Union[Variable, Output]]] = None, *, names: Optional[Mapping[str, str]] = None,
                 shards: int = 1, unused_names: bool = False, by_task: bool = False):
        self._handle = 0
        self._variables, self._graph = variables, getattr(variables[0], "graph", None) if variables else None
        self._names, self._shards, self._flags = dict(names or {}), shards, _low.TW_SAVER_UNUSED_RULES * unused_names
        self._flags |= _low.TW_SAVER_BY_TASK * by_task
        if variables is not None and not variables:
            raise ValueError("there are no variables to save")
        if not 1 <= shards < 1 << 32:
            raise ValueError(f"shards is {shards}; there is at least one data file")

    def __del__(self, destroy: Any = _low.tw_saver_destroy) -> None:
        destroy(getattr(self, "_handle", None))

    def save(self, session: Session, prefix: Path) -> None:
        """Writes every variable's current value. Raises FailedPreconditionError for one without contents, and file system errors."""
        waited(_low.tw_saver_save, self._of(session.graph), session._handle, _path(prefix))

    def restore(self, session: Session, prefix: Path, task: Optional[str] = None) -> None:
        """Sets every variable from the file, or none. task: restores only those of one task, which has lost them (by_task). Raises
        NotFoundError naming file and tensor, InvalidArgumentError if dtype or shape differ, DataLossError."""
        handle = self._of(session.graph)
        if task is None:
            return waited(_low.tw_saver_restore, handle, session._handle, _path(prefix))
        tasks = list(self.tasks(session))
        if task not in tasks:
            there = ", ".join(tasks) or "none, make it with by_task"
            raise ValueError(f"the saver saves nothing of task {task!r} by itself; there are: {there}")
        waited(_low.tw_saver_restore_task, handle, session._handle, _path(prefix), tasks.index(task))

    def tasks(self, session: Session) -> dict[str, list[str]]:
        """Returns the tasks of a saver by_task, with the names of their variables; empty for any other saver."""
        handle = self._of(session.graph)
        found: dict[str, list[str]] = {_low.tw_saver_task(handle, k).decode(): [] for k in range(_low.tw_saver_task_count(handle))}
        for variable in session.graph.variables() if found else []:
            task = _task_of(variable.handle.operation.device)
            if task in found:
                found[task].append(variable.name)
        return found

    def restore_partial(self, session: Session, prefix: Path) -> list[Restored]:
        """Sets the variables whose name, dtype and shape the file has and leaves the others, to start from another model's file, or to
        continue with an extended model. Returns the outcome for each. Raises NotFoundError for the file, DataLossError."""
        report = made(_low.tw_saver_restore_partial, self._of(session.graph), session._handle, _path(prefix))
        try:
            return [_restored(report, i) for i in range(_low.tw_restore_report_count(report))]
        finally:
            _low.tw_restore_report_destroy(report)

    def _of(self, graph: Graph) -> int:
        if self._graph not in (None, graph):
            raise ValueError("the saver belongs to another graph than the session")
        if not self._handle:
            variables = self._variables or []
            for i, v in enumerate(variables):
                if not isinstance(v, (Variable, Output)):
                    raise TypeError(f"variables[{i}] is {v!r}, neither a variable nor the handle of a resource")
            handles = (ctypes.c_uint64 * len(variables))(*(v.handle.number if isinstance(v, Variable) else v.number for v in variables))
            rules, names = _texts(self._names), _texts(self._names.values())
            tables = [t for t in graph._tables if self._variables is None or set(variables).issuperset(t.variables)]
            options = _low.tw_saver_options(size=ctypes.sizeof(_low.tw_saver_options), flags=self._flags, variables=rules,
                                            names=names, n_names=len(self._names), shards=self._shards,
                                            table_names=_texts(t.name for t in tables), n_tables=len(tables),
                                            tables=(_low.tw_sharded * len(tables))(*(t._raw() for t in tables)))
            self._handle = made(_low.tw_saver_create_with, graph._handle, handles, len(variables), options)
            self._graph = graph
        return self._handle


def _task_of(device: str) -> str:
    """Returns the job and task of a device's name."""
    return "".join(f"/{part}" for part in device.split("/") if part.startswith(("job:", "task:")))


def _restored(report: int, i: int) -> Restored:
    variable = _low.tw_restore_report_variable(report, i)
    name, text = _low.tw_restore_report_name(report, i), _low.tw_restore_report_text(report, i)
    return Restored(_OUTCOMES[_low.tw_restore_report_outcome(report, i)], variable and variable.decode(), name.decode(*_ANY),
                    text.decode(*_ANY))


class SaveReport(NamedTuple):
    """The cost of saving. step: of the last written save, None before the first.   stall, seconds: how long that save blocked its caller,
    and how long writing took.   saves, skipped, failed: counts since the checkpointer was made."""
    step: Optional[int]
    stall: float
    seconds: float
    bytes: int
    saves: int
    skipped: int
    failed: int


class Checkpointer(Handle):
    """Writes checkpoints of a session to a folder during training, and restores them after a crash.

        with thalweg.Checkpointer(session, "run", every_steps=100) as c:
            for step in range(c.restore(), 10_000):     # 0 at first, else where the last run was
                session.run(train)
                c.step(step + 1)

    If the block ends without an error, it saves the last step given to `step`. It always waits for a save that is being written.

    saver: None: one of all variables.   name: of the checkpoints, `name`-`step`.   every_steps, every_seconds: when a save is due.
    background: a save only reads the values, which copies nothing; a thread writes them. With a saver by_task each task reads its values
    and writes them while training goes on; a save between two steps has whole steps.   skip: if that thread is still writing when a save
    is due, skip the save; else wait.   keep_last: number of newest checkpoints to keep; None: all.   keep_best: number of checkpoints with
    the best metric to keep too (`smaller_is_better`).   keep_every_seconds: of the others, one is kept for good at this interval.
    shards: data files.
    Files and folder have TensorFlow's form. Raises InvalidArgumentError. Threads: one at a time."""

    def __init__(self, session: Session, folder: Path, saver: Optional[Saver] = None, *, name: str = "model.ckpt",
                 every_steps: int = 0, every_seconds: float = 0, background: bool = False, skip: bool = False,
                 keep_last: Optional[int] = 5, keep_best: int = 0, smaller_is_better: bool = False, keep_every_seconds: float = 0,
                 shards: int = 1):
        self._handle = 0
        if keep_last is not None and not 1 <= keep_last < 1 << 32:
            raise ValueError(f"keep_last is {keep_last}; the newest checkpoint always stays, None keeps all")
        if not 0 <= keep_best < 1 << 32 or not 1 <= shards < 1 << 32:
            raise ValueError(f"keep_best is {keep_best} and shards {shards}; keep 0 or more, in at least one data file")
        self._session, self._saver = session, saver or Saver()
        self._last: Optional[tuple[int, Optional[float]]] = None
        self._saved: Optional[tuple[int, Optional[float]]] = None
        flags = (_low.TW_CHECKPOINTER_BACKGROUND * background | _low.TW_CHECKPOINTER_SKIP * skip
                 | _low.TW_CHECKPOINTER_SMALLER_IS_BETTER * smaller_is_better)
        options = _low.tw_checkpointer_options(
            size=ctypes.sizeof(_low.tw_checkpointer_options), flags=flags, name=_path(name), every_steps=every_steps,
            every_seconds=every_seconds, keep_last=keep_last or 0, keep_best=keep_best, keep_every_seconds=keep_every_seconds,
            shards=shards)
        self._handle = made(_low.tw_checkpointer_create, self._saver._of(session.graph), session._handle, _path(folder), options)

    def __del__(self, destroy: Any = _low.tw_checkpointer_destroy) -> None:
        destroy(getattr(self, "_handle", None))

    def __enter__(self) -> "Checkpointer":
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        try:
            if kind is None:
                if self._last is not None and self._last != self._saved:
                    self.save(*self._last)
                self.wait()
        finally:
            self.close()

    def close(self) -> None:
        """Waits for a save that is being written, and allows no more saves. Closing twice is fine."""
        handle, self._handle = self._handle, 0
        _low.tw_checkpointer_destroy(handle)

    def step(self, step: int, metric: Optional[float] = None) -> bool:
        """Saves if a save is due, and returns whether it did; call it after each training step. metric: the current quality of the model.
        Raises errors of the file system, also those of a background save since the last call; training may continue."""
        self._last = (step, metric)
        saved = ctypes.c_uint32()
        waited(_low.tw_checkpointer_step, self._open(), step, _double(metric), saved)
        if saved:
            self._saved = self._last
        return bool(saved)

    def save(self, step: int, metric: Optional[float] = None) -> None:
        """Saves, due or not, after the save that is being written. If that one failed, saves first and then raises its error."""
        waited(_low.tw_checkpointer_save, self._open(), step, _double(metric))
        self._last = self._saved = (step, metric)

    def wait(self) -> None:
        """Waits until no save is being written. Raises the error of that save."""
        waited(_low.tw_checkpointer_wait, self._open())

    def restore(self, which: str = "latest", default: Optional[int] = 0) -> int:
        """Sets the variables from the latest whole checkpoint, or from the "best" by metric, and returns its step; `default` if the
        folder has none (None: raises NotFoundError). Damaged ones are skipped, with the reason in the log. Raises DataLossError if all are
        damaged, InvalidArgumentError and FailedPreconditionError for one that does not fit the variables."""
        if which not in ("latest", "best"):
            raise ValueError(f"which is {which!r}; it is 'latest' or 'best'")
        step = ctypes.c_int64(-1)
        number = _low.TW_CHECKPOINT_BEST if which == "best" else _low.TW_CHECKPOINT_LATEST
        try:
            waited(_low.tw_checkpointer_restore, self._open(), number, step, None)
        except NotFoundError:
            if default is None:
                raise
            return default
        return step.value

    def report(self) -> SaveReport:
        """Returns the cost of its saves so far."""
        stats = _low.tw_checkpointer_stats(size=ctypes.sizeof(_low.tw_checkpointer_stats))
        check(_low.tw_checkpointer_report(self._open(), stats))
        return SaveReport(None if stats.step < 0 else stats.step, stats.stall_ns * 1e-9, stats.write_ns * 1e-9, stats.bytes, stats.saves,
                          stats.skipped, stats.failed)

    def _open(self) -> int:
        if not self._handle:
            raise ValueError("the checkpointer is closed")
        return self._handle


def _double(value: Optional[float]) -> Any:
    return None if value is None else ctypes.byref(ctypes.c_double(value))


def _runtime(runtime: Optional[Runtime]) -> Optional[int]:
    return runtime._handle if runtime else None


def latest_checkpoint(folder: Path, runtime: Optional[Runtime] = None) -> Optional[str]:
    """Returns the prefix of the latest whole checkpoint of a folder, skipping damaged ones; None: there is none. runtime: its plugins
    resolve paths `scheme://...`; None: the default one. Raises DataLossError if all are damaged."""
    prefix = ctypes.c_void_p()
    try:
        check(_low.tw_checkpoint_latest_in(_runtime(runtime), _path(folder), prefix, None))
    except NotFoundError:
        return None
    return os.fsdecode(bytes_of(prefix.value or 0))


class Checkpoint(Handle, Mapping[str, Array]):
    """A checkpoint, open for reading: arrays by name. Raises NotFoundError; DataLossError if its index is damaged or of another format.
    Threads: any, until it is closed."""

    def __init__(self, prefix: Path, runtime: Optional[Runtime] = None):
        self._handle = made(_low.tw_checkpoint_open_in, _runtime(runtime), _path(prefix))
        self.names = [_low.tw_checkpoint_name(self._handle, i).decode(*_ANY) for i in range(_low.tw_checkpoint_count(self._handle))]

    def __del__(self, close: Any = _low.tw_checkpoint_close) -> None:
        close(getattr(self, "_handle", None))

    def __enter__(self) -> "Checkpoint":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file; later reads fail. Closing twice is fine."""
        handle, self._handle = self._handle, 0
        _low.tw_checkpoint_close(handle)

    def __repr__(self) -> str:
        return f"<Checkpoint of {len(self.names)} tensors>"

    def __getitem__(self, name: str) -> Array:
        """Reads one array and verifies its checksum. Raises KeyError; DataLossError."""
        return self.read(name).numpy()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def read(self, name: str) -> Tensor:
        """As [], but returns a Tensor, for types that NumPy does not have."""
        if name not in self.names:
            raise KeyError(name)
        return Tensor._adopt(made(_low.tw_checkpoint_read, self._open(), name.encode(*_ANY)))

    def describe(self, name: str) -> tuple[DType, Optional[tuple[Optional[int], ...]], int]:
        """Returns element type, shape and bytes in the file. Raises NotFoundError."""
        dtype, shape, size = ctypes.c_uint32(), _low.tw_shape(), ctypes.c_uint64()
        check(_low.tw_checkpoint_describe(self._open(), self._key(name), dtype, shape, size))
        return from_number(dtype.value), shape_from(shape), size.value

    def verify(self, name: Optional[str] = None) -> None:
        """Compares the checksum of one tensor, or of all, with its bytes in the file. Raises DataLossError naming file and tensor."""
        check(_low.tw_checkpoint_verify(self._open(), None if name is None else self._key(name)))

    def _open(self) -> int:
        if not self._handle:
            raise ValueError("the checkpoint is closed")
        return self._handle

    @staticmethod
    def _key(name: str) -> bytes:
        if "\0" in name:
            raise ValueError(f"{name!r} has a zero byte in it")
        return name.encode(*_ANY)


def write_checkpoint(prefix: Path, values: Mapping[str, Any], runtime: Optional[Runtime] = None) -> None:
    """Writes arrays under their names, without a graph."""
    tensors = [v if isinstance(v, Tensor) else Tensor(v) for v in values.values()]
    names = (ctypes.c_char_p * len(tensors))(*(c_text(name) for name in values))
    handles = (ctypes.c_void_p * len(tensors))(*(t._handle for t in tensors))
    check(_low.tw_checkpoint_write_in(_runtime(runtime), _path(prefix), names, handles, len(tensors), 1))
