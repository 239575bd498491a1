"""Training in half precision: gradients that are too small for it are scaled up, and down again before the update.

    scaled = thalweg.train.LossScale(thalweg.train.Adam(0.001))
    step = scaled.minimize(loss)"""
import ctypes
from collections.abc import Sequence
from typing import Any, Optional

import numpy as np

from . import _low, flow, ops, scopes
from .errors import made
from .gradients import Gradient, SparseGradient, of_loss
from .layers import updates
from .output import Formula, Operation, Output
from .variable import Variable


class LossScale:
    """An optimizer that computes gradients of scale * loss and divides them by the scale. If not all gradients of a step are finite, the
    step only multiplies the scale by backoff. After `interval` steps in a row with finite gradients, the scale is multiplied by growth.
    Powers of two change no bit of a value that does not overflow.

    optimizer: one of thalweg.train.   start, least, most: values of the scale; growth: at least 1; backoff: in (0, 1).
    scale, good_steps: after minimize or apply, the variables of the state, which should be saved with the model. They are not trainable.
    Works on every device; the update runs in a branch (`thalweg.cond`)."""

    def __init__(self, optimizer: Any, start: float = 2.0 ** 15, growth: float = 2.0, backoff: float = 0.5, interval: int = 2000,
                 least: float = 1.0, most: float = 2.0 ** 24):
        if not (0 < least <= start <= most and growth >= 1 and 0 < backoff < 1 and interval >= 1):
            raise ValueError(f"LossScale(start={start}, growth={growth}, backoff={backoff}, interval={interval}, least={least}, most={most}): "
                             "0 < least <= start <= most, growth >= 1, 0 < backoff < 1 and interval >= 1 must hold")
        self.optimizer, self.start, self.growth, self.backoff = optimizer, start, growth, backoff
        self.interval, self.least, self.most = interval, least, most
        self.scale: Optional[Variable] = None
        self.good_steps: Optional[Variable] = None
        self._now: Optional[Output] = None

    def current(self) -> Output:
        """Returns the scale of this step's gradients, to be given as dys of thalweg.gradients."""
        if self._now is None:
            with scopes.name_scope("loss_scale"):  # gets a number if there are several
                self.scale = Variable(self.start, name="scale", dtype="float32", trainable=False)
                self.good_steps = Variable(0, name="good_steps", dtype="int32", trainable=False)
            self._now = self.scale.read()
        return self._now

    def minimize(self, loss: Output, variables: Optional[Sequence[Variable]] = None, *, clip: Any = None,
                 count_steps: Optional[bool] = None) -> Operation:
        """As Optimizer.minimize."""
        with scopes.working(loss.graph):
            if variables is None:
                variables = [v for v in loss.graph.variables() if v.trainable and v.dtype.is_floating]
            found = of_loss(loss, list(variables), [self.current().astype(loss.dtype)])
            step, averages = self.apply(found, variables, clip=clip, count_steps=count_steps), updates(loss)
            return loss.graph.group(step, *averages) if averages else step

    def apply(self, gradients: Sequence[Gradient], variables: Sequence[Variable], *, clip: Any = None,
              count_steps: Optional[bool] = None) -> Operation:
        """As Optimizer.apply, for gradients of current() * loss. clip gets them divided by the scale. Only updates count."""
        graph = variables[0].graph
        with scopes.working(graph):
            down = 1 / self.current()
            whole = [_times(g, down) for g in gradients]
            parts = [p for g in whole if g is not None for p in ([g.values, g.rows] if isinstance(g, SparseGradient) else [g])]
            if not parts:
                raise ValueError("there are no gradients to apply")
            finite = _all_finite([p for p in parts if p.dtype.is_floating])
            rate = self.optimizer.learning_rate
            given = parts + ([graph._own(rate._value())] if isinstance(rate, Formula) else [])
            update = self.optimizer.apply(whole, variables, clip=clip, count_steps=count_steps)
            return graph.group(_only_if(finite, given, update), *self._next(finite))

    def _next(self, finite: Output) -> list[Operation]:
        """Returns the scale and the count after this step."""
        assert self.scale is not None and self.good_steps is not None
        scale, steps = self.current(), self.good_steps.read() + 1
        grown = steps >= self.interval
        larger = ops.minimum(scale * self.growth, np.float32(self.most))
        smaller = ops.maximum(scale * self.backoff, np.float32(self.least))
        kept = ops.select_v2(grown, larger, scale)
        return [self.scale.assign(ops.select_v2(finite, kept, smaller)),
                self.good_steps.assign(ops.select_v2(ops.logical_and(finite, ops.logical_not(grown)), steps, np.int32(0)))]


def _times(gradient: Gradient, factor: Output) -> Gradient:
    if gradient is None:
        return None
    if isinstance(gradient, SparseGradient):
        return SparseGradient(gradient.values * factor.astype(gradient.values.dtype), gradient.rows)
    return gradient * factor.astype(gradient.dtype)


def _all_finite(values: list[Output]) -> Output:
    each = [ops.all(ops.is_finite(v).reshape(-1), np.int32(0)) for v in values]
    while len(each) > 1:
        each = [ops.logical_and(a, b) for a, b in zip(each[::2], each[1::2])] + each[len(each) // 2 * 2:]
    return each[0]


def _only_if(pred: Output, given: list[Output], update: Operation) -> Operation:
    """Moves the operations that `update` needs beyond the given values into a function, which runs if pred is true."""
    graph = pred.graph
    numbers = (ctypes.c_uint64 * len(given))(*(x.number for x in given))
    targets = (ctypes.c_void_p * 1)(update._handle)
    spec = _low.tw_function_spec(
        size=ctypes.sizeof(_low.tw_function_spec), name=b"loss_scaled_update", args=numbers,
        targets=ctypes.cast(targets, type(_low.tw_function_spec().targets)), n_args=len(given), n_targets=1, make_unique=True)
    call = Operation(graph, made(_low.tw_graph_outline, graph._handle, spec))
    nothing = flow.Traced(graph, lambda: None, [], "a step that is left out").add("loss_scaled_nothing", call.inputs)
    return flow._call(graph, "If", pred, call.inputs, name=None, Tout=[], output_shapes=[], then_branch=call.attributes["f"],
                      else_branch=nothing)[1]
