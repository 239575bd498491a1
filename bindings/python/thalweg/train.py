"""Training: the loop (Trainer, fit), optimizers, clipping and weight decay; for loops of the program's own, batches and a progress bar.

    step = thalweg.train.Adam(0.001).minimize(loss)
    ...
    for bx, by in (bar := thalweg.train.progress(thalweg.train.Batches(images, labels, size=32, epochs=10))):
        bar.set_postfix(loss=s.run([loss, step], {x: bx, y: by})[0])"""
import ctypes
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Optional, Union

import numpy as np

from . import _low, scopes
from ._handle import c_text
from .all_reduce import AllReduce, broadcast_variables
from .gradients import Gradient, SparseGradient, _python as from_raw, of_loss
from .graph import Graph, group
from .history import History, Progress
from .layers import updates
from .lbfgs import LBFGS, Report
from .loss_scale import LossScale
from .module import Module
from .output import Formula, Operation, Output
from .schedules import is_counted
from .trainer import LOSSES, Trainer
from .variable import Variable, listed

__all__ = ["AdaMax", "Adadelta", "Adagrad", "Adam", "AdamW", "AllReduce", "Batches", "Ftrl", "Groups", "History", "LBFGS", "LOSSES", "LossScale", "Momentum", "Optimizer",
           "Progress", "RMSProp", "Report", "SGD", "Trainer", "accumulate_gradients", "broadcast_variables", "clip_by_global_norm", "clip_by_norm", "clip_by_value",
           "decay_gradients", "fit", "progress"]


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # a type checker would conclude from it that every name exists
    def __getattr__(name):
        from .op_functions import unknown
        raise AttributeError(unknown("train", name, __all__))


Clip = Union[float, Callable[[list[Gradient]], list[Gradient]]]


class Optimizer:
    """Updates variables by their gradients. A subclass that defines `update` is an optimizer of a program or a plugin.

    learning_rate: a number, or a scalar value: a schedule of thalweg.schedules or any other.
    weight_decay: in each step, w -= learning_rate * weight_decay * w before the update, apart from the gradient ("decoupled")."""

    def __init__(self, learning_rate: Any, weight_decay: float = 0.0):
        self.learning_rate, self.weight_decay = learning_rate, weight_decay

    def minimize(self, loss: Output, variables: Optional[Sequence[Variable]] = None, *, clip: Optional[Clip] = None,
                 count_steps: Optional[bool] = None) -> Operation:
        """Returns an operation to run once per training step, which minimises a scalar loss. variables: None: all trainable ones of real
        numbers. Averages of nn.BatchNorm layers on which the loss depends move with it. clip and count_steps: as in apply.
        Make the initializer after this, so that it includes the optimizer's state.
        Values fetched together with the step are read before the step's updates.
        Raises ValueError if the loss depends on none of the variables, or is no scalar."""
        graph = loss.graph
        if variables is None:
            variables = [v for v in graph.variables() if v.trainable and v.dtype.is_floating]
        found = of_loss(loss, list(variables))
        if all(g is None for g in found):
            raise ValueError(f"{loss!r} depends on none of the variables: {', '.join(v.name for v in variables) or 'there are none'}")
        step = self.apply(found, variables, clip=clip, count_steps=count_steps)
        averages = updates(loss)
        return group(step, *averages) if averages else step

    def apply(self, gradients: Sequence[Gradient], variables: Sequence[Variable], *, clip: Optional[Clip] = None,
              count_steps: Optional[bool] = None) -> Operation:
        """As minimize, for given gradients. Variables without a gradient stay unchanged.
        clip: a number: the largest norm of all gradients together; or a function that takes the list of gradients and returns another.
        count_steps: True: the step adds 1 to the graph's global step; None: it does if the graph has one, as schedules make it, and
        schedules.is_counted is true: of several optimizers the first one counts, and those that update one of its variables."""
        pairs = [(g, v) for g, v in zip(gradients, variables, strict=True) if g is not None]
        if not pairs:
            raise ValueError("there are no gradients to apply")
        changed = _clipped([g for g, _ in pairs], clip)
        chosen = [v for _, v in pairs]
        raw = (_low.tw_gradient * len(chosen))(*(_raw(g) for g in changed))
        return self._apply(chosen[0].graph, chosen, raw, count_steps)

    def update(self, variable: Variable, gradient: Gradient, rate: Output) -> Operation:
        """Adds the update of one variable in one step, and returns its operation. minimize and apply call it for each variable that has a
        gradient. Clipping, weight decay, schedules and the count of steps need nothing from it. Variables that it makes are not trained.

        gradient: an Output, or a SparseGradient.   rate: the learning rate, a scalar; `rate.astype(variable.dtype)` has the variable's type."""
        raise NotImplementedError(f"{type(self).__name__} has no update(); define it, as thalweg.train.Optimizer.update says")

    def _apply(self, graph: Graph, variables: list[Variable], gradients: Any, count_steps: Optional[bool]) -> Operation:
        rate, n = self.learning_rate, len(variables)
        number = rate._value().number if isinstance(rate, Formula) else graph.constant(float(rate), "float64").number
        handles, before = _handles(variables), {v.handle.number for v in listed(graph)}
        counts = is_counted(graph, variables) if count_steps is None else count_steps
        own = type(self).update is not Optimizer.update or type(self)._add is Optimizer._add
        with graph.building() as scope:
            if self.weight_decay:
                _low.tw_decay_weights(scope, handles, gradients, n, number, self.weight_decay)
            made: Any = None if own else self._add(scope, handles, gradients, n, number)
            if counts and not own:
                made = _low.tw_global_step_advance(scope, made)
        if own:
            with scopes.working(graph):
                pairs = [(v, from_raw(graph, g)) for v, g in zip(variables, gradients)]  # clip may have taken a gradient away
                made = group(*(self.update(v, g, Output(graph, number)) for v, g in pairs if g is not None))._handle
            if counts:
                with graph.building() as scope:
                    made = _low.tw_global_step_advance(scope, made)
        graph._fixed.update({v.handle.number for v in listed(graph)} - before)  # state of an optimizer is not trainable
        return Operation(graph, made)

    def _add(self, scope: int, variables: Any, gradients: Any, n: int, rate: int) -> int:
        raise NotImplementedError


def _clipped(gradients: list[Gradient], clip: Optional[Clip]) -> list[Gradient]:
    if not callable(clip):
        return gradients if clip is None else clip_by_global_norm(gradients, clip)[0]
    changed = list(clip(gradients))
    if len(changed) != len(gradients):
        raise ValueError(f"clip was given {len(gradients)} gradients and answered {len(changed)}; it must answer one for each, or None")
    return changed


def _raw(gradient: Gradient) -> "_low.tw_gradient":
    if gradient is None:
        return _low.tw_gradient(0, 0)
    if isinstance(gradient, SparseGradient):
        return _low.tw_gradient(gradient.values.number, gradient.rows.number)
    return _low.tw_gradient(gradient._value().number, 0)


def _handles(variables: Sequence[Variable]) -> Any:
    return (ctypes.c_uint64 * len(variables))(*(v.handle.number for v in variables))


def _options(kind: Any, rate: int, **values: Any) -> Any:
    return kind(size=ctypes.sizeof(kind), learning_rate=rate, **values)


class SGD(Optimizer):
    """Gradient descent: w -= learning_rate * g."""

    def __init__(self, learning_rate: Any = 0.01, weight_decay: float = 0.0):
        super().__init__(learning_rate, weight_decay)

    def _add(self, scope: int, variables: Any, gradients: Any, n: int, rate: int) -> int:
        return _low.tw_train_sgd(scope, variables, gradients, n, _options(_low.tw_sgd, rate))


class Momentum(Optimizer):
    """m = momentum * m + g; w -= learning_rate * m, or, with nesterov, w -= learning_rate * (g + momentum * m)."""

    def __init__(self, learning_rate: Any = 0.01, momentum: float = 0.9, nesterov: bool = False, weight_decay: float = 0.0):
        super().__init__(learning_rate, weight_decay)
        self.momentum, self.nesterov = momentum, nesterov

    def _add(self, scope: int, variables: Any, gradients: Any, n: int, rate: int) -> int:
        options = _options(_low.tw_momentum, rate, momentum=self.momentum, nesterov=self.nesterov)
        return _low.tw_train_momentum(scope, variables, gradients, n, options)


class Adagrad(Optimizer):
    """AdaGrad: a += g^2; w -= learning_rate * g / (sqrt(a) + epsilon), where a is initial_accumulator at first."""

    def __init__(self, learning_rate: Any = 0.01, initial_accumulator: float = 0.1, epsilon: float = 0.0, weight_decay: float = 0.0):
        super().__init__(learning_rate, weight_decay)
        self.initial_accumulator, self.epsilon = initial_accumulator, epsilon

    def _add(self, scope: int, variables: Any, gradients: Any, n: int, rate: int) -> int:
        options = _options(_low.tw_adagrad, rate, initial_accumulator=self.initial_accumulator, epsilon=self.epsilon)
        return _low.tw_train_adagrad(scope, variables, gradients, n, options)


class Adadelta(Optimizer):
    """AdaDelta: a = rho a + (1 - rho) g^2; step = g sqrt(u + epsilon) / sqrt(a + epsilon); w -= learning_rate * step;
    u = rho u + (1 - rho) step^2."""

    def __init__(self, learning_rate: Any = 0.001, rho: float = 0.95, epsilon: float = 1e-8, weight_decay: float = 0.0):
        super().__init__(learning_rate, weight_decay)
        self.rho, self.epsilon = rho, epsilon

    def _add(self, scope: int, variables: Any, gradients: Any, n: int, rate: int) -> int:
        return _low.tw_train_adadelta(scope, variables, gradients, n, _options(_low.tw_adadelta, rate, rho=self.rho, epsilon=self.epsilon))


class RMSProp(Optimizer):
    """s = rho s + (1 - rho) g^2; m = momentum m + learning_rate g / sqrt(s + epsilon); w -= m, where s is 1 at first. Centred:
    c = rho c + (1 - rho) g, and s - c^2 replaces s under the root."""

    def __init__(self, learning_rate: Any = 0.001, rho: float = 0.9, momentum: float = 0.0, epsilon: float = 1e-10, centered: bool = False,
                 weight_decay: float = 0.0):
        super().__init__(learning_rate, weight_decay)
        self.rho, self.momentum, self.epsilon, self.centered = rho, momentum, epsilon, centered

    def _add(self, scope: int, variables: Any, gradients: Any, n: int, rate: int) -> int:
        options = _options(_low.tw_rmsprop, rate, rho=self.rho, momentum=self.momentum, epsilon=self.epsilon, centered=self.centered)
        return _low.tw_train_rmsprop(scope, variables, gradients, n, options)


class Adam(Optimizer):
    """m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
    w -= learning_rate sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + epsilon), t counting steps from 1 (Kingma and Ba,
    arXiv:1412.6980)."""

    def __init__(self, learning_rate: Any = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, nesterov: bool = False,
                 weight_decay: float = 0.0):
        super().__init__(learning_rate, weight_decay)
        self.beta1, self.beta2, self.epsilon, self.nesterov = beta1, beta2, epsilon, nesterov

    def _add(self, scope: int, variables: Any, gradients: Any, n: int, rate: int) -> int:
        options = _options(_low.tw_adam, rate, beta1=self.beta1, beta2=self.beta2, epsilon=self.epsilon, nesterov=self.nesterov)
        return _low.tw_train_adam(scope, variables, gradients, n, options)


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, arXiv:1711.05101)."""

    def __init__(self, learning_rate: Any = 0.001, weight_decay: float = 0.01, beta1: float = 0.9, beta2: float = 0.999,
                 epsilon: float = 1e-8):
        super().__init__(learning_rate, beta1, beta2, epsilon, weight_decay=weight_decay)


class AdaMax(Optimizer):
    """m = beta1 m + (1 - beta1) g; v = max(beta2 v, |g|); w -= learning_rate / (1 - beta1^t) m / (v + epsilon)."""

    def __init__(self, learning_rate: Any = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
                 weight_decay: float = 0.0):
        super().__init__(learning_rate, weight_decay)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon

    def _add(self, scope: int, variables: Any, gradients: Any, n: int, rate: int) -> int:
        options = _options(_low.tw_adamax, rate, beta1=self.beta1, beta2=self.beta2, epsilon=self.epsilon)
        return _low.tw_train_adamax(scope, variables, gradients, n, options)


class Ftrl(Optimizer):
    """Follow the regularised leader; with p = -learning_rate_power, b = a + g^2: z += g + 2 l2_shrinkage w - (b^p - a^p) / learning_rate w;
    a = b; w = (sign(z) l1 - z) / (b^p / learning_rate + 2 l2) where |z| > l1, else 0. a is initial_accumulator at first, z is 0."""

    def __init__(self, learning_rate: Any = 0.001, learning_rate_power: float = -0.5, initial_accumulator: float = 0.1, l1: float = 0.0,
                 l2: float = 0.0, l2_shrinkage: float = 0.0, weight_decay: float = 0.0):
        super().__init__(learning_rate, weight_decay)
        self.learning_rate_power, self.initial_accumulator = learning_rate_power, initial_accumulator
        self.l1, self.l2, self.l2_shrinkage = l1, l2, l2_shrinkage

    def _add(self, scope: int, variables: Any, gradients: Any, n: int, rate: int) -> int:
        options = _options(_low.tw_ftrl, rate, learning_rate_power=self.learning_rate_power, initial_accumulator=self.initial_accumulator,
                           l1=self.l1, l2=self.l2, l2_shrinkage=self.l2_shrinkage)
        return _low.tw_train_ftrl(scope, variables, gradients, n, options)


class Groups(Optimizer):
    """Several optimizers, each for its own variables: Groups((Adam(1e-4), net.body), (Adam(1e-2), net.head)). Each pair is an optimizer,
    and a module, a variable or a list of these. A step of Groups is one training step for schedules."""

    def __init__(self, *groups: tuple[Optimizer, Any]):
        super().__init__(0.0)
        if not groups or not all(isinstance(g, tuple) and len(g) == 2 and isinstance(g[0], Optimizer) for g in groups):
            raise TypeError("groups are pairs of an optimizer, and its modules or variables")
        self.groups = groups

    def apply(self, gradients: Sequence[Gradient], variables: Sequence[Variable], *, clip: Optional[Clip] = None,
              count_steps: Optional[bool] = None) -> Operation:
        """As Optimizer.apply; clip works on the gradients of all groups together. Raises ValueError for a variable with a gradient that is
        in no group, or in two."""
        pairs = [(g, v) for g, v in zip(gradients, variables, strict=True) if g is not None]
        if not pairs:
            raise ValueError("there are no gradients to apply")
        changed = _clipped([g for g, _ in pairs], clip)
        owner: dict[int, int] = {}
        for i, (_, members) in enumerate(self.groups):
            for variable in _members(members):
                if owner.setdefault(variable.handle.number, i) != i:
                    raise ValueError(f"variable '{variable.name}' is in two groups")
        for _, variable in pairs:
            if variable.handle.number not in owner:
                raise ValueError(f"variable '{variable.name}' is in no group; add it to one, or give minimize the variables to train")
        steps: list[Operation] = []
        for i, (optimizer, _) in enumerate(self.groups):
            mine = [(g, v) for g, (_, v) in zip(changed, pairs) if owner[v.handle.number] == i]
            if mine:
                counts = count_steps if not steps else False
                steps.append(optimizer.apply([g for g, _ in mine], [v for _, v in mine], count_steps=counts))
        return group(*steps)


def _members(given: Any) -> list[Variable]:
    if isinstance(given, Variable):
        return [given]
    if isinstance(given, Module):
        return given.parameters(trainable=True)
    if isinstance(given, (list, tuple)):
        return [v for one in given for v in _members(one)]
    raise TypeError(f"{given!r} is neither a module nor a variable")


# ---- Changes to gradients before an optimizer; None stays None, sparse ones stay sparse ----

def accumulate_gradients(gradients: Sequence[Gradient], sub_batches: int, name: Optional[str] = None) -> tuple[list[Gradient], Operation]:
    """Returns the mean of the gradients over `sub_batches` sub-batches, for an optimizer, and the operation that adds those of one
    sub-batch. Run it once for each, at once or one after the other. The optimizer's step waits for all of them, and takes them.

        gradients, add = tw.train.accumulate_gradients(tw.gradients(loss, weights), 8)
        step = tw.train.SGD(0.1).apply(gradients, weights)"""
    changed, add, graph = _changed(gradients, lambda scope, raw: _low.tw_accumulate_gradients(scope, name and c_text(name), raw, len(raw), sub_batches))
    return changed, Operation(graph, add)


def clip_by_value(gradients: Sequence[Gradient], low: float, high: float) -> list[Gradient]:
    """Clips every element to [low, high]."""
    return _changed(gradients, lambda scope, raw: _low.tw_clip_by_value(scope, raw, len(raw), low, high))[0]


def clip_by_norm(gradients: Sequence[Gradient], max_norm: float) -> list[Gradient]:
    """Scales each gradient by itself: g max_norm / max(|g|, max_norm)."""
    return _changed(gradients, lambda scope, raw: _low.tw_clip_by_norm(scope, raw, len(raw), max_norm))[0]


def clip_by_global_norm(gradients: Sequence[Gradient], max_norm: float) -> tuple[list[Gradient], Output]:
    """Scales all gradients by max_norm / max(norm, max_norm), where norm is that of all together. Also returns the norm before clipping."""
    changed, norm, graph = _changed(gradients, lambda scope, raw: _low.tw_clip_by_global_norm(scope, raw, len(raw), max_norm))
    return changed, Output(graph, norm)


def decay_gradients(gradients: Sequence[Gradient], variables: Sequence[Variable], decay: float) -> list[Gradient]:
    """L2 regularisation: g + decay w, the gradient of loss + decay / 2 |w|^2. Only the rows of a sparse gradient decay."""
    if len(gradients) != len(variables):
        raise ValueError(f"there are {len(gradients)} gradients, but {len(variables)} variables")
    handles = _handles(variables)
    return _changed(gradients, lambda scope, raw: _low.tw_decay_gradients(scope, handles, raw, len(raw), decay))[0]


def _changed(gradients: Sequence[Gradient], change: Callable[[int, Any], Any]) -> tuple[list[Gradient], Any, Graph]:
    """Calls `change` on a copy of the list, and returns the copy, the result of `change`, and the graph."""
    some = [g.values if isinstance(g, SparseGradient) else g for g in gradients if g is not None]
    if not some:
        raise ValueError("there are no gradients")
    graph = some[0].graph
    raw = (_low.tw_gradient * len(gradients))(*map(_raw, gradients))
    with graph.building() as scope:
        answer = change(scope, raw)
    return [from_raw(graph, g) for g in raw], answer, graph


def fit(trainer: Trainer, data: Any, epochs: int = 1, callbacks: Any = (), **options: Any) -> History:
    """Trains: trainer.fit(data, epochs, callbacks, **options)."""
    return trainer.fit(data, epochs, callbacks, **options)


class Batches:
    """Batches of arrays of one length, in another order each epoch: tuples with a part of each array, or arrays if there is only one. The
    last batch of an epoch may be smaller.   size: rows of a batch.   seed: determines the order; None: always another order."""

    def __init__(self, *arrays: Any, size: int, epochs: int = 1, seed: Optional[int] = 0):
        lengths = {len(a) for a in arrays}
        if len(lengths) != 1 or lengths == {0}:
            raise ValueError(f"batches need arrays of one length, at least 1, not {', '.join(str(len(a)) for a in arrays) or 'none'}")
        if size < 1 or epochs < 0:
            raise ValueError(f"size {size} or epochs {epochs} is too small")
        self.arrays, self.size, self.epochs, self.seed = tuple(map(np.asarray, arrays)), size, epochs, seed

    def __len__(self) -> int:
        return self.epochs * math.ceil(len(self.arrays[0]) / self.size)

    def __iter__(self) -> Iterator[Any]:
        random = np.random.default_rng(self.seed)
        for _ in range(self.epochs):
            order = random.permutation(len(self.arrays[0]))
            for at in range(0, len(order), self.size):
                rows = order[at:at + self.size]
                batch = tuple(a[rows] for a in self.arrays)
                yield batch if len(batch) > 1 else batch[0]


def progress(steps: Iterable[Any], **options: Any) -> Any:
    """Wraps the steps in a progress bar of tqdm, which takes the options; without a bar if the package tqdm is not installed.
    The result has set_postfix(loss=...) in both cases; the bar shows the values when it is drawn next."""
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped]
    except ImportError:
        return _NoBar(steps)

    class Bar(tqdm):
        def set_postfix(self, ordered_dict: Any = None, refresh: bool = False, **values: Any) -> None:
            super().set_postfix(ordered_dict, refresh, **values)

    return Bar(steps, **{"unit": "step", **options})


class _NoBar:
    def __init__(self, steps: Iterable[Any]):
        self.steps = steps

    def __iter__(self) -> Iterator[Any]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)  # type: ignore[arg-type]

    def set_postfix(self, *_: Any, **__: Any) -> None:
        pass
