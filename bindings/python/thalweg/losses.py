"""Training losses: over many classes, computed from the true classes of each example and a few classes drawn for the whole batch; and with
smoothed labels.

    loss = tw.ops.mean(thalweg.losses.sampled_softmax(weights, biases, labels, hidden, num_sampled=64), 0)
    loss = thalweg.losses.smoothed_softmax(logits, labels, 0.1).mean()

c_api/include/thalweg/sampled.h has the formulas of sampled losses."""
import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from . import _low, build, ops
from .output import Formula, Output
from .random import next_seed
from .scopes import current
from .variable import Variable

__all__ = ["nce", "sampled_softmax", "smoothed_softmax"]


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # a type checker would conclude from it that every name exists
    def __getattr__(name):
        from .op_functions import unknown
        raise AttributeError(unknown("losses", name, __all__))


def _add(function: Callable[..., int], values: list[Any], num_sampled: int, candidates: Optional[Output], seed: int,
         keep_hits: bool) -> Output:
    graph = build.graph_of(values) or current().graph
    given = [v.handle if isinstance(v, Variable) else v._value() if isinstance(v, Formula) else graph.constant(v) for v in values]
    options = _low.tw_sampled_loss(size=ctypes.sizeof(_low.tw_sampled_loss), candidates=candidates.number if candidates is not None else 0,
                                   num_sampled=num_sampled, seed=next_seed(graph, seed), keep_hits=keep_hits)
    with graph.building() as scope:
        made = function(scope, *(v.number for v in given), options)
    return Output(graph, made)


def sampled_softmax(weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: int = 64, *, candidates: Optional[Output] = None,
                    seed: int = 0, keep_hits: bool = False) -> Output:
    """Returns, for each example, the cross-entropy of the softmax over its true classes and the drawn ones: [batch].

    weights: [classes, n]; biases: [classes]: variables (their gradients are sparse) or values.   labels: [batch, true classes].
    inputs: [batch, n].   candidates: the first output of a candidate sampler; None: num_sampled different classes, small numbers more
    often.   keep_hits: True: a drawn class that is a true class of an example also counts as a wrong one."""
    return _add(_low.tw_sampled_softmax, [weights, biases, labels, inputs], num_sampled, candidates, seed, keep_hits)


def nce(weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: int = 64, *, candidates: Optional[Output] = None, seed: int = 0,
        keep_hits: bool = True) -> Output:
    """Noise-contrastive estimation: as sampled_softmax, but sums a logistic loss over the classes."""
    return _add(_low.tw_nce, [weights, biases, labels, inputs], num_sampled, candidates, seed, keep_hits)


def smoothed_softmax(logits: Any, labels: Any, smoothing: float = 0.1) -> Output:
    """Returns, for each example, the cross-entropy of softmax(logits) and a distribution that has the probability smoothing / classes for
    each class, and 1 - smoothing more for the label: [batch] (Szegedy et al., arXiv:1512.00567, section 7).

    logits: [batch, classes]; the number of classes must be known.   labels: integers [batch].   smoothing: from 0 to below 1."""
    if not 0 <= smoothing < 1:
        raise ValueError(f"smoothed_softmax: smoothing is {smoothing}; it must be 0 or more, and less than 1")
    shape = logits.shape
    if not shape or shape[-1] is None:
        raise ValueError(f"smoothed_softmax: the last axis of {logits!r} must be known; it says how many classes there are")
    number, classes = (np.float64 if logits.dtype == "float64" else np.float32), int(shape[-1])
    wanted = ops.one_hot(labels, classes, number(1 - smoothing + smoothing / classes), number(smoothing / classes))
    made: Output = ops.softmax_cross_entropy_with_logits(logits, wanted.astype(logits.dtype)).loss
    return made
