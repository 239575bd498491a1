"""What a training loop tells: Progress to callbacks, History at the end."""
import ctypes
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Optional

from . import _low
from .errors import check
from .iterators import failed

__all__ = ["History", "Progress"]


class Progress(NamedTuple):
    """The place of a loop. epoch: counted from 0.   step: updates so far.   batch: batches of the epoch so far.   values: after a step only
    the loss of its batch; after an epoch the loss and the metrics; empty before a step.   validation: the same of the validation; None:
    there is none.   improved: the watched value is the best so far.   seconds: since fit was called."""
    epoch: int
    epochs: int
    step: int
    batch: int
    n_batches: Optional[int]
    values: dict[str, float]
    validation: Optional[dict[str, float]]
    improved: bool
    seconds: float


def _progress(at: Any) -> Progress:
    p = at.contents
    names = [p.names[i].decode() for i in range(p.n_values)]
    validation = dict(zip(names, p.validation[:p.n_values])) if p.validation else None
    return Progress(p.epoch, p.epochs, p.step, p.batch, None if p.n_batches < 0 else p.n_batches,
                    dict(zip(names, p.values[:p.n_values])) if p.n_values else {}, validation, bool(p.improved), p.seconds)


_WHY = {0: "failed", _low.TW_FIT_COMPLETE: "complete", _low.TW_FIT_PATIENCE: "patience", _low.TW_FIT_STOPPED: "stopped"}


class History:
    """The values of a training: history["loss"] is a list with an entry for each epoch of the call, history.validation["loss"] the same of
    the validation.   epochs, steps: done so far, earlier calls included.   resumed_at: the step at which a checkpoint went on; None.
    best_epoch, best: with the best watched value; None.   why: "complete", "patience" or "stopped"."""

    def __init__(self, names: Sequence[str], validated: bool):
        self.values: dict[str, list[float]] = {name: [] for name in names}
        self.validation: dict[str, list[float]] = {name: [] for name in names} if validated else {}
        self.epochs = self.steps = 0
        self.resumed_at: Optional[int] = None
        self.best_epoch: Optional[int] = None
        self.best: Optional[float] = None
        self.why = "failed"

    def __getitem__(self, name: str) -> list[float]:
        return self.values[name]

    def __repr__(self) -> str:
        last = "".join(f", {name} {v[-1]:.4g}" for name, v in self.values.items() if v)
        last += "".join(f", validation {name} {v[-1]:.4g}" for name, v in self.validation.items() if v)
        return f"<History of {self.epochs} epochs, {self.steps} steps, {self.why}{last}>"

    def _add(self, at: Progress) -> None:
        for lists, values in ((self.values, at.values), (self.validation, at.validation or {})):
            for name, value in values.items():
                lists[name].append(value)

    def _end(self, report: Any) -> None:
        self.epochs, self.steps, self.why = report.epochs, report.steps, _WHY[report.why]
        self.resumed_at = None if report.resumed_at < 0 else report.resumed_at
        if report.best_epoch >= 0:
            self.best_epoch, self.best = report.best_epoch, report.best


class _Keeper:
    """Keeps the exception that a callback raised, and the functions that the library calls."""

    def __init__(self) -> None:
        self.failure: Optional[BaseException] = None
        self.functions: list[Any] = []

    def check(self, status: Optional[int]) -> None:
        failure, self.failure = self.failure, None
        if failure is not None:
            _low.tw_status_release(status)
            raise failure
        check(status)

    def before(self, function: Callable[[Progress], Any]) -> Callable[..., Optional[int]]:
        def call(_: Any, at: Any) -> Optional[int]:
            try:
                function(_progress(at))
                return None
            except BaseException as e:  # pylint: disable=broad-exception-caught  # raised again when the call is over
                return failed(self, e)
        return call

    def after(self, function: Callable[[Progress], Any]) -> Callable[..., Optional[int]]:
        def call(_: Any, at: Any, stop: Any) -> Optional[int]:
            try:
                stop[0] = function(_progress(at)) is True
                return None
            except BaseException as e:  # pylint: disable=broad-exception-caught
                return failed(self, e)
        return call


def callbacks_of(given: Any, history: History) -> tuple[list[Any], _Keeper]:
    """Returns records for the library, that of the history first, and the object that keeps them and their exception."""
    keeper = _Keeper()
    kinds: dict[str, Any] = dict(_low.tw_fit_callback._fields_)

    def record(**functions: Any) -> Any:
        made = {name: kinds[name](f) for name, f in functions.items() if f is not None}
        keeper.functions += made.values()
        return _low.tw_fit_callback(size=ctypes.sizeof(_low.tw_fit_callback), **made)

    records = [record(epoch_end=keeper.after(history._add))]
    for callback in given if isinstance(given, (list, tuple)) else [given]:
        names = [name for name in ("before_step", "after_step", "epoch_end") if callable(getattr(callback, name, None))]
        if names:
            wrap = {"before_step": keeper.before, "after_step": keeper.after, "epoch_end": keeper.after}
            records.append(record(**{name: wrap[name](getattr(callback, name)) for name in names}))
        elif callable(callback):
            records.append(record(epoch_end=keeper.after(callback)))
        else:
            raise TypeError(f"{callback!r} is no callback; functions of a Progress, and objects with before_step, after_step or epoch_end are")
    return records, keeper
