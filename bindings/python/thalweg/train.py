"""Training: optimizers, batches, and a progress bar around the loop.

    step = thalweg.train.Adam(0.001).minimize(loss)
    ...
    for bx, by in (bar := thalweg.train.progress(thalweg.train.Batches(images, labels, size=32, epochs=10))):
        bar.set_postfix(loss=s.run([loss, step], {x: bx, y: by})[0])"""
import ctypes
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Optional, Union

import numpy as np

from . import _low
from .gradients import Gradient, SparseGradient, raw
from .output import Formula, Operation, Output
from .variable import Variable


class Optimizer:
    """Updates variables by their gradients. learning_rate: a number, or a scalar value, so that a schedule may compute it."""

    def __init__(self, learning_rate: Any):
        self.learning_rate = learning_rate

    def minimize(self, loss: Output, variables: Optional[Sequence[Variable]] = None) -> Operation:
        """An operation to run once per training step, which makes a scalar loss smaller. variables: None: all trainable ones of real or
        complex numbers. Make the initializer after this, so that it covers what the optimizer remembers.
        Raises ValueError if the loss depends on none of them."""
        graph = loss.graph
        if variables is None:
            variables = [v for v in graph.variables() if v.trainable and (v.dtype.is_floating or v.dtype.is_complex)]
        found = raw(loss, variables)
        used = [i for i, g in enumerate(found) if g.values]
        if not used:
            raise ValueError(f"{loss!r} depends on none of the variables: {', '.join(v.name for v in variables) or 'there are none'}")
        kept = (_low.tw_gradient * len(used))(*(found[i] for i in used))
        return self._apply(graph, [variables[i] for i in used], kept)

    def apply(self, gradients: Sequence[Gradient], variables: Sequence[Variable]) -> Operation:
        """The same for gradients that were computed, and perhaps clipped, before; variables without one are left alone."""
        pairs = [(_raw(g), v) for g, v in zip(gradients, variables, strict=True) if g is not None]
        if not pairs:
            raise ValueError("there are no gradients to apply")
        return self._apply(pairs[0][1].graph, [v for _, v in pairs], (_low.tw_gradient * len(pairs))(*(g for g, _ in pairs)))

    def _apply(self, graph: Any, variables: list[Variable], gradients: Any) -> Operation:
        rate = self.learning_rate
        number = rate._value().number if isinstance(rate, Formula) else graph.constant(float(rate), variables[0].dtype).number
        handles = (ctypes.c_uint64 * len(variables))(*(v.handle.number for v in variables))
        with graph.building() as scope:
            made = self._add(scope, handles, gradients, len(variables), number)
        return Operation(graph, made)

    def _add(self, scope: int, variables: Any, gradients: Any, n: int, rate: int) -> int:
        raise NotImplementedError


def _raw(gradient: Union[Output, SparseGradient]) -> "_low.tw_gradient":
    if isinstance(gradient, SparseGradient):
        return _low.tw_gradient(gradient.values.number, gradient.rows.number)
    return _low.tw_gradient(gradient._value().number, 0)


class SGD(Optimizer):
    """Gradient descent: w -= learning_rate * g."""

    def __init__(self, learning_rate: Any = 0.01):
        super().__init__(learning_rate)

    def _add(self, scope: int, variables: Any, gradients: Any, n: int, rate: int) -> int:
        return _low.tw_train_sgd(scope, variables, gradients, n, rate)


class Momentum(Optimizer):
    """m = momentum * m + g; w -= learning_rate * m, or, with nesterov, w -= learning_rate * (g + momentum * m)."""

    def __init__(self, learning_rate: Any = 0.01, momentum: float = 0.9, nesterov: bool = False):
        super().__init__(learning_rate)
        self.momentum, self.nesterov = momentum, nesterov

    def _add(self, scope: int, variables: Any, gradients: Any, n: int, rate: int) -> int:
        options = _low.tw_momentum(size=ctypes.sizeof(_low.tw_momentum), learning_rate=rate, momentum=self.momentum, nesterov=self.nesterov)
        return _low.tw_train_momentum(scope, variables, gradients, n, options)


class Adam(Optimizer):
    """Adam (Kingma and Ba, arXiv:1412.6980), as TensorFlow's AdamOptimizer; see c_api/include/thalweg/train.h."""

    def __init__(self, learning_rate: Any = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, nesterov: bool = False):
        super().__init__(learning_rate)
        self.beta1, self.beta2, self.epsilon, self.nesterov = beta1, beta2, epsilon, nesterov

    def _add(self, scope: int, variables: Any, gradients: Any, n: int, rate: int) -> int:
        options = _low.tw_adam(size=ctypes.sizeof(_low.tw_adam), learning_rate=rate, beta1=self.beta1, beta2=self.beta2,
                               epsilon=self.epsilon, nesterov=self.nesterov)
        return _low.tw_train_adam(scope, variables, gradients, n, options)


class Batches:
    """Batches of arrays of one length, in another order each epoch: tuples of as many arrays, or arrays if there is one. The last batch of
    an epoch may be smaller.   size: rows of a batch.   seed: the same seed, the same order; None: always another."""

    def __init__(self, *arrays: np.ndarray, size: int, epochs: int = 1, seed: Optional[int] = 0):
        lengths = {len(a) for a in arrays}
        if len(lengths) != 1 or lengths == {0}:
            raise ValueError(f"batches need arrays of one length, at least 1, not {', '.join(str(len(a)) for a in arrays) or 'none'}")
        if size < 1 or epochs < 0:
            raise ValueError(f"size {size} or epochs {epochs} is too small")
        self.arrays, self.size, self.epochs, self.seed = arrays, size, epochs, seed

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
    """The steps, with a bar that shows how far they are: tqdm's, which takes the options, or none where the package tqdm is not installed.
    What it answers has set_postfix(loss=...) either way, which shows the values when the bar is drawn next."""
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
