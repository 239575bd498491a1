"""L-BFGS: minimises a loss over all of its data at once; see c_api/include/thalweg/lbfgs.h.

    report = thalweg.train.LBFGS(loss).run(session, {x: images, y: labels}, max_iterations=200)
    print(report.loss, report.why)"""
import ctypes
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Optional

from . import _low
from ._handle import Handle
from .cancel import waited
from .errors import made
from .output import Output
from .session import Session
from .tensor import Tensor
from .variable import Variable

_WHY = {_low.TW_LBFGS_GRADIENT: "gradient", _low.TW_LBFGS_CHANGE: "change", _low.TW_LBFGS_ITERATIONS: "iterations",
        _low.TW_LBFGS_STUCK: "stuck"}


class Report(NamedTuple):
    """The result of a run. gradient: its largest absolute element at the end.   why: the reason for the end: "gradient" (small), "change"
    (the loss hardly changes), "iterations" (max_iterations reached), "stuck" (no smaller loss found at the precision of the type)."""
    iterations: int
    evaluations: int
    loss: float
    gradient: float
    why: str


class LBFGS(Handle):
    """Limited-memory BFGS with a line search by the strong Wolfe conditions. It adds its operations to the graph when it is made.

    variables: None: all trainable ones of real numbers.   history: pairs of steps and gradient differences kept, 16 bytes a weight each.
    gradient_tolerance: done when no element of the gradient is larger.   change_tolerance: done when a step changes the loss by no more
    than this times max(1, |loss|).   max_evaluations: of loss and gradient in a line search.   Threads: one run at a time.
    Raises InvalidArgumentError if the loss is no scalar or depends on none of the variables."""

    def __init__(self, loss: Output, variables: Optional[Sequence[Variable]] = None, *, history: int = 10, max_evaluations: int = 25,
                 gradient_tolerance: float = 1e-6, change_tolerance: float = 1e-12):
        self._handle, self.graph = 0, loss.graph
        if min(history, max_evaluations) < 1:
            raise ValueError(f"history {history} and max_evaluations {max_evaluations} must be at least 1")
        if variables is None:
            variables = [v for v in self.graph.variables() if v.trainable and v.dtype.is_floating]
        options = _low.tw_lbfgs_options()
        _low.tw_lbfgs_options_init(options)
        options.history, options.max_evaluations = history, max_evaluations
        options.gradient_tolerance, options.change_tolerance = gradient_tolerance, change_tolerance
        handles = (ctypes.c_uint64 * len(variables))(*(v.handle.number for v in variables))
        self._handle = made(_low.tw_lbfgs_create, self.graph._handle, loss._value().number, handles, len(variables), options)

    def __del__(self, destroy: Any = _low.tw_lbfgs_destroy) -> None:
        destroy(getattr(self, "_handle", None))

    def run(self, session: Session, feeds: Optional[Mapping[Output, Any]] = None, max_iterations: int = 100) -> Report:
        """Moves the variables until the tolerances are met or max_iterations steps are taken. feeds: of the loss, the same in every
        evaluation. The next run continues with the curvature found so far. Raises FailedPreconditionError if the loss is not finite at
        the start, and errors of runs; the variables are then at the best position so far."""
        if max_iterations < 1:
            raise ValueError(f"max_iterations is {max_iterations}; it must be at least 1")
        feeds = feeds or {}
        tensors = [v if isinstance(v, Tensor) else Tensor(v, x.dtype) for x, v in feeds.items()]
        values = (ctypes.c_uint64 * len(feeds))(*(x.number for x in feeds))
        held = (ctypes.c_void_p * len(feeds))(*(t._handle for t in tensors))
        report = _low.tw_lbfgs_report(size=ctypes.sizeof(_low.tw_lbfgs_report))
        waited(_low.tw_lbfgs_run, self._handle, session._handle, values, held, len(feeds), max_iterations, report)
        return Report(report.iterations, report.evaluations, report.loss, report.gradient, _WHY[report.why])

    def reset(self) -> None:
        """Forgets the curvature; call it before a run on other data."""
        _low.tw_lbfgs_reset(self._handle)
