"""Schedules: learning rates that change with the step. Each function returns a double scalar, which an optimizer accepts as its
learning rate like any other scalar value.

    rate = thalweg.schedules.cosine(0.1, steps=10_000)
    step = thalweg.train.Momentum(rate).minimize(loss)

step: the value that counts the training steps; None: the graph's global step, which `minimize` then advances once per training
step, for any number of optimizers (is_counted). A step below 0 counts as 0.
The formulas are TensorFlow's; see c_api/include/thalweg/schedule.h."""
import ctypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Optional

from . import _low, scopes
from .graph import Graph
from .output import Formula, Operation, Output
from .variable import Variable, listed

__all__ = ["cosine", "cosine_restarts", "exponential", "global_step", "is_counted", "piecewise", "polynomial", "warm_up"]


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # a type checker would conclude from it that every name exists
    def __getattr__(name):
        from .op_functions import unknown
        raise AttributeError(unknown("schedules", name, __all__))


def global_step(graph: Optional[Graph] = None) -> Variable:
    """Returns the int64 variable `global_step` of a graph, by default the current one. Makes it, with initial value 0, if there is none."""
    graph = graph or scopes.current().graph
    with graph.building() as scope:
        number = _low.tw_global_step(scope)
    graph._fixed.add(number)
    return next(v for v in listed(graph) if v.handle.number == number)


def is_counted(graph: Graph, variables: Sequence[Variable]) -> bool:
    """Returns true if the graph's global step, if there is one, counts updates of these variables. It counts updates of the first
    optimizer's variables, so a training step of several optimizers, each with its own variables, counts once. Another optimizer that
    updates one of the first one's variables counts too. If the program advances the global step itself, no update counts."""
    if not graph.has("global_step"):
        return False
    step = graph.operation("global_step").outputs[0]
    advances = [o for o in graph.operations() if o.type == "AssignAddVariableOp" and o.inputs[0] is step]
    return not advances or not _updated_before(advances).isdisjoint(v.handle.number for v in variables)


def _updated_before(operations: Sequence[Operation]) -> set[int]:
    """Returns the handles that are inputs of operations before these by control edges."""
    handles: set[int] = set()
    todo, seen = list(operations), set(operations)
    while todo:
        for before in todo.pop().control_inputs:
            if before not in seen:
                seen.add(before)
                todo.append(before)
                handles.update(value.number for value in before.inputs if value.dtype.name == "resource")
    return handles


def _add(step: Any, build: Callable[[int, int], int]) -> Output:
    if step is None:
        step = global_step()
    value = step._value() if isinstance(step, Formula) else scopes.current().graph.constant(step)
    graph = value.graph
    with graph.building() as scope:
        number = build(scope, value.number)
    return Output(graph, number)


def piecewise(boundaries: Sequence[float], values: Sequence[float], step: Any = None) -> Output:
    """values[i] for the first i with step <= boundaries[i]; after the last boundary the last value, of which there is one more."""
    if len(values) != len(boundaries) + 1:
        raise ValueError(f"{len(boundaries)} boundaries part {len(boundaries) + 1} values, not {len(values)}")
    limits, parts = (ctypes.c_double * len(boundaries))(*boundaries), (ctypes.c_double * len(values))(*values)
    return _add(step, lambda scope, at: _low.tw_schedule_piecewise(scope, at, limits, parts, len(boundaries)))


def exponential(initial: float, steps: float, factor: float, staircase: bool = False, step: Any = None) -> Output:
    """initial factor^(step / steps); with staircase the exponent is rounded down."""
    return _add(step, lambda scope, at: _low.tw_schedule_exponential(scope, at, initial, steps, factor, staircase))


def polynomial(initial: float, steps: float, end: float = 0.0001, power: float = 1.0, cycle: bool = False, step: Any = None) -> Output:
    """(initial - end) (1 - step / steps)^power + end, and `end` after `steps`; with cycle, `steps` grows to its next multiple instead."""
    options = _low.tw_polynomial(size=ctypes.sizeof(_low.tw_polynomial), end=end, power=power, cycle=cycle)
    return _add(step, lambda scope, at: _low.tw_schedule_polynomial(scope, at, initial, steps, options))


def cosine(initial: float, steps: float, alpha: float = 0.0, step: Any = None) -> Output:
    """initial ((1 - alpha) (1 + cos(pi step / steps)) / 2 + alpha), and initial alpha after `steps`."""
    return _add(step, lambda scope, at: _low.tw_schedule_cosine(scope, at, initial, steps, alpha))


def cosine_restarts(initial: float, first_steps: float, length_factor: float = 2.0, height_factor: float = 1.0, alpha: float = 0.0,
                    step: Any = None) -> Output:
    """Repeats cosine: each period is length_factor times as long as the previous one and starts at height_factor times its rate."""
    options = _low.tw_cosine_restarts(size=ctypes.sizeof(_low.tw_cosine_restarts), length_factor=length_factor,
                                      height_factor=height_factor, alpha=alpha)
    return _add(step, lambda scope, at: _low.tw_schedule_cosine_restarts(scope, at, initial, first_steps, options))


def warm_up(value: Any, steps: float, start: float = 0.0, step: Any = None) -> Output:
    """`value`, a number or another schedule, times a factor that grows linearly from `start` at step 0 to 1 at step `steps`."""
    if not isinstance(value, Formula):
        value = (step.graph if isinstance(step, Formula) else scopes.current().graph).constant(float(value), "float64")
    return _add(step, lambda scope, at: _low.tw_schedule_warm_up(scope, at, value._value().number, steps, start))
