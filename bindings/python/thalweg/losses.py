"""Training losses over many classes, computed from the true classes of each example and a few classes drawn for the whole batch.

    loss = tw.ops.mean(thalweg.losses.sampled_softmax(weights, biases, labels, hidden, num_sampled=64), 0)

c_api/include/thalweg/sampled.h has the formulas."""
import ctypes
from collections.abc import Callable
from typing import Any, Optional

from . import _low, build
from .output import Formula, Output
from .random import next_seed
from .scopes import current
from .variable import Variable

__all__ = ["nce", "sampled_softmax"]


def __dir__() -> list[str]:
    return __all__


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
