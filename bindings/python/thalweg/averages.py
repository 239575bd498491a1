"""Moving averages of variables, to evaluate and serve with.

    averages = thalweg.averages.MovingAverages(decay=0.99)
    step = averages.update(after=thalweg.train.Adam(0.001).minimize(loss))
    ...
    with averages.swapped(session):
        print(session.run(accuracy, test))"""
import contextlib
import ctypes
from collections.abc import Iterator, Sequence
from typing import Any, Optional

from . import _low, scopes
from .output import Formula, Operation
from .session import Session
from .variable import Variable, listed

__all__ = ["MovingAverages"]


def __dir__() -> list[str]:
    return __all__


class MovingAverages:
    """Averages that follow variables, each named `variable`/ExponentialMovingAverage as in TensorFlow:
    average -= (1 - decay) (average - variable). An average starts at the initial value of its variable.

    variables: None: all trainable ones of real numbers in the current graph at that time.   decay: in [0, 1).
    updates: a scalar value, the number of updates so far. With it, the decay is min(decay, (1 + updates) / (10 + updates)), so that
    early averages forget the initial values."""

    def __init__(self, variables: Optional[Sequence[Variable]] = None, decay: float = 0.999, updates: Any = None):
        graph = variables[0].graph if variables else scopes.current().graph
        if variables is None:
            variables = [v for v in graph.variables() if v.trainable and v.dtype.is_floating]
        self.graph, self.variables = graph, list(variables)
        self.averages: list[Variable] = []
        self._swap: Optional[Operation] = None
        self._decay, self._updates = decay, updates

    def update(self, after: Optional[Operation] = None) -> Operation:
        """Returns the operation to run once per training step: it runs `after`, then updates the averages. Call it once, and make the
        initializer afterwards."""
        if self.averages:
            raise ValueError("the averages are there already")
        updates = 0 if self._updates is None else self._value(self._updates)
        options = _low.tw_moving_averages(size=ctypes.sizeof(_low.tw_moving_averages), decay=self._decay, updates=updates)
        out = (ctypes.c_uint64 * len(self.variables))()
        with self.graph.building() as scope:
            made = _low.tw_moving_averages_add(scope, _handles(self.variables), len(out), options, after._handle if after else None, out)
        by_handle = {v.handle.number: v for v in listed(self.graph)}
        self.averages = [by_handle[number] for number in out]
        self.graph._fixed.update(out)
        return Operation(self.graph, made)

    def names(self) -> dict[str, str]:
        """Returns {name of a variable: name of its average}, with which a graph without averages restores them from a checkpoint."""
        return {v.name: f"{v.name}/ExponentialMovingAverage" for v in self.variables}

    def _value(self, updates: Any) -> int:
        return (updates._value() if isinstance(updates, Formula) else self.graph.constant(updates)).number

    def swap(self) -> Operation:
        """Returns an operation that exchanges the values of variables and averages; the same one at every call."""
        if not self.averages:
            raise ValueError("there are no averages yet; call update first")
        if self._swap is None:
            with self.graph.building() as scope:
                made = _low.tw_moving_averages_swap(scope, _handles(self.variables), _handles(self.averages), len(self.averages))
            self._swap = Operation(self.graph, made)
        return self._swap

    @contextlib.contextmanager
    def swapped(self, session: Session) -> Iterator[None]:
        """Inside the `with`, the session's variables have the values of their averages. No other thread may train meanwhile."""
        operation = self.swap()
        session.run(operation)
        try:
            yield
        finally:
            session.run(operation)


def _handles(variables: Sequence[Variable]) -> Any:
    return (ctypes.c_uint64 * len(variables))(*(v.handle.number for v in variables))
